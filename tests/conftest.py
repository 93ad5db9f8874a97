"""Shared by all tests: a network small enough for a test, and quiet notes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from diffbbo import EnsembleConfig


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def tiny() -> EnsembleConfig:
    """Trains in a fraction of a second: for tests of what surrounds the model, not of its quality."""
    return EnsembleConfig(hidden=32, layers=2, max_steps=60, check_every=20, sampling_steps=8)


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Threads that wait for each other on a busy machine make tests slower by far, and these networks are small."""
    torch.set_num_threads(1)
