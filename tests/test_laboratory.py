"""history.csv in, next.csv out: what a spreadsheet may contain, and what it may not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from diffbbo import Categorical, DiffBBO, EnsembleConfig, Integer, Real, Sequence, Space, make_optimizer
from diffbbo.laboratory import read_history, write_batch
from diffbbo.types import InputError

SPACE = Space(
    (Real("temp", 20, 120), Integer("n", 1, 9), Categorical("solvent", ("water", "thf")), Sequence("dna", 3, "ACGT"))
)

GOOD = """temp,well,n,solvent,dna,yield,date
20.5,A1,3,thf,ACG,1.5,2026-01-01
30,A2,4,water,TTT,,2026-01-02
40,A3,5,thf,GGG,failed,2026-01-03
50,A4,6,water,CCC, NaN ,2026-01-04
60,A5,7,thf,AAA,-2e-3,2026-01-05
"""


def read(tmp_path: Path, text: str) -> object:
    path = tmp_path / "history.csv"
    path.write_bytes(text.encode())
    return read_history(path, SPACE, "yield")


def test_results_pending_failures_and_other_columns(tmp_path: Path) -> None:
    found = read(tmp_path, GOOD)
    assert np.array_equal(found.y, [1.5, np.nan, np.nan, -0.002], equal_nan=True)
    assert SPACE.dicts(found.pending) == [{"temp": 30.0, "n": 4, "solvent": "water", "dna": "TTT"}]
    assert SPACE.dicts(found.x)[0] == {"temp": 20.5, "n": 3, "solvent": "thf", "dna": "ACG"}
    assert found.ignored == ("well", "date")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace(",", ";"),
        lambda text: text.replace(",", "\t"),
        lambda text: text + "\n,,,,,,\n\n",
        lambda text: text.replace("failed", "FAILED").replace(",A1,", ', "A,1" ,'),
    ],
    ids=["byte order mark", "Windows lines", "semicolons", "tabs", "blank lines", "quotes and capitals"],
)
def test_what_spreadsheets_write_is_read_alike(tmp_path: Path, change: object) -> None:
    plain, other = read(tmp_path, GOOD), read(tmp_path, change(GOOD))
    assert np.array_equal(plain.x, other.x) and np.array_equal(plain.y, other.y, equal_nan=True)
    assert np.array_equal(plain.pending, other.pending)


def test_a_header_alone_is_a_beginning(tmp_path: Path) -> None:
    found = read(tmp_path, GOOD.splitlines()[0])
    assert len(found.y) == len(found.pending) == 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (GOOD, "", "is empty"),
        (GOOD, " \n\n", "is empty"),
        ("temp,", "temperature,", "no column 'temp'; it has temperature, well"),
        ("yield,", "result,", "no column 'yield'"),
        ("20.5,", "warm,", "Row 1, column 'temp': 'warm' is not a number"),
        ("40,", "400,", r"Row 3, column 'temp': '400' is outside its range 20 to 120"),
        ("20.5,", ",", "Row 1, column 'temp': '' is not a number"),
        (",3,thf", ",3.5,thf", "Row 1, column 'n': '3.5' is not a whole number"),
        ("thf,ACG", "dmso,ACG", "Row 1, column 'solvent': 'dmso' is not one of water, thf"),
        ("ACG", "ACGT", "Row 1, column 'dna': 'ACGT' has 4 letters instead of 3"),
        ("ACG", "ACX", "Row 1, column 'dna': 'ACX' contains 'X'"),
        ("1.5", "high", "Row 1, column 'yield': 'high' is not a finite number"),
        ("1.5", "inf", "Row 1, column 'yield': 'inf' is not a finite number"),
        ("date\n", "well\n", "two columns named 'well'"),
        ("2026-01-01", "a,b,c", "Row 1 of .* has 9 cells, the header 7"),
    ],
    ids=["empty", "blank", "variable missing", "objective missing", "text for a number", "out of range", "no value",
         "not whole", "unknown category", "wrong length", "wrong letter", "text result", "infinite result",
         "column twice", "too many cells"],
)  # fmt: skip
def test_bad_tables_are_refused_with_row_column_and_remedy(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, GOOD.replace(old, new, 1))
    assert caught.value.remedy


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_history(tmp_path / "none.csv", SPACE, "yield")
    (tmp_path / "latin.csv").write_bytes("temp,Stärke\n".encode("latin-1"))
    with pytest.raises(InputError, match="UTF-8"):
        read_history(tmp_path / "latin.csv", SPACE, "yield")


def test_an_objective_that_is_a_variable(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'temp' is also a variable"):
        read_history(tmp_path / "x.csv", SPACE, "temp") if (tmp_path / "x.csv").write_text(GOOD) else None


def test_what_is_written_is_read_back_as_pending(tmp_path: Path) -> None:
    batch = make_optimizer("random", SPACE).ask(7)
    write_batch(tmp_path / "new" / "next.csv", batch, SPACE, "yield")
    found = read_history(tmp_path / "new" / "next.csv", SPACE, "yield")
    assert np.array_equal(found.pending, batch.x), "the same designs, bit for bit, in order of merit"
    assert not list((tmp_path / "new").glob("*.part"))


ROUNDS = """temp,n,solvent,dna,yield,round
20,1,thf,ACG,1,2
30,2,thf,ACG,2,
40,3,thf,ACG,3,1.0
50,4,thf,ACG,failed,2
60,5,thf,ACG,,7
70,6,thf,ACG,4,0
"""


def test_a_column_of_rounds_tells_round_by_round(tmp_path: Path) -> None:
    """Known before: rows 2 and 6; then row 3; then rows 1 and 4. The last batch asked for was the seventh."""
    found = read(tmp_path, ROUNDS)
    assert (found.tells, found.next_round, found.ignored) == ((2, 1, 2), 8, ())
    optimizer = make_optimizer("random", SPACE)
    found.told_to(optimizer)
    assert optimizer.tells == (2, 1, 2)
    assert np.array_equal(optimizer.data.y, [2, 4, 3, 1, np.nan], equal_nan=True)
    assert optimizer.data.x[:, 1].tolist() == [2, 6, 3, 1, 4] and found.pending[:, 1].tolist() == [5]


@pytest.mark.parametrize("cell", ["B", "1.5", "-1", "nan", "inf"])
def test_rounds_that_are_no_whole_numbers_are_another_column(tmp_path: Path, cell: str) -> None:
    found = read(tmp_path, ROUNDS.replace("2\n", f"{cell}\n", 1))
    assert (found.tells, found.next_round, found.ignored) == ((5,), None, ("round",))


def test_without_rounds_all_is_told_at_once(tmp_path: Path) -> None:
    found = read(tmp_path, GOOD)
    assert (found.tells, found.next_round) == ((4,), None)
    beginning = read(tmp_path, ROUNDS.splitlines()[0])
    beginning.told_to(optimizer := make_optimizer("random", SPACE))
    assert beginning.next_round == 1 and len(optimizer.data) == 0, "a header alone begins with the first"


def test_a_variable_may_be_called_round(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("round,y\n1,0.5\n3,0.7\n")
    found = read_history(tmp_path / "h.csv", Space((Integer("round", 1, 9),)), "y")
    assert (found.x.ravel().tolist(), found.tells, found.next_round) == ([1, 3], (2,), None)


def test_the_loop_with_rounds_asks_what_a_running_optimizer_asks(tmp_path: Path, tiny: EnsembleConfig) -> None:
    """Three rounds through files, a new optimizer in each, against one that was never stopped."""
    space = Space((Real("a", 0, 1), Real("b", 0, 1)))
    path, running = tmp_path / "history.csv", DiffBBO(space, config=tiny, device="cpu")
    path.write_text("a,b,y,round\n0.1,0.2,0.3,\n0.4,0.8,1.2,\n0.9,0.9,1.8,\n")
    running.tell([{"a": 0.1, "b": 0.2}, {"a": 0.4, "b": 0.8}, {"a": 0.9, "b": 0.9}], [0.3, 1.2, 1.8])
    for k in range(1, 4):
        history = read_history(path, space, "y")
        fresh = DiffBBO(space, config=tiny, device="cpu")
        history.told_to(fresh)
        batch = fresh.ask(8)
        assert np.array_equal(batch.x, running.ask(8).x) and history.next_round == k
        assert fresh.tells == running.tells
        write_batch(tmp_path / "next.csv", batch, space, "y", history.next_round)
        lines = (tmp_path / "next.csv").read_text().splitlines()
        assert lines[0] == "a,b,y,round"
        values = -((batch.x - 0.6) ** 2).sum(axis=1)
        with path.open("a") as table:
            for line, value in zip(lines[1:], values, strict=True):
                a, b, _, round_ = line.split(",")
                table.write(f"{a},{b},{float(value)!r},{round_}\n")
        running.tell(batch, values)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    batch = make_optimizer("random", SPACE).ask(1)
    with pytest.raises(InputError, match="cannot be written"):
        write_batch(tmp_path / "file" / "next.csv", batch, SPACE, "yield")
