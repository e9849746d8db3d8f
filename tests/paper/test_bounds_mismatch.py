"""The measured mismatch: what is played, NUTS over everything unknown, sums by loops, refusals."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from blackjax.adaptation.base import get_filter_adapt_info_fn

from tests.each import each
from tests.problems import inverse, spd, within
from tests.theory.test_mismatch import dense, moments_of, normal
from unfog.agents.base import Evidence
from unfog.agents.catalogue import AGENTS
from unfog.agents.learn import Conjugate
from unfog.channel.knowledge import Knowledge
from unfog.features.linear import matrix
from unfog.maths.arrays import Array
from unfog.maths.gaussian import covariance
from unfog.paper.bounds import Mismatch, grid_of, measure, play_alg1, summary, until
from unfog.paper.nuts import BATCHES, moments
from unfog.simulation import plan
from unfog.simulation.engines import numpy as numpy_engine
from unfog.theory.mismatch import Rounds, divergence, posterior, sampling
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem, LogisticProblem

CHAINS, DRAWS, WARMUP, N = 8, 1000, 400, 30


def crooked(seed: int = 1, dim: int = 2, size: int = 2) -> GaussianProblem:
    """A problem with G(a) any matrices, correlated and not centred."""
    rng = np.random.default_rng(seed)
    return GaussianProblem(
        dim=dim,
        actions=rng.standard_normal((5, size, dim)),
        features=matrix,
        context_mean=rng.normal(0.5, 0.5, dim),
        context_cov=spd(rng, dim, 0.3, 1.5),
        noise_cov=spd(rng, dim, 0.3, 1.5),
        bias_cov=spd(rng, dim, 0.5, 2.0),
        prior_mean=rng.normal(0.2, 0.3, size),
        prior_cov=spd(rng, size, 0.2, 1.0),
        reward_var=0.5,
    )


PROBLEM = crooked()


@dataclass(frozen=True, kw_only=True)
class Shown(Conjugate):
    """The learner of Algorithm 1, told to write down what it is shown."""

    rows: ClassVar[list[Array]] = []
    rewarded: ClassVar[list[Array]] = []

    def update(self, parameters: Any, state: Any, evidence: Evidence, reward: Array) -> Any:
        self.rows.append(evidence.row())
        self.rewarded.append(reward)
        return super().update(parameters, state, evidence, reward)


@pytest.mark.parametrize("problem", [PROBLEM, GaussianProblem(dim=3, actions=4, features="product")])
def test_the_rounds_are_those_of_a_run(problem: GaussianProblem) -> None:
    Shown.rows.clear()
    Shown.rewarded.clear()
    row = replace(AGENTS["alg1"], name="recorded", learner=Shown())
    [job] = plan([problem], [row], rounds=40, trials=3, seed=11).jobs
    numpy_engine.ENGINE.run(job, range(3), lambda _: None)
    seen = play_alg1(problem, 41, range(3), 11)
    np.testing.assert_allclose(seen.rows, np.stack(Shown.rows[:40], 1), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(seen.rewards, np.stack(Shown.rewarded[:40], 1), rtol=1e-9, atol=1e-12)
    assert seen.noisy.shape == (3, 41, problem.dim)
    later = play_alg1(problem, 41, range(2, 3), 11)
    np.testing.assert_allclose(later.noisy[0], seen.noisy[2])
    np.testing.assert_allclose(later.rewards[0], seen.rewards[2])


def log_joint(known: Knowledge, rounds: Rounds, unknown: Any) -> Any:
    """Of theta, the bias and every context: nothing integrated out."""
    theta, bias, contexts = unknown

    def gaussian(away: Any, cov: Array) -> Any:
        return -0.5 * jnp.sum(away * (away @ inverse(cov)))

    scores = jnp.einsum("m,nmd,nd->n", theta, rounds.matrices, contexts[:-1])
    return (
        gaussian(theta - known.prior_mean, known.prior_cov)
        + gaussian(bias, known.bias_cov)
        + gaussian(contexts - known.context_mean, known.context_cov)
        + gaussian(rounds.noisy - contexts - bias, known.noise_cov)
        - 0.5 * jnp.sum((rounds.rewards - scores) ** 2) / known.reward_var
    )


def one_chain(known: Knowledge, rounds: Rounds, key: Any, start: Any) -> Any:
    density, (warming, walking) = partial(log_joint, known, rounds), jax.random.split(key)
    adapt = blackjax.window_adaptation(
        blackjax.nuts, density, target_acceptance_rate=0.9, adaptation_info_fn=get_filter_adapt_info_fn()
    )
    (state, parameters), _ = adapt.run(warming, start, WARMUP)
    kernel = blackjax.nuts(density, **parameters)

    def step(state: Any, key: Any) -> tuple[Any, tuple[Any, Any]]:
        state, info = kernel.step(key, state)
        return state, (state.position[0], info.is_divergent)

    return jax.lax.scan(step, state, jax.random.split(walking, DRAWS))[1]


class Case(NamedTuple):
    known: Knowledge
    rounds: Rounds
    draws: Array  # (chains, draws, m)  of theta, by NUTS


@pytest.fixture(scope="module")
def case() -> Case:
    known, rng = PROBLEM.knowledge(), np.random.default_rng(0)
    seen = play_alg1(PROBLEM, N + 1, range(1), 3)
    rounds = Rounds(*(part[0] for part in seen))
    t, d = rounds.noisy.shape
    starts = tuple(rng.standard_normal((CHAINS, *shape)) for shape in ((2,), (d,), (t, d)))
    keys = jax.random.split(jax.random.key(4), CHAINS)
    draws, divergent = jax.jit(jax.vmap(partial(one_chain, known, rounds)))(keys, starts)
    assert not np.any(divergent)
    halves = np.concat(np.array_split(np.asarray(draws), 2, 1))
    assert np.all(blackjax.diagnostics.potential_scale_reduction(halves) < 1.02)
    return Case(known, rounds, np.asarray(draws))


@pytest.mark.slow
def test_the_particles_cannot_be_told_from_nuts(case: Case) -> None:
    """5 moments within 4.5 standard errors (of 160 batches, and of 20 sets of particles): chance 1e-4 or so.

    NUTS walks over theta, gamma and all contexts, from the joint density as the model states it.
    """
    batches = np.concat(np.array_split(case.draws, BATCHES, 1))
    truth = moments(batches, np.eye(2))
    sets = np.random.default_rng(2).standard_normal((20, 2000, 2))
    found = [moments_of(posterior(case.known, case.rounds, z)) for z in sets]
    upper = np.triu_indices(2)
    entries = np.array([np.concat([mean, cov[upper]]) for mean, cov in found])
    wanted = [0, 1, 4, 5, 6]  # means, then variances and covariance
    error = np.hypot(truth.errors[wanted], np.std(entries, axis=0, ddof=1) / np.sqrt(20))
    assert np.all(error[:2] < 0.04 * np.sqrt(np.diag(truth.cov)))
    assert within(entries.mean(0), truth.entries[wanted], error, 4.5)
    sampled = sampling(case.known, case.rounds)  # and the test can tell: the agent's own is far off
    assert not within(covariance(sampled)[upper], truth.entries[wanted[2:]], error[2:], 10)


@pytest.mark.slow
def test_the_divergence_is_that_of_nuts(case: Case) -> None:
    """E[ln P_t / Pbar_t] over NUTS's draws and the integral of P_t on a grid, by the joint Gaussian."""
    known, rounds, draws = case
    sampled = sampling(known, rounds)

    def log_target(theta: Array) -> Array:
        return normal(theta, known.prior_mean, known.prior_cov) + dense(known, rounds, theta)

    some = draws[:, 4::5].reshape(-1, 2)
    middle, scale = some.mean(0), some.std(0)
    lines = [m + 7 * s * np.linspace(-1, 1, 36) for m, s in zip(middle, scale, strict=True)]
    grid = np.stack(np.meshgrid(*lines, indexing="ij"), -1).reshape(-1, 2)
    volume = np.logaddexp.reduce(log_target(grid)) + np.log((14 / 35) ** 2 * scale.prod())
    ratios = log_target(some) - volume - normal(some, sampled.mean, covariance(sampled))
    error = np.std(ratios) / np.sqrt(len(ratios))
    found = divergence(known, rounds, np.random.default_rng(1).standard_normal((4000, 2)))
    assert found.error < error < 0.1 * found.value
    assert abs(found.value - ratios.mean()) < 4.5 * np.hypot(error, found.error)


def test_sums_are_those_of_a_loop() -> None:
    grid, values = np.array([2, 4, 8]), np.array([[1.0, 3.0, 5.0], [2.0, 2.0, 0.0]])
    found = summary(grid, values, np.array([[9.0, 8.0, 7.0], [6.0, 9.0, 9.0]]))
    knots = [1, 2, 4, 8]
    totals = np.zeros((2, 3))
    for trial, points in enumerate(np.insert(values, 0, 0.0, 1)):
        running = 0.0
        for t in range(1, 9):
            after = max(1, sum(knot < t for knot in knots))
            share = np.log(t / knots[after - 1]) / np.log(knots[after] / knots[after - 1])
            running += (1 - share) * points[after - 1] + share * points[after]
            if t in grid:
                totals[trial, list(grid).index(t)] = running
    np.testing.assert_allclose(found.total, totals.mean(0))
    np.testing.assert_allclose(found.total_se, np.abs(totals[0] - totals[1]) / 2)
    np.testing.assert_allclose((found.mean, found.se), ([1.5, 2.5, 2.5], [0.5, 0.5, 2.5]))
    np.testing.assert_allclose(found.ess, [6.0, 8.0, 7.0])
    assert found.total[0] == pytest.approx(1.5)  # D_1 = 0


@each("rounds, points", [(1, 8), (2, 8), (5, 8), (200, 8), (1000, 1), (1000, 40)])
def test_grids_rise_to_the_last_round(rounds: int, points: int) -> None:
    grid = grid_of(rounds, points)
    assert np.all(np.diff(grid) > 0)
    assert grid[-1] == rounds
    assert len(grid) <= points
    assert grid[0] >= min(2, rounds)


@pytest.fixture(scope="module")
def found() -> Mismatch:
    return measure(PROBLEM, rounds=12, trials=5, seed=2, points=3, particles=400)


def test_a_measurement_is_of_its_trials(found: Mismatch, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found.rounds.tolist() == [2, 5, 12]
    assert np.all(found.mean > 0)
    assert np.all(np.diff(found.total) > 0)
    seen, steps = play_alg1(PROBLEM, 12, range(5), 2), []
    fine = np.random.default_rng(0).standard_normal((5, 4000, 2))
    early = [until(Rounds(*(part[i] for part in seen)), 5) for i in range(5)]
    apart = [divergence(PROBLEM.knowledge(), one, z).value for one, z in zip(early, fine, strict=True)]
    assert found.mean[1] == pytest.approx(np.mean(apart), rel=0.1)
    monkeypatch.setattr("unfog.paper.bounds.MISMATCH_CELLS", 1)
    again = measure(
        PROBLEM, rounds=12, trials=5, seed=2, points=3, particles=400, progress=lambda *at: steps.append(at)
    )
    for one, other in zip(found, again, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    assert steps == [(i, 5) for i in range(6)]
    other_seed = measure(PROBLEM, rounds=12, trials=5, seed=3, points=3, particles=400)
    assert np.all(other_seed.mean != found.mean)


def test_one_round_has_no_mismatch() -> None:
    found = measure(PROBLEM, rounds=1, trials=2, particles=400)
    np.testing.assert_allclose([found.mean, found.total, found.total_se], 0.0, atol=1e-12)


def test_under_the_papers_conditions_the_sum_is_far_below_its_bound() -> None:
    """Sum D_t <= d T / 4 where lambda <= d sigma^2 / T: the sum itself is below 2 % of it."""
    problem = GaussianProblem(
        dim=4,
        actions=10,
        action_law="uniform",
        features="product",
        context_cov=0.2,
        noise_cov=0.2,
        bias_cov=0.2,
        reward_var=1.0,
        prior_cov=4 / 100,
    )
    found = measure(problem, rounds=100, trials=10, points=5)
    assert 0 < found.total[-1] < found.total[-1] + 5 * found.total_se[-1] < 0.02 * 4 * 100 / 4
    assert np.all(found.ess > 1000)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "rounds": ({"rounds": 0}, "rounds: 0"),
    "trials": ({"trials": 1}, "trials: 1"),
    "seed": ({"seed": -1}, "seed: -1"),
    "points": ({"points": 0}, "points: 0"),
    "particles": ({"particles": 10}, "particles: 10"),
}


@each("case", BAD)
def test_what_makes_no_sense_is_refused(case: str) -> None:
    fields, said = BAD[case]
    with pytest.raises(InputError) as refused:
        measure(PROBLEM, **{"rounds": 10, **fields})
    assert said in str(refused.value)


def test_other_problems_are_refused() -> None:
    with pytest.raises(InputError, match=r"problem: bernoulli rewards; allowed: rewards with Gaussian noise"):
        measure(LogisticProblem(features="product"), rounds=5)
    with pytest.raises(InputError, match="problem: the features are Quadratic; allowed: features linear"):
        measure(GaussianProblem(), rounds=5)
