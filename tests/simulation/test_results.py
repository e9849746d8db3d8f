"""Pieces in any order give the same bits, and few of them wait."""

from importlib import import_module

import numpy as np
import pytest

from unfog.maths.arrays import Array
from unfog.simulation import Gathering, Plan, plan
from unfog.simulation.job import MOMENTS, Part
from unfog.worlds.synthetic import GaussianProblem

PIECES, SIZE, POINTS = 3000, 3, 20


@pytest.fixture(name="work")
def _work(monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Thousands of pieces of two settings, each with moments."""
    monkeypatch.setattr(import_module("unfog.simulation.plan"), "MOST_CELLS", 1)
    monkeypatch.setattr(import_module("unfog.simulation.plan"), "FINE_ENOUGH", POINTS)
    worlds = [GaussianProblem(dim=1, actions=k) for k in (2, 3)]
    trials = PIECES * SIZE - 1  # the last piece is smaller
    return plan(worlds, ["naive"], rounds=POINTS, trials=trials, seed=0, chunk=SIZE, decompose=False)


def parts_of(work: Plan) -> list[Part]:
    """What an engine might give: losses of every trial, and moments of very different sizes."""
    rng, job = np.random.default_rng(1), work.jobs[0]
    found = list[Part]()
    for _, trials in work.pieces:
        values = {name: rng.normal(size=(1, len(trials), len(job.grid))) for name in job.losses}
        scale = 10 ** rng.uniform(-3, 3)
        moments = {MOMENTS + name: rng.random((1, len(job.curve), 2)) * scale for name in job.losses}
        found.append(values | moments)
    return found


def pooled(work: Plan, parts: list[Part], setting: int) -> tuple[Array, Array]:
    """All pieces of a setting in the order of trials, by the formula."""
    n, mean, spread = 0, np.zeros((1, POINTS)), np.zeros((1, POINTS))
    for piece, part in zip(work.pieces, parts, strict=True):
        if piece.setting == setting:
            (count, group) = len(piece.trials), part[MOMENTS + "regret"]
            shift = group[..., 0] - mean
            spread = spread + group[..., 1] + shift**2 * (n * count / (n + count))
            mean, n = mean + shift * (count / (n + count)), n + count
    return mean, np.sqrt(spread / (n - 1) / n)


def test_the_order_of_pieces_changes_no_bit_and_few_wait(work: Plan) -> None:
    """Each is up to so many pieces late: none of them, as with a few workers, or in any order at all."""
    for late in [0, 8, 2 * PIECES]:
        check_the_order_of_pieces_changes_no_bit_and_few_wait(late, work)


def check_the_order_of_pieces_changes_no_bit_and_few_wait(late: int, work: Plan) -> None:
    pieces, parts, rng = work.pieces, parts_of(work), np.random.default_rng(2)
    gathered, most = Gathering(work), 0
    for place in np.argsort(np.arange(len(parts)) + late * rng.random(len(parts)), kind="stable"):
        gathered.add(pieces[place], parts[place])
        most = max(most, sum(len(one.early) for one in gathered._moments))
    assert most <= late
    assert not any(one.early for one in gathered._moments)
    both = gathered.together()
    for setting in range(2):
        one, (mean, se) = gathered.curves(setting), pooled(work, parts, setting)
        np.testing.assert_array_equal(one.mean["regret"], mean)
        np.testing.assert_array_equal(one.se["regret"], se)
        np.testing.assert_array_equal(both.mean["regret"][setting], mean)
    first = [part["regret"] for piece, part in zip(pieces, parts, strict=True) if piece.setting == 0]
    np.testing.assert_array_equal(gathered.curves(0).values["regret"], np.concatenate(first, 1))


def test_what_waits_holds_on_to_nothing_else(work: Plan) -> None:
    """A piece that was read from a file is a view of all of that file."""
    gathered, [piece, *_], part = Gathering(work), work.pieces[1:], parts_of(work)[1]
    gathered.add(piece, part)
    [(count, held)] = gathered._moments[0].early.values()
    assert count == len(piece.trials)
    assert held.keys() == {MOMENTS + "regret"}
    assert not np.shares_memory(held[MOMENTS + "regret"], part[MOMENTS + "regret"])
