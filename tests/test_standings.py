"""Ranks, intervals and paired differences, against numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from diffbbo.standings import Interval, differences, mean_ranks, standings


def rows(method: str, curves: dict[int, list[float | None]], task: str = "tfbind8") -> list[dict[str, Any]]:
    return [
        {"task": task, "method": method, "seed": seed, "batch": 10, "round": k, "best": best, "distinct": 5,
         "batch_mean": 1.0, "train_s": 2.0, "acquire_s": None}
        for seed, curve in curves.items()
        for k, best in enumerate(curve, 1)
    ]  # fmt: skip


A = rows("a", {0: [1.0, 3.0], 1: [2.0, 2.0]})  # final 3 and 2, area 2 and 2
B = rows("b", {0: [0.0, 3.9], 1: [0.0, 3.9]})  # final 3.9, area 1.95


def test_standings_by_hand() -> None:
    first, second = standings(A + B)
    assert (first.method, first.rank, first.best.mean, first.area.mean) == ("a", 1, 2.5, 2.0)
    assert (second.method, second.rank, second.best, second.area.mean) == ("b", 2, Interval(3.9, 3.9, 3.9), 1.95)
    assert first.best == Interval(2.5, 2.0, 3.0)  # of two seeds, a resample holds either twice with chance 1/4
    assert (first.distinct, first.batch_mean, first.seconds) == (0.5, 1.0, 2.0)


def test_one_slow_round_does_not_count() -> None:
    assert standings([*A, A[0] | {"round": 3, "acquire_s": 1000.0}])[0].seconds == 2.0


def test_where_less_is_better_the_smaller_area_is_first() -> None:
    first, _ = standings(rows("a", {0: [3.0]}, "branin") + rows("b", {0: [1.0]}, "branin"))
    assert first.method == "b"


def test_differences_are_paired_and_point_the_right_way() -> None:
    """Seeds 0 and 1 are common: area 2 - 1.95 twice, final 3 - 3.9 and 2 - 3.9."""
    (d,) = differences(A + B + rows("b", {7: [9.0, 9.0]}), "a")
    assert (d.rival, d.seeds) == ("b", 2)
    assert d.area.mean == pytest.approx(0.05) and d.area.low == pytest.approx(0.05)
    assert d.final.mean == pytest.approx(-1.4) and (d.final.low, d.final.high) == pytest.approx((-1.9, -0.9))
    (less,) = differences(rows("a", {0: [1.0]}, "branin") + rows("b", {0: [3.0]}, "branin"), "a")
    assert less.final.mean == 2.0


def test_differences_of_all_seeds_without_pairs() -> None:
    """Area 2 less (1.95 + 1.95 + 9) / 3; of the end 2.5 less (3.9 + 3.9 + 9) / 3, from 2 - 9 to 3 - 3.9."""
    (d,) = differences(A + B + rows("b", {7: [9.0, 9.0]}), "a", pair=False)
    assert (d.rival, d.seeds) == ("b", 2)
    assert d.area.mean == pytest.approx(-2.3) and (d.area.low, d.area.high) == pytest.approx((-7.0, 0.05))
    assert d.final.mean == pytest.approx(-3.1)


def test_a_late_first_success_is_no_advantage() -> None:
    """A round without a success counts as the worst any study was at, here 1: areas 7/3 and 8/3."""
    late, early = rows("late", {0: [None, 2.0, 4.0]}), rows("early", {0: [1.0, 3.0, 4.0]})
    first, second = standings(late + early)
    assert (first.method, second.method, second.best.mean) == ("early", "late", 4.0)
    assert (first.area.mean, second.area.mean) == pytest.approx((8 / 3, 7 / 3))
    (d,) = differences(late + early, "early")
    assert d.area.mean == pytest.approx(1 / 3)


def test_a_study_that_found_nothing_counts_among_those_that_did() -> None:
    """On branin less is better, so the worst is 9."""
    some = rows("a", {0: [None], 1: [1.0]}, "branin")
    first, _ = standings(some + rows("b", {0: [9.0]}, "branin"))
    assert (first.method, first.area.mean, first.best.mean) == ("a", 5.0, 5.0)


def test_mean_ranks_need_every_task() -> None:
    table = standings(A + B + rows("b", {0: [5.0]}, "tfbind10"))
    assert mean_ranks(table) == {"b": 1.5}


def test_a_method_without_a_result_is_shown_with_its_error() -> None:
    table = standings(A, {("tfbind8", "z"): "seed 0: no licence"})
    assert [(e.method, e.rank, e.error) for e in table] == [("a", 1, ""), ("z", 0, "seed 0: no licence")]


def test_whoever_found_nothing_comes_last() -> None:
    nothing = rows("a", {0: [None, None]})
    assert [e.method for e in standings(nothing + rows("b", {0: [-5.0, -4.0]}))] == ["b", "a"]
    assert [e.method for e in standings(rows("b", {0: [-5.0, -4.0]}) + nothing)] == ["b", "a"]
