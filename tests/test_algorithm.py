"""Algorithm 1 as a whole: what must not change its answer, and what must."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from diffbbo import DiffBBO, EnsembleConfig, FixedWeight, Real, Sequence, Space, make_optimizer
from diffbbo.algorithm import DiffBBOPaper
from diffbbo.diffusion.config import resolve_preset
from diffbbo.types import DeviceError, InputError

SQUARE = Space((Real("a", 0, 1), Real("b", 0, 1)))
ALONE = partial(DiffBBO, without=("climb", "leap", "vary"))  # Algorithm 1 without the other proposers


def told(config: EnsembleConfig, y_of: object, minimize: bool = False, paper: bool = False) -> DiffBBO:
    cls = DiffBBOPaper if paper else ALONE
    optimizer = cls(SQUARE, seed=3, minimize=minimize, config=config, device="cpu")
    x = SQUARE.sample(60, np.random.default_rng(5))
    optimizer.tell(x, y_of(x))  # type: ignore[operator]
    return optimizer


def f(x: np.ndarray) -> np.ndarray:
    return x[:, 0] - (x[:, 1] - 0.5) ** 2


@pytest.mark.parametrize(("a", "b"), [(2.0, 0.0), (0.001, 5.0), (1234.5, -77.7), (3e8, 1e7)])
def test_an_affine_change_of_y_changes_nothing(tiny: EnsembleConfig, a: float, b: float) -> None:
    plain, scaled = told(tiny, f).ask(8), told(tiny, lambda x: a * f(x) + b).ask(8)
    assert np.array_equal(plain.x, scaled.x)
    assert scaled.info["weight"] == plain.info["weight"]
    assert np.isclose(scaled.info["target"], a * plain.info["target"] + b)


def test_minimising_y_is_maximising_minus_y(tiny: EnsembleConfig) -> None:
    up, down = told(tiny, f).ask(8), told(tiny, lambda x: -f(x), minimize=True).ask(8)
    assert np.array_equal(up.x, down.x)
    assert down.info["target"] == -up.info["target"], "the target is told in the user's own direction"


def test_the_papers_targets_are_raw(tiny: EnsembleConfig) -> None:
    """All y >= 0: y* = w * phi; with negative values: measured from the smallest."""
    positive = told(tiny, lambda x: f(x) + 10, paper=True)
    batch = positive.ask(5)
    phi = float((f(positive.data.x) + 10).max())
    assert np.isclose(batch.info["target"], batch.info["weight"] * phi)
    mixed = told(tiny, f, paper=True)
    y = f(mixed.data.x)
    batch = mixed.ask(5)
    assert np.isclose(batch.info["target"], y.min() + batch.info["weight"] * (y.max() - y.min()))


def test_conditioned_samples_climb_and_stay_on_the_manifold() -> None:
    """Data on a circle of radius 1 inside the square [-2, 2]^2, f = height.

    Aiming at w = 1 must lift the mean of f above that at w = 0.6, and both above the data's (0), with at least 90 % of
    the designs within 0.2 of the circle; of uniform designs 15.7 % would be (an annulus of area 2.51 in 16).
    """
    space = Space((Real("a", -2, 2), Real("b", -2, 2)))
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 800)
    x = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    config = EnsembleConfig(hidden=64, max_steps=1500, members=3)
    heights = []
    for w in (0.6, 1.0):
        optimizer = ALONE(space, acquisition=FixedWeight(w), config=config, device="cpu")
        optimizer.tell(x, x[:, 1])
        z = optimizer.ask(200).x
        assert (np.abs(np.linalg.norm(z, axis=1) - 1) < 0.2).mean() > 0.9
        heights.append(z[:, 1].mean())
    assert heights[1] > heights[0] + 0.3 > 0.3
    assert heights[1] > 0.8


def test_what_a_round_records(tiny: EnsembleConfig) -> None:
    info = told(tiny, f).ask(8).info
    assert {"weight", "target", "epistemic", "aleatoric", "train_s", "acquire_s", "candidates", "distinct"} <= set(info)
    assert len(info["candidates"]["alpha"]) == 5
    assert info["weight"] == info["candidates"]["weight"][int(np.argmax(info["candidates"]["alpha"]))]
    assert info["candidates"]["alpha_standard_error"] is not None


def test_every_design_knows_its_member(tiny: EnsembleConfig) -> None:
    batch = told(tiny, f).ask(20)
    assert sorted(np.bincount(batch.member, minlength=5).tolist()) == [4, 4, 4, 4, 4]


@pytest.mark.parametrize(
    ("rows", "word"),
    [(0, "no measured design"), (1, "only 1 measured"), (5, "All 5 measured")],
    ids=["none", "one", "constant"],
)
def test_without_anything_to_learn_the_batch_fills_the_space(
    rows: int, word: str, caplog: pytest.LogCaptureFixture
) -> None:
    optimizer = DiffBBO(SQUARE, device="cpu")
    optimizer.tell(SQUARE.sample(rows, np.random.default_rng(0)), np.full(rows, 2.0))
    with caplog.at_level(logging.WARNING, logger="diffbbo"):
        logging.getLogger("diffbbo").propagate = True
        batch = optimizer.ask(10)
    assert word in batch.info["notes"][0] and word in caplog.text
    if rows:  # a Latin hypercube: one design in each tenth of each variable (the first batch: tests/test_default.py)
        assert all(sorted((batch.x[:, k] * 10).astype(int)) == list(range(10)) for k in (0, 1))


def test_a_collapsed_model_is_noticed(tiny: EnsembleConfig) -> None:
    """Nine rows of one word and one of another: the model can hardly say anything else."""
    space = Space((Sequence("dna", 4, "AC"),))
    optimizer = DiffBBO(space, config=tiny, device="cpu")
    words = ["AAAA", "AAAC"]
    optimizer.tell([{"dna": word} for word in words], [1.0, 2.0])
    batch = optimizer.ask(10)
    assert len({design["dna"] for design in batch}) == 10 and not {*words} & {design["dna"] for design in batch}
    if batch.info["distinct"] < 0.5:
        assert any("collapsed" in note for note in batch.info["notes"])


def test_a_training_that_explodes_is_told(tiny: EnsembleConfig) -> None:
    """A learning rate of 1e30 gives infinite weights at once; the batch is still valid, and says so."""
    batch = told(replace(tiny, learning_rate=1e30), f).ask(4)
    SQUARE.check(batch.x)
    assert any("5 of 5 members could not be trained" in note for note in batch.info["notes"])


def test_presets_by_hardware() -> None:
    assert resolve_preset("auto", "cpu") == "fast" and resolve_preset("auto", "cuda") == "paper"
    paper = DiffBBO.paper(SQUARE, preset="paper", device="cpu")
    assert isinstance(paper, DiffBBOPaper)
    stated = {"hidden": 1024, "learning_rate": 1e-3, "batch": 256, "gamma": 2.0, "members": 5, "p_uncond": 0.15,
              "validation": 0.1, "epochs": 1000, "sampler": "euler-maruyama", "sampling_steps": 1000}  # fmt: skip
    assert {key: getattr(paper.config, key) for key in stated} == stated
    fast = DiffBBO(SQUARE, preset="fast", device="cpu").config
    assert fast == replace(EnsembleConfig(), max_steps=800, learning_rate=4e-3, ema=0.98, sampling_steps=40, gamma=0.5)
    assert DiffBBO(SQUARE, device="cpu").config == fast  # on any hardware


def test_bad_settings() -> None:
    with pytest.raises(InputError, match=r"'tiny'.*auto, fast, paper"):
        DiffBBO(SQUARE, preset="tiny")
    with pytest.raises(InputError, match="hidden = 0"):
        EnsembleConfig(hidden=0)
    with pytest.raises(InputError, match="'heun'"):
        EnsembleConfig(sampler="heun")
    with pytest.raises(DeviceError, match="'tpu'"):
        _ = DiffBBO(SQUARE, device="tpu").config


def test_cuda_where_there_is_none() -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    with pytest.raises(DeviceError, match=r"no usable CUDA device.*'cpu' or 'auto'"):
        _ = make_optimizer("diffbbo", SQUARE, device="cuda").settings()
