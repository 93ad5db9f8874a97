"""The page: complete, offline, safe against names, and right about the numbers."""

import json
import re
import sys
from html import escape
from html.parser import HTMLParser

import numpy as np
import pytest

import diffbbo as db
from diffbbo.logo import information, sequence_logo
from diffbbo.report import write_report
from diffbbo.schema import Outcome
from diffbbo.storage import Storage
from diffbbo.types import InputError, MissingExtraError, StorageError

MIXED = db.Space([
    db.Real("heat", 20, 120), db.Real("salt", 1e-3, 1, scale="log"), db.Integer("cycles", 1, 9),
    db.Categorical("solvent", ["water", "<b>thf</b>"]), db.Sequence("dna", 4, "ACGT"),
])  # fmt: skip
INFO = {
    "weight": 0.9, "target": 8.5, "epistemic": 0.2, "aleatoric": 3.0, "train_s": 1.0, "acquire_s": 0.5,
    "distinct": 0.75, "notes": ["four <i>designs</i> were drawn at random"],
}  # fmt: skip


@pytest.fixture
def storage(tmp_path):
    with Storage(tmp_path / "runs.db") as opened:
        yield opened


def add(storage, name="demo", rounds=(), *, minimize=False, info=INFO, space=MIXED):
    """Store a study whose rounds have these outcomes; None is a design without a result. Returns its rows."""
    rng = np.random.default_rng(0)
    start = storage.add_dataset(space.sample(3, rng), np.array([1.25, np.nan, 2.5]))
    storage.add_study(name, task="task", method="diffbbo", seed=0, minimize=minimize, settings={"batch": 4},
                      space=space.to_dict(), start=start, environment={"python": "3.11"})  # fmt: skip
    key, asked = storage.study(name).id, []
    for number, outcomes in enumerate(rounds, 1):
        asked.append(space.sample(len(outcomes), rng))
        storage.add_round(key, number, asked[-1], np.zeros(len(outcomes), np.intp), info)
        (entry,) = storage.rounds(key, number)
        told = [
            (one, Outcome("ok", got) if isinstance(got, float) else got)
            for one, got in zip(entry.ids, outcomes, strict=True) if got is not None
        ]  # fmt: skip
        if told:
            storage.add_results(told)
    return asked


class Page(HTMLParser):
    """A written page, taken apart: texts, table rows, scripts, figures and what it refers to."""

    def __init__(self, storage, tmp_path, name=None):
        super().__init__()
        write_report(storage, tmp_path / "page.html", name)
        self.html = (tmp_path / "page.html").read_text(encoding="utf-8")
        self.links, self.scripts, self.words, self.inside, self.rows = [], [], [], "", []
        self.feed(self.html)
        self.text = " ".join(self.words)
        found = re.match(r"const charts = (.*?);\s*\nconst draw", self.scripts[-1], re.DOTALL)
        self.figures = json.loads(found[1])
        self.titles = [figure["layout"]["title"]["text"] for figure in self.figures]

    def handle_starttag(self, tag, attributes):
        self.inside = tag
        self.links += [value for key, value in attributes if key in ("src", "href")]
        if tag == "script":
            self.scripts.append("")
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, data):
        if self.inside == "script":
            self.scripts[-1] += data
        elif self.inside != "style" and data.strip():
            self.words.append(data.strip())
            if self.inside in ("td", "th"):
                self.rows[-1].append(data)

    def figure(self, start):
        return next(f for f in self.figures if f["layout"]["title"]["text"].startswith(start))

    def top(self):
        """The best design's row of the table, by column."""
        head = next(k for k, row in enumerate(self.rows) if row[:1] == ["rank"])
        return dict(zip(self.rows[head], self.rows[head + 1], strict=True))

    def number(self, what):
        """The headline number of that name, and the words below it."""
        where = self.words.index(what)
        return self.words[where + 1], self.words[where + 2]


def test_a_whole_study(storage, tmp_path):
    asked = add(storage, rounds=[[1.0, 3.0, 7.0, 2.0], [4.0, 8.0, 5.0, Outcome("error", error="no <gas>")]])
    page = Page(storage, tmp_path)
    best = MIXED.dicts(asked[1][1:2])[0]
    assert page.number("best value") == ("8", "found in round 2")
    assert page.number("best of the start data") == ("2.5", "2 measured designs")
    assert page.number("finished rounds")[0] == "2"
    assert page.number("evaluations") == ("8", "different designs: 7")
    assert page.number("failures") == ("1", "error: 1")
    top = page.top()
    assert (top["value"], top["round"], top["position"], top["member"]) == ("8", "2", "2", "0")
    assert (top["dna"], top["solvent"], top["heat"]) == (best["dna"], best["solvent"], f"{best['heat']:.6g}")
    assert "measured" not in top  # every design was measured once
    assert "1 × no <gas>" in page.text and "Round 1: four <i>designs</i> were drawn at random" in page.text

    assert page.figure("Progress")["data"][-1]["y"] == [7.0, 8.0]
    assert page.figure("Progress")["data"][1]["y"] == [2.5, 2.5]
    assert page.figure("Values of each batch")["data"][0]["median"] == [2.5, 5.0]
    assert page.figure("Gap")["data"][0]["y"] == [1.5, 0.5]  # |8.5 - 7| and |8.5 - 8|
    assert [trace["y"] for trace in page.figure("Chosen w")["data"]] == [[0.9] * 2, [0.2] * 2, [3.0] * 2]
    assert [trace["y"] for trace in page.figure("Distinct")["data"]] == [[1.0] * 2, [0.75] * 2]
    assert [trace["y"] for trace in page.figure("Time")["data"]] == [[1.0] * 2, [0.5] * 2]
    axes = page.figure("Measured designs")["data"][0]["dimensions"]
    assert [axis["label"] for axis in axes] == ["heat", "salt", "cycles", "solvent", "value"]
    assert axes[-1]["values"] == [1, 2, 3, 4, 5, 7, 8]  # the best is drawn last, on top
    assert axes[1]["range"] == pytest.approx([-3, 0]) and axes[3]["ticktext"] == ["water", "<b>thf</b>"]


def test_every_figure_is_valid_plotly(storage, tmp_path):
    add(storage, rounds=[[1.0, 2.0], [3.0, 4.0]])
    graph_objects = pytest.importorskip("plotly.graph_objects")
    figures = Page(storage, tmp_path).figures
    assert len(figures) == 7
    for figure in figures:
        graph_objects.Figure(figure)


def test_the_page_is_offline_and_holds_plotly_once(storage, tmp_path):
    add(storage, "one", [[1.0, 2.0]])
    add(storage, "two", [[1.0, 2.0]])
    page = Page(storage, tmp_path)
    assert page.links == ["#study-0", "#study-1"]
    assert "@import" not in page.html.split("</style>")[0] and "url(" not in page.html.split("</style>")[0]
    assert "default-src 'none'" in page.html
    assert len(page.scripts) == 2 and len(re.findall(r"\* plotly\.js v", page.html)) == 1


def test_names_cannot_break_out(storage, tmp_path):
    name = "</script><script>alert(1)</script>"
    add(storage, name, [[1.0, 2.0]], space=db.Space([db.Real("</script>", 0, 1), db.Real('"><img src=x>', 0, 1)]))
    page = Page(storage, tmp_path)
    assert name not in page.html and escape(name) in page.html
    assert len(page.scripts) == 2 and page.links == []
    assert page.figure("Measured")["data"][0]["dimensions"][0]["label"] == "&lt;/script&gt;"


def test_a_minimised_study_shows_the_smallest_as_best(storage, tmp_path):
    add(storage, rounds=[[5.0, 3.0], [4.0, 2.0]], minimize=True)
    page = Page(storage, tmp_path)
    assert page.number("best value") == ("2", "found in round 2")
    assert page.number("best of the start data")[0] == "1.25"
    assert page.top()["value"] == "2" and "minimised" in page.text
    assert page.figure("Progress")["data"][-1]["y"] == [3.0, 2.0]
    assert page.figure("Measured")["data"][0]["line"]["reversescale"] is True


def test_a_study_without_rounds(storage, tmp_path):
    add(storage)
    page = Page(storage, tmp_path)
    assert "No round has been asked for yet." in page.text
    assert page.number("best value") == ("–", "none yet") and page.figures == []


def test_a_study_of_failures_only(storage, tmp_path):
    add(storage, rounds=[[Outcome("failed"), Outcome("timeout"), Outcome("failed")]])
    page = Page(storage, tmp_path)
    assert "Every evaluation so far has failed." in page.text
    assert page.number("failures") == ("3", "failed: 2, timeout: 1")
    assert "Progress" not in page.titles and "Distinct designs per batch" in page.titles


def test_a_round_in_progress(storage, tmp_path):
    add(storage, rounds=[[1.0, 2.0], [9.0, None]])
    page = Page(storage, tmp_path)
    assert "Round 2 is in progress: 1 of 2 designs are evaluated." in page.text
    assert page.number("best value") == ("9", "found in round 2") and page.number("finished rounds")[0] == "1"
    assert page.figure("Progress")["data"][-1]["y"] == [2.0]
    add(storage, "untouched", [[None, None]])
    assert "No evaluation has succeeded yet." in Page(storage, tmp_path, "untouched").text


def test_real_runs_without_a_model_leave_its_charts_out(storage, tmp_path):
    task = db.make_task("tfbind8")
    for method in ("random", "evolution"):
        study = db.Study(task, db.make_optimizer(method, task.space, seed=0), storage)
        found = study.run(2, 10)
        page = Page(storage, tmp_path, study.name)
        assert page.number("best value")[0] == f"{found[-1].best:.6g}" == page.top()["value"]
        assert "member" not in page.top()
        assert [title.split()[0] for title in page.titles] == ["Progress", "Values", "Distinct", "Time"]
    assert "2 studies" in Page(storage, tmp_path).text


def test_which_study(storage, tmp_path):
    with pytest.raises(StorageError, match=r"holds no study yet.*Run one first"):
        write_report(storage, tmp_path / "page.html")
    add(storage, "tfbind8-turbo-0")
    add(storage, "other")
    with pytest.raises(InputError, match=r"Did you mean 'tfbind8-turbo-0'\? Known: tfbind8-turbo-0, other"):
        write_report(storage, tmp_path / "page.html", "tfbind-turbo")
    assert not (tmp_path / "page.html").exists()
    with pytest.raises(InputError, match="cannot be written"):
        write_report(storage, tmp_path, "other")


def test_missing_plotly_names_the_extra(storage, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(MissingExtraError, match=r'pip install "diffbbo\[report\]"'):
        write_report(storage, tmp_path / "page.html")


def test_information_content():
    # Columns: one letter only, all four equally, half and half: 2, 0 and 1 bits.
    share, bits = information(np.array([[0, 0, 2], [0, 1, 2], [0, 2, 3], [0, 3, 3]]), 4)
    assert bits == pytest.approx([2, 0, 1])
    assert share.tolist() == [[1, 0, 0, 0], [0.25] * 4, [0, 0, 0.5, 0.5]]


def test_logo_draws_letters_to_scale():
    logo = sequence_logo(db.Sequence("a<b", 2, "ACGT"), np.array([[0, 2], [0, 3]]))
    assert "a&lt;b" in logo
    tall = {letter: float(scale) for scale, letter in re.findall(r'scale\(1 ([\d.]+)\)">(\w)', logo)}
    # A stands for 2 bits alone, G and T for half a bit each.
    assert set(tall) == {"A", "G", "T"}
    assert [tall["A"] / tall[letter] for letter in "GT"] == pytest.approx([4, 4], rel=1e-3)
