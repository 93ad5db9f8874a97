"""Bring the studies of several storages together: what two machines measured becomes one table."""

from __future__ import annotations

import numpy as np

from .schema import Outcome, RoundRecord, StudyRecord
from .storage import Storage
from .types import StorageError


def merge(target: Storage, source: Storage) -> int:
    """Copy into `target` every finished round of `source` that it lacks; return how many.

    A study that both have must be the same study: same settings, same start data, same rounds as far as both go.
    Whatever is refused, nothing of it is written.
    """
    copied = 0
    for theirs in source.studies():
        finished = [entry for entry in source.rounds(theirs.id) if not len(entry.open)]
        mine = target.study(theirs.name) or _begin(target, source, theirs)
        with target.claim(mine):
            known = {entry.number: entry for entry in target.rounds(mine.id)}
            _check_same(theirs, mine, finished, known)
            for entry in finished:
                if entry.number not in known:
                    outcomes = [_outcome(entry, k) for k in range(len(entry.ids))]
                    target.add_round(mine.id, entry.number, entry.x, entry.member, entry.info, outcomes)
                    copied += 1
    return copied


def _begin(target: Storage, source: Storage, study: StudyRecord) -> StudyRecord:
    start = target.add_dataset(*source.dataset(study.start))
    target.add_study(
        study.name, task=study.task, method=study.method, seed=study.seed, minimize=study.minimize,
        settings=study.settings, space=study.space, start=start, environment=study.environment,
    )  # fmt: skip
    found = target.study(study.name)
    assert found is not None
    return found


def _check_same(
    theirs: StudyRecord, mine: StudyRecord, rounds: list[RoundRecord], known: dict[int, RoundRecord]
) -> None:
    for what in ("settings", "space", "start"):
        if getattr(theirs, what) != getattr(mine, what):
            raise StorageError(
                f"The two studies named {mine.name!r} have different {what}.", "Merge only parts of the same study."
            )
    for entry in rounds:
        other = known.get(entry.number)
        if other is not None and not (np.array_equal(entry.x, other.x) and _agree(entry, other)):
            raise StorageError(
                f"The two studies named {mine.name!r} differ in round {entry.number}: both machines went on with it.",
                "Keep one of them: remove the other file from the merge.",
            )


def _agree(a: RoundRecord, b: RoundRecord) -> bool:
    return np.array_equal(a.value, b.value, equal_nan=True)


def _outcome(entry: RoundRecord, k: int) -> Outcome:
    return Outcome(entry.status[k], float(entry.value[k]), entry.error[k], float(entry.seconds[k]))
