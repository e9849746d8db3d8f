"""MaxMinUCB and MinWD against their formulas, written out for one trial, and against closed forms."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.agents.baselines.plain import compare, tied, world
from unfog.agents.agent import Agent
from unfog.agents.base import View
from unfog.agents.baselines import BASELINES
from unfog.agents.baselines.base import Optimism
from unfog.agents.baselines.imperfect import Imperfect, MaxMin, MinWd, length_quantile, offsets
from unfog.agents.baselines.linear_ucb import Ellipsoid
from unfog.agents.denoise import Identity
from unfog.features import Context, product
from unfog.maths.arrays import Array
from unfog.maths.gaussian import certain
from unfog.simulation import play
from unfog.simulation.job import truth_draws
from unfog.validation import InputError
from unfog.worlds.problem import Emission, Problem
from unfog.worlds.synthetic import GaussianProblem, LogisticProblem

CHOOSERS = {"maxmin": MaxMin, "minwd": MinWd}
NAMES = [*CHOOSERS]


class Plain:
    """One trial with the quadratic map, ridge regression on true contexts and a ball that is searched."""

    def __init__(self, problem: Problem, trial: int, name: str, radius: float) -> None:
        known = problem.knowledge()
        self.actions = truth_draws(3, [trial], problem.truth_draws())["actions"][0]
        self.noise = 0.5 if known.reward_var is None else float(np.sqrt(known.reward_var))
        self.norm = np.sqrt(known.prior_mean @ known.prior_mean + np.trace(known.prior_cov))
        self.v, self.b = np.eye(len(known.prior_mean)), np.zeros(len(known.prior_mean))
        self.name, self.radius = name, radius

    def phi(self, arm: int, c: Array) -> Array:
        a = self.actions[arm]
        return np.concat([a**2, c**2, a * c])

    def points(self, centre: Array) -> list[Array]:
        d = len(centre)
        found = [centre]
        for k in range(d):
            axis, wave = np.zeros(d), np.zeros(d)
            for i in range(d):
                axis[i], wave[i] = float(i == k), np.cos(np.pi * k * (2 * i + 1) / (2 * d))
            for way in (axis, wave / np.sqrt(wave @ wave)):
                found += [centre + size * self.radius * way for size in (-1, -0.5, 0.5, 1)]
        return found

    def bound(self, arm: int, c: Array) -> float:
        x, inverse = self.phi(arm, c), np.linalg.inv(self.v)
        wide = self.noise * np.sqrt(2 * np.log(np.sqrt(np.linalg.det(self.v)) / 0.1)) + self.norm
        return float(x @ inverse @ self.b + wide * np.sqrt(x @ inverse @ x))

    def choose(self, rows: Array, normals: Array, seen: Emission) -> list[int]:
        points = self.points(seen.noisy)
        table = np.array([[self.bound(arm, c) for c in points] for arm in range(len(rows))])
        if self.name == "maxmin":
            return tied(table.min(1))
        losses = (table.max(0) - table).max(1)  # what is rounding in them hangs on the size of the table
        return np.flatnonzero(losses <= losses.min() + 1e-9 * np.abs(table).max()).tolist()

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        x = self.phi(arm, seen.context)
        self.v, self.b = self.v + np.outer(x, x), self.b + reward * x


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["gaussian", "bernoulli"])
def test_it_chooses_as_the_plain_loop(name: str, kind: str) -> None:
    problem: Problem = world(actions=5)
    if kind == "bernoulli":
        told: dict[str, Any] = {"dim": 3, "actions": 5, "noise_cov": [1.4, 0.7, 0.5], "prior_cov": 0.3}
        problem = LogisticProblem(**told, context_mean=[0.8, -0.5, 0.3], prior_mean=0.1)
    agent = replace(BASELINES[name].agent, chooser=CHOOSERS[name](radius=0.7)).for_rewards(kind)
    compare(agent, problem, lambda trial: Plain(problem, trial, name, 0.7), rounds=25)


@pytest.mark.parametrize("name", NAMES)
def test_the_radius_that_errors_have(name: str) -> None:
    """Unless told, Delta hangs on what is told of the channel alone."""
    problem = world(actions=5)
    known = problem.knowledge()
    radius = float(length_quantile(known.noise_cov + known.bias_cov, 0.9))
    compare(BASELINES[name].agent, problem, lambda trial: Plain(problem, trial, name, radius), rounds=20)


def test_nine_errors_in_ten_are_as_short() -> None:
    source = np.random.default_rng(2)
    for root in (np.eye(1), np.diag([1.0, 3.0]), np.array([[1.0, 0, 0], [2.0, 0.5, 0], [-1.0, 1.0, 0.2]])):
        errors = source.normal(size=(200_000, len(root))) @ root.T
        share = np.mean(np.linalg.norm(errors, axis=1) <= length_quantile(root @ root.T, 0.9))
        assert abs(share - 0.9) < 0.01


def test_the_points_of_the_ball() -> None:
    for dim in (1, 2, 5):
        found = offsets(dim)
        assert found.shape == (8 * dim, dim)
        np.testing.assert_allclose(sorted(np.linalg.norm(found, axis=1)), [0.5] * 4 * dim + [1.0] * 4 * dim)
        np.testing.assert_allclose(found.T @ found, 5 * np.eye(dim), atol=1e-12)  # no way is preferred


@pytest.mark.parametrize("name", NAMES)
def test_in_a_ball_of_no_size_it_is_optimism(name: str) -> None:
    problem, row = world(), BASELINES[name].agent
    small = replace(row, name="small", chooser=CHOOSERS[name](radius=1e-12))
    parent = Agent("parent", Imperfect(), Ellipsoid(delta=0.1), Optimism())
    found = play(_certain(problem), [small, parent], rounds=60, trials=5).values["regret"]
    np.testing.assert_allclose(found[0], found[1])


def _certain(problem: GaussianProblem) -> GaussianProblem:
    """Without noise: the design of the parent, at what is believed, is then that of the centre."""
    return replace(problem, noise_cov=1e-13, bias_cov=1e-13)


def test_a_line_whose_ends_are_worst() -> None:
    """With one coordinate and theta known, scores are lines in c, and all that is worst is at an end."""
    source, radius = np.random.default_rng(0), 0.8
    slopes, centre, theta = source.normal(size=(50, 6, 1)), source.normal(size=(50, 1)), np.array([[1.3]])
    features = product(slopes)
    context = Context(centre, np.zeros((1, 1)))
    view = View(context, features.design(context), certain(theta), features=features)
    ends = np.stack([slopes[..., 0] * 1.3 * (centre + sign * radius) for sign in (-1, 1)])
    np.testing.assert_allclose(MaxMin(radius=radius).bounds(view), ends.min(0))
    loss = (ends.max(-1, keepdims=True) - ends).max(0)
    np.testing.assert_allclose(MinWd(radius=radius).bounds(view), -loss, atol=1e-12)
    assert (MaxMin(radius=radius).bounds(view).argmax(-1) != (-loss).argmax(-1)).any()


def test_losses_are_to_arms_that_may_be_chosen() -> None:
    features = product(np.array([[[3.0], [1.0], [-1.0]]]))
    context = Context(np.array([[0.5]]), np.zeros((1, 1)))
    told = context, features.design(context), certain(np.array([[1.0]]))
    some = View(*told, arms=np.array([[False, True, True]]), features=features)
    # At 1.5 the second is the better by 3, at -0.5 the third is by 1.
    np.testing.assert_allclose(MinWd(radius=1.0).bounds(some), [[-np.inf, -1.0, -3.0]])


def test_it_sees_true_contexts_and_bad_settings_are_refused() -> None:
    assert all(BASELINES[name].agent.sees_context for name in NAMES)
    assert not Identity().sees_context
    for settings in ({"radius": -1.0}, {"alpha": -0.1}):
        with pytest.raises(InputError, match=next(iter(settings))):
            MinWd(**settings)
