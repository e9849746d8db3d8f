"""CLBBF against its formulas, written out for one trial."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.agents.baselines.plain import compare, tied, world
from tests.problems import spd
from unfog.agents.agent import Agent
from unfog.agents.baselines import BASELINES
from unfog.agents.baselines.clbbf import Imputed, Imputing, Law, Lifting, Parameters
from unfog.agents.catalogue import select_rows
from unfog.agents.learn import Joint
from unfog.maths.arrays import Array
from unfog.simulation.job import truth_draws
from unfog.simulation.player import played
from unfog.validation import InputError
from unfog.worlds import GaussianProblem, LogisticProblem
from unfog.worlds.problem import Emission, Problem

SEED, T = 3, 1000
CLBBF, OFUL = BASELINES["clbbf"].agent, BASELINES["clbbf-oful"].agent


class Plain:
    """As the paper and its code have it; `rows` makes the features (K, m) of a context that arms share."""

    def __init__(self, arms: int, size: int, width: int, rows: Callable[[Array], Array] | None) -> None:
        self.arms, self.size, self.width, self.rows = arms, size, width, rows
        self.samples = 1 if rows else arms
        self.n, self.xi, self.z = 0.0, np.zeros(width), np.zeros((width, width))
        self.t, self.gathered, self.past = 0, 0.0, list[tuple[Array, Array, int, float]]()
        self.v, self.b = self.ridge(), np.zeros(size + 1)

    def ridge(self) -> Array:
        return (self.size + 1) * np.log(self.arms * T) * np.eye(self.size + 1)

    def impute(self, x: Array, mask: Array) -> Array:
        there, lost, found = np.flatnonzero(mask), np.flatnonzero(mask == 0), x.copy()
        gain = self.sigma[np.ix_(lost, there)] @ np.linalg.pinv(self.sigma[np.ix_(there, there)])
        found[lost] = self.nu[lost] + gain @ (x[there] - self.nu[there])
        return found

    def features(self, x: Array, mask: Array, arm: int) -> Array:
        """[1, features] of an arm, for the reading of its own context or of the one there is."""
        imputed = self.impute(x, mask)
        return np.concatenate([[1.0], imputed if self.rows is None else self.rows(imputed)[arm]])

    def estimate(self, readings: Array, masks: Array) -> None:
        for x, mask in zip(readings, masks, strict=True):
            self.n += mask.sum()
            self.xi = self.xi + x
            self.z = self.z + np.outer(x, x)
        number, d = self.samples * (self.t + 1), self.width
        self.p = p = max(1.0, self.n) / (d * number)
        self.nu = self.xi / (number * p)
        weight = (p - 1) / p**2 * np.eye(d) + 1 / p**2
        self.sigma = self.z * weight / number - np.outer(self.nu, self.nu)

    def again(self) -> None:
        self.v, self.b = self.ridge(), np.zeros(self.size + 1)
        rows = [self.features(x, mask, arm) for x, mask, arm, _ in self.past]
        for x, (*_, reward) in zip(rows, self.past, strict=True):
            self.v, self.b = self.v + np.outer(x, x), self.b + reward * x
        inverse = np.linalg.pinv(self.v)
        self.gathered = sum(float(np.sqrt(x @ inverse @ x)) for x in rows)

    def beta(self) -> float:
        many, after = np.log(self.arms * T), self.t + 2
        third = self.width * self.p**-1.5 * np.sqrt(np.log(T) * many / (after * self.samples))
        return float(
            np.sqrt((self.size + 1) * np.log(after * T)) + self.gathered * third + np.sqrt(self.size * many)
        )

    def choose(self, rows: Array, normals: Array, seen: Emission) -> list[int]:
        mask = np.ones_like(seen.noisy) if seen.mask is None else seen.mask
        self.masks = mask.reshape(self.samples, -1)
        self.readings = (seen.noisy * mask).reshape(self.samples, -1)
        self.estimate(self.readings, self.masks)
        if self.t in (1, 2, 4, 8, 16, 32, 64):
            self.again()
        inverse = np.linalg.pinv(self.v)
        theta = inverse @ self.b
        own = range(self.arms) if self.rows is None else [0] * self.arms
        self.x = [self.features(self.readings[i], self.masks[i], a) for a, i in enumerate(own)]
        bounds = [x @ theta + self.beta() * np.sqrt(x @ inverse @ x) for x in self.x]
        return tied(bounds)  # arms of blocks that were never chosen are equal

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        i = arm if self.rows is None else 0
        self.past.append((self.readings[i], self.masks[i], arm, reward))
        self.v, self.b = self.v + np.outer(self.x[arm], self.x[arm]), self.b + reward * self.x[arm]
        self.t += 1


class PlainOful(Plain):
    """Zero for what was lost, and nothing done again."""

    def impute(self, x: Array, mask: Array) -> Array:
        return x

    def again(self) -> None:
        pass


def own_world(**changes: Any) -> GaussianProblem:
    """Seven arms with correlated contexts of two numbers, each with a mean and a spread of its own."""
    cov = spd(np.random.default_rng(5), 14)
    told: dict[str, Any] = {
        "dim": 14,
        "actions": 7,
        "features": "own",
        "context_mean": np.linspace(-1, 1, 14),
        "context_cov": cov / np.trace(cov) * 14,
        "noise_cov": 0.3,
        "bias_cov": 0.2,
        "prior_mean": 0.4,
        "prior_cov": 0.3,
        "reward_var": 0.5,
        "missing": 0.3,
    }
    return GaussianProblem(**told | changes)


def shared(problem: Problem, size: int, kind: type[Plain] = Plain) -> Callable[[int], Plain]:
    """Plain baselines for a context that all arms share."""

    def one(trial: int) -> Plain:
        features = problem.truth(truth_draws(SEED, [trial], problem.truth_draws())).features
        arms = np.arange(problem.arms())[:, None]

        def rows(context: Array) -> Array:
            return np.stack([features.at(context[None]).row(arm)[0] for arm in arms])

        return kind(problem.arms(), size, 3, rows)

    return one


@pytest.mark.parametrize(("agent", "kind"), [(CLBBF, Plain), (OFUL, PlainOful)], ids=["clbbf", "oful"])
def test_it_chooses_as_the_plain_loop(agent: Agent, kind: type[Plain]) -> None:
    """With contexts of their own: seven samples a round and four ways to lose numbers."""
    compare(agent, own_world(), lambda _: kind(7, 2, 2, None), seed=SEED)


def test_more_ways_to_lose_than_samples() -> None:
    cov = spd(np.random.default_rng(6), 12)
    problem = own_world(dim=12, actions=3, context_mean=0.5, context_cov=cov / np.trace(cov) * 12)
    compare(CLBBF, problem, lambda _: Plain(3, 4, 4, None), seed=SEED)


@pytest.mark.parametrize(("agent", "kind"), [(CLBBF, Plain), (OFUL, PlainOful)], ids=["clbbf", "oful"])
def test_a_context_that_arms_share(agent: Agent, kind: type[Plain]) -> None:
    problem = world(missing=0.3)
    compare(agent, problem, shared(problem, 9, kind), rounds=70, seed=SEED)


def test_features_of_their_own_in_blocks() -> None:
    problem = world(features="per_arm", missing=0.3, actions=4)
    compare(CLBBF, problem, shared(problem, 16), rounds=40, seed=SEED)


@pytest.mark.parametrize("told", [{"features": "product"}, {"features": "matrix"}], ids=str)
def test_linear_features(told: dict[str, Any]) -> None:
    actions = np.random.default_rng(2).normal(0.5, 1, (6, 4, 3))
    problem = world(**told, **({"actions": actions} if told["features"] == "matrix" else {}), missing=0.2)
    size = problem.knowledge().prior_mean.shape[-1]
    compare(CLBBF, problem, shared(problem, size), rounds=40, seed=SEED)


def test_rewards_of_zero_or_one() -> None:
    told = {name: getattr(own_world(), name) for name in ("dim", "actions", "features", "context_cov")}
    problem = LogisticProblem(**told, missing=0.3, prior_cov=2.0)
    agent = CLBBF.for_rewards("bernoulli")
    compare(agent, problem, lambda _: Plain(7, 2, 2, None), seed=SEED)


def test_with_nothing_lost_only_the_width_tells_it_from_oful() -> None:
    """Zeros for gaps, or gaps imputed: the same where there are none, if no width is added."""
    problem = own_world(missing=0.0)
    names = "clbbf:alpha=0", "clbbf-oful:alpha=0"
    one, other = (
        [decision.arm.tolist() for _, decision in played(problem, agent, 40, [0, 1], SEED)]
        for agent in select_rows(names)
    )
    assert one == other


def test_the_law_of_readings_is_found_and_used() -> None:
    """With many samples: moments within four standard errors, and a gap set to its conditional mean."""
    cov, mean = np.array([[1.0, 0.6], [0.6, 0.8]]), np.array([0.7, -0.4])
    rng, part = np.random.default_rng(0), Imputed()
    readings = rng.multivariate_normal(mean, cov, 40_000)
    readings[rng.random(readings.shape) < 0.3] = np.nan
    parameters = Parameters(np.zeros((40_000, 2)), np.zeros((1, 1)))
    law: Law = part.hindsight(parameters, part.start(parameters), readings.ravel())
    np.testing.assert_allclose(law.share, 0.7, atol=4 * (0.21 / 80_000) ** 0.5)
    np.testing.assert_allclose(law.mean, mean, atol=0.03)
    np.testing.assert_allclose(law.cov, cov, atol=0.05)
    found = law.imputed(np.array([[np.nan, 1.0], [2.0, np.nan], [np.nan, np.nan], [3.0, 4.0]]))
    right = np.array([[0.7 + 0.6 / 0.8 * 1.4, 1.0], [2.0, -0.4 + 0.6 * 1.3], [0.7, -0.4], [3.0, 4.0]])
    np.testing.assert_allclose(found, right, atol=0.1)


@pytest.mark.parametrize("number", [5, 300], ids=["each by itself", "from a table"])
def test_single_precision_imputes_as_double_does(number: int) -> None:
    jnp = pytest.importorskip("jax.numpy")
    rng = np.random.default_rng(6)
    cov, mean = spd(rng, 4), rng.normal(size=4)
    readings = rng.multivariate_normal(mean, cov, size=number)
    readings[rng.random((number, 4)) < 0.4] = np.nan
    law = Law(np.ones(()), np.asarray(0.6), mean, cov)
    single = Law(*(jnp.asarray(x, dtype=jnp.float32) for x in law))
    found = single.imputed(jnp.asarray(readings, dtype=jnp.float32))
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, law.imputed(readings), atol=1e-4)


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(InputError, match="imputes"):
        Agent("odd", BASELINES["linucb"].agent.denoiser, Imputing(), Lifting())
    with pytest.raises(InputError, match="wait for the bias"):
        Agent("odd", Imputed(), Joint(), Lifting())
    problem = world(features="matrix", actions=np.ones((4, 1, 3)))
    with pytest.raises(InputError, match="does not divide it"):
        next(played(problem, CLBBF, 1, [0], SEED))
    with pytest.raises(InputError, match="horizon"):
        Imputing(horizon=1)
