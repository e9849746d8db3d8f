"""The synthetic world against its stated laws, and every bad input refused by name."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest

from tests.each import each
from tests.problems import covariance_error, quadratic_phi, random_problem, spd, within
from unfog.features.linear import Product, matrix
from unfog.features.quadrature import quadrature
from unfog.maths.arrays import Array
from unfog.validation import InputError
from unfog.worlds.problem import Draws, Truth
from unfog.worlds.synthetic import GaussianProblem

N = 100_000
PROBLEM = random_problem(seed=4, dim=3, actions=4)


def draw_truth(problem: GaussianProblem, rng: np.random.Generator, trials: int) -> Truth:
    """Truths from the draws the problem asks for."""

    def draw(draws: Draws) -> Array:
        shape = (trials, *draws.shape)
        return rng.standard_normal(shape) if draws.law == "normal" else rng.random(shape)

    return problem.truth({name: draw(draws) for name, draws in problem.truth_draws().items()})


def has_moments(draws: Array, mean: Array, cov: Array) -> bool:
    # At most 54 two-sided tests at 5 standard errors, 6e-7 each: a right law fails 3e-5 of the time.
    n = len(draws)
    return within(draws.mean(0), mean, np.sqrt(np.diag(cov) / n)) and within(
        np.cov(draws.T), cov, covariance_error(cov, n)
    )


def test_theta_and_bias_have_their_priors_moments(rng: np.random.Generator) -> None:
    truth, known = draw_truth(PROBLEM, rng, N), PROBLEM.knowledge()
    assert has_moments(truth.theta, known.prior_mean, known.prior_cov)
    assert has_moments(truth.bias, np.zeros(3), known.bias_cov)


def test_contexts_and_measurements_have_their_moments(rng: np.random.Generator) -> None:
    known = PROBLEM.knowledge()
    truth = draw_truth(PROBLEM, rng, 1)
    emission = PROBLEM.emit(truth, rng.standard_normal((N, PROBLEM.round_normals())))
    assert has_moments(emission.context, known.context_mean, known.context_cov)
    assert has_moments(emission.noisy - emission.context, truth.bias[0], known.noise_cov)
    both = np.concatenate([emission.context, emission.noisy], 1)
    c, n = known.context_cov, known.noise_cov
    joint = np.block([[c, c], [c, c + n]])
    assert has_moments(both, np.concatenate([known.context_mean, known.context_mean + truth.bias[0]]), joint)


def test_over_trials_the_bias_adds_to_the_noise(rng: np.random.Generator) -> None:
    known, truth = PROBLEM.knowledge(), draw_truth(PROBLEM, rng, N)
    emission = PROBLEM.emit(truth, rng.standard_normal((N, PROBLEM.round_normals())))
    assert has_moments(
        emission.noisy, known.context_mean, known.context_cov + known.noise_cov + known.bias_cov
    )


def test_reward_noise_has_its_variance_and_is_apart_from_the_rest(rng: np.random.Generator) -> None:
    normals, expected = rng.standard_normal((N, PROBLEM.round_normals())), rng.normal(3.0, 2.0, N)
    noise = PROBLEM.reward(expected, normals) - expected
    emission = PROBLEM.emit(draw_truth(PROBLEM, rng, 1), normals)
    variance = PROBLEM.reward_var
    # Eight tests at 5 standard errors: 5e-6.
    assert within(noise.mean(), np.asarray(0.0), np.sqrt(variance / N))
    assert within(noise.var(), np.asarray(variance), variance * np.sqrt(2 / N))
    for seen in (*emission.context.T, *emission.noisy.T):
        assert abs(np.corrcoef(seen, noise)[0, 1]) < 5 / np.sqrt(N)


@pytest.mark.parametrize(
    ("law", "cdf"), [("normal", ("norm",)), ("uniform", ("uniform", (-1, 2))), ("folded", ("halfnorm",))]
)
def test_actions_follow_their_law(law: str, cdf: tuple[Any, ...], rng: np.random.Generator) -> None:
    problem = GaussianProblem(dim=3, actions=4, action_law=law)
    actions = draw_truth(problem, rng, 3000).features.table[..., 3:6]  # type: ignore[attr-defined]
    assert actions.shape == (3000, 4, 3)
    # Kolmogorov-Smirnov: a right law fails with probability 0.001.
    assert kstest(actions.ravel(), *cdf).pvalue > 0.001
    flat = actions.reshape(3000, 12)
    # 66 correlations within 5 standard errors: 4e-5.
    assert np.abs(np.corrcoef(flat.T) - np.eye(12)).max() < 5 / np.sqrt(3000)


def test_mean_rewards_are_phi_times_theta(rng: np.random.Generator) -> None:
    truth = draw_truth(PROBLEM, rng, 5)
    context = rng.normal(1.0, 1.0, (5, 3))
    scores = truth.features.at(context).scores(truth.theta)
    actions = truth.features.table[..., 3:6]  # type: ignore[attr-defined]
    for i, arm in np.ndindex(5, 4):
        right = quadratic_phi(actions[i, arm], context[i]) @ truth.theta[i]
        assert scores[i, arm] == pytest.approx(right, rel=1e-12)


def test_given_actions_are_the_same_in_every_trial(rng: np.random.Generator) -> None:
    actions = rng.normal(size=(7, 3))
    problem = GaussianProblem(dim=3, actions=actions, prior_cov=0.5)
    assert "actions" not in problem.truth_draws()
    truth = draw_truth(problem, rng, 2)
    assert (truth.features.arms, truth.features.size) == (7, 9)
    rows = truth.features.at(np.ones((2, 3))).row(np.array([2, 6]))
    np.testing.assert_allclose(rows, [quadratic_phi(actions[k], np.ones(3)) for k in (2, 6)], rtol=1e-14)


def test_a_builder_of_features_is_used(rng: np.random.Generator) -> None:
    matrices = rng.normal(size=(5, 4, 3))
    problem = GaussianProblem(dim=3, actions=matrices, features=matrix, prior_cov=spd(rng, 4))
    truth = draw_truth(problem, rng, 2)
    assert (truth.features.arms, truth.features.size) == (5, 4)
    context = rng.normal(size=(2, 3))
    right = np.einsum("tm,kmd,td->tk", truth.theta, matrices, context)
    np.testing.assert_allclose(truth.features.at(context).scores(truth.theta), right, rtol=1e-12)


def test_any_phi_makes_a_world(rng: np.random.Generator) -> None:
    builder = quadrature(lambda action, context: np.sin(action * context), dim=2)
    actions, context = rng.normal(size=(3, 2)), rng.normal(size=(4, 2))
    truth = draw_truth(GaussianProblem(dim=2, actions=actions, features=builder), rng, 4)
    right = [[np.sin(action * context[i]) @ truth.theta[i] for action in actions] for i in range(4)]
    np.testing.assert_allclose(truth.features.at(context).scores(truth.theta), right, rtol=1e-12)


def test_the_linear_name_multiplies_action_and_context(rng: np.random.Generator) -> None:
    truth = draw_truth(GaussianProblem(dim=3, actions=4, features="product"), rng, 2)
    assert isinstance(truth.features, Product)
    context = rng.normal(size=(2, 3))
    right = np.einsum("td,tkd,td->tk", truth.theta, truth.features.actions, context)
    np.testing.assert_allclose(truth.features.at(context).scores(truth.theta), right, rtol=1e-12)


def test_numbers_and_lists_stand_for_vectors_and_matrices() -> None:
    known = GaussianProblem(dim=3, context_mean=2, noise_cov=[1, 2, 3], bias_cov=0.5).knowledge()
    assert known.context_mean.tolist() == [2, 2, 2]
    assert known.noise_cov.tolist() == [[1, 0, 0], [0, 2, 0], [0, 0, 3]]
    assert known.bias_cov.tolist() == [[0.5, 0, 0], [0, 0.5, 0], [0, 0, 0.5]]
    assert all(np.asarray(part).dtype == np.float64 for part in known if part is not None)
    assert known.beyond_moments == ()


def test_the_defaults_are_the_papers() -> None:
    problem = GaussianProblem()
    known = problem.knowledge()
    assert (problem.dim, problem.actions, known.prior_mean.shape) == (5, 40, (15,))
    assert np.array_equal(known.context_cov, np.eye(5))
    assert np.array_equal(known.noise_cov, 1.1 * np.eye(5))
    assert np.array_equal(known.bias_cov, 1.1 * np.eye(5))
    assert np.array_equal(known.prior_cov, 0.01 * np.eye(15))
    assert known.reward_var == 2
    assert not known.context_mean.any()
    assert not known.prior_mean.any()


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("dim", 0, "a whole number, at least 1 and at most 1000"),
        ("context_mean", [1, 2, 3], "a number or a list of 2 numbers"),
        ("prior_mean", [1, 2, 3], "a number or a list of 2 numbers"),
        ("context_cov", [[1, 1], [1, 1]], "a positive number, 2 positive numbers or a symmetric"),
        ("noise_cov", [[1, 1], [1, 1]], "a positive number, 2 positive numbers or a symmetric"),
        ("bias_cov", [[1, 1], [1, 1]], "a positive number, 2 positive numbers or a symmetric"),
        ("prior_cov", [[1, 1], [1, 1]], "a positive number, 2 positive numbers or a symmetric"),
        ("reward_var", 0, "a positive number"),
        ("action_law", "gamma", "normal, uniform, folded"),
        ("features", "cubic", "quadratic, product, per_arm, matrix, "),
        ("reward_outliers", 1.0, ""),
        ("reward_outlier", float("nan"), ""),
        ("theta_scale", 0.0, ""),
    ],
)
def test_a_bad_field_is_refused_by_name(field: str, value: Any, allowed: str) -> None:
    """The checks are tested in `tests/test_validation.py`."""
    with pytest.raises(InputError, match=rf"^{field}: .*; allowed: {allowed}"):
        GaussianProblem(**{"dim": 2, "features": "product", field: value})


@each("field", ["features", "action_law"])
@each("value", ["", None, 3])
def test_what_is_no_name_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"^{field}: .*; allowed: "):
        GaussianProblem(**{field: value})


def test_shares_of_rewards_are_below_one_and_not_negative() -> None:
    for value in (-0.1, 1.0, float("nan"), "0.1"):
        with pytest.raises(InputError, match=r"^reward_outliers: .*; allowed: "):
            GaussianProblem(reward_outliers=value)  # type: ignore[arg-type]


@each(
    "value",
    [
        *[0, -4, True, 2.5, "forty", "40", None, np.nan, np.ones(5), np.full((3, 5), np.nan)],
        *[np.ones((3, 5), bool), [["1", "2"]], [[True] * 5], [[1.0, 2.0], [3.0]], np.zeros((0, 5))],
        *[np.ones((4, 3)), np.ones((2, 3, 4, 5))],
    ],
)
def test_bad_actions_are_refused_by_name(value: Any) -> None:
    with pytest.raises(InputError, match=r"^actions: "):
        GaussianProblem(dim=5, actions=value)


def test_fields_go_by_name_only() -> None:
    with pytest.raises(TypeError):
        GaussianProblem(5)  # type: ignore[call-arg]


def gives(value: Any) -> Any:
    return lambda _, __: value


@each(
    "features",
    [
        quadrature(gives(1.0), 2),
        quadrature(gives([1.0]), 2),
        quadrature(quadratic_phi, 3),
        lambda _: 1 / 0,
        matrix,
    ],
)
def test_maps_that_do_not_fit_are_refused_at_the_door(features: Any) -> None:
    with pytest.raises(InputError, match=r"^features: "):
        GaussianProblem(dim=2, actions=4, features=features)


# What agents are not told of rewards and of theta.


def test_a_share_of_rewards_is_absurd() -> None:
    """5,000 rewards of which one in fifty: six standard errors of a share are 0.012."""
    world = GaussianProblem(dim=2, actions=3, reward_outliers=0.02, reward_outlier=-1e5)
    rng = np.random.default_rng(4)
    normals = rng.standard_normal((5000, world.round_normals()))
    score = rng.normal(size=5000)
    paid = world.reward(score, normals)
    absurd = paid == -1e5
    assert abs(absurd.mean() - 0.02) < 0.012
    plain = GaussianProblem(dim=2, actions=3)
    np.testing.assert_array_equal(paid[~absurd], plain.reward(score, normals)[~absurd])
    assert world.round_normals() == plain.round_normals() + 1
    assert not world.plain


def test_theta_is_as_much_wider_as_its_scale_says() -> None:
    told: Any = {"dim": 2, "actions": 3, "prior_mean": [1.0, -1, 0, 2, 0.5, 3], "prior_cov": 0.3}
    draws = {
        name: draws.of(np.random.default_rng(1), 4)
        for name, draws in GaussianProblem(**told).truth_draws().items()
    }
    plain, wide = (GaussianProblem(**told, theta_scale=s).truth(draws).theta for s in (1.0, 2.5))
    mean = np.asarray(told["prior_mean"])
    np.testing.assert_allclose(wide - mean, 2.5 * (plain - mean), rtol=1e-12)
    assert not GaussianProblem(theta_scale=2.0).plain
