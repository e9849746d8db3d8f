"""Tallies against sums worked out from lists, and what intervals cover in whole worlds as told."""

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pytest

import unfog
from tests.live.watched import rounds
from tests.problems import spd
from unfog.agents import predict
from unfog.agents.catalogue import AGENTS
from unfog.agents.denoise import bias
from unfog.live import monitoring
from unfog.live.monitoring import BINS, LEVELS, Tallies
from unfog.worlds.synthetic import Synthetic

CHI_SQUARE_95 = {2: 5.991, 3: 7.815, 5: 11.070}


def test_counts_of_what_happened() -> None:
    found = monitoring.none_yet(2, 3)
    for what in ("expired", "late", "late", "cancelled", "late_contexts", "dropped", "dropped", "answered"):
        found = monitoring.happened(found, what)
    found = monitoring.decided(found, 1)
    assert found.counts == (1, 0, 0, 1, 2, 1, 1, 2, 1)
    assert monitoring.happened(found, "expired", -1).counts == (1, 0, 0, 0, 2, 1, 1, 2, 1)


def test_arms_have_shares_and_means_with_errors(rng: np.random.Generator) -> None:
    found, paid = monitoring.none_yet(2, 2), {0: rng.normal(3.0, 1.0, 9), 1: rng.normal(-1.0, 1.0, 1)}
    for arm, rewards in paid.items():
        for reward in rewards:
            found = monitoring.rewarded(monitoring.decided(found, arm), arm, float(reward), None)
    arms = monitoring.by_arm(found)
    assert arms.chosen.tolist() == [9, 1]
    np.testing.assert_allclose(arms.share, [0.9, 0.1])
    np.testing.assert_allclose(arms.mean, [x.mean() for x in paid.values()])
    np.testing.assert_allclose(arms.error[0], paid[0].std(ddof=1) / 3)
    assert np.isnan(arms.error[1])
    assert found.judged == 0
    assert np.isnan(monitoring.coverage(found)).all()


def test_arms_that_come_later_find_a_place() -> None:
    before = monitoring.decided(monitoring.none_yet(1, 1), 0)
    found = monitoring.rewarded(monitoring.decided(before, 3), 3, 2.0, None)
    assert found.arms.tolist() == [[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 2, 4]]
    assert before.arms.tolist() == [[1, 0, 0, 0]]  # what was before stays as it was
    assert np.isnan(monitoring.by_arm(found).mean[:3]).all()


def test_intervals_of_all_levels_are_counted() -> None:
    """Rewards just inside and just outside of each."""
    found, mean, variance = monitoring.none_yet(1, 1), 5.0, 4.0
    for level in LEVELS:
        reach = 2 * NormalDist().inv_cdf(0.5 + level / 2)
        for away in (0.999, -0.999, 1.001, -1.001):
            found = monitoring.rewarded(found, 0, mean + away * reach, (mean, variance))
    assert found.judged == 16
    assert found.inside.tolist() == [2, 6, 10, 14]
    np.testing.assert_allclose(monitoring.coverage(found), [1 / 8, 3 / 8, 5 / 8, 7 / 8])


def test_rewards_of_0_or_1_are_sorted_by_what_was_said() -> None:
    found = monitoring.none_yet(1, 1)
    for chance, reward in ((0.0, 0.0), (0.25, 1.0), (0.29, 0.0), (1.0, 1.0)):
        before, found = found, monitoring.rewarded(found, 0, reward, (chance, 0.1), binary=True)
        assert before.bins[:, 0].sum() == found.bins[:, 0].sum() - 1  # what was before stays as it was
    np.testing.assert_allclose(found.bins[[0, 2, 9]], np.array([[1, 0, 0], [2, 0.54, 1], [1, 1, 1]]))
    assert found.bins[:, 0].sum() == 4
    assert found.inside.sum() == 0
    assert len(found.bins) == BINS


def test_noisy_and_denoised_contexts_are_held_against_true_ones() -> None:
    found, nan = monitoring.none_yet(2, 1), np.nan
    variance = np.array([1.0, 1.0])
    told = [
        ([3.0, 1.0], [1.0, 1.0], [1.0, 3.0]),
        ([1.0, 5.0], [1.0, 2.0], [2.0, nan]),  # known in part
        ([nan, 1.0], [9.0, 0.0], [0.0, 0.0]),  # lost in part
    ]
    for noisy, mean, true in told:
        found = monitoring.revealed(found, np.array(noisy), np.array(mean), variance, np.array(true))
    worth = monitoring.denoising(found)
    assert found.counts.revealed == 3
    assert worth.revealed.tolist() == [2, 2]
    np.testing.assert_allclose(worth.rmse_noisy, np.sqrt([(4 + 1) / 2, (4 + 1) / 2]))
    np.testing.assert_allclose(worth.rmse_denoised, np.sqrt([(0 + 1) / 2, (4 + 0) / 2]))
    np.testing.assert_allclose(worth.coverage, [1.0, 0.5])
    assert np.isnan(monitoring.denoising(monitoring.none_yet(2, 1)).rmse_noisy).all()


class Played(NamedTuple):
    """What came of many worlds."""

    found: Tallies
    in_bias_set: float  # the share of worlds whose bias is in the 95 % set, in the end


def watch(problem: Synthetic, agent: str, number: int, worlds: int, seed: int) -> Played:
    """All rewards, and all contexts as if revealed, of so many worlds, and their biases."""
    row = AGENTS[agent].for_rewards(problem.rewards.kind)
    found, binary = monitoring.none_yet(problem.dim, problem.arms()), row.learner.rewards == "bernoulli"
    for now in rounds(problem, row, number, worlds, seed):
        law = predict.reward(row, now.setup, now.before, now.decision)
        assert law is not None
        context = now.decision.context
        variances = np.broadcast_to(np.linalg.diagonal(context.cov), context.mean.shape)
        for i in range(worlds):
            said = float(law[0][i]), float(law[1][i])
            found = monitoring.rewarded(
                found, int(now.decision.arm[i]), float(now.paid[i]), said, binary=binary
            )
            told = now.noisy[i], context.mean[i], variances[i], now.emission.context[i]
            found = monitoring.revealed(found, *told)
    mean, cov = bias.belief(now.setup.denoiser.sight, now.after.denoiser)
    away = now.truth.bias - mean
    distance = np.vecdot(away, np.linalg.solve(cov, away[..., None])[..., 0])
    return Played(found, float((distance <= CHI_SQUARE_95[problem.dim]).mean()))


def anisotropic(**fields: object) -> unfog.GaussianProblem:
    """Correlated contexts and noise."""
    rng = np.random.default_rng(4)
    covs = {name: spd(rng, 3) for name in ("context_cov", "noise_cov", "bias_cov")}
    return unfog.GaussianProblem(dim=3, actions=4, **covs, **fields)  # type: ignore[arg-type]


@pytest.mark.slow
def test_intervals_cover_what_they_say_in_worlds_as_told() -> None:
    """200 worlds of 100 rounds: standard errors of 0.3 % for rewards and contexts, 1.5 % for biases."""
    played = watch(anisotropic(), "unfog", 100, 200, 5)
    np.testing.assert_allclose(monitoring.coverage(played.found), LEVELS, atol=0.02)
    worth = monitoring.denoising(played.found)
    np.testing.assert_allclose(worth.coverage, 0.9, atol=0.02)
    assert (worth.rmse_denoised < worth.rmse_noisy).all()
    assert 0.92 <= played.in_bias_set <= 0.98


@pytest.mark.slow
def test_probabilities_are_as_reliable_as_they_say() -> None:
    """200 worlds of 60 rounds: within three standard errors in every bin, and 2 % for what is approximate."""
    problem = unfog.LogisticProblem(dim=2, actions=4)
    number, said, came = watch(problem, "unfog", 60, 200, 6).found.bins.T
    assert (number > 20).sum() >= 5
    error = np.sqrt(said / number * (1 - said / number) / number)
    assert (np.abs(said - came) / number < 3 * error + 0.02)[number > 20].all()
