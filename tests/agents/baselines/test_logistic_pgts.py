"""PG-TS: its parts, and its draws against sums over a grid."""

import numpy as np
import pytest

from tests.agents.baselines.chains import coin_world
from tests.agents.baselines.plain import compare, tied, world
from tests.agents.learn.data import make_data, remember, same_moments, walk
from unfog.agents.baselines import BASELINES
from unfog.agents.learn import PG
from unfog.maths import logistic
from unfog.maths.arrays import Array
from unfog.maths.random import generator
from unfog.simulation import play
from unfog.validation import InputError
from unfog.worlds.problem import Emission, Problem

AGENT = BASELINES["pgts"].agent


class Plain:
    """The two draws as they stand, over the list of past rounds."""

    def __init__(self, trial: int, problem: Problem) -> None:
        known = problem.knowledge()
        self.prior, self.b = np.linalg.inv(known.prior_cov), known.prior_mean
        self.theta, self.x, self.r = known.prior_mean, list[Array](), list[float]()
        self.source = generator(3, trial, "learner")

    def choose(self, rows: Array, normals: Array, seen: Emission) -> list[int]:
        m, each = len(self.b), logistic.normals()
        for drawn in self.source.standard_normal((5, m + each * len(self.r))):
            latent = drawn[m:].reshape(len(self.r), each)
            precision, natural = self.prior, self.prior @ self.b
            for x, r, normal in zip(self.x, self.r, latent, strict=True):
                omega = logistic.draw(np.asarray(x @ self.theta), normal)
                precision = precision + omega * np.outer(x, x)
                natural = natural + (r - 0.5) * x
            cov = np.linalg.inv(precision)
            self.theta = cov @ natural + cov @ np.linalg.cholesky(precision) @ drawn[:m]
        return tied(rows @ self.theta)

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        self.x.append(rows[arm])
        self.r.append(reward)


def test_it_chooses_as_the_plain_loop() -> None:
    problem = coin_world()
    agent = AGENT.for_rewards("bernoulli")
    compare(agent, problem, lambda trial: Plain(trial, problem), rounds=20, trials=(0, 1))


@pytest.mark.slow
def test_five_sweeps_from_the_last_draw_are_the_posterior(rng: np.random.Generator) -> None:
    """One round after another, each with five sweeps, as it plays; after the last the posterior is known."""
    data, chains, learner = make_data(2, 6), 20_000, PG()
    parameters, state = learner.setup(data.known), learner.start(data.known, None)
    state = state._replace(theta=np.tile(data.known.prior_mean, (chains, 1)))
    for n in range(1, len(data.rewards) + 1):
        part = data._replace(rows=data.rows[:n], spreads=data.spreads[:n], rewards=data.rewards[:n])
        _, past = remember(learner, part)
        width = learner.normals(data.known, n)
        state = past._replace(theta=state.theta)
        state = walk(learner, parameters, state, learner.steps, lambda: rng.standard_normal((chains, width)))  # noqa: B023
    same_moments(state.theta, *data.moments(400))  # right draws fail with probability 4e-4


def test_gaussian_rewards_are_left_to_the_closed_form() -> None:
    for name in ("pgts", "pgts:steps=3"):
        with pytest.raises(
            InputError, match=f"'{name}' learns from bernoulli rewards, and these are gaussian"
        ):
            play(world(), [name], rounds=3, trials=2)
