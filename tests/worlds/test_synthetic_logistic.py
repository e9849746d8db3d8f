"""The logistic world: how often it pays, what it takes from the paper, and what it refuses."""

import tracemalloc
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import kstest

from tests.each import each
from tests.problems import quadratic_phi, random_knowledge, spd
from unfog.features.linear import Product, matrix
from unfog.features.link import Sigmoid
from unfog.lab.spec import build_problem, catalog, describe, parse
from unfog.maths.arrays import Array
from unfog.maths.logistic import NODES
from unfog.validation import InputError
from unfog.worlds.problem import Draws, Truth
from unfog.worlds.synthetic import GaussianProblem, LogisticProblem

N = 200_000


def random_logistic(seed: int, dim: int = 3, actions: int = 5) -> LogisticProblem:
    known = random_knowledge(seed, dim, 3 * dim)
    fields = known._asdict()
    fields = {name: value for name, value in fields.items() if name != "reward_var" and value is not None}
    return LogisticProblem(dim=dim, actions=actions, **fields)


PROBLEM = random_logistic(4)


def draw_truth(problem: LogisticProblem, rng: np.random.Generator, trials: int) -> Truth:
    def draw(draws: Draws) -> Array:
        shape = (trials, *draws.shape)
        return rng.standard_normal(shape) if draws.law == "normal" else rng.random(shape)

    return problem.truth({name: draw(draws) for name, draws in problem.truth_draws().items()})


@each("score", [-8.0, -3.0, -0.7, 0.0, 0.4, 2.0, 6.0])
def test_rewards_come_as_often_as_the_sigmoid_says(score: float, rng: np.random.Generator) -> None:
    normals = rng.standard_normal((N, PROBLEM.round_normals()))
    rewards = PROBLEM.reward(np.full(N, score), normals)
    assert set(np.unique(rewards)) <= {0.0, 1.0}
    chance = float(expit(score))
    # A binomial share at 4.5 standard errors: right rewards of seven scores fail with probability 5e-5.
    assert abs(rewards.mean() - chance) < 4.5 * np.sqrt(chance * (1 - chance) / N)


def test_rewards_are_apart_from_contexts_and_noise(rng: np.random.Generator) -> None:
    normals = rng.standard_normal((N, PROBLEM.round_normals()))
    emission = PROBLEM.emit(draw_truth(PROBLEM, rng, 1), normals)
    rewards = PROBLEM.reward(np.full(N, 0.3), normals)
    # Twelve correlations, of contexts, measurements and their squares, at 5 standard errors: 7e-6.
    for seen in (*emission.context.T, *emission.noisy.T):
        for quantity in (seen, (seen - seen.mean()) ** 2):
            assert abs(np.corrcoef(quantity, rewards)[0, 1]) < 5 / np.sqrt(N)


def test_every_score_has_its_own_chance(rng: np.random.Generator) -> None:
    scores = rng.normal(0.0, 3.0, N)
    rewards = PROBLEM.reward(scores, rng.standard_normal((N, PROBLEM.round_normals())))
    order = np.argsort(scores).reshape(20, -1)
    chances = expit(scores[order])
    gaps = rewards[order].sum(1) - chances.sum(1)
    # Twenty sums at 4.5 standard errors: 1.4e-4.
    assert np.all(np.abs(gaps) < 4.5 * np.sqrt((chances * (1 - chances)).sum(1)))


def test_sure_scores_pay_surely(rng: np.random.Generator) -> None:
    normals = rng.standard_normal((1000, PROBLEM.round_normals()))
    assert PROBLEM.reward(np.full(1000, 800.0), normals).all()
    assert not PROBLEM.reward(np.full(1000, -800.0), normals).any()


@pytest.mark.slow
def test_jax_pays_the_same(rng: np.random.Generator) -> None:
    scores, normals = rng.normal(0, 2, 500), rng.standard_normal((500, PROBLEM.round_normals()))
    found = PROBLEM.reward(jnp.asarray(scores), jnp.asarray(normals))
    np.testing.assert_array_equal(found, PROBLEM.reward(scores, normals))
    single = PROBLEM.reward(jnp.asarray(scores, jnp.float32), jnp.asarray(normals, jnp.float32))
    assert single.dtype == jnp.float32


def test_a_round_takes_a_context_its_noise_and_two_for_the_reward() -> None:
    assert LogisticProblem(dim=4).round_normals() == 10
    assert GaussianProblem(dim=4).round_normals() == 9


def test_the_defaults_are_the_papers() -> None:
    problem = LogisticProblem()
    known = problem.knowledge()
    assert (problem.dim, problem.actions, known.prior_mean.shape) == (5, 40, (15,))
    assert np.array_equal(known.context_cov, np.eye(5))
    assert np.array_equal(known.noise_cov, 2 * np.eye(5))
    assert np.array_equal(known.bias_cov, 2.5 * np.eye(5))
    assert np.array_equal(known.prior_cov, np.eye(15))
    assert known.reward_var is None
    assert not known.context_mean.any()
    assert not known.prior_mean.any()
    assert problem.rewards == Sigmoid(nodes=NODES)


def test_the_experiment_of_the_catalog_is_the_default_problem() -> None:
    fields = describe(LogisticProblem())
    assert {**(fields or {}), **catalog()["fig1-logistic"].problem} == fields
    assert catalog()["fig1-logistic"].run.trials == 10


def test_a_reward_variance_is_refused_by_name() -> None:
    settings: Any = {"reward_var": 2.0}
    with pytest.raises(InputError, match=r"^reward_var: no such argument"):
        LogisticProblem(**settings)
    with pytest.raises(InputError, match=r"^problem\.reward_var: unknown field; allowed: kind, dim, actions"):
        parse({"problem": {"kind": "logistic", "reward_var": 2.0}})
    with pytest.raises(InputError, match=r"^sweep\.reward_var: unknown field"):
        parse({"problem": {"kind": "logistic"}, "sweep": {"reward_var": [1.0]}})


@each("field", ["rewards", "nodes", "_known"])
def test_what_is_no_field_is_refused_by_name(field: str) -> None:
    with pytest.raises(InputError, match=rf"^{field}: no such argument"):
        LogisticProblem(**{field: 1})  # type: ignore[arg-type]
    with pytest.raises(InputError, match=rf"^problem\.{field}: unknown field"):
        parse({"problem": {"kind": "logistic", field: 1}})


@each(
    "field, value",
    [
        ("dim", 0),
        ("actions", 0),
        ("actions", [[1.0, 2.0]]),
        ("action_law", "gamma"),
        ("context_mean", float("nan")),
        ("context_cov", -1.0),
        ("noise_cov", 0.0),
        ("bias_cov", [1.0, 2.0]),
        ("prior_mean", "0"),
        ("prior_cov", True),
        ("features", "cubic"),
    ],
)
def test_bad_fields_are_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"^{field}: ") as refused:
        LogisticProblem(**{field: value})
    assert refused.value.field == field


def test_it_is_told_apart_from_the_gaussian_one() -> None:
    assert LogisticProblem().rewards.kind == "bernoulli"
    assert GaussianProblem().rewards.kind == "gaussian"
    assert isinstance(build_problem({"kind": "logistic", "dim": 2}), LogisticProblem)
    described = describe(random_logistic(1))
    assert described is not None
    assert described["kind"] == "logistic"
    again = build_problem(described).knowledge()
    known = random_logistic(1).knowledge()
    assert all(np.array_equal(a, b) for a, b in zip(again[:6], known[:6], strict=True))


def test_scores_are_phi_times_theta_and_contexts_are_the_gaussian_worlds(rng: np.random.Generator) -> None:
    truth, normals = draw_truth(PROBLEM, rng, 5), rng.standard_normal((5, PROBLEM.round_normals()))
    emission = PROBLEM.emit(truth, normals)
    known = PROBLEM.knowledge()
    context = known.context_mean + normals[:, :3] @ np.linalg.cholesky(known.context_cov).T
    noise = normals[:, 3:6] @ np.linalg.cholesky(known.noise_cov).T
    np.testing.assert_allclose(emission.context, context, rtol=1e-12)
    np.testing.assert_allclose(emission.noisy, context + noise + truth.bias, rtol=1e-12)
    scores = truth.features.at(context).scores(truth.theta)
    actions = truth.features.table[..., 3:6]  # type: ignore[attr-defined]
    for i, arm in np.ndindex(5, 5):
        right = quadratic_phi(actions[i, arm], context[i]) @ truth.theta[i]
        assert scores[i, arm] == pytest.approx(right, rel=1e-11)


def test_uniform_actions_are_uniform(rng: np.random.Generator) -> None:
    problem = LogisticProblem(dim=3, actions=4, action_law="uniform")
    actions = draw_truth(problem, rng, 3000).features.table[..., 3:6]  # type: ignore[attr-defined]
    # Kolmogorov and Smirnov: a right law fails with probability 0.001.
    assert kstest(actions.ravel(), "uniform", (-1, 2)).pvalue > 0.001


def test_given_actions_are_the_same_in_every_trial(rng: np.random.Generator) -> None:
    actions = rng.normal(size=(7, 3))
    problem = LogisticProblem(dim=3, actions=actions)
    assert "actions" not in problem.truth_draws()
    assert problem.arms() == 7
    rows = draw_truth(problem, rng, 2).features.at(np.ones((2, 3))).row(np.array([2, 6]))
    np.testing.assert_allclose(rows, [quadratic_phi(actions[k], np.ones(3)) for k in (2, 6)], rtol=1e-14)


def test_other_features_serve(rng: np.random.Generator) -> None:
    assert isinstance(draw_truth(LogisticProblem(features="product"), rng, 2).features, Product)
    matrices = rng.normal(size=(5, 4, 3))
    problem = LogisticProblem(dim=3, actions=matrices, features=matrix, prior_cov=spd(rng, 4))
    assert problem.knowledge().prior_mean.shape == (4,)
    assert problem.rewards.kind == "bernoulli"


def test_nodes_follow_the_size_of_scores() -> None:
    """How large the largest of 40 scores is under the prior, by an independent Monte Carlo."""
    for settings in ({"prior_cov": 16.0}, {"context_mean": 4.0}, {"context_cov": 20.0}, {"prior_mean": 5.0}):
        problem, rng = LogisticProblem(**settings), np.random.default_rng(9)  # type: ignore[arg-type]
        known = problem.knowledge()
        action, c = rng.standard_normal((2_000, 40, 5)), rng.standard_normal((2_000, 1, 5))
        # What is believed of a context before the first round: its own spread, and twice that of the bias.
        gain = known.context_cov @ np.linalg.inv(known.context_cov + known.noise_cov)
        spread = known.context_cov + 2 * gain @ known.bias_cov @ gain.T
        context = known.context_mean + c @ np.linalg.cholesky(spread).T + 0 * action
        theta = known.prior_mean + rng.standard_normal((2_000, 15)) @ np.linalg.cholesky(known.prior_cov).T
        scores = np.vecdot(np.concatenate([action**2, context**2, action * context], 2), theta[:, None])
        right = NODES * np.sqrt((np.abs(scores).max(1) ** 2).mean()) / 18.0
        # 64 fixed trials: their own error is about a tenth.
        assert problem.rewards.nodes == pytest.approx(right, rel=0.35)  # type: ignore[attr-defined]


def test_nodes_are_bounded_and_do_not_hang_on_chance() -> None:
    with pytest.raises(InputError, match=r"^prior_cov: scores of .* every reward certain; allowed: scores"):
        LogisticProblem(prior_cov=1e8)
    small = LogisticProblem(prior_cov=1e-6)
    assert small.rewards.nodes == NODES  # type: ignore[attr-defined]
    assert LogisticProblem(prior_cov=7.0).rewards == LogisticProblem(prior_cov=7.0).rewards


def test_very_many_actions_need_little_memory() -> None:
    tracemalloc.start()
    try:
        LogisticProblem(actions=100_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A table of all actions is 9 MB; one for each of many trials would be hundreds.
    assert peak < 80e6
