"""The covariance of the noise against the equation it is to solve, in coordinates of its own."""

import numpy as np
import pytest

from tests.each import each
from tests.problems import inverse, spd
from unfog.channel import noise as noise_fit
from unfog.channel.noise import Fit, Sums, bias, fit
from unfog.maths.arrays import Array, diagonal_matrix

D, TRIALS, TRUST = 3, 6, 2.0
TOLD = np.array([0.4, 1.0, 2.5])
PRIOR = inverse(spd(np.random.default_rng(1), D, 0.5, 5.0))


def make(n: int, u: int, seed: int = 0) -> tuple[Sums, list[tuple[Array, Array]]]:
    """Draws of z and y for every trial, with other noise than was told, and their sums."""
    rng, drawn = np.random.default_rng(seed), []
    for _ in range(TRIALS):
        actual, bias = spd(rng, D, 0.2, 4.0), rng.normal(size=D)
        z = rng.multivariate_normal(bias, actual, n)
        drawn.append((z, rng.multivariate_normal(bias, np.eye(D) + actual, u)))
    totals = np.stack([np.stack([x.sum(0) for x in pair], -1) for pair in drawn])
    squares = [[TRUST * np.diag(TOLD) + z.T @ z, y.T @ y, PRIOR] for z, y in drawn]
    pairs, worth, alone = (np.full(TRIALS, float(x)) for x in (n, n + TRUST, u))
    return Sums(pairs, worth, alone, totals, np.array(squares)), drawn


def noise(found: Fit) -> Array:
    covs: Array = found.turn @ diagonal_matrix(found.size) @ found.turn.mT
    return covs


def left(cov: Array, z: Array, y: Array) -> Array:
    """What the equation leaves, round by round, as a share of N."""
    inner, outer = inverse(cov), inverse(np.eye(D) + cov)
    spread = inverse(PRIOR + len(z) * inner + len(y) * outer)
    bias = spread @ (inner @ z.sum(0) + outer @ y.sum(0))
    equation = TRUST * (cov - np.diag(TOLD))
    for x in z:
        equation = equation + cov - np.outer(x - bias, x - bias) - spread
    gain = cov @ outer
    for x in y:
        equation = equation + gain @ (np.eye(D) + cov - np.outer(x - bias, x - bias) - spread) @ gain.T
    return equation @ inner / (TRUST + len(z) + len(y))


CASES = [(4, 0), (0, 60), (8, 30), (60, 140)]


@pytest.mark.parametrize(("n", "u"), CASES)
def test_it_solves_its_equation(n: int, u: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With as many steps as it takes; and as it is used, it is near that solution."""
    sums, drawn = make(n, u)
    quick = fit(TOLD, sums)
    monkeypatch.setattr(noise_fit, "NEAR", 1e-13)
    monkeypatch.setattr(noise_fit, "STEPS", 300)
    exact = fit(TOLD, sums)
    for cov, near, (z, y) in zip(noise(exact), noise(quick), drawn, strict=True):
        assert np.abs(left(cov, z, y)).max() < 1e-11
        ratios = np.linalg.eigvals(near @ inverse(cov)).real
        assert np.abs(np.log(ratios)).max() < 0.15
    assert np.abs(left(np.diag(TOLD), *drawn[0])).max() > 0.05


@each("n, u", CASES)
def test_the_bias_goes_with_the_noise(n: int, u: int) -> None:
    sums, drawn = make(n, u)
    found = fit(TOLD, sums)
    for i, (z, y) in enumerate(drawn):
        inner, outer = inverse(noise(found)[i]), inverse(np.eye(D) + noise(found)[i])
        cov = inverse(PRIOR + n * inner + u * outer)
        right = cov @ (inner @ z.sum(0) + outer @ y.sum(0))
        turn, (mean, spread) = found.turn[i], bias(found.sums, found.size)
        np.testing.assert_allclose(turn @ mean[i], right, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(turn @ spread[i] @ turn.T, cov, rtol=1e-9, atol=1e-10)


def test_the_slope_is_that_of_the_equation() -> None:
    """Where all is diagonal and g is zero entries have nothing to do with each other: against differences."""
    n, u, size = 5.0, 12.0, np.array([0.3, 1.1, 4.0])
    squares = np.stack([np.diag(x) for x in ([6.0, 9.0, 14.0], [20.0, 31.0, 35.0], [0.7, 1.0, 2.0])])
    pairs, worth, alone = (np.asarray(x) for x in (n, n + TRUST, u))
    sums = Sums(pairs, worth, alone, np.zeros((D, 2)), squares)
    _, slope, bend = noise_fit._newton(sums, size)
    for i, step in enumerate(1e-5 * np.eye(D)):
        above, below = (noise_fit._newton(sums, size + sign * step)[0][i, i] for sign in (1, -1))
        np.testing.assert_allclose(slope[i, i] + 2 * bend[i], (above - below) / 2e-5, rtol=1e-7)


def test_a_trial_takes_the_steps_it_needs_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials that need more steps are nothing to those that are done, to the last bit."""
    sums, steps = make(3, 40)[0], list[int]()
    step = noise_fit._step

    def counted(state: noise_fit.Noise, seen: Sums) -> noise_fit.Noise:
        steps.append(state.size.shape[0] if state.size.ndim > 1 else 1)
        return step(state, seen)

    monkeypatch.setattr(noise_fit, "_step", counted)
    together = fit(TOLD, sums)
    assert min(steps) < TRIALS, "all trials took equally many steps"
    for i in range(TRIALS):
        alone = fit(TOLD, Sums(*(part[i : i + 1] for part in sums)))
        for one, all_of_them in zip(alone[:2], together[:2], strict=True):
            np.testing.assert_array_equal(one[0], all_of_them[i])


def test_it_stays_a_covariance_whatever_was_seen() -> None:
    """Measurements that spread less than contexts do, and far more than told."""
    for scale in (1e-6, 1e-2, 1e3):
        sums, _ = make(0, 50)
        squares = sums.squares.copy()
        squares[:, 1] *= scale
        found = fit(TOLD, sums._replace(squares=squares, totals=scale**0.5 * sums.totals))
        assert (found.size > 0).all()
        assert all(np.isfinite(part).all() for part in (*found[:2], *bias(found.sums, found.size)))
