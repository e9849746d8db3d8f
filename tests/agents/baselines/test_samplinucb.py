"""SampLinUCB against its formulas, written out for one trial: every sample and every play is kept."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.agents.baselines.plain import compare, tied, world
from unfog.agents.agent import Agent
from unfog.agents.baselines import BASELINES
from unfog.agents.baselines.base import Optimism, Ridge
from unfog.agents.baselines.samplinucb import Averages, Profiles, Reach, start_averages
from unfog.agents.catalogue import select_rows
from unfog.agents.denoise import Exact
from unfog.features import Context
from unfog.maths.arrays import Array
from unfog.maths.gaussian import as_matrix
from unfog.simulation import play
from unfog.simulation.player import played
from unfog.validation import InputError
from unfog.worlds.problem import Emission, Problem
from unfog.worlds.synthetic import GaussianProblem, LogisticProblem

AGENT = BASELINES["samplinucb"].agent
MEANS = [0.9, -0.4, 0.3, 0.5, 0.1, -0.6, -0.2, 0.7, 0.4, 0.0, 0.6, -0.3]
SPREAD = np.diag([0.5, 0.2, 0.8] * 4) + 0.1
NOISE = np.diag([0.3, 0.9, 0.2, 0.6] * 3) + 0.15


def profiles(**changes: Any) -> GaussianProblem:
    """Four arms with profiles of three numbers, the same in all rounds of a trial."""
    told: dict[str, Any] = {
        "dim": 12,
        "actions": 4,
        "features": "own",
        "context_mean": MEANS,
        "context_cov": SPREAD,
        "noise_cov": NOISE,
        "bias_cov": 1e-6,
        "prior_mean": 0.2,
        "prior_cov": 0.4,
        "reward_var": 0.3,
        "steady": True,
    }
    return GaussianProblem(**told | changes)


class Plain:
    """One trial, from every sample of every arm and every play."""

    def __init__(self, problem: Problem, *, length: float = 1.0, ridge: float = 1.0, chosen: bool = False):
        known, arms = problem.knowledge(), problem.arms()
        self.dim, self.block = len(known.prior_mean), len(known.context_mean) // arms
        self.noise = 0.5 if known.reward_var is None else float(np.sqrt(known.reward_var))
        self.norm = float(np.sqrt(known.prior_mean @ known.prior_mean + np.trace(as_matrix(known.prior_cov))))
        self.length, self.ridge, self.chosen = length, ridge, chosen
        self.samples: list[list[Array]] = [[] for _ in range(arms)]
        self.plays: list[tuple[int, float]] = []

    def _seen(self, arm: int, rows: Array, seen: Emission) -> None:
        if seen.mask is None or seen.mask[arm * self.block] > 0:
            self.samples[arm].append(rows[arm])

    def choose(self, rows: Array, normals: Array, seen: Emission) -> list[int]:
        if not self.chosen:
            for arm in range(len(rows)):
                self._seen(arm, rows, seen)
        v, b = self.ridge * np.eye(self.dim), np.zeros(self.dim)
        means = [np.mean(s, axis=0) if s else np.zeros(self.dim) for s in self.samples]
        for arm, reward in self.plays:
            if number := len(self.samples[arm]):
                spread = self.noise**2 + self.length**2 * self.norm**2 / number
                v += np.outer(means[arm], means[arm]) / spread
                b += means[arm] * reward / spread
        inverse, delta, t = np.linalg.inv(v), 0.05, len(self.plays) + 1
        beta = inverse @ b
        ratio = np.sqrt(np.linalg.det(v) / self.ridge**self.dim)
        alpha = np.sqrt(2 * np.log(ratio / delta)) + np.sqrt(self.ridge) * self.norm
        scores = []
        for samples, x in zip(self.samples, means, strict=True):
            if not samples:
                scores.append(np.inf if self.chosen else -np.inf)
                continue
            bits = np.log(2 * self.dim * t**2 / delta)
            rho = min(self.length * np.sqrt(2 * self.dim / len(samples) * bits), 2 * self.length)
            width = np.sqrt(x @ inverse @ x) + rho / np.sqrt(self.ridge)
            scores.append(x @ beta + rho * np.linalg.norm(beta) + alpha * width)
        return tied(scores)

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        self.plays.append((arm, reward))
        if self.chosen:
            self._seen(arm, rows, seen)


def plain(problem: Problem, **settings: Any) -> Callable[[int], Plain]:
    return lambda _: Plain(problem, **settings)


@pytest.mark.parametrize(
    "problem",
    [
        world(),
        world(features="product", prior_cov=0.8),
        world(features="per_arm", actions=5),
        profiles(),
        profiles(missing=0.6, missing_arms=True),
    ],
    ids=["quadratic", "product", "per_arm", "own", "missing arms"],
)
def test_it_chooses_as_the_plain_loop(problem: GaussianProblem) -> None:
    compare(AGENT, problem, plain(problem))


def test_samples_of_the_played_arm_alone() -> None:
    problem = profiles()
    agent = replace(AGENT, learner=Profiles(chosen=True))
    arms = compare(agent, problem, plain(problem, chosen=True), rounds=120)
    assert arms[:4] == [[arm] * 3 for arm in range(4)], "every arm once, before any of them again"


def test_other_settings() -> None:
    problem = profiles(missing=0.4, missing_arms=True)
    agent = replace(AGENT, learner=Profiles(ridge=0.3, length=0.4))
    compare(agent, problem, plain(problem, ridge=0.3, length=0.4))


def test_rewards_of_zero_or_one() -> None:
    told: dict[str, Any] = {
        "dim": 3,
        "actions": 6,
        "noise_cov": [1.4, 0.7, 0.5],
        "context_mean": [0.8, -0.5, 0.3],
    }
    problem = LogisticProblem(**told, prior_mean=0.1, prior_cov=0.3)
    compare(AGENT.for_rewards("bernoulli"), problem, plain(problem))


class Oful:
    """Abbasi-Yadkori, Pal and Szepesvari: rows as they are, each with the variance R^2."""

    def __init__(self, noise: float, norm: float) -> None:
        self.noise, self.norm = noise, norm
        self.v, self.b = np.eye(3) * noise**2, np.zeros(3)

    def choose(self, rows: Array, normals: Array, seen: Emission) -> list[int]:
        inverse = np.linalg.inv(self.v)
        ratio = np.linalg.det(self.v / self.noise**2)
        beta = self.noise * (np.sqrt(2 * np.log(np.sqrt(ratio) / 0.05)) + self.norm)
        bounds = [x @ inverse @ self.b + beta * np.sqrt(x @ inverse @ x) for x in rows]
        return tied(bounds)

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        self.v = self.v + np.outer(rows[arm], rows[arm])
        self.b = self.b + reward * rows[arm]


def test_with_profiles_known_it_is_oful() -> None:
    problem = profiles(noise_cov=1e-13, bias_cov=1e-13)
    agent, norm = replace(AGENT, learner=Profiles(length=1e-9)), np.sqrt(3 * 0.2**2 + 3 * 0.4)
    compare(agent, problem, lambda _: Oful(np.sqrt(0.3), norm))


def test_it_finds_the_best_arm() -> None:
    problem = profiles(reward_var=1e-4)
    agent = replace(AGENT, chooser=Reach(alpha=0.1))
    found = play(problem, [agent], rounds=400, trials=20).values["regret_true_context"][0]
    late = found[:, -1] - found[:, -101]
    assert np.median(late) == 0


def test_an_arm_without_samples_is_not_played() -> None:
    problem, before = profiles(missing=0.9, missing_arms=True), np.zeros((20, 4))
    skipped = 0
    for emission, decision in played(problem, AGENT, 30, range(20), 1):
        assert emission.mask is not None
        before = before + emission.mask[:, ::3]
        some = before.any(-1)
        assert (before[np.arange(20), decision.arm] > 0)[some].all()
        skipped += int((before == 0).any(-1)[some].sum())
    assert skipped > 20


def test_averages_of_what_was_read() -> None:
    source = np.random.default_rng(5)
    noisy = 1e3 + source.normal(size=(40, 2, 3)) * [0.1, 1.0, 5.0]
    noisy[source.random(noisy.shape) < 0.3] = np.nan
    tally = start_averages(np.zeros(3))
    for reading in noisy:
        tally = tally.plus(reading)
    mean, cov = tally.context()
    np.testing.assert_allclose(tally.number, (~np.isnan(noisy)).sum(0))
    np.testing.assert_allclose(mean, np.nanmean(noisy, 0))
    np.testing.assert_allclose(np.diagonal(cov, axis1=-2, axis2=-1), np.nanvar(noisy, 0))
    assert (start_averages(np.zeros(3)).plus(np.full(3, np.nan)).context().mean == 0).all()


def test_parts_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(InputError, match=r"'profiles' beside the denoiser 'exact'.*\(Counts\)"):
        Agent("mine", Exact(), Profiles(), Reach())
    with pytest.raises(InputError, match=r"^mine.chooser: 'reach' beside the learner 'ridge'.*\(Reaches\)$"):
        Agent("mine", Averages(), Ridge(), Reach())
    Agent("mine", Averages(), Profiles(), Optimism())  # optimism about theta alone is another agent, and fine
    with pytest.raises(InputError, match="beside it a denoiser whose past rounds wait for the bias"):
        select_rows(["samplinucb-coupled"])
    for settings in ({"length": 0.0}, {"delta": 0.0}, {"delta": 1.5}, {"ridge": -1.0}, {"chosen": 1}):
        with pytest.raises(InputError, match=next(iter(settings))):
            Profiles(**settings)


def test_what_was_never_read_is_as_told() -> None:
    """Coordinate by coordinate: one that was read does not stand for one that was not."""
    told = Context(np.array([5.0, 7.0, 9.0]), np.array([[2.0, 0.5, 0.1], [0.5, 3.0, 0.4], [0.1, 0.4, 1.0]]))
    denoiser = Averages()
    state = denoiser.start(told)
    believed = denoiser.predict(told, state, np.array([4.0, np.nan, np.nan]))
    np.testing.assert_allclose(believed.mean, [4.0, 7.0, 9.0])
    np.testing.assert_allclose(believed.cov, [[0.0, 0.0, 0.0], [0.0, 3.0, 0.4], [0.0, 0.4, 1.0]])
    looking_back = denoiser.hindsight(told, state, np.array([4.0, np.nan, np.nan]))
    np.testing.assert_allclose(looking_back.shrinkage.mean, believed.mean)
    assert denoiser.readings(told, state, np.array([4.0, np.nan, np.nan])).tolist() == [1.0, 0.0, 0.0]
