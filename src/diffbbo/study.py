"""The only outer loop: ask, record, evaluate, record, tell. Run it again and it goes on where it stopped."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from . import __version__
from .backends import Backend, default_backend
from .optimizer import Optimizer, best_of
from .progress import report
from .schema import RoundRecord, StudyRecord
from .storage import Storage
from .task import Task
from .types import Array, Best, Dataset, ExhaustedError, InputError, SettingsError, row_keys


@dataclass(frozen=True)
class RoundSummary:
    """One finished round in numbers. `best` is the best value found by queries, start data excluded."""

    round: int
    best: float | None
    batch_mean: float | None
    batch_max: float | None  # the best value of the batch (the smallest, where the task is minimised)
    weight: float | None
    epistemic: float | None
    aleatoric: float | None
    gap: float | None  # |y* - best value of the batch|, Theorem 2
    train_s: float | None
    acquire_s: float | None
    distinct: int  # different designs in the batch
    distinct_drawn: float | None  # share of different designs among the first the model drew
    failures: int
    fallback: int
    facts: dict[str, float]  # what the task says of the batch beside its values, such as a share of possible designs
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Study:
    """A task, an optimizer and a storage under one name.

    Every asked design is stored before it is evaluated and every result as it arrives, so a killed run loses nothing
    but what was in flight. `run` again with the same settings goes on; with others it is refused, and so is a second
    process while the first is running.
    """

    def __init__(
        self,
        task: Task,
        optimizer: Optimizer,
        storage: str | Path | Storage = "sqlite:///diffbbo.db",
        name: str | None = None,
        backend: Backend | None = None,
    ) -> None:
        if task.space != optimizer.space:
            raise InputError("The task and the optimizer have different spaces.", "Make it from task.space.")
        if task.minimize != optimizer.minimize:
            raise InputError(
                f"The task has minimize={task.minimize}, the optimizer minimize={optimizer.minimize}.",
                "Give both the same direction.",
            )
        self.task, self.optimizer = task, optimizer
        self.storage = storage if isinstance(storage, Storage) else Storage(storage)
        self.name = name or f"{task.name}-{optimizer.name}-{optimizer.seed}"
        self.backend = backend or default_backend(task)
        self._told = 0  # rounds this optimizer has been told
        self._start: tuple[Array, Array] | None = None
        self._queried = Dataset.empty(task.space.dimension)

    @property
    def _sign(self) -> int:
        """Inside, everything is maximised; storage holds what the oracle said."""
        return -1 if self.task.minimize else 1

    @property
    def finished(self) -> int:
        """How many finished rounds are stored."""
        record = self.storage.study(self.name)
        return 0 if record is None else sum(not len(entry.open) for entry in self.storage.rounds(record.id))

    @property
    def best(self) -> Best | None:
        """The best design found by this study's own queries, start data excluded; None before the first."""
        return best_of(self._queried, self.task.space, self.task.minimize)

    def run(self, rounds: int = 16, batch: int = 100) -> list[RoundSummary]:
        """Go on until `rounds` rounds of `batch` designs are stored, and return them all."""
        return list(self.steps(rounds, batch))

    def steps(self, rounds: int = 16, batch: int = 100) -> Iterator[RoundSummary]:
        """The same, yielding every round as it is finished; stored ones come at once."""
        for what, value in (("rounds", rounds), ("batch", batch)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InputError(f"{what} = {value!r} is not a positive number.", "Give at least 1.")
        record = self._open(batch)
        self._check_room(rounds, batch)
        with self.storage.claim(record):
            yield from self._rounds(record, rounds, batch)

    def _rounds(self, record: StudyRecord, rounds: int, batch: int) -> Iterator[RoundSummary]:
        stored = {entry.number: entry for entry in self.storage.rounds(record.id)}
        self._queried = Dataset.empty(self.task.space.dimension)
        for number in range(1, rounds + 1):
            report("round", (number - 1) / rounds)
            if number not in stored:
                asked = self.optimizer.ask(batch)
                info = asked.info | {"facts": self.task.facts(asked.x)}
                self.storage.add_round(record.id, number, asked.x, asked.member, info)
                # Read back what was written: from here on a fresh and a resumed run are the same.
                (stored[number],) = self.storage.rounds(record.id, number)
            entry = stored.pop(number)
            if len(entry.open):
                self._evaluate(record, entry)
                (entry,) = self.storage.rounds(record.id, number)
            if number > self._told:
                self.optimizer.tell(entry.x, entry.value)
                self._told = number
            self._queried = self._queried.extended(entry.x, self._sign * entry.value)
            yield _summary(entry, self._queried, self._sign)
        report("round", 1.0)

    def _evaluate(self, record: StudyRecord, entry: RoundRecord) -> None:
        """Evaluate the designs of a round that have no result, and store each result as it arrives."""
        total, done = len(entry.ids), len(entry.ids) - len(entry.open)
        for position, outcome in self.backend.evaluate(self.task, entry.x[entry.open]):
            self.storage.add_results([(entry.ids[entry.open[position]], outcome)], record.id)
            done += 1
            report("evaluating", done / total)

    def _open(self, batch: int) -> StudyRecord:
        """The stored study of this name, begun now or found with the same settings."""
        if self._start is None:
            if not len(self.optimizer.data):
                self.optimizer.tell(*self.task.start(self.optimizer.seed))
            self._start = self.optimizer.data.x, self._sign * self.optimizer.data.y
        start = self.storage.add_dataset(*self._start)
        settings = _as_json({"task": self.task.name, "batch": batch} | self.optimizer.settings())
        space = _as_json(self.task.space.to_dict())
        record = self.storage.study(self.name)
        if record is None:
            self.storage.add_study(
                self.name, task=self.task.name, method=str(settings["method"]), seed=self.optimizer.seed,
                minimize=self.task.minimize, settings=settings, space=space, start=start,
                environment=_environment(self.optimizer),
            )  # fmt: skip
            record = self.storage.study(self.name)
            assert record is not None
        old = _flat(record.settings | {"space": record.space, "start data": record.start})
        new = _flat(settings | {"space": space, "start data": start})
        changed = [key for key in old | new if old.get(key) != new.get(key)]
        if changed:
            what = "; ".join(f"{key}: {_short(old.get(key))} stored, {_short(new.get(key))} now" for key in changed[:5])
            raise SettingsError(
                f"The study {self.name!r} was begun with other settings ({what}).",
                "Use the stored ones, or give the new study another name.",
            )
        return record

    def _check_room(self, rounds: int, batch: int) -> None:
        """Refuse at once what would run out of designs in the middle."""
        size = self.task.space.size
        if size is None or self.optimizer.repeats or self._start is None:
            return
        left = size - len(set(row_keys(self._start[0])))
        if rounds * batch > left:
            raise ExhaustedError(
                f"{rounds} rounds of {batch} need {rounds * batch} designs; beside the start data there are {left}.",
                f"Use at most {left // batch} rounds of {batch}, or a smaller batch.",
            )


def summaries(rounds: list[RoundRecord], minimize: bool) -> list[RoundSummary]:
    """The finished rounds of a stored study in numbers."""
    sign = -1 if minimize else 1
    queried: Dataset | None = None
    found = []
    for entry in rounds:
        if len(entry.open):
            break
        queried = Dataset.empty(entry.x.shape[1]) if queried is None else queried
        queried = queried.extended(entry.x, sign * entry.value)
        found.append(_summary(entry, queried, sign))
    return found


def _summary(entry: RoundRecord, queried: Dataset, sign: int) -> RoundSummary:
    info = entry.info
    measured = sign * entry.value[np.isfinite(entry.value)]
    everything = queried.distinct()
    best = float(sign * everything.phi) if len(everything) else None
    batch_max = float(sign * measured.max()) if len(measured) else None
    target = info.get("target")
    return RoundSummary(
        round=entry.number,
        best=best,
        batch_mean=float(sign * measured.mean()) if len(measured) else None,
        batch_max=batch_max,
        weight=info.get("weight"),
        epistemic=info.get("epistemic"),
        aleatoric=info.get("aleatoric"),
        gap=abs(target - batch_max) if target is not None and batch_max is not None else None,
        train_s=info.get("train_s"),
        acquire_s=info.get("acquire_s", info.get("ask_s")),
        distinct=len(set(row_keys(entry.x))),
        distinct_drawn=info.get("distinct"),
        failures=int(len(entry.value) - len(measured)),
        fallback=info.get("fallback", 0),
        facts=info.get("facts", {}),
        notes=tuple(info.get("notes", ())),
    )


def in_words(facts: dict[str, float]) -> str:
    """What a task says of a batch, as "possible 0.42"."""
    return ", ".join(f"{name} {value:.4g}" for name, value in facts.items())


def _as_json(value: dict[str, Any]) -> dict[str, Any]:
    """What a storage gives back of `value`: only that can be compared with it."""
    same: dict[str, Any] = json.loads(json.dumps(value))
    return same


def _flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted names."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _environment(optimizer: Optimizer) -> dict[str, Any]:
    gpu = ""
    if getattr(optimizer, "device", "") == "cuda":
        import torch

        gpu = torch.cuda.get_device_name()
    return {
        "diffbbo": __version__, "python": platform.python_version(), "torch": version("torch"),
        "numpy": np.__version__, "machine": platform.machine(), "system": platform.system(), "cores": os.cpu_count(),
        "threads": int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1), "gpu": gpu,
    }  # fmt: skip
