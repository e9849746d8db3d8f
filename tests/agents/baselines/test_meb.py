"""MEB and its baselines against their formulas, its sums against Monte Carlo, and its limits."""

from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import unfog
from tests.agents.baselines.plain import compare, tied, world
from unfog.agents.agent import Agent
from unfog.agents.base import Evidence
from unfog.agents.baselines import BASELINES
from unfog.agents.baselines.meb import Meb, State, error_of, error_of_all
from unfog.features import Context, FeatureMap, quadratic
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Gaussian, from_moments
from unfog.maths.random import RoundDraws
from unfog.simulation import play
from unfog.simulation.player import played
from unfog.validation import InputError
from unfog.worlds.problem import Emission
from unfog.worlds.synthetic import GaussianProblem

NOISE = np.array([[1.4, -0.6, 0.2], [-0.6, 0.7, 0.0], [0.2, 0.0, 0.5]])
BURN = 60


def agent(name: str, burn: int = BURN) -> Agent:
    row = BASELINES[name].agent
    return replace(row, learner=replace(row.learner, burn=burn))  # type: ignore[type-var]


def uniform(normals: Array) -> float:
    return float(np.exp(-0.5 * (normals[0] ** 2 + normals[1] ** 2)))


class Optimist:
    """Chooses by theta and V of each arm, as all of them do; V and b without any error, weighted or not."""

    floor = 0.2

    def __init__(self, arms: int, size: int, weighted: bool) -> None:
        self.v, self.w = np.stack([np.eye(size)] * arms), np.zeros((arms, size, size))
        self.b, self.theta = np.zeros((arms, size)), np.zeros((arms, size))
        self.arms, self.weighted, self.round, self.p = arms, weighted, 0, np.zeros(arms)

    def shares(self, x: list[Array]) -> Array:
        bounds = [
            x[a] @ self.theta[a] + np.sqrt(x[a] @ np.linalg.inv(self.v[a]) @ x[a]) for a in range(self.arms)
        ]
        p = np.full(self.arms, self.floor / (self.arms - 1))
        p[tied(bounds)[0]] = 1 - self.floor
        return p if self.round else np.full(self.arms, 1 / self.arms)

    def solved(self, v: Array, w: Array, b: Array) -> Array:
        """By inverses; where the guard would change something it is not for this test."""
        if self.round <= BURN:
            return np.linalg.inv(v) @ b
        assert np.linalg.eigvals(np.linalg.inv(v) @ w).real.max() < 0.95
        return np.linalg.inv(v - w) @ b

    def draw(self, x: list[Array], normals: Array) -> int:
        self.p, place = self.shares(x), uniform(normals)
        return next(a for a in range(self.arms) if place < self.p[: a + 1].sum())


class PerArm(Optimist):
    """The paper's: a theta for each arm, contexts as features."""

    def __init__(self, arms: int, weighted: bool, noise: Array, intercept: bool) -> None:
        size = len(noise) + intercept
        super().__init__(arms, size, weighted)
        self.error, self.intercept = np.zeros((size, size)), intercept
        self.error[intercept:, intercept:] = noise

    def x(self, seen: Emission) -> Array:
        return np.r_[[1.0] * self.intercept, seen.noisy]

    def choose(self, rows: Array, normals: Array, seen: Emission) -> int:
        return self.draw([self.x(seen)] * self.arms, normals)

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        x, weight = self.x(seen), 1 / self.arms / self.p[arm] if self.weighted else 1.0
        self.v[arm] += weight * np.outer(x, x)
        self.b[arm] += weight * x * reward
        for a in range(self.arms):
            if self.weighted:
                self.w[a] += self.error / self.arms
            elif a == arm:
                self.w[a] += self.error
            self.theta[a] = self.solved(self.v[a], self.w[a], self.b[a])
        self.round += 1


class Quadratic(Optimist):
    """One theta for all arms: phi = [a^2, c^2, a c], with moments of Gaussian errors entry by entry."""

    def __init__(self, actions: Array, weighted: bool, noise: Array) -> None:
        super().__init__(1, 9, weighted)
        self.arms, self.actions, self.noise = len(actions), actions, noise
        self.v, self.theta = np.stack([np.eye(9)] * self.arms), np.zeros((self.arms, 9))
        self.error, self.sum = np.zeros((9, 9)), np.zeros(9)

    def choose(self, rows: Array, normals: Array, seen: Emission) -> int:
        return self.draw(list(rows), normals)

    def error_of(self, a: Array, chat: Array) -> Array:
        s, found = self.noise, np.zeros((9, 9))
        for i in range(3):
            for j in range(3):
                found[3 + i, 3 + j] = 4 * (chat[i] * chat[j] - s[i, j]) * s[i, j] + 2 * s[i, j] ** 2
                found[3 + i, 6 + j] = found[6 + j, 3 + i] = 2 * chat[i] * s[i, j] * a[j]
                found[6 + i, 6 + j] = a[i] * s[i, j] * a[j]
        return found

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        x = rows[arm] - np.r_[np.zeros(3), np.diag(self.noise), np.zeros(3)]
        weight = 1 / self.arms / self.p[arm] if self.weighted else 1.0
        self.v = self.v + weight * np.outer(x, x)
        self.sum += weight * x * reward
        errors = [self.error_of(a, seen.noisy) for a in self.actions]
        self.error += np.mean(errors, 0) if self.weighted else errors[arm]
        self.theta[:] = self.solved(self.v[0], self.error, self.sum)
        self.round += 1


@pytest.mark.parametrize("name", ["meb", "meb-naive"])
@pytest.mark.parametrize("features", ["slopes", "per_arm"])
def test_it_chooses_as_the_plain_loop(name: str, features: str) -> None:
    problem = world(features=features, actions=3, noise_cov=NOISE / 10)
    compare(
        agent(name),
        problem,
        lambda _: PerArm(3, name == "meb", NOISE / 10, features == "per_arm"),
        rounds=150,
    )


@pytest.mark.parametrize("name", ["meb", "meb-naive"])
def test_one_theta_for_all_arms(name: str) -> None:
    actions = np.random.default_rng(5).normal(size=(4, 3))
    problem = world(actions=actions, noise_cov=NOISE / 20)
    compare(agent(name), problem, lambda _: Quadratic(actions, name == "meb", NOISE / 20), rounds=150)


def test_a_prior_of_one_matrix_gives_the_same_arms_as_one_in_blocks() -> None:
    told = {"features": "slopes", "actions": 3, "noise_cov": NOISE / 4}
    dense = world(**told, prior_cov=0.3 * np.eye(9))
    for name in ("meb", "meb-naive"):
        arms = [
            [d.arm.tolist() for _, d in played(p, agent(name), 100, [0, 1], 2)]
            for p in (dense, world(**told))
        ]
        assert arms[0] == arms[1]


class Sampler:
    """Thompson sampling of two arms, with its probability clipped."""

    def __init__(self, variance: float) -> None:
        self.v, self.b, self.variance = np.stack([np.eye(3)] * 2), np.zeros((2, 3)), variance

    def choose(self, rows: Array, normals: Array, seen: Emission) -> int:
        x, inverse = seen.noisy, [np.linalg.inv(v) for v in self.v]
        gap = x @ (inverse[0] @ self.b[0] - inverse[1] @ self.b[1])
        spread = np.sqrt(self.variance * (x @ (inverse[0] + inverse[1]) @ x))
        first = np.clip(NormalDist().cdf(gap / spread), 0.2, 0.8)
        return int(NormalDist().cdf(normals[0]) > first)

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        self.v[arm] += np.outer(seen.noisy, seen.noisy)
        self.b[arm] += seen.noisy * reward


class Mixed:
    """Thompson sampling of several arms that share a theta, mixed with an even share."""

    def __init__(self) -> None:
        self.v, self.b = np.eye(9), np.zeros(9)

    def choose(self, rows: Array, normals: Array, seen: Emission) -> int | list[int]:
        inverse = np.linalg.inv(self.v)
        if uniform(normals[9:]) < 0.2 * len(rows) / (len(rows) - 1):
            angle = 0.5 + np.arctan2(normals[10], normals[9]) / (2 * np.pi)
            return int(angle * len(rows))
        return tied(rows @ (inverse @ self.b + 1e-9 * normals[:9]))

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        self.v = self.v + np.outer(rows[arm], rows[arm])
        self.b = self.b + rows[arm] * reward


def test_clipped_sampling_of_two_arms_is_the_plain_loop() -> None:
    problem, baselines = world(features="slopes", actions=2), [Sampler(0.5) for _ in range(2)]
    row, both = BASELINES["meb-ts"].agent, set[int]()
    normals = RoundDraws(4, [0, 1], "agent", 8).next(100)
    for t, (emission, decision) in enumerate(played(problem, row, 100, [0, 1], 4)):
        assert decision.reward is not None
        for i, baseline in enumerate(baselines):
            seen = Emission(emission.context[i], emission.noisy[i])
            arm = baseline.choose(np.zeros(0), normals[i, t], seen)
            assert arm == decision.arm[i]
            baseline.learn(arm, np.zeros(0), float(decision.reward[i]), seen)
            both.add(arm)
    assert both == {0, 1}


def test_clipped_sampling_of_many_arms_mixes() -> None:
    row = BASELINES["meb-ts"].agent
    certain = world(reward_var=1e-18)  # so that a draw is the mean
    compare(row, certain, lambda _: Mixed())


def policy(chat: Array, arms: int) -> Array:
    """One that looks at noisy contexts, and never shuts an arm out."""
    score = chat @ np.random.default_rng(1).normal(size=(chat.shape[-1], arms))
    return 0.4 / arms + 0.6 * (score == score.max(-1, keepdims=True))


MAPS: dict[str, Callable[[Array], FeatureMap]] = {
    "quadratic": unfog.features.quadratic,
    "product": unfog.features.product,
    "per_arm": unfog.features.per_arm,
    "slopes": unfog.features.slopes,
    "matrix": lambda actions: unfog.features.matrix(actions[..., None] * np.ones(3)),
    "own": lambda _: unfog.features.own(np.zeros((3, 3))),
}


@pytest.mark.parametrize("name", MAPS)
def test_the_sums_are_unbiased(name: str) -> None:
    for weighted in (True, False):
        check_that_the_sums_are_unbiased(name, weighted)


def check_that_the_sums_are_unbiased(name: str, weighted: bool) -> None:
    # E[w (x x' - error)] = mean of phi phi' over arms, and E[w x r] that times theta; all within 5 deviations
    # of 20,000 draws, of at most 300 numbers: a false alarm comes once in 5,000 times.
    rng, number = np.random.default_rng(3), 20_000
    actions, context = rng.normal(size=(3, 3)), np.array([0.8, -0.5, 0.3])
    features = MAPS[name](np.broadcast_to(actions, (number, 3, 3)))
    chat = context + rng.normal(size=(number, 3)) @ np.linalg.cholesky(NOISE).T
    shares = policy(chat, 3) if weighted else np.full((number, 3), 1 / 3)
    arm = (shares.cumsum(-1) > rng.random((number, 1))).argmax(-1)
    weight = 1 / 3 / shares[np.arange(number), arm]
    row = features.design(Context(chat, -NOISE)).row(arm)
    told = features, chat, NOISE
    error = error_of_all(*told, False) if weighted else error_of(*told, arm, False)
    gram = weight[:, None, None] * row[:, :, None] * row[:, None, :] - error
    true = np.stack([MAPS[name](actions).at(context).row(np.asarray(a)) for a in range(3)])
    wanted, theta = np.einsum("ai,aj->ij", true, true) / 3, rng.normal(size=features.size)
    assert deviations(gram, wanted).max() < 5
    assert deviations(weight[:, None] * row * (true @ theta)[arm][:, None], wanted @ theta).max() < 5
    if weighted:  # a policy that looks at them makes errors depend on arms: plain sums would be wrong
        plain = row[:, :, None] * row[:, None, :] - error_of(*told, arm, False)
        freely = np.einsum("na,ai,aj->ij", shares, true, true) / number
        assert deviations(plain, freely).max() > 5 or name == "own"


def deviations(found: Array, wanted: Array) -> Array:
    """How far a mean of draws is from what it should be, in standard errors."""
    spread = found.std(0, ddof=1) / np.sqrt(len(found))
    off: Array = np.abs(found.mean(0) - wanted)
    return np.where(off > 1e-9, off / np.maximum(spread, 1e-12), 0.0)


@pytest.mark.parametrize("weighted", [True, False])
def test_a_round_adds_what_the_formulas_say(weighted: bool) -> None:
    actions, chat, chance = np.array([[1.0, 2.0, 0.5], [0.3, -1.0, 2.0]]), np.array([0.8, -0.5, 0.3]), 0.8
    plain = Quadratic(actions, weighted, NOISE)
    plain.p = np.array([1 - chance, chance])
    rows = np.array([np.r_[a**2, chat**2, a * chat] for a in actions])
    plain.learn(1, rows, 1.5, Emission(chat, chat))
    features, learner = quadratic(actions), Meb(weighted=weighted)
    state = learner.start(world(actions=2).knowledge(), None)
    sure = Context(chat, np.zeros((3, 3)))
    told = features, features.design(sure), state.ball, np.asarray(1)
    evidence = Evidence(*told, context=sure, choice_report=np.asarray(chance))
    found = learner.update(NOISE, state, evidence, np.asarray(1.5))
    assert np.allclose(found.ball.root @ found.ball.root.mT, np.linalg.inv(plain.v[0]))
    assert np.allclose(found.ball.centre, np.linalg.inv(plain.v[0]) @ plain.sum)
    assert np.allclose(found.errors, plain.error)


def test_blocks_of_errors_are_those_of_the_matrix() -> None:
    features, chat, arm = unfog.features.per_arm(np.zeros((3, 3))), np.ones((2, 3)), np.array([2, 0])
    whole = error_of_all(features, chat, NOISE, False)
    assert np.allclose(whole[4:8, 4:8], error_of_all(features, chat, NOISE, True)[1])
    assert not whole[:4, 4:].any()
    taken, blocks = (error_of(features, chat, NOISE, arm, form) for form in (False, True))
    for a in range(3):
        assert np.allclose(taken[:, 4 * a : 4 * a + 4, 4 * a : 4 * a + 4], blocks[:, a])


def test_the_guard_leaves_a_share_of_what_seems_to_be_error() -> None:
    v, w, b = np.diag([11.0, 5.0]), np.diag([5.0, 6.0]), np.array([1.0, 2.0])
    ball = from_moments(np.linalg.solve(v, b), np.linalg.inv(v))
    found = Meb(burn=0).belief(NOISE, State(ball, w, np.asarray(9.0)))
    assert np.allclose(found.centre, [1 / 6, 2 / (0.05 * 5)])
    assert isinstance(found, Gaussian)
    early = Meb(burn=8).belief(NOISE, State(ball, w, np.asarray(9.0)))
    assert np.allclose(early.centre, b / [11, 5])


def test_without_noise_meb_without_weights_is_the_optimist() -> None:
    for features in ("quadratic", "slopes", "product"):
        problem = world(noise_cov=1e-12, features=features)
        names = "meb-naive", "meb-optimist"
        plays = [
            [d.arm.tolist() for _, d in played(problem, BASELINES[n].agent, 130, [0, 1], 5)] for n in names
        ]
        assert plays[0] == plays[1]


def attenuated(name: str) -> float:
    """By how much the thetas that an agent has found fall short of the true ones, after 700 rounds."""
    theta = np.array([1.0, 0.5, -1.0, 0.0, 1.0, 2.0])
    problem = GaussianProblem(
        dim=3, actions=2, features="slopes", theta=theta.tolist(), context_mean=1.0, noise_cov=NOISE / 2,
        bias_cov=1e-12, reward_var=0.01,
    )  # fmt: skip
    *_, (_, last) = played(problem, BASELINES[name].agent, 700, range(100), 1)
    return float(np.abs(last.evidence.belief.centre.mean(0) - theta).max())


@pytest.mark.slow
def test_it_finds_theta_where_plain_regression_does_not() -> None:
    found = {name: attenuated(name) for name in ("meb", "meb-optimist")}
    assert found["meb"] < 0.08 < 0.16 < found["meb-optimist"], found


def test_it_refuses_maps_without_moments_under_a_negative_covariance() -> None:
    problem = world(features=unfog.features.quadrature(np.multiply, 3))
    with pytest.raises(InputError, match="polynomial"):
        play(problem, ["meb"], rounds=2, trials=2)


def test_bad_settings_are_refused() -> None:
    chooser: Any = BASELINES["meb"].agent.chooser
    for floor in (0.0, 0.6):  # every arm stays within reach
        with pytest.raises(InputError, match="floor"):
            replace(chooser, floor=floor)
    for signal in (0.0, 1.0):
        with pytest.raises(InputError, match="signal"):
            Meb(signal=signal)
