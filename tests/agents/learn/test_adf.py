"""Assumed-density filtering against SciPy's integrals, sums over grids, and what is no result."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, log_expit

from tests.agents.learn.data import make_data
from tests.problems import (
    evidence,
    spd,
)
from unfog.agents.base import Evidence, RunsChain
from unfog.agents.catalogue import AGENTS
from unfog.agents.learn import Adf
from unfog.agents.learn.adf import _mode
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Gaussian
from unfog.simulation import play
from unfog.validation import InputError
from unfog.worlds.synthetic import LogisticProblem

SMALL: dict[str, Any] = {"rounds": 20, "trials": 3}
PROBLEM = LogisticProblem(dim=2, actions=5)


def tilted(mean: float, variance: float, reward: float, scale: float = 1.0) -> tuple[float, float]:
    """Mean and variance of N(s; mean, variance) times the likelihood of a reward, by SciPy's integrals."""
    sign = scale * (2 * reward - 1)
    grid = np.linspace(mean - 14 * variance**0.5 - variance, mean + 14 * variance**0.5 + variance, 200_001)

    def log(s: Any) -> Any:
        return log_expit(sign * s) - (s - mean) ** 2 / (2 * variance)

    top, at = float(np.max(log(grid))), float(grid[np.argmax(log(grid))])
    reach = [at - 12 * variance**0.5, at, at + 12 * variance**0.5]
    # SciPy's rule is told where the peak and the bend of the sigmoid are, so that it cannot step over them.
    cuts = sorted({*reach, *(c for c in (-4.0, 0.0, 4.0) if reach[0] < c < reach[2])})

    def integral(power: int, about: float) -> float:
        def integrand(s: float) -> float:
            return float(np.exp(log(s) - top) * (s - about) ** power)

        parts = [quad(integrand, a, b, limit=400, epsabs=1e-13, epsrel=1e-11)[0] for a, b in pairwise(cuts)]
        return float(sum(parts))

    mass = integral(0, 0.0)
    centre = at + integral(1, at) / mass
    return centre, integral(2, centre) / mass


def belief_with(mean: float, variance: float, seed: int = 3) -> tuple[Gaussian, Array]:
    """A correlated belief about three numbers, and a row whose score has this mean and variance."""
    rng = np.random.default_rng(seed)
    row, cov = rng.normal(0.5, 1.0, 3), spd(rng, 3, 0.2, 2.0)
    cov = cov * (variance / (row @ cov @ row))
    centre = rng.normal(size=3)
    centre = centre + row * (mean - row @ centre) / (row @ row)
    return gaussian.from_moments(centre, cov), row


SCORES = [
    (0.0, 1.0),
    (0.3, 0.01),
    (-2.0, 1e-5),
    (1.5, 0.5),
    (-1.0, 4.0),
    (6.0, 3.0),
    (-6.0, 3.0),
    (4.0, 25.0),
    (-20.0, 60.0),
    (20.0, 60.0),
    (-40.0, 30.0),
    (0.0, 60.0),
    (-15.0, 0.2),
]


def test_an_update_has_the_moments_of_the_posterior() -> None:
    for mean, variance in SCORES:
        for reward in [0.0, 1.0]:
            check_an_update_has_the_moments_of_the_posterior(mean, variance, reward)


def check_an_update_has_the_moments_of_the_posterior(mean: float, variance: float, reward: float) -> None:
    state, row = belief_with(mean, variance)
    after = Adf().update((), state, evidence(row), np.asarray(reward))
    centre, spread = tilted(mean, variance, reward)
    cov, new = gaussian.covariance(state), gaussian.covariance(after)
    # Along the row, in units of the posterior's own spread; wide scores are followed least well.
    assert float(row @ after.mean) == pytest.approx(centre, abs=3e-4 * spread**0.5)
    assert float(row @ new @ row) == pytest.approx(spread, rel=3e-4)
    # All else is what a linear measurement along the row leaves.
    gain = cov @ row / variance
    right = state.mean + gain * (float(row @ after.mean) - mean)
    np.testing.assert_allclose(after.mean, right, rtol=1e-9, atol=1e-9 * max(1, abs(mean)))
    left = cov - np.outer(gain, gain) * (variance - float(row @ new @ row))
    np.testing.assert_allclose(new, left, rtol=1e-8, atol=1e-10 * np.abs(cov).max())


def test_usual_updates_are_far_more_exact() -> None:
    for mean, variance in SCORES:
        if variance <= 5:
            state, row = belief_with(mean, variance)
            after = Adf().update((), state, evidence(row), np.asarray(1.0))
            centre, spread = tilted(mean, variance, 1.0)
            assert float(row @ after.mean) == pytest.approx(centre, abs=1e-7 * spread**0.5)
            assert float(row @ gaussian.covariance(after) @ row) == pytest.approx(spread, rel=1e-7)


def test_with_contexts_averaged_out_the_sigmoid_is_flatter(rng: np.random.Generator) -> None:
    for mean, variance in [(0.5, 2.0), (-3.0, 0.4), (2.0, 20.0)]:
        for reward in [0.0, 1.0]:
            check_with_contexts_averaged_out_the_sigmoid_is_flatter(mean, variance, reward, rng)


def check_with_contexts_averaged_out_the_sigmoid_is_flatter(
    mean: float, variance: float, reward: float, rng: np.random.Generator
) -> None:
    state, row = belief_with(mean, variance)
    root = rng.normal(0, 0.7, (3, 3))
    spread = root @ root.T
    after = Adf(marginal=True).update((), state, evidence(row, spread), np.asarray(reward))
    # E[theta'S theta], by six points whose mean square is exact.
    moves = np.sqrt(3) * np.concatenate([state.root.T, -state.root.T])
    noise = np.mean([(state.mean + move) @ spread @ (state.mean + move) for move in moves])
    scale = 1 / np.sqrt(1 + np.pi / 8 * noise)
    centre, left = tilted(mean, variance, reward, scale)
    assert float(row @ after.mean) == pytest.approx(centre, abs=1e-5)
    assert float(row @ gaussian.covariance(after) @ row) == pytest.approx(left, rel=1e-5)
    plain = Adf().update((), state, evidence(row), np.asarray(reward))
    assert abs(row @ (after.mean - plain.mean)) > 1e-3


@pytest.mark.slow
def test_a_row_of_zeros_teaches_nothing() -> None:
    """What TS_kk learns from where features are linear and contexts centred: psi(a) = 0 for every arm."""
    state, _ = belief_with(0.5, 2.0)
    for marginal, spread in ((False, None), (True, np.eye(3))):
        for reward in (0.0, 1.0):
            after = Adf(marginal=marginal).update(
                (), state, evidence(np.zeros(3), spread), np.asarray(reward)
            )
            np.testing.assert_allclose(after.mean, state.mean, rtol=1e-12)
            np.testing.assert_allclose(gaussian.covariance(after), gaussian.covariance(state), rtol=1e-12)
            single = Gaussian(*(jnp.asarray(part, jnp.float32) for part in state))
            zeros, paid = jnp.zeros(3, jnp.float32), jnp.asarray(reward, jnp.float32)
            wide = None if spread is None else jnp.asarray(spread, jnp.float32)
            found = Adf(marginal=marginal).update((), single, evidence(zeros, wide), paid)
            assert all(bool((a == b).all()) for a, b in zip(found, single, strict=True))


def test_it_starts_from_the_prior_and_keeps_no_chain() -> None:
    known, learner = make_data(3, 1).known, Adf()
    belief = learner.belief(learner.setup(known), learner.start(known, 7))
    assert np.array_equal(belief.mean, known.prior_mean)
    np.testing.assert_allclose(gaussian.covariance(belief), known.prior_cov, rtol=1e-12)
    assert not isinstance(learner, RunsChain)
    assert (learner.averages_context, Adf(marginal=True).averages_context) == (False, True)


def test_after_many_rewards_it_is_near_the_posterior() -> None:
    """Approximate, so compared loosely with the grid: a third of a standard deviation, and of a variance."""
    data, learner = make_data(2, 40), Adf()
    state = learner.start(data.known, None)
    for row, reward in zip(data.rows, data.rewards, strict=True):
        state = learner.update((), state, evidence(row), reward)
    mean, cov = data.moments(300)
    np.testing.assert_array_less(np.abs(state.mean - mean), 0.33 * np.sqrt(np.diag(cov)))
    np.testing.assert_allclose(np.diag(gaussian.covariance(state)), np.diag(cov), rtol=0.33)


def test_trials_learn_apart(rng: np.random.Generator) -> None:
    known, rows = make_data(3, 1).known, rng.normal(0.4, 1.5, (12, 4, 3))
    spreads, rewards = np.stack([spd(rng, 3)] * 4), rng.integers(0, 2, (12, 4)).astype(np.float64)
    for learner in (Adf(), Adf(marginal=True)):
        whole = learner.start(known, None)
        singles = [learner.start(known, None) for _ in range(4)]
        for row, reward in zip(rows, rewards, strict=True):
            whole = learner.update((), whole, evidence(row, spreads), reward)
            singles = [
                learner.update((), one, evidence(row[i], spreads[i]), reward[i])
                for i, one in enumerate(singles)
            ]
        for i, one in enumerate(singles):
            np.testing.assert_allclose(whole.mean[i], one.mean, rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(whole.root[i], one.root, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_single_precision_updates_are_near() -> None:
    made = [belief_with(mean, variance) for mean, variance in SCORES for _ in range(2)]
    state = Gaussian(*(np.stack(part) for part in zip(*(belief for belief, _ in made), strict=True)))
    rows, rewards = np.stack([row for _, row in made]), np.tile([0.0, 1.0], len(SCORES))
    right = Adf().update((), state, evidence(rows), rewards)
    there = jax.tree.map(lambda part: jnp.asarray(part, jnp.float32), (state, rows, rewards))
    found = jax.jit(lambda s, x, r: Adf().update((), s, evidence(x), r))(*there)
    assert found.mean.dtype == jnp.float32
    spreads = np.sqrt(np.einsum("ni,nij,nj->n", rows, gaussian.covariance(right), rows))
    gaps = np.abs(np.vecdot(rows, np.asarray(found.mean, np.float64) - right.mean))
    assert np.all(gaps < 1e-3 * spreads)


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "marginal"), [("float64", False), ("float32", True)])
def test_after_20_000_updates_it_is_finite_and_positive(precision: str, marginal: bool) -> None:
    size, n, trials = 5, 20_000, 4
    known = make_data(size, 1).known
    learner, rng = Adf(marginal=marginal), np.random.default_rng(5)
    truth = rng.multivariate_normal(known.prior_mean, known.prior_cov, trials)
    rows = rng.normal(0.3, 1.5, (n, trials, size))
    rewards = (rng.random((n, trials)) < expit(np.vecdot(rows, truth))).astype(np.float64)
    spread = jnp.asarray(0.3 * spd(rng, size), precision) if marginal else None
    state = learner.start(known, None)
    begin = Gaussian(
        jnp.tile(jnp.asarray(state.mean, precision), (trials, 1)),
        jnp.tile(jnp.asarray(state.root, precision), (trials, 1, 1)),
    )

    def one(state: Any, seen: Any) -> Any:
        return learner.update((), state, evidence(seen[0], spread), seen[1]), None

    seen = jnp.asarray(rows, precision), jnp.asarray(rewards, precision)
    found, _ = jax.jit(lambda state, seen: jax.lax.scan(one, state, seen))(begin, seen)
    assert found.mean.dtype == found.root.dtype == jnp.dtype(precision)
    cov = gaussian.covariance(Gaussian(*(np.asarray(part, np.float64) for part in found)))
    assert np.isfinite(found.mean).all()
    assert np.linalg.eigvalsh(cov).min() > 0
    if not marginal:
        # The model is right: the truth is within 5 of the belief's standard deviations but for 1e-5 of cases.
        gap = np.abs(np.asarray(found.mean) - truth)
        assert np.all(gap < 5 * np.sqrt(np.linalg.diagonal(cov)))
        # 20,000 rewards leave about 1 / (20,000 * 0.1 * 1.5^2) of variance.
        assert np.linalg.diagonal(cov).max() < 2e-3


def test_the_mode_is_found_for_scores_of_all_sizes() -> None:
    """S - mean = variance sigmoid(-s), for means of the prior's size and far beyond, by its residual."""
    for dtype in ["float64", "float32"]:
        check_the_mode_is_found_for_scores_of_all_sizes(dtype)


def check_the_mode_is_found_for_scores_of_all_sizes(dtype: str) -> None:
    rng = np.random.default_rng(0)
    variance = np.repeat(np.logspace(-6, 6, 25), 400).astype(dtype)
    mean = (np.sqrt(variance) * rng.normal(0, 2, variance.shape)).astype(dtype)
    at = _mode(mean, variance).astype(np.float64)
    chance = expit(-at)
    residual = at - mean - variance * chance
    steepness = 1 + variance * chance * (1 - chance)
    width = np.sqrt(variance / steepness)
    # In widths of the posterior: a thousandth would move no moment, rounding of float32 makes some of it.
    assert np.abs(residual / steepness / width).max() < (1e-12 if dtype == "float64" else 1e-5)


@dataclass(frozen=True)
class Runaway(Adf):
    """A learner whose belief grows without end."""

    def update(self, parameters: Any, state: Gaussian, evidence: Evidence, reward: Array) -> Gaussian:
        return state._replace(mean=1e30 * (state.mean + 1) + 0 * evidence.row())


@pytest.mark.slow
def test_a_belief_that_runs_off_is_refused() -> None:
    mine = replace(AGENTS["alg1"], name="mine", learner=Runaway())
    for engine in ("numpy", "jax"):
        with pytest.raises(InputError, match=r"^agents: what 'mine' believes of theta is not finite"):
            play(PROBLEM, [mine], engine=engine, decompose=False, **SMALL)
