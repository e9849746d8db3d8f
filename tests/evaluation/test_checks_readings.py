"""Readings that do not vary as the channel says are found."""

import numpy as np

from tests.evaluation.logs import World
from unfog.evaluation.checks import misfits

WORLD = World(d=2, arms=3)


def test_a_channel_told_wrong_is_said() -> None:
    log, told = WORLD.log(3000, 4), WORLD.channel
    assert misfits(told, log) == []
    (first, *more) = misfits(told._replace(noise_cov=2 * told.noise_cov), log)
    variance = np.diag(told.context_cov + 2 * told.noise_cov)[0]
    assert first.startswith(f"Careful: readings of {log.coordinates[0]} have a variance of ")
    assert f"it should be {variance:.3g}" in first
    assert len(more) < 2


def test_units_may_differ_in_their_means() -> None:
    """A bias for each of 30 units, many times as large as the noise, is no misfit."""
    log = WORLD.log(3000, 4)
    unit = np.arange(3000) % 30
    away = 20 * np.random.default_rng(1).standard_normal((30, 2))
    moved = log._replace(noisy=log.noisy + away[unit], unit=unit, units=tuple(map(str, range(30))))
    assert misfits(WORLD.channel, moved) == []
    assert len(misfits(WORLD.channel, moved._replace(unit=None, units=()))) == 2
