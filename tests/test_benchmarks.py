"""The benchmarks at tiny sizes: what they count by hand, that both sides do the same work, files and page. No times."""

from __future__ import annotations

import json
import math
import struct
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import ask, draws, imports, rows, step, storing
from benchmarks import round as round_
from benchmarks.__main__ import SUBJECTS, main
from benchmarks.common import Found, Machine, Target, Times, in_turns, kind_of, told
from benchmarks.figure import duration, spread
from diffbbo import DiffBBO, EnsembleConfig, encoding, proposers, variation
from diffbbo.diffusion.network import Network
from diffbbo.diffusion.sde import VPSDE

MACHINE = Machine("cpu0", "cpu", 1, "none", 1.0, "", "none")
TINY = EnsembleConfig(members=2, hidden=8, layers=2, batch=16, max_steps=5, sampling_steps=3)
SIZES = {
    "step": partial(step.measure, size=step.Size(hidden=(8,), steps=100, rows=50, repeats=2, square=16)),
    "draws": partial(draws.measure, size=draws.Size(rows=50, draws=20, sets=2, slow=30, train=3)),
    "round": partial(
        round_.measure,
        size=round_.Size(tasks=("tfbind8",), paper=(("tfbind8", 40),), repeats=1, batch=4, config=TINY, anywhere=True),
    ),
    "rows": partial(rows.measure, size=rows.Size(rows=(60,), repeats_largest=1, batch=5, task="levy-2", train=3)),
    "imports": partial(imports.measure, size=imports.Size(repeats=1, commands=("python alone", "import diffbbo"))),
    "storing": partial(storing.measure, size=storing.Size(rounds=3, batch=4, single=2)),
    "ask": partial(ask.measure, size=ask.Size(rows=(30,), batch=3, repeats=1, task="levy-2", config=TINY, effort=0.05)),
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("bench")
    assert list(SIZES) == list(SUBJECTS)
    main(["run", "--root", str(root), "--out", str(root / "results" / "benchmark_cpu0.json")], SIZES)
    return root


# ---- repeats and targets ---------------------------------------------------------------------------------


def test_repeats_take_turns_after_a_warm_up() -> None:
    order: list[str] = []

    def work(name: str, value: float) -> float:
        order.append(name)
        return value * len(order)

    times = in_turns({"a": partial(work, "a", 1.0), "b": partial(work, "b", 1.0)}, 2)
    assert order == ["a", "b"] * 3
    assert times["a"].values == (3.0, 5.0) and times["b"].values == (4.0, 6.0)
    assert times["b"].over(times["a"]).values == (4 / 3, 6 / 5)


def test_a_record_holds_median_and_quartiles() -> None:
    record = Times((5.0, 1.0, 2.0, 3.0, 4.0)).record()
    assert record == {"median": 3.0, "low": 2.0, "high": 4.0, "repeats": 5}
    assert spread(record) == "3 s (2 s to 4 s)" and spread(Times((0.5,)).record()) == "500 ms (once)"
    assert [duration(value) for value in (2.5, 0.0025, 2.5e-6)] == ["2.5 s", "2.5 ms", "2.5 us"]


@pytest.mark.parametrize(
    ("value", "at_least", "met"), [(2.0, True, True), (0.5, True, False), (2.0, False, False), (0.5, False, True)]
)
def test_a_target_has_a_side(value: float, at_least: bool, met: bool) -> None:
    assert Target("what", value, 1.0, at_least).record()["met"] is met


@pytest.mark.parametrize(
    ("gpu", "kind"),
    [("NVIDIA H200", "h200"), ("NVIDIA A100-SXM4-80GB", "a100"), ("NVIDIA GeForce RTX 4090", "4090"), ("", "cpu2")],
)
def test_the_kind_of_a_machine(gpu: str, kind: str) -> None:
    assert kind_of(gpu, 2) == kind


# ---- what a step must do ---------------------------------------------------------------------------------


def test_operations_are_counted_as_by_hand() -> None:
    # Widths 3, 4, 2 and a batch of 5. Forward 5*(12 + 8) = 100; weights as much; inputs of the last layer 5*8 = 40.
    shapes = step.products([3, 4, 2], 5)
    assert shapes == [(5, 3, 4), (5, 4, 2), (3, 5, 4), (4, 5, 2), (5, 2, 4)]
    assert step.multiply_adds(shapes, 1) == 240
    assert step.multiply_adds(shapes, 7) == 7 * 5 * (3 * (12 + 8) - 12)  # the page's formula
    assert step.parameters([3, 4, 2], 7) == 7 * (12 + 4 + 8 + 2)


def test_torch_counts_the_same_operations() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    config = EnsembleConfig(members=2, hidden=8, layers=3, batch=5)
    network = Network(3, config)
    weights = [w.requires_grad_() for w in network.init(torch.Generator().manual_seed(0))]
    x, one = torch.zeros(2, 5, 3), torch.ones(2, 5, 1)
    with FlopCounterMode(display=False) as counter:
        network(weights, x, one, one, one).sum().backward()
    assert counter.get_total_flops() == 2 * step.multiply_adds(step.products(network.sizes, 5), 2)


def test_the_plain_network_is_ours() -> None:
    network = Network(3, EnsembleConfig(members=1, hidden=8))
    plain, generator = step.Plain(network), torch.Generator().manual_seed(0)
    weights = [part[None] for layer in plain.layers for part in (layer.weight.T, layer.bias[None])]
    x = torch.randn(6, 3, generator=generator)
    t, y = torch.rand(2, 6, 1, generator=generator)
    keep = (torch.arange(6) % 2).float()[:, None]
    ours = network(weights, x[None], t[None], y[None], keep[None])[0]
    torch.testing.assert_close(plain(x, t, y, keep), ours)


def test_plain_steps_learn() -> None:
    """300 steps on one point halve the loss of doing nothing: both sides of the comparison train."""
    torch.manual_seed(0)
    config = EnsembleConfig(members=1, hidden=16, batch=64)
    model = step.Plain(Network(2, config))
    z, y = torch.full((8, 2), 1.5), torch.zeros(8, 1)

    def loss() -> float:
        t, eps, keep = torch.linspace(0.1, 0.9, 200)[:, None], torch.randn(200, 2), torch.ones(200, 1)
        sde = VPSDE()
        with torch.no_grad():
            return float((eps - model(sde.alpha(t) * 1.5 + sde.sigma(t) * eps, t, 0 * t, keep)).square().mean())

    before = loss()
    adam = torch.optim.Adam(model.parameters(), lr=config.learning_rate, fused=True)
    average = [torch.zeros_like(w) for w in model.parameters()]
    for _ in range(300):
        step.plain_step(model, adam, average, z, y, config)
    assert loss() < before / 2
    assert all(bool((a != 0).any()) for a in average)


# ---- equal quality -----------------------------------------------------------------------------------------


def test_the_exact_denoiser_is_the_score_of_the_mixture() -> None:
    sde, t = VPSDE(), torch.tensor(0.3, dtype=torch.float64)
    x = torch.randn(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    alpha, sigma = sde.alpha(t), sde.sigma(t)
    v = alpha**2 * draws.WIDTH**2 + sigma**2
    offset = x[:, None] - alpha * torch.tensor(draws.MODES, dtype=torch.float64)
    density = torch.logsumexp(torch.tensor(draws.SHARES).double().log() - (offset**2).sum(-1) / (2 * v), dim=1)
    (score,) = torch.autograd.grad(density.sum(), x)
    torch.testing.assert_close(draws.exact_denoiser(sde, "cpu")(x, t), -sigma * score)


def test_energy_distance_of_points() -> None:
    # Between {0, 2} and {1, 1}: 2 * 1 - 2 - 0 = 0; between {0, 0} and {3, 3}: 2 * 3.
    a, b, c = (torch.tensor(values).double()[:, None] for values in ([0.0, 2.0], [1.0, 1.0], [3.0, 3.0]))
    np.testing.assert_allclose(draws.energy_distances([a, c], [b]), [0.0, 2 * 2.0])
    np.testing.assert_allclose(draws.energy_distances([torch.zeros_like(c)], [c, b]), [4.0])


# ---- where the time of an ask goes -------------------------------------------------------------------------


def test_only_the_outermost_function_is_timed() -> None:
    watch = rows.Stopwatch()
    inner = watch.wrap("encoding", lambda: 1)
    outer = watch.wrap("validation", lambda: inner() + 1)
    assert outer() == 2
    assert watch.parts["encoding"] == 0.0 and watch.parts["validation"] > 0.0
    inner()
    assert watch.parts["encoding"] > 0.0


def test_timed_functions_answer_the_same() -> None:
    task, x, _ = told(20, "levy-2")
    plain = encoding.Encoder.fit(task.space, x).encode(x), variation.scaled(task.space, x)
    watch = rows.Stopwatch()
    original = variation.scaled
    watch.install()
    try:
        assert proposers.scaled is not original  # also where it was imported by name
        timed = encoding.Encoder.fit(task.space, x).encode(x), variation.scaled(task.space, x)
    finally:
        watch.uninstall()
    assert proposers.scaled is original is variation.scaled
    for a, b in zip(plain, timed, strict=True):
        np.testing.assert_array_equal(a, b)
    assert watch.parts["encoding"] > 0.0


# ---- files and page ----------------------------------------------------------------------------------------


def test_every_subject_leaves_its_rows(ran: Path) -> None:
    result = json.loads((ran / "results" / "benchmark_cpu0.json").read_text())
    found = result["subjects"]
    assert list(found) == list(SIZES) and not any(one["missing"] for one in found.values())
    assert {name: len(one["rows"]) for name, one in found.items()} == {
        "step": 1, "draws": 2, "round": 2, "rows": 1, "imports": 2, "storing": 6, "ask": 1,
    }  # fmt: skip
    (measured,) = found["step"]["rows"]
    # levy-20: 20 features, 16 of time and 2 of the score; three hidden layers of 8, M = 5.
    batch = DiffBBO(told(1)[0].space, device="cpu").config.batch
    widths = 38 * 8 + 8 * 8 + 8 * 8 + 8 * 20
    assert measured["operations"] == 2 * 5 * batch * (3 * widths - 38 * 8)
    assert measured["bytes"] == 4 * 10 * 5 * (widths + 3 * 8 + 20)
    assert measured["batched_s"]["repeats"] == 2
    assert [row["steps"] for row in found["round"]["rows"]] == 2 * [TINY.max_steps]
    assert all(math.isfinite(t["value"]) for one in found.values() for t in one["targets"])
    assert "machine" in result and "host" not in result["machine"]


def test_only_some_subjects_are_measured_again(ran: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = ran / "results" / "again.json"
    path.write_text((ran / "results" / "benchmark_cpu0.json").read_text())
    calls: list[str] = []

    def measured(name: str, machine: Machine) -> Found:
        calls.append(name)
        return Found([{"what": name}])

    main(["run", "--only", "stor", "--out", str(path)], {name: partial(measured, name) for name in SIZES})
    assert calls == ["storing"]
    result = json.loads(path.read_text())
    assert result["subjects"]["storing"]["rows"] == [{"what": "storing"}] and len(result["subjects"]) == len(SIZES)
    path.unlink()
    with pytest.raises(SystemExit, match="no subject like nothing"):
        main(["run", "--only", "nothing"], SIZES)


def test_draw_fills_the_page(ran: Path) -> None:
    page = ran / "docs" / "performance.md"
    page.parent.mkdir(exist_ok=True)
    page.write_text((Path(__file__).parents[1] / "docs" / "performance.md").read_text())
    main(["draw", "--root", str(ran)])
    text = page.read_text()
    for part in ("machines", "figure", "targets", *SIZES):
        assert f"<!-- benchmark:{part} -->\n" in text
    filled = [block.partition("<!-- end -->")[0] for block in text.split("<!-- benchmark:")[1:]]
    assert not any("Not run yet" in block for block in filled)
    assert "| cpu0 | 8 |" in text and "## Storage" in text  # the rest of the page stays
    image = (ran / "docs" / "images" / "results" / "benchmark.png").read_bytes()
    width, height = struct.unpack(">II", image[16:24])
    assert image[:4] == b"\x89PNG" and width > 1000 and height > 300
    assert (ran / "docs" / "images" / "results" / "benchmark.svg").stat().st_size > 1000


def test_without_results_the_page_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["draw", "--root", str(tmp_path)])
    assert capsys.readouterr().out.count("*Not run yet.*") == 3 + len(SIZES)


def test_the_papers_size_waits_for_a_gpu() -> None:
    assert round_.measure(MACHINE, round_.Size(tasks=())) == Found()
