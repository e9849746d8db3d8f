"""Learners for rewards of 0 or 1 against sums over grids, SciPy's integrals and minimiser, and hand sums."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from tests.problems import (
    covariance_error,
    feature_moments,
    inverse,
    quadratic_phi,
    random_knowledge,
    spd,
)
from unfog.agents import agent as agents
from unfog.agents.catalogue import Catalogue
from unfog.agents.learn.adf import Online
from unfog.agents.learn.laplace import Laplace
from unfog.agents.learn.lmc import LMC
from unfog.agents.learn.pg import PG
from unfog.agents.learn.posterior import energy, gradient
from unfog.agents.learn.refit import State, Walker
from unfog.features import Context
from unfog.features.quadratic import quadratic
from unfog.inputs import InputError
from unfog.maths import gaussian, polya_gamma
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Gaussian
from unfog.model.knowledge import Knowledge


class Data(NamedTuple):
    """A prior, and rounds that were played: correlated, anisotropic, not centred."""

    known: Knowledge
    rows: Array  # (n, m)
    spreads: Array  # (n, m, m)
    rewards: Array  # (n,)

    def energy(self, theta: Array, marginal: bool = False) -> Any:
        """Minus the log posterior up to a constant: theta (..., m) -> (...,)."""
        away = theta - self.known.prior_mean
        prior = 0.5 * np.einsum("...i,ij,...j", away, np.linalg.inv(self.known.prior_cov), away)
        logits = theta @ self.rows.T
        if marginal:
            variances = np.einsum("...i,nij,...j->...n", theta, self.spreads, theta)
            logits = logits / np.sqrt(1 + np.pi / 8 * variances)
        return prior - log_expit(np.where(self.rewards == 1, logits, -logits)).sum(-1)

    def moments(self, points: int) -> tuple[Array, Array]:
        """Mean and covariance of the posterior by a sum over a grid of 7 prior standard deviations."""
        mean, deviations = self.known.prior_mean, np.sqrt(np.diag(self.known.prior_cov))
        lines = [np.linspace(m - 7 * s, m + 7 * s, points) for m, s in zip(mean, deviations, strict=True)]
        grid = np.stack(np.meshgrid(*lines, indexing="ij"), -1).reshape(-1, len(mean))
        heights = self.energy(grid)
        weights = np.exp(heights.min() - heights)
        weights = weights / weights.sum()
        centre = weights @ grid
        return centre, (weights[:, None] * (grid - centre)).T @ (grid - centre)

    def mode(self, marginal: bool = False) -> Array:
        found = minimize(lambda at: float(self.energy(at, marginal)), self.known.prior_mean, tol=1e-12)
        return np.asarray(found.x, np.float64)


def make_data(size: int, n: int, seed: int = 1, scale: float = 1.2) -> Data:
    rng = np.random.default_rng([seed, size, n])
    known = random_knowledge(seed, dim=2, size=size)._replace(
        prior_mean=rng.normal(0.6, 0.5, size), prior_cov=spd(rng, size, 0.3, 1.5), reward_var=None
    )
    rows, roots = rng.normal(0.4, scale, (n, size)), rng.normal(0.0, 0.5, (n, size, size))
    theta = rng.multivariate_normal(known.prior_mean, known.prior_cov)
    return Data(known, rows, roots @ roots.mT, (rng.random(n) < expit(rows @ theta)).astype(np.float64))


def remember(learner: Walker, data: Data, room: int | None = None) -> Any:
    parameters, state = learner.setup(data.known), learner.start(data.known, room)
    for row, spread, reward in zip(data.rows, data.spreads, data.rewards, strict=True):
        state = learner.update(parameters, state, row, spread if learner.spread else None, reward)
    return parameters, state


def walk(learner: Walker, parameters: Any, state: State, steps: int, normals: Callable[[], Array]) -> State:
    for _ in range(steps):
        state = learner.step(parameters, state, normals())
    return state


def same_moments(draws: Array, mean: Array, cov: Array, bias: float = 0.0) -> None:
    """Draws (n, m) against moments, at 4 standard errors; `bias` in standard deviations is allowed beyond."""
    n, deviations = len(draws), np.sqrt(np.diag(cov))
    gap = np.abs(draws.mean(0) - mean) - bias * deviations
    assert np.all(gap < 4 * deviations / np.sqrt(n))
    # The posterior is no Gaussian: its fourth moments are within a quarter of one's.
    allowed = 4 * 1.15 * covariance_error(cov, n) + bias * np.outer(deviations, deviations)
    assert np.all(np.abs(np.cov(draws.T) - cov) < allowed)


# Langevin Monte Carlo


@pytest.mark.parametrize("marginal", [False, True], ids=["plain", "marginal"])
@pytest.mark.parametrize("decay", [0.0, 0.5, 1.0])
def test_a_langevin_step_by_hand(marginal: bool, decay: float, rng: np.random.Generator) -> None:
    data, learner = make_data(3, 7), LMC(temperature=0.3, rate=0.2, decay=decay, marginal=marginal)
    parameters, state = remember(learner, data)
    theta, normals = rng.normal(size=3), rng.standard_normal(3)
    found = learner.step(parameters, state._replace(theta=theta), normals).theta
    rate = 0.2 / 8**decay  # seven rounds are over: this is round eight
    moves = 1e-6 * np.eye(3)
    slope = [(data.energy(theta + e, marginal) - data.energy(theta - e, marginal)) / 2e-6 for e in moves]
    right = theta - rate * np.array(slope) + np.sqrt(2 * rate * 0.3) * normals
    np.testing.assert_allclose(found, right, rtol=1e-7, atol=1e-8)


def test_the_first_langevin_step_is_that_of_round_one() -> None:
    known, learner = make_data(3, 1).known, LMC(temperature=1.0)
    for room in (None, 5):
        state = learner.start(known, room)
        assert np.array_equal(state.theta, known.prior_mean)
        found = learner.step(learner.setup(known), state, np.ones(3)).theta
        # At the prior mean the prior does not pull: noise alone, of variance 2 * 0.2 / 1.
        np.testing.assert_allclose(found - known.prior_mean, np.sqrt(0.4), rtol=1e-12)


def test_the_defaults_are_the_papers() -> None:
    learner = LMC()
    assert (learner.steps, learner.rate, learner.decay, learner.temperature) == (50, 0.2, 1.0, 0.001)
    assert not learner.spread
    assert learner.normals(make_data(3, 1).known, 99) == 3


def test_langevin_draws_at_temperature_one_are_the_posteriors(rng: np.random.Generator) -> None:
    data, rate, chains = make_data(2, 6), 0.01, 20_000
    learner = LMC(temperature=1.0, rate=rate, decay=0.0)
    parameters, state = remember(learner, data)
    state = state._replace(theta=np.tile(data.known.prior_mean, (chains, 1)))
    # The slowest mode relaxes at the prior's rate, 2/3: after 800 steps half a percent of the start is left.
    found = walk(learner, parameters, state, 800, lambda: rng.standard_normal((chains, 2))).theta
    mean, cov = data.moments(400)
    # Finite steps widen a Gaussian N(m, H^-1) to (H - rate H^2 / 2)^-1, to first order H^-1 + rate / 2, and
    # beyond it by (rate |H|)^2 / 4 < 0.001; right draws fail with probability 4e-4.
    same_moments(found, mean, cov + rate / 2 * np.eye(2), bias=0.01)
    assert np.abs(np.cov(found.T) / cov - 1).max() < 0.1


def test_a_lower_temperature_narrows_the_draws(rng: np.random.Generator) -> None:
    data, chains = make_data(2, 6), 5000
    learner = LMC(temperature=0.01, rate=0.01, decay=0.0)
    parameters, state = remember(learner, data)
    state = state._replace(theta=np.tile(data.mode(), (chains, 1)))
    found = walk(learner, parameters, state, 600, lambda: rng.standard_normal((chains, 2))).theta
    # So narrow a posterior is Gaussian: a hundredth of the inverse Hessian; 5 standard errors are 10 %.
    right = 0.01 * inverse(hessian_by_differences(data, data.mode()))
    np.testing.assert_allclose(np.cov(found.T), right, atol=0.1 * np.abs(right).max())


@pytest.mark.parametrize("marginal", [False, True], ids=["plain", "marginal"])
def test_at_temperature_zero_it_goes_to_the_mode(marginal: bool) -> None:
    data, learner = make_data(3, 12), LMC(temperature=0, rate=0.05, decay=0, marginal=marginal)
    parameters, state = remember(learner, data)
    found = walk(learner, parameters, state, 3000, lambda: np.ones(3)).theta
    np.testing.assert_allclose(found, data.mode(marginal), atol=1e-5)


# Polya-Gamma Gibbs sampling


@pytest.mark.parametrize(("size", "n", "points"), [(2, 12, 300), (3, 8, 110)])
def test_gibbs_draws_are_the_posteriors(size: int, n: int, points: int, rng: np.random.Generator) -> None:
    data, learner, chains = make_data(size, n, scale=1.6), PG(), 20_000
    parameters, state = remember(learner, data)
    state = state._replace(theta=np.tile(data.known.prior_mean, (chains, 1)))
    width = learner.normals(data.known, n)
    found = walk(learner, parameters, state, 25, lambda: rng.standard_normal((chains, width))).theta
    # 5 and 9 two-sided tests at 4 standard errors: right draws fail with probability 9e-4.
    same_moments(found, *data.moments(points))


def test_the_grid_is_fine_and_wide_enough() -> None:
    data = make_data(3, 8, scale=1.6)
    for coarse, fine in zip(data.moments(60), data.moments(110), strict=True):
        np.testing.assert_allclose(coarse, fine, atol=1e-6)


@pytest.mark.parametrize("room", [None, 4])
def test_without_data_a_sweep_draws_from_the_prior_exactly(room: int | None) -> None:
    known, learner = make_data(3, 1).known, PG()
    parameters, state = learner.setup(known), learner.start(known, room)
    width = learner.normals(known, room or 0)
    centre = learner.step(parameters, state, np.zeros(width)).theta
    np.testing.assert_allclose(centre, known.prior_mean, rtol=1e-12)
    # theta is linear in its three normals: what multiplies them must be a root of the covariance.
    units = np.concatenate([np.eye(3), np.zeros((3, width - 3))], 1)
    root = np.stack([learner.step(parameters, state, unit).theta - centre for unit in units], 1)
    np.testing.assert_allclose(root @ root.T, known.prior_cov, rtol=1e-11, atol=1e-12)


def test_a_sweep_is_gaussian_given_its_latent_variables(rng: np.random.Generator) -> None:
    data, learner = make_data(3, 6), PG()
    parameters, state = remember(learner, data)
    theta, latent = rng.normal(size=3), rng.standard_normal((6, polya_gamma.normals()))
    omega = np.array([polya_gamma.draw(x @ theta, z) for x, z in zip(data.rows, latent, strict=True)])
    prior = inverse(data.known.prior_cov)
    cov = inverse(prior + data.rows.T @ np.diag(omega) @ data.rows)
    mean = cov @ (prior @ data.known.prior_mean + data.rows.T @ (data.rewards - 0.5))

    def draw(normals: Array) -> Array:
        given = np.concatenate([normals, latent.ravel()])
        return learner.step(parameters, state._replace(theta=theta), given).theta

    centre = draw(np.zeros(3))
    root = np.stack([draw(unit) - centre for unit in np.eye(3)], 1)
    np.testing.assert_allclose(centre, mean, rtol=1e-10)
    np.testing.assert_allclose(root @ root.T, cov, rtol=1e-10, atol=1e-12)


def test_sweeps_are_steps_and_take_normals_for_every_round() -> None:
    learner, known = PG(sweeps=7), make_data(3, 1).known
    assert (PG().steps, learner.steps) == (5, 7)
    assert [learner.normals(known, seen) for seen in (0, 1, 10)] == [3, 14, 113]


# Laplace's approximation


def hessian_by_differences(data: Data, at: Array, marginal: bool = False, step: float = 1e-4) -> Array:
    moves = step * np.eye(len(at))

    def value(*steps: Array) -> float:
        return float(data.energy(at + sum(steps), marginal))

    second = [[value(a, b) - value(a, -b) - value(-a, b) + value(-a, -b) for a in moves] for b in moves]
    return np.array(second) / (4 * step**2)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("room", [None, 25])
def test_laplace_is_the_mode_and_the_curvature_there(seed: int, room: int | None) -> None:
    data, learner = make_data(3, 15, seed, scale=2.0), Laplace()
    parameters, state = remember(learner, data, room)
    state = walk(learner, parameters, state, 20, lambda: np.empty(0))
    mode = data.mode()
    belief = learner.belief(parameters, state)
    np.testing.assert_allclose(belief.mean, mode, atol=1e-6)
    right = inverse(hessian_by_differences(data, mode))
    np.testing.assert_allclose(gaussian.covariance(belief), right, rtol=1e-4, atol=1e-6)


def test_with_contexts_averaged_out_it_is_at_that_mode() -> None:
    data, learner = make_data(3, 15, scale=2.0), Laplace(marginal=True)
    parameters, state = remember(learner, data)
    state = walk(learner, parameters, state, 40, lambda: np.empty(0))
    np.testing.assert_allclose(state.theta, data.mode(marginal=True), atol=1e-5)
    assert np.linalg.norm(state.theta - data.mode()) > 0.05


def test_before_the_first_reward_laplace_is_the_prior() -> None:
    known, learner = make_data(3, 1).known, Laplace()
    for room in (None, 6):
        parameters, state = learner.setup(known), learner.start(known, room)
        belief = learner.belief(parameters, learner.step(parameters, state, np.empty(0)))
        np.testing.assert_allclose(belief.mean, known.prior_mean, rtol=1e-12)
        np.testing.assert_allclose(gaussian.covariance(belief), known.prior_cov, rtol=1e-10, atol=1e-12)


def test_three_steps_a_round_keep_up_with_the_mode() -> None:
    data, learner = make_data(3, 60), Laplace()
    parameters, state = learner.setup(data.known), learner.start(data.known, None)
    for n, (row, reward) in enumerate(zip(data.rows, data.rewards, strict=True), 1):
        state = walk(learner, parameters, state, learner.steps, lambda: np.empty(0))
        state = learner.update(parameters, state, row, None, reward)
        if n % 10 == 0:
            settled = walk(learner, parameters, state, learner.steps, lambda: np.empty(0))
            seen = data._replace(rows=data.rows[:n], rewards=data.rewards[:n])
            np.testing.assert_allclose(settled.theta, seen.mode(), atol=1e-4)


@pytest.mark.parametrize("scale", [1.0, 5.0, 30.0])
@pytest.mark.parametrize("away", [3.0, 50.0])
def test_from_a_saturated_start_the_mode_is_found(scale: float, away: float) -> None:
    """200 problems of 30 rounds with a wide prior, from where sigmoids are 0 or 1 and often the wrong one."""
    rng, cases = np.random.default_rng(int(scale + away)), 200
    known = make_data(4, 1).known._replace(prior_cov=spd(rng, 4, 0.5, 10.0))
    learner, truth = Laplace(), rng.normal(size=(cases, 4))
    parameters, state = learner.setup(known), learner.start(known, None)
    for _ in range(30):
        rows = rng.normal(0.3, scale, (cases, 4))
        rewards = (rng.random(cases) < expit(np.vecdot(rows, truth))).astype(np.float64)
        state = learner.update(parameters, state, rows, None, rewards)
    state = state._replace(theta=known.prior_mean + away * rng.normal(size=(cases, 4)))
    state = walk(learner, parameters, state, 60, lambda: np.empty((cases, 0)))
    slopes = np.abs(gradient(parameters, state.past, state.theta)).max(-1)
    assert np.count_nonzero(slopes > 1e-5) == 0


def test_a_step_never_climbs() -> None:
    data, learner = make_data(3, 20, scale=3.0), Laplace()
    parameters, state = remember(learner, data)
    state = state._replace(theta=np.random.default_rng(0).normal(0, 4, (500, 3)))
    heights = [energy(parameters, state.past, state.theta)]
    for _ in range(15):
        state = learner.step(parameters, state, np.empty((500, 0)))
        heights.append(energy(parameters, state.past, state.theta))
    assert np.diff(heights, axis=0).max() < 1e-9


# Walkers in general

WALKERS = [LMC(temperature=0.5), LMC(temperature=0.5, marginal=True), PG(), Laplace(), Laplace(marginal=True)]
EVERY_WALKER = pytest.mark.parametrize("learner", WALKERS, ids=repr)


@EVERY_WALKER
def test_a_fixed_size_history_gives_the_same_steps(learner: Walker, rng: np.random.Generator) -> None:
    data, room = make_data(3, 7), 11
    parameters, grown = remember(learner, data)
    _, fixed = remember(learner, data, room)
    for _ in range(3):
        normals = rng.standard_normal((4, learner.normals(data.known, 7)))
        padding = learner.normals(data.known, room) - learner.normals(data.known, 7)
        grown = learner.step(parameters, grown, normals)
        fixed = learner.step(parameters, fixed, np.concatenate([normals, np.zeros((4, padding))], 1))
        # Where no normals are drawn, one theta serves the whole batch.
        assert grown.theta.shape == ((4, 3) if normals.shape[1] else (3,))
        np.testing.assert_allclose(fixed.theta, grown.theta, rtol=1e-11, atol=1e-12)


@EVERY_WALKER
def test_what_fills_the_empty_slots_of_a_fixed_size_history_does_not_matter(
    learner: Walker, rng: np.random.Generator
) -> None:
    data = make_data(3, 7)
    parameters, state = remember(learner, data, 11)
    one, other = rng.standard_normal((2, learner.normals(data.known, 11)))
    used = learner.normals(data.known, 7)
    other[:used] = one[:used]
    np.testing.assert_allclose(
        learner.step(parameters, state, one).theta, learner.step(parameters, state, other).theta, rtol=1e-12
    )


@EVERY_WALKER
def test_jax_takes_the_same_steps(learner: Walker, rng: np.random.Generator) -> None:
    data = make_data(3, 7)
    parameters, state = remember(learner, data, 9)
    normals = rng.standard_normal((4, learner.normals(data.known, 9)))
    step = jax.jit(learner.step)
    there = jax.tree.map(jnp.asarray, (parameters, state))
    for _ in range(3):
        state = learner.step(parameters, state, normals)
        there = there[0], step(*there, jnp.asarray(normals))
    np.testing.assert_allclose(there[1].theta, state.theta, rtol=1e-10, atol=1e-11)
    right = learner.belief(parameters, state)
    found = learner.belief(*there)
    np.testing.assert_allclose(gaussian.covariance(found), gaussian.covariance(right), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("learner", [LMC(), PG()], ids=repr)
def test_a_sampler_is_certain_of_its_sample(learner: Walker, rng: np.random.Generator) -> None:
    parameters, state = remember(learner, make_data(3, 4))
    theta = rng.normal(size=(2, 3))
    belief = learner.belief(parameters, state._replace(theta=theta))
    assert np.array_equal(gaussian.sample(belief, rng.standard_normal((2, 3))), theta)


@pytest.mark.parametrize(
    "name", ["alg1-lmc:rate=0.05:marginal=true", "alg2-laplace:marginal=true", "alg1-pg"]
)
def test_an_agent_remembers_the_features_of_its_arm(name: str, rng: np.random.Generator) -> None:
    """Their mean and covariance under its belief, by quadrature; phi itself where the context is shown."""
    agent, known, trials, arms = Catalogue("bernoulli")[name], random_knowledge(5, 2, 6), 3, 4
    actions, noisy, shown = (
        rng.normal(0.5, 1.0, shape) for shape in ((trials, arms, 2), (trials, 2), (trials, 2))
    )
    setup, memory = agents.begin(agent, known)
    normals = rng.standard_normal((trials, agent.chooser.normals(known)))
    decision = agents.decide(agent, setup, memory, quadratic(actions), noisy, normals)
    revealed = shown if agent.reveals else None
    rewards = np.array([1.0, 0.0, 1.0])
    after = agents.learn(agent, setup, memory, quadratic(actions), decision, noisy, rewards, revealed)
    past = after.learner.past
    assert (past.spreads is None) == (name == "alg1-pg")
    assert np.array_equal(past.rewards[:, 0], rewards)
    for i, arm in enumerate(decision.arm):
        context = Context(decision.context.mean[i], np.broadcast_to(decision.context.cov, (trials, 2, 2))[i])
        rows, covs = feature_moments(quadratic_phi, actions[i], context)
        row = quadratic_phi(actions[i, arm], shown[i]) if agent.reveals else rows[arm]
        np.testing.assert_allclose(past.rows[i, :, 0], row, rtol=1e-10, atol=1e-12)
        if past.spreads is not None:
            cov = 0 * covs[arm] if agent.reveals else covs[arm]
            np.testing.assert_allclose(past.spreads[i, 0], cov, rtol=1e-9, atol=1e-11)


# Assumed-density filtering


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


@pytest.mark.parametrize("reward", [0.0, 1.0])
@pytest.mark.parametrize(("mean", "variance"), SCORES)
def test_an_update_has_the_moments_of_the_posterior(mean: float, variance: float, reward: float) -> None:
    state, row = belief_with(mean, variance)
    after = Online().update((), state, row, None, np.asarray(reward))
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
            after = Online().update((), state, row, None, np.asarray(1.0))
            centre, spread = tilted(mean, variance, 1.0)
            assert float(row @ after.mean) == pytest.approx(centre, abs=1e-7 * spread**0.5)
            assert float(row @ gaussian.covariance(after) @ row) == pytest.approx(spread, rel=1e-7)


@pytest.mark.parametrize("reward", [0.0, 1.0])
@pytest.mark.parametrize(("mean", "variance"), [(0.5, 2.0), (-3.0, 0.4), (2.0, 20.0)])
def test_with_contexts_averaged_out_the_sigmoid_is_flatter(
    mean: float, variance: float, reward: float, rng: np.random.Generator
) -> None:
    state, row = belief_with(mean, variance)
    root = rng.normal(0, 0.7, (3, 3))
    spread = root @ root.T
    after = Online(marginal=True).update((), state, row, spread, np.asarray(reward))
    # E[theta'S theta], by six points whose mean square is exact.
    moves = np.sqrt(3) * np.concatenate([state.root.T, -state.root.T])
    noise = np.mean([(state.mean + move) @ spread @ (state.mean + move) for move in moves])
    scale = 1 / np.sqrt(1 + np.pi / 8 * noise)
    centre, left = tilted(mean, variance, reward, scale)
    assert float(row @ after.mean) == pytest.approx(centre, abs=1e-5)
    assert float(row @ gaussian.covariance(after) @ row) == pytest.approx(left, rel=1e-5)
    plain = Online().update((), state, row, None, np.asarray(reward))
    assert abs(row @ (after.mean - plain.mean)) > 1e-3


def test_a_row_of_zeros_teaches_nothing() -> None:
    """What TS_kk learns from where features are linear and contexts centred: psi(a) = 0 for every arm."""
    state, _ = belief_with(0.5, 2.0)
    for marginal, spread in ((False, None), (True, np.eye(3))):
        for reward in (0.0, 1.0):
            after = Online(marginal=marginal).update((), state, np.zeros(3), spread, np.asarray(reward))
            np.testing.assert_allclose(after.mean, state.mean, rtol=1e-12)
            np.testing.assert_allclose(gaussian.covariance(after), gaussian.covariance(state), rtol=1e-12)
            single = Gaussian(*(jnp.asarray(part, jnp.float32) for part in state))
            zeros, paid = jnp.zeros(3, jnp.float32), jnp.asarray(reward, jnp.float32)
            wide = None if spread is None else jnp.asarray(spread, jnp.float32)
            found = Online(marginal=marginal).update((), single, zeros, wide, paid)
            assert all(bool((a == b).all()) for a, b in zip(found, single, strict=True))


def test_it_starts_from_the_prior_and_keeps_no_chain() -> None:
    known, learner = make_data(3, 1).known, Online()
    belief = learner.belief(learner.setup(known), learner.start(known, 7))
    assert np.array_equal(belief.mean, known.prior_mean)
    np.testing.assert_allclose(gaussian.covariance(belief), known.prior_cov, rtol=1e-12)
    assert learner.chain is None
    assert (learner.spread, Online(marginal=True).spread) == (False, True)


def test_after_many_rewards_it_is_near_the_posterior() -> None:
    """Approximate, so compared loosely with the grid: a third of a standard deviation, and of a variance."""
    data, learner = make_data(2, 40), Online()
    state = learner.start(data.known, None)
    for row, reward in zip(data.rows, data.rewards, strict=True):
        state = learner.update((), state, row, None, reward)
    mean, cov = data.moments(300)
    np.testing.assert_array_less(np.abs(state.mean - mean), 0.33 * np.sqrt(np.diag(cov)))
    np.testing.assert_allclose(np.diag(gaussian.covariance(state)), np.diag(cov), rtol=0.33)


def test_trials_learn_apart(rng: np.random.Generator) -> None:
    known, rows = make_data(3, 1).known, rng.normal(0.4, 1.5, (12, 4, 3))
    spreads, rewards = np.stack([spd(rng, 3)] * 4), rng.integers(0, 2, (12, 4)).astype(np.float64)
    for learner in (Online(), Online(marginal=True)):
        whole = learner.start(known, None)
        singles = [learner.start(known, None) for _ in range(4)]
        for row, reward in zip(rows, rewards, strict=True):
            whole = learner.update((), whole, row, spreads if learner.spread else None, reward)
            singles = [
                learner.update((), one, row[i], spreads[i] if learner.spread else None, reward[i])
                for i, one in enumerate(singles)
            ]
        for i, one in enumerate(singles):
            np.testing.assert_allclose(whole.mean[i], one.mean, rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(whole.root[i], one.root, rtol=1e-10, atol=1e-12)


def test_single_precision_updates_are_near() -> None:
    made = [belief_with(mean, variance) for mean, variance in SCORES for _ in range(2)]
    state = Gaussian(*(np.stack(part) for part in zip(*(belief for belief, _ in made), strict=True)))
    rows, rewards = np.stack([row for _, row in made]), np.tile([0.0, 1.0], len(SCORES))
    right = Online().update((), state, rows, None, rewards)
    there = jax.tree.map(lambda part: jnp.asarray(part, jnp.float32), (state, rows, rewards))
    found = jax.jit(lambda s, x, r: Online().update((), s, x, None, r))(*there)
    assert found.mean.dtype == jnp.float32
    spreads = np.sqrt(np.einsum("ni,nij,nj->n", rows, gaussian.covariance(right), rows))
    gaps = np.abs(np.vecdot(rows, np.asarray(found.mean, np.float64) - right.mean))
    assert np.all(gaps < 1e-3 * spreads)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("marginal", [False, True], ids=["plain", "marginal"])
def test_after_20_000_updates_it_is_finite_and_positive(precision: str, marginal: bool) -> None:
    size, n, trials = 5, 20_000, 4
    known = make_data(size, 1).known
    learner, rng = Online(marginal=marginal), np.random.default_rng(5)
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
        return learner.update((), state, seen[0], spread, seen[1]), None

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


# Settings


@pytest.mark.parametrize(
    ("learner", "field", "value"),
    [
        (LMC, "temperature", -0.1),
        (LMC, "temperature", float("nan")),
        (LMC, "temperature", True),
        (LMC, "temperature", [1.0]),
        (LMC, "steps", 0),
        (LMC, "steps", 2.5),
        (LMC, "steps", 10_001),
        (LMC, "steps", True),
        (LMC, "rate", 0.0),
        (LMC, "rate", float("inf")),
        (LMC, "decay", -1.0),
        (LMC, "marginal", 1),
        (LMC, "marginal", "true"),
        (PG, "sweeps", 0),
        (PG, "sweeps", "5"),
        (PG, "sweeps", 10_001),
        (Laplace, "steps", -3),
        (Laplace, "marginal", None),
        (Online, "marginal", 0.0),
    ],
)
def test_bad_settings_are_refused_by_name(learner: Any, field: str, value: object) -> None:
    with pytest.raises(InputError, match=rf"^{field}: .*; allowed: ") as refused:
        learner(**{field: value})
    assert refused.value.field == field


def test_settings_at_the_edge_are_taken() -> None:
    assert LMC(temperature=0, decay=0, steps=10_000).steps == 10_000
    assert LMC(temperature=np.float64(0.5)).temperature == 0.5


@pytest.mark.parametrize("learner", [LMC(), PG(), Laplace(), Online()], ids=repr)
def test_learners_do_not_change_and_are_their_settings(learner: Any) -> None:
    assert learner.kind == "bernoulli"
    assert learner == type(learner)()
    assert hash(learner) == hash(type(learner)())
    with pytest.raises(AttributeError):
        learner.marginal = True
