"""Russo and Van Roy's Thompson sampling against its formulas, written out for one trial."""

import numpy as np
import pytest

from tests.agents.baselines.plain import compare, tied, world
from unfog.agents.baselines import BASELINES
from unfog.agents.catalogue import AGENTS, Catalogue, select_rows
from unfog.maths.arrays import Array
from unfog.validation import InputError
from unfog.worlds.problem import Emission

AGENT = BASELINES["rvr-ts"].agent


class Plain:
    """Precisions and inverses, and beside them the root that turns normals into the same draw."""

    def __init__(self, mean: Array, cov: Array, variance: float) -> None:
        self.precision, self.natural = np.linalg.inv(cov), np.linalg.solve(cov, mean)
        self.root, self.variance = np.linalg.cholesky(cov), variance

    def choose(self, rows: Array, normals: Array, seen: Emission) -> list[int]:
        cov = np.linalg.inv(self.precision)
        np.testing.assert_allclose(self.root @ self.root.T, cov, rtol=1e-7, atol=1e-10)
        theta = cov @ self.natural + self.root @ normals
        return tied([x @ theta for x in rows])

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        x = rows[arm]
        half = self.root.T @ x
        total = self.variance + half @ half
        self.root = self.root - np.outer(self.root @ half, half) / (total + np.sqrt(self.variance * total))
        self.precision = self.precision + np.outer(x, x) / self.variance
        self.natural = self.natural + x * reward / self.variance


def test_it_chooses_as_the_plain_loop() -> None:
    rng = np.random.default_rng(5)
    root = rng.standard_normal((9, 9)) / 3
    cov, mean = root @ root.T + 0.1 * np.eye(9), rng.standard_normal(9)
    problem = world(prior_cov=cov, prior_mean=mean)
    compare(AGENT, problem, lambda _: Plain(mean, cov, 0.5))


def test_arms_with_features_of_their_own() -> None:
    plain = lambda _: Plain(np.full(40, 0.1), 0.3 * np.eye(40), 0.5)  # noqa: E731
    compare(AGENT, world(features="per_arm"), plain, rounds=120)


def test_it_is_the_naive_row_and_with_rewards_of_zero_or_one_pgts_is_its_exact_sampler() -> None:
    """What is known of that row, and of that sampler, is known of it."""
    assert AGENT.same_as(AGENTS["naive"])
    rows = Catalogue("bernoulli")
    assert rows["pgts"].same_as(rows["naive-pg"])


def test_rewards_of_zero_or_one_are_left_to_others() -> None:
    with pytest.raises(InputError, match="'rvr-ts' learns from gaussian rewards, and these are bernoulli"):
        select_rows(["rvr-ts"], rows=Catalogue("bernoulli"))
