"""Regret where contexts are drawn from a few atoms, against Bayes' rule written out round by round."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal, multivariate_t

from tests.problems import random_problem, spd
from unfog.agents.catalogue import AGENTS
from unfog.lab.datasets.movielens import Ratings, RatingsProblem
from unfog.maths.arrays import Array
from unfog.simulation import Curves, play
from unfog.simulation.job import truth_draws
from unfog.simulation.player import played
from unfog.theory.regret import names
from unfog.validation import InputError
from unfog.worlds.problem import Emission, Problem

ATOMS, K, D = 7, 4, 3
SEED, ROUNDS, TRIALS = 5, 12, 3
RNG = np.random.default_rng(8)
NOISE, OTHER, BIAS = spd(RNG, D, 0.2, 1.5), spd(RNG, D, 0.5, 4.0), spd(RNG, D)
DRIFT = spd(RNG, D, 0.05, 0.5)
MADE = Ratings(
    np.exp(RNG.normal(size=(ATOMS, D))) @ np.linalg.cholesky(spd(RNG, D, 0.3, 2.0)).T - [2.0, 0.0, -1.0],
    RNG.normal(0.3, 0.8, (K, D)),
    RNG.uniform(0.2, 0.8, (K, D)),
)
CHANNELS: dict[str, dict[str, Any]] = {
    "as told": {},
    "other noise": {"noise_cov": OTHER, "assumed_noise_cov": NOISE},
    "heavy tails": {"tails": 3},
    "lost coordinates": {"missing": 0.4},
    "drift": {"drift_cov": DRIFT, "drift_rounds": ROUNDS},
    "lost, other noise, drift": {
        "missing": 0.3,
        "noise_cov": OTHER,
        "assumed_noise_cov": NOISE,
        "drift_cov": DRIFT,
        "drift_rounds": 4,
    },
}
EVERY_CHANNEL = pytest.mark.parametrize("channel", CHANNELS)


class Few(RatingsProblem):
    """A world of a few users made up here."""

    def _ratings(self) -> Ratings:
        return MADE


def world(**changes: Any) -> Few:
    fields: Any = {"noise_cov": NOISE, "bias_cov": BIAS, "reward_var": 0.2, **changes}
    return Few(**fields)


def chances(fields: dict[str, Any], emission: Emission, bias: Array, i: int) -> Array:
    """Posterior weights of the atoms in one trial's round, by densities of what was measured."""
    bias = bias if emission.bias is None else emission.bias[i]
    kept = np.arange(D) if emission.mask is None else np.flatnonzero(emission.mask[i])
    if not len(kept):
        return np.full(ATOMS, 1 / ATOMS)
    cov = np.asarray(fields.get("noise_cov", NOISE))[np.ix_(kept, kept)]
    seen, found = (emission.noisy[i] - bias)[kept], []
    for atom in MADE.users:
        tails = fields.get("tails", 0)
        law = multivariate_t(atom[kept], cov, df=tails) if tails else multivariate_normal(atom[kept], cov)
        found.append(float(law.pdf(seen)))
    return np.array(found) / sum(found)


@EVERY_CHANNEL
def test_regret_is_that_of_bayes_rule_over_the_atoms(channel: str) -> None:
    problem, fields = world(**CHANNELS[channel]), CHANNELS[channel]
    truth = problem.truth(truth_draws(SEED, range(TRIALS), problem.truth_draws()))
    right, least = np.zeros(TRIALS), 1.0
    for emission, decision in played(problem, AGENTS["alg1"], ROUNDS, range(TRIALS), SEED):
        for i in range(TRIALS):
            weights = chances(fields, emission, truth.bias[i], i)
            thetas = truth.theta[i].reshape(K, D)
            worth = [sum(w * (atom @ t) for w, atom in zip(weights, MADE.users, strict=True)) for t in thetas]
            right[i] += max(worth) - worth[decision.arm[i]]
            least = min(least, weights.max())
    assert least < 0.7  # rounds in which several atoms count
    found = play(problem, ["alg1"], rounds=ROUNDS, trials=TRIALS, seed=SEED).values["regret_bayes"]
    np.testing.assert_allclose(found[0, :, -1], right, rtol=1e-9)
    assert right.min() > 0.05


@pytest.mark.parametrize("channel", ["heavy tails", "lost, other noise, drift"])  # between them, all there is
@pytest.mark.slow
def test_both_engines_agree(channel: str) -> None:
    problem, agents = world(**CHANNELS[channel]), ["alg1", "bayes-oracle"]
    settings: Any = {"rounds": 30, "trials": 4, "seed": 2}
    numpy = play(problem, agents, **settings)
    compiled = play(problem, agents, engine="jax", draws="numpy", **settings)
    assert tuple(compiled.values) == tuple(numpy.values) == names(True, discrete=True)
    for loss, values in numpy.values.items():
        np.testing.assert_allclose(compiled.values[loss], values, rtol=1e-8, atol=1e-8, err_msg=loss)


def play_sixty(problem: Problem, agents: list[str], trials: int = 400) -> Curves:
    return play(problem, agents, rounds=60, trials=trials, seed=11)


def z(values: Array) -> float:
    """How many standard errors the mean is from zero."""
    return float(values.mean() / (values.std(ddof=1) / np.sqrt(len(values))))


@pytest.fixture(scope="module")
def curves() -> Curves:
    return play_sixty(world(), ["unfog", "oracle", "bayes-oracle"])


def test_it_is_never_negative_and_nothing_for_learning_alone_is_split(curves: Curves) -> None:
    bayes = curves.values["regret_bayes"]
    assert np.diff(bayes, axis=-1).min() >= -1e-12
    # The row believes what the yardstick does, so all that it loses is what learning theta costs.
    np.testing.assert_allclose(curves.values["cb"][2], bayes[2], rtol=1e-9, atol=1e-9)


def test_realised_rewards_pay_by_the_posterior_over_atoms(curves: Curves) -> None:
    """What one agent loses more than another is the same in realised rewards and by Bayes' rule, on average.

    Two tests at 4 standard errors: right means fail with probability 1.3e-4. By the Gaussian model of
    contexts the same difference is off by far more.
    """
    bayes, realised, paper = (
        curves.values[name][..., -1] for name in ("regret_bayes", "regret_realised", "regret")
    )
    for other in (0, 1):
        assert abs(z((bayes[2] - bayes[other]) - (realised[2] - realised[other]))) < 4
        assert abs(z((paper[2] - paper[other]) - (realised[2] - realised[other]))) > 10
    # And what the paper's best arm itself loses to the Bayes oracle is the same whoever plays.
    assert z(bayes[0] - realised[0]) > 10


@pytest.mark.parametrize("kind", ["users' moments", "quadratic"])
def test_realised_regret_has_the_papers_mean_where_contexts_are_gaussian(kind: str) -> None:
    """Four tests at 4 standard errors: right means fail with probability 2.5e-4."""
    gaussian = world(contexts="gaussian") if kind != "quadratic" else random_problem(5)
    values = play_sixty(gaussian, ["unfog", "naive"], 1500).values
    assert "regret_bayes" not in values
    for i in (0, 1):
        gaps = values["regret_realised"][i, :, -1] - values["regret"][i, :, -1]
        assert abs(z(gaps)) < 4
        assert gaps.std() > 0.5  # they differ from trial to trial


def test_where_contexts_are_not_a_sample_nothing_is_told_and_nobody_is_offered() -> None:
    gaussian = world(contexts="gaussian")
    assert (world().discrete, gaussian.discrete) == (True, False)
    assert gaussian.knowledge().contexts is None
    assert np.array_equal(np.asarray(world().knowledge().contexts), MADE.users)
    with pytest.raises(InputError, match=r"^agents: 'bayes-oracle' needs a sample of contexts"):
        play_sixty(gaussian, ["bayes-oracle"], 2)
    truth = gaussian.truth(truth_draws(0, [0], gaussian.truth_draws()))
    with pytest.raises(TypeError, match="draws its contexts from no sample"):
        gaussian.posterior(truth, Emission(np.zeros((1, D)), np.zeros((1, D))))


def test_regret_alone_is_alone() -> None:
    found = play(world(), ["alg1"], rounds=5, trials=2, decompose=False)
    assert list(found.values) == ["regret"]
