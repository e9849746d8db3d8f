"""The denoiser that learns from all units, against joint Gaussians and plain analysis of variance."""

from typing import Any

import numpy as np
import pytest

from unfog.agents.base import Pooled
from unfog.agents.denoise.fleet import Fleet, Moments, moments
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array

NOISE = np.array([1100.0**2, 0.55**2, 0.0])
PARTS = {"device": 1.0, "person": 0.0, "both": 0.5}


def knowledge(noise: Array) -> Knowledge:
    """Told the noise alone."""
    size = len(noise)
    nothing = np.diag(np.full(size, np.nan))
    return Knowledge(np.full(size, np.nan), nothing, np.diag(noise), nothing, np.zeros(1), np.eye(1))


class Played:
    """Readings of units, one after the other, and the denoiser that saw them."""

    def __init__(self, noise: Array = NOISE, denoiser: Fleet | None = None) -> None:
        self.denoiser = denoiser or Fleet()
        self.parameters = self.denoiser.setup(knowledge(noise), None)
        self.pool = self.denoiser.start(self.parameters).pool
        self.own: dict[int, Any] = {}

    def state(self, unit: int) -> Pooled:
        return Pooled(self.pool, self.own.get(unit, self.denoiser.start(self.parameters).own))

    def read(self, unit: int, reading: Array) -> None:
        state = self.denoiser.update(self.parameters, self.state(unit), reading, None)
        self.pool, self.own[unit] = state

    def reveal(self, unit: int, reading: Array, truth: Array) -> Array:
        nothing = np.full_like(reading, np.nan)
        state, context = self.denoiser.correct(self.parameters, self.state(unit), reading, nothing, truth)
        self.pool, self.own[unit] = state
        return context.mean

    @property
    def moments(self) -> Moments:
        return moments(self.parameters, self.pool)


def drawn(rng: np.random.Generator, units: int = 12, readings: int = 150) -> tuple[Any, Array, Array]:
    """Units, readings with gaps, and true contexts, in natural units."""
    unit = rng.integers(0, units, readings)
    person, device = rng.normal(0, 900, units), rng.normal(-400, 1300, units)
    truth = np.stack(
        [
            6500 + person[unit] + rng.normal(0, 1800, readings),
            rng.normal(3, 1, readings),
            rng.uniform(8, 22, readings),
        ],
        1,
    )
    reading = truth + rng.normal(0, 1, truth.shape) * np.sqrt(NOISE)
    reading[:, 0] += device[unit]
    reading[rng.random(readings) < 0.2, 1] = np.nan
    return unit, reading, truth


def condition(
    mean: float,
    prior: tuple[float, float],
    variances: tuple[float, float],
    readings: Array,
    truths: Array,
    last: float,
    what: str = "context",
) -> tuple[float, float]:
    """The context of the last reading by brute force, or the device's offset, or that reading.

    NaN where there is no reading or truth.
    """
    (p, b), (own, noise), n = prior, variances, len(readings) + 1
    # hidden: p, b, e_1..n, n_1..n
    cov = np.diag([p, b, *[own] * n, *[noise] * n])
    context, reading = np.zeros((n, 2 + 2 * n)), np.zeros((n, 2 + 2 * n))
    for i in range(n):
        context[i, [0, 2 + i]] = 1
        reading[i, [0, 1, 2 + i, 2 + n + i]] = 1
    values = np.append(readings, last) - mean
    rows = [reading[i] for i in range(n) if np.isfinite(values[i])]
    data = [values[i] for i in range(n) if np.isfinite(values[i])]
    for i in range(n - 1):
        if np.isfinite(truths[i]):
            rows.append(context[i])
            data.append(truths[i] - mean)
    a = np.array(rows)
    gain = np.linalg.solve(a @ cov @ a.T, a @ cov).T
    target = {"context": context[-1], "device": np.eye(2 + 2 * n)[1], "reading": reading[-1]}[what]
    posterior = cov - gain @ a @ cov
    mean = 0.0 if what == "device" else mean
    return mean + float(target @ gain @ np.array(data)), float(target @ posterior @ target)


def test_each_candidate_has_the_posterior_of_the_joint_gaussian() -> None:
    """Given the moments of the fleet, with readings that were lost and truths that are known."""
    rng = np.random.default_rng(0)
    unit, reading, truth = drawn(rng)
    played, revealed = Played(), np.full_like(reading, np.nan)
    for i in range(len(unit)):
        played.read(int(unit[i]), reading[i])
    for i in np.flatnonzero(rng.random(len(unit)) < 0.3).tolist():
        revealed[i] = [truth[i, 0], np.nan, np.nan]
        played.reveal(int(unit[i]), reading[i], revealed[i])
    fleet, origin = played.moments, played.pool.origin
    weight = fleet.paired / (fleet.paired + 4.0)
    assert fleet.paired.tolist() == [len(set(unit[np.isfinite(revealed[:, 0])])), 0.0, 0.0]
    for last in (np.array([8000.0, 2.0, 9.0]), np.array([np.nan, np.nan, np.nan])):
        state = played.state(3)
        context = played.denoiser.predict(played.parameters, state, last)
        for j, candidate in enumerate(played.denoiser.candidates[1:], 1):
            part = (1 - weight) * PARTS[candidate] + weight * fleet.device
            for k in range(3):
                mine = unit == 3
                b = max(part[k], 1e-3) * fleet.between[k] if NOISE[k] else 0.0
                p = max(1 - part[k], 1e-3) * fleet.between[k] if NOISE[k] else fleet.between[k]
                own = fleet.within[k] - min(NOISE[k], 0.95 * fleet.within[k])
                mean, variance = condition(
                    origin[k] + fleet.mean[k], (p, b), (own, NOISE[k]),
                    reading[mine, k], revealed[mine, k] + fleet.shift[k], last[k],
                )  # fmt: skip
                assert context.mean[j, k] == pytest.approx(mean, rel=1e-9)
                assert context.cov[j, k, k] == pytest.approx(variance, rel=1e-7, abs=1e-9)


def test_offsets_of_devices_and_the_next_reading_are_those_of_the_joint_gaussian() -> None:
    rng = np.random.default_rng(5)
    unit, reading, truth = drawn(rng)
    played, revealed = Played(), np.full_like(reading, np.nan)
    expected = played.denoiser.predict_reading(played.parameters, played.state(3))
    assert np.isnan(expected).all()
    for i in range(len(unit)):
        played.read(int(unit[i]), reading[i])
        if i % 3 == 0:
            revealed[i, 0] = truth[i, 0]
            played.reveal(int(unit[i]), reading[i], revealed[i])
    fleet, pool, mine = played.moments, played.pool, unit == 3
    bias, bias_cov = played.denoiser.bias(played.parameters, played.state(3))
    expected = played.denoiser.predict_reading(played.parameters, played.state(3))
    assert not bias[0, 1:].any()
    assert not bias_cov[0].any()  # as read
    assert not bias_cov[:, 2].any()  # exact
    weight = fleet.paired / (fleet.paired + 4.0)
    for k in range(2):
        own = fleet.within[k] - NOISE[k]

        def law(part: float, what: str, k: int = k, own: float = own) -> tuple[float, float]:
            prior = max(1 - part, 1e-3) * fleet.between[k], max(part, 1e-3) * fleet.between[k]
            centre, truths = pool.origin[k] + fleet.mean[k], revealed[mine, k] + fleet.shift[k]
            return condition(centre, prior, (own, NOISE[k]), reading[mine, k], truths, np.nan, what)

        for j, candidate in enumerate(played.denoiser.candidates[1:], 1):
            mean, variance = law((1 - weight[k]) * PARTS[candidate] + weight[k] * fleet.device[k], "device")
            assert bias[j, k] == pytest.approx(fleet.shift[k] + mean, rel=1e-6, abs=1e-9)
            assert bias_cov[j, k, k] == pytest.approx(variance, rel=1e-7)
        mean, variance = law(fleet.device[k], "reading")
        offset = variance - own - NOISE[k]
        mean_var = fleet.between[k] / pool.units[k] + fleet.within[k] / pool.number[k]
        assert expected[0][k] == pytest.approx(mean, rel=1e-9)
        variance += (offset / fleet.between[k]) ** 2 * mean_var
        assert expected[1][k] == pytest.approx(variance, rel=1e-9)


def test_spreads_are_those_of_the_world() -> None:
    """400 units, all truths known: noise 1100, persons' offsets 900, devices' 1300 about -400."""
    unit, reading, truth = drawn(np.random.default_rng(6), units=400, readings=6000)
    played = Played()
    for i in range(len(unit)):
        played.read(int(unit[i]), reading[i])
        played.reveal(int(unit[i]), reading[i], np.array([truth[i, 0], np.nan, np.nan]))
    spreads = played.denoiser.spreads(played.parameters, played.state(0))
    found = [spreads.mean[0], spreads.within[0] ** 0.5, spreads.between[0] ** 0.5]
    assert found == pytest.approx([6500, 1800, (900**2 + 1300**2) ** 0.5], rel=0.15)
    assert spreads.bias[0] == pytest.approx(-400, abs=3 * 1300 / 20)
    assert spreads.devices[1:, 0] ** 0.5 == pytest.approx([1300] * 3, rel=0.15)
    assert not spreads.devices[0].any()
    assert (spreads.revealed[0], spreads.is_cut.tolist()) == (400, [False, False, False])
    loud = Played(np.array([30.0]))
    for i in range(100):
        loud.read(i % 4, np.array([np.sin(i)]))
    assert loud.denoiser.spreads(loud.parameters, loud.state(0)).is_cut.tolist() == [True]


def test_as_read_is_the_reading_or_the_mean_of_all() -> None:
    unit, reading, _ = drawn(np.random.default_rng(1))
    played = Played()
    for i in range(len(unit)):
        played.read(int(unit[i]), reading[i])
    context = played.denoiser.predict(played.parameters, played.state(0), np.array([8000.0, np.nan, 9.0]))
    assert context.mean[0].tolist() == pytest.approx([8000.0, np.nanmean(reading[:, 1]), 9.0], rel=1e-12)
    assert not context.cov[0].any()


def test_moments_are_those_of_the_analysis_of_variance() -> None:
    """400 readings of 25 units: what is assumed counts little, and is allowed for."""
    rng = np.random.default_rng(2)
    unit = rng.integers(0, 25, 400)
    reading = np.stack([7.0 + rng.normal(0, 2, 25)[unit] + rng.normal(0, 1.5, 400)], 1)
    played = Played(np.array([1.0]))
    for i in range(400):
        played.read(int(unit[i]), reading[i])
    y, counts = reading[:, 0], np.bincount(unit, minlength=25)
    means = np.bincount(unit, y, 25) / counts
    within = ((y - means[unit]) ** 2).sum() / (400 - 25)
    between = (counts * (means - y.mean()) ** 2).sum() - 24 * within
    between /= 400 - (counts**2).sum() / 400
    fleet = played.moments
    assert fleet.mean[0] + played.pool.origin[0] == pytest.approx(y.mean(), rel=1e-12)
    assert fleet.within[0] == pytest.approx(within, rel=0.05)
    assert fleet.between[0] == pytest.approx(between, rel=0.15)


def test_contexts_that_persist_are_not_taken_for_offsets() -> None:
    """40 units, 37 readings each, no offsets, W = 1, mean of 20 worlds: at most 0.1 at AR 0.8."""
    estimates = []
    for seed in range(20):
        rng, played, value = np.random.default_rng(seed), Played(np.array([0.01])), np.zeros(40)
        value = rng.normal(size=40)
        for _ in range(37):
            for unit in range(40):
                played.read(unit, value[unit : unit + 1])
            value = 0.8 * value + 0.6 * rng.normal(size=40)
        estimates.append(played.moments.between[0])
    assert np.mean(estimates) < 0.1


def test_pairs_say_whose_the_offsets_are() -> None:
    rng = np.random.default_rng(3)
    unit, reading, truth = drawn(rng, units=60, readings=1200)
    played = Played()
    for i in range(len(unit)):
        played.read(int(unit[i]), reading[i])
        if i % 3 == 0:
            played.reveal(int(unit[i]), reading[i], np.array([truth[i, 0], np.nan, np.nan]))
    fleet = played.moments
    assert fleet.device[0] == pytest.approx(1300**2 / (900**2 + 1300**2), abs=0.15)
    assert fleet.shift[0] == pytest.approx(-400, abs=3 * 1300 / 60**0.5)


def test_a_truth_is_given_on_the_scale_of_readings() -> None:
    """With the mean error of the devices, so that it can be compared with rounds whose truth is not known."""
    unit, reading, truth = drawn(np.random.default_rng(4))
    played = Played()
    for i in range(len(unit)):
        played.read(int(unit[i]), reading[i])
    revealed = np.array([truth[0, 0], np.nan, np.nan])
    context = played.reveal(int(unit[0]), reading[0], revealed)
    assert context[:, 0] == pytest.approx(truth[0, 0] + played.moments.shift[0])


def test_scaling_by_powers_of_two_changes_no_bit_and_moving_next_to_nothing() -> None:
    unit, reading, truth = drawn(np.random.default_rng(5))

    def play(scale: Array, move: Array) -> tuple[Array, Array]:
        played = Played(NOISE * scale**2)
        for i in range(len(unit)):
            played.read(int(unit[i]), reading[i] * scale + move)
            if i % 5 == 0:
                played.reveal(int(unit[i]), reading[i] * scale + move, truth[i] * scale + move)
        context = played.denoiser.predict(played.parameters, played.state(2), reading[0] * scale + move)
        origin = played.denoiser.origin(played.parameters, played.state(2))
        return (context.mean - origin) / scale, context.cov / scale / scale[:, None]

    plain = play(np.ones(3), np.zeros(3))
    scaled = play(np.array([2.0**30, 2.0**-40, 8.0]), np.zeros(3))
    assert all(np.array_equal(x, y) for x, y in zip(plain, scaled, strict=True))
    moved = play(np.ones(3), np.array([1e6, -3.0, 1e3]))
    assert moved[0] == pytest.approx(plain[0], rel=1e-6, abs=1e-7)


def test_noise_may_be_nothing_or_beyond_all_measure() -> None:
    """Zero, 1e-16 and 1e16 times the variance of contexts: finite, and exact where it is next to nothing."""
    rng = np.random.default_rng(6)
    for factor in (0.0, 1e-16, 1e16):
        played = Played(np.array([4.0 * factor, 1.0]))
        for i in range(60):
            played.read(i % 6, rng.normal(5, 2, 2) + rng.normal(0, 1, 2) * np.array([2 * factor**0.5, 1]))
        context = played.denoiser.predict(played.parameters, played.state(1), np.array([6.0, 5.0]))
        assert np.isfinite(context.mean).all()
        assert (np.linalg.eigvalsh(context.cov) >= 0).all()
        if factor < 1:
            assert context.mean[2, 0] == pytest.approx(6.0, abs=0.01)
