"""Candidates in a round: their weights, the mixture of their beliefs, arms drawn by lot to begin with."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

from unfog.agents import predict
from unfog.agents import round as rounds
from unfog.agents.agent import Agent
from unfog.agents.catalogue import AGENTS, select_rows
from unfog.agents.choose import RandUcb, Thompson
from unfog.agents.denoise import Exact, Fleet
from unfog.agents.learn import EmpiricalBayes
from unfog.agents.round import Observation
from unfog.agents.runner import Runner
from unfog.channel.knowledge import Knowledge
from unfog.features.per_arm import PerArm, effect_groups
from unfog.maths.arrays import Array
from unfog.validation import InputError

FEATURES = PerArm(3, 2)
NOISE = np.array([1.0, 0.0])


def knowledge() -> Knowledge:
    """Told the noise of the first coordinate, that the second is exact, and nothing else."""
    nothing, size = np.diag([np.nan, np.nan]), FEATURES.size
    prior = np.zeros(size), np.tile(np.eye(3), (3, 1, 1))
    law = np.full(2, np.nan), nothing, np.diag(NOISE), nothing
    return Knowledge(*law, *prior, groups=effect_groups(FEATURES))


def play(number: int) -> tuple[Runner, list[Any], list[Any]]:
    """Rounds with six units that differ in their devices; the runner, decisions, probabilities of arms."""
    runner, rng = Runner(AGENTS["hedged"], knowledge(), 3), np.random.default_rng(0)
    device = rng.normal(0, 2, 6)
    theta = rng.normal(0, 30, (3, 3))
    decisions, shares = [], []
    for t in range(number):
        unit = int(rng.integers(6))
        context = rng.normal(5, 1, 2)
        reading = context + np.array([device[unit] + rng.normal(), 0.0])
        observation = Observation(reading[None], round=np.asarray(t))
        normals = runner.draw()
        considered = runner.consider(str(unit), observation, FEATURES)
        arm, probabilities = runner.choose(considered, normals, t)
        decision = runner.take(str(unit), considered, arm, FEATURES)
        reward = 300 + theta[arm] @ np.r_[1, context] + rng.normal(0, 20)
        decisions.append((runner.memory(str(unit)), runner.reward(str(unit), decision, reward), reward))
        shares.append(probabilities)
    return runner, decisions, shares


def weights_after(log_weights: Array, density: Array) -> Array:
    """Bayes' rule, and a share of a thousandth given back."""
    weights = np.exp(log_weights) * density
    weights = 0.999 * weights / weights.sum() + 0.001 / len(weights)
    return np.log(weights)


def test_weights_are_products_of_densities_of_rewards() -> None:
    """Student's t with 5 degrees of freedom about each candidate's mean, scaled to its variance."""
    runner, decisions, _ = play(60)
    learner, checked = runner.agent.learner, 0
    assert isinstance(learner, EmpiricalBayes)
    for (before, decision, reward), (after, _, _) in pairwise(decisions):
        old, new = before.weights.reshape(-1), after.weights.reshape(-1)
        if not learner.is_ready(before.learner, 1).all():
            assert np.allclose(old, old[0])
            continue
        evidence = decision.evidence
        noise = learner.noise(runner.setup.learner, before.learner, evidence.context_variance())
        mean, variance = (x.reshape(-1) for x in evidence.expected_reward(noise))
        density = student.pdf((reward - mean) / np.sqrt(variance), 5) / np.sqrt(variance)
        expected = weights_after(old, density)
        assert new - new.max() == pytest.approx(expected - expected.max(), abs=1e-9)
        checked += 1
    assert checked > 20


def test_light_candidates_are_left_out_of_a_choice() -> None:
    runner, _, _ = play(10)
    memory = runner.memory()._replace(weights=np.log([[0.5, 0.0049, 0.2, 0.2951]]))
    weights = rounds.candidate_weights(memory)
    assert weights is not None
    assert weights[0].tolist() == pytest.approx((np.array([0.5, 0, 0.2, 0.2951]) / 0.9951).tolist())


def test_scores_have_the_moments_of_the_mixture() -> None:
    """By draws of the candidate, of theta and of the score, 200,000 of them: within five standard errors."""
    runner, _, _ = play(40)
    view = runner.consider("1", Observation(np.array([[6.0, 4.0]]), round=np.asarray(40)), FEATURES).view
    mean, variance = RandUcb(growth=0.0).lines(view)
    assert view.weights is not None
    rng, n = np.random.default_rng(1), 200_000
    draws = np.empty((n, 3))
    candidate = rng.choice(4, size=n, p=view.weights[0])
    means, roots = view.belief.mean[0], view.belief.root[0]
    for j in range(4):
        chosen = np.flatnonzero(candidate == j)
        x = np.r_[1.0, view.context.mean[0, j] - runner.origin]
        theta = means[j] + np.einsum("akn,can->cak", roots[j], rng.normal(size=(len(chosen), 3, 3)))
        draws[chosen] = theta @ x
    assert mean[0] == pytest.approx(draws.mean(0), abs=5 * draws.std() / n**0.5)
    assert variance[0] ** 2 == pytest.approx(draws.var(0), rel=0.02)


def test_arms_are_drawn_by_lot_until_enough_rewards_have_come() -> None:
    """Eight, before the first estimate; each of the arms that may be chosen is as likely, and logged so."""
    _, _, shares = play(30)
    assert all(np.allclose(share, 1 / 3) for share in shares[:8])
    assert not np.allclose(shares[-1], 1 / 3)
    arms = np.array([[True, False, True]])
    drawn = np.zeros(3)
    for seed in range(2000):
        runner = Runner(AGENTS["hedged"], knowledge(), seed)
        observation = Observation(np.array([[6.0, 4.0]]), round=np.asarray(0), arms=arms)
        considered = runner.consider("a", observation, FEATURES)
        arm, probabilities = runner.choose(considered, runner.draw(), 0)
        drawn[arm] += 1
    assert probabilities.tolist() == [0.5, 0, 0.5]
    assert drawn[1] == 0
    assert abs(drawn[0] - 1000) < 5 * 500**0.5  # five standard errors


def test_rewards_are_predicted_by_the_mixture_once_scales_are_known() -> None:
    runner, decisions, _ = play(40)
    memory, decision, _ = decisions[0]
    assert predict.reward(runner.agent, runner.setup, memory, decision) is None
    memory, decision, _ = decisions[-1]
    prediction = predict.reward(runner.agent, runner.setup, memory, decision)
    assert prediction is not None
    noise = runner.agent.learner.noise(
        runner.setup.learner, memory.learner, decision.evidence.context_variance()
    )
    weights = rounds.candidate_weights(memory)
    assert noise is not None
    assert weights is not None
    means, variances = decision.evidence.expected_reward(noise)
    mean = (weights * means).sum()
    assert prediction[0][0] == pytest.approx(mean)
    assert prediction[1][0] == pytest.approx((weights * (variances + means**2)).sum() - mean**2)


def test_a_chooser_that_takes_no_candidates_is_refused() -> None:
    for denoiser, learner in ((Fleet(), EmpiricalBayes()), (Exact(), EmpiricalBayes())):
        with pytest.raises(
            InputError, match=r"'thompson' beside .*; allowed: beside them one that takes candidates"
        ):
            Agent("mine", denoiser, learner, Thompson())


def test_what_is_told_of_the_fleet_takes_the_place_of_what_readings_say() -> None:
    told = knowledge()._replace(
        context_mean=np.array([5.0, np.nan]),
        context_cov=np.diag([4.0, np.nan]),
        bias_cov=np.diag([9.0, np.nan]),
        person_cov=np.diag([1.0, np.nan]),
    )
    denoiser = Fleet()
    parameters = denoiser.setup(told, None)
    state = denoiser.start(parameters)
    context = denoiser.predict(parameters, state, np.array([9.0, 2.0]))
    split = context.mean[1:, 0]  # all but the one that takes readings as they are
    # One reading y = mean + p + b + e + n of a unit: E[c | y] = mean + (1 + 3) / (1 + 9 + 3 + 1) (y - mean).
    assert split.tolist() == pytest.approx([5 + 4 / 14 * 4] * 3)
    state = denoiser.update(parameters, state, np.array([9.0, 2.0]), None)
    context = denoiser.predict(parameters, state, np.array([13.0, 2.0]))
    own, noise, persons, devices = 3.0, 1.0, 1.0, 9.0
    first = np.array([persons + devices + own + noise, persons + devices])
    cov = np.array([first, first[::-1]])
    with_context = np.array([persons, persons + own])
    assert context.mean[1:, 0] == pytest.approx(5.0 + with_context @ np.linalg.solve(cov, [4.0, 8.0]))


def test_a_learner_that_cannot_replace_terms_is_refused_beside_candidates() -> None:
    """Weights of candidates are corrected once the truth is revealed; such a learner would fail then."""
    for learner in ("conjugate", "hetero"):
        allowed = "beside it a learner that can replace terms, such as empiricalbayes or revisable"
        message = rf"{learner}' beside the denoiser 'fleet', which has candidates; allowed: {allowed}$"
        with pytest.raises(InputError, match=message):
            select_rows([f"hedged-{learner}"])
    assert select_rows(["hedged-revisable"])[0].can.hedge is not None
