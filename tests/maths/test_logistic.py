"""The mean of a sigmoid against integrals done one after the other, product rules, SciPy and Monte Carlo."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.interpolate import CubicSpline
from scipy.special import expit
from scipy.stats import norm

from tests.problems import gauss_hermite
from unfog.channel.knowledge import known_shrinkage
from unfog.features.link import Law
from unfog.maths.arrays import Array
from unfog.maths.logistic import NODES, expected_sigmoid, sigmoid, softplus
from unfog.theory import regret
from unfog.worlds.synthetic import LogisticProblem

Form = tuple[float, list[float], list[float]]

# shift, slopes and curvatures: anisotropic, of both signs, not centred.
FORMS: dict[str, Form] = {
    "a line": (0.7, [1.3], [0.0]),
    "a steep line": (-4.0, [6.0], [0.0]),
    "a square": (-0.4, [0.0], [0.8]),
    "a hanging parabola": (2.5, [1.1], [-0.6]),
    "a large negative square": (9.0, [1.0], [-7.0]),
    "a large positive square": (-9.0, [0.5], [7.0]),
    "two": (0.3, [1.2, -0.4], [0.5, -0.9]),
    "two large squares": (1.5, [0.2, -2.0], [6.0, -8.0]),
    "three": (-1.1, [0.9, -1.7, 0.2], [-0.6, 0.0, 1.1]),
    "three almost flat": (0.9, [0.01, 0.0, -0.02], [0.0, 0.003, -0.001]),
    "five": (1.9, [0.3, -1.5, 0.8, 2.2, -0.1], [0.7, -0.2, -1.3, 0.05, 0.4]),
    "five of the paper's size": (-2.0, [2.0, -3.0, 1.0, 0.5, 2.5], [1.2, -0.8, 0.5, -1.6, 0.9]),
}


def arrays(form: Form) -> tuple[Array, Array, Array]:
    shift, slope, curvature = (np.asarray(part, np.float64) for part in form)
    return shift, slope, curvature


def in_turn(form: Form) -> float:
    """E[sigmoid(S)], one coordinate after the other: g_k(s) = E[g_{k-1}(s + b z + c z^2)], g_0 = sigmoid.

    A trapezium rule over z, which for a Gaussian weight is exact to rounding, and splines over s, whose error
    is step^4 / 384 times the fourth derivative of a sigmoid: 3e-8.
    """
    shift, slopes, curvatures = form
    step, z = 0.1, np.linspace(-9.0, 9.0, 451)
    weights = norm.pdf(z) * (z[1] - z[0])
    reach = 60.0 + abs(shift) + sum(9 * abs(b) + 81 * abs(c) for b, c in zip(slopes, curvatures, strict=True))
    grid = np.arange(-reach, reach, step)
    inner = expit
    for slope, curvature in zip(slopes[:-1], curvatures[:-1], strict=True):
        moves = slope * z + curvature * z**2
        inside = np.clip(grid[:, None] + moves, grid[0], grid[-1])
        inner = CubicSpline(grid, inner(inside) @ weights)
    last = np.clip(shift + slopes[-1] * z + curvatures[-1] * z**2, grid[0], grid[-1])
    return float(inner(last) @ weights)


def inverted(
    shift: Array, slope: Array, curvature: Array, last: float = 6.0, panels: int = 80, order: int = 20
) -> Array:
    """The integral over the characteristic function in complex arithmetic, unclipped, by a composite rule."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    width = last / panels
    u = (width * ((nodes + 1) / 2 + np.arange(panels)[:, None])).ravel()
    weights = np.tile(weights * width / 2, panels) / np.sinh(np.pi * u)
    log = 1j * u * shift[..., None]
    for b, c in zip(np.moveaxis(slope, -1, 0), np.moveaxis(curvature, -1, 0), strict=True):
        q = 1 - 2j * u * c[..., None]
        log = log - np.log(q) / 2 - (u * b[..., None]) ** 2 / (2 * q)
    return 0.5 + np.exp(log).imag @ weights


def test_the_sigmoid_is_scipys_and_does_not_overflow() -> None:
    scores = np.array([-1e4, -745.0, -30.0, -2.0, -1e-9, 0.0, 0.3, 5.0, 40.0, 1e4])
    np.testing.assert_allclose(sigmoid(scores), expit(scores), rtol=0, atol=2e-16)


def test_softplus_is_the_log_of_a_sum_and_does_not_overflow() -> None:
    scores = np.array([-1e4, -745.0, -30.0, -2.0, -1e-9, 0.0, 0.3, 5.0, 40.0, 1e4])
    np.testing.assert_allclose(softplus(scores), np.logaddexp(0.0, scores), rtol=1e-15, atol=0)


@pytest.mark.slow
def test_the_mean_is_that_of_integrals_done_in_turn() -> None:
    for name in FORMS:
        check_the_mean_is_that_of_integrals_done_in_turn(name)


def check_the_mean_is_that_of_integrals_done_in_turn(name: str) -> None:
    found = float(expected_sigmoid(*arrays(FORMS[name])))
    # 4e-6 is what the cut of the integral at u = 3.8 leaves out; here slopes or curvatures damp most of it.
    assert found == pytest.approx(in_turn(FORMS[name]), abs=5e-6)


def test_in_one_dimension_it_is_scipys_integral() -> None:
    for name in [name for name, form in FORMS.items() if len(form[1]) == 1]:
        check_in_one_dimension_it_is_scipys_integral(name)


def check_in_one_dimension_it_is_scipys_integral(name: str) -> None:
    shift, [slope], [curvature] = FORMS[name]

    def integrand(z: float) -> float:
        return float(norm.pdf(z) * expit(shift + slope * z + curvature * z**2))

    right = quad(integrand, -12, 12, limit=500, epsabs=1e-12)[0]
    assert float(expected_sigmoid(*arrays(FORMS[name]))) == pytest.approx(right, abs=5e-6)
    assert in_turn(FORMS[name]) == pytest.approx(right, abs=1e-7)


def test_in_two_and_three_it_is_a_product_rule() -> None:
    for name in ["two", "three", "three almost flat"]:
        check_in_two_and_three_it_is_a_product_rule(name)


def check_in_two_and_three_it_is_a_product_rule(name: str) -> None:
    shift, slope, curvature = arrays(FORMS[name])
    points, weights = gauss_hermite(np.zeros(len(slope)), np.eye(len(slope)), 40)
    right = weights @ expit(shift + points @ slope + points**2 @ curvature)
    assert float(expected_sigmoid(shift, slope, curvature)) == pytest.approx(right, abs=5e-6)


def test_in_five_it_is_monte_carlo(rng: np.random.Generator) -> None:
    for name in ["five", "five of the paper's size"]:
        check_in_five_it_is_monte_carlo(name, rng)


def check_in_five_it_is_monte_carlo(name: str, rng: np.random.Generator) -> None:
    shift, slope, curvature = arrays(FORMS[name])
    draws = [rng.standard_normal((250_000, 5)) for _ in range(8)]
    values = np.concatenate([expit(shift + z @ slope + z**2 @ curvature) for z in draws])
    error = values.std() / np.sqrt(len(values))
    # Four standard errors, of 2.5e-4: a right mean fails with probability 6e-5.
    assert abs(float(expected_sigmoid(shift, slope, curvature)) - values.mean()) < 4 * error


@pytest.mark.slow
def test_scores_up_to_half_the_nodes_are_followed() -> None:
    """Thousands of random forms, with means to +-30 and standard deviations to 20, all of which count."""
    for dim in [1, 2, 5]:
        check_scores_up_to_half_the_nodes_are_followed(dim)


def check_scores_up_to_half_the_nodes_are_followed(dim: int) -> None:
    rng, cases = np.random.default_rng(dim), 2000
    slope = rng.normal(size=(cases, dim))
    curvature = rng.normal(size=(cases, dim)) * rng.choice([0.0, 0.1, 1.0, 5.0], (cases, 1))
    scale = rng.uniform(0, 20, (cases, 1)) / np.sqrt((slope**2 + 2 * curvature**2).sum(-1, keepdims=True))
    slope, curvature = slope * scale, curvature * scale
    shift = rng.uniform(-30, 30, cases) - curvature.sum(-1)
    found, right = expected_sigmoid(shift, slope, curvature), inverted(shift, slope, curvature)
    errors = np.abs(found - right)
    assert errors.max() < 1e-4
    assert np.median(errors) < 1e-7


@pytest.mark.slow
def test_the_complex_integral_is_itself_right() -> None:
    for form in FORMS.values():
        assert float(inverted(*arrays(form))) == pytest.approx(in_turn(form), abs=1e-7)


@pytest.mark.slow
def test_more_nodes_follow_larger_scores() -> None:
    rng, cases = np.random.default_rng(3), 300
    slope, curvature = rng.normal(0, 25.0, (cases, 2)), rng.normal(0, 15.0, (cases, 2))
    shift = rng.uniform(-120, 120, cases) - curvature.sum(-1)
    right = inverted(shift, slope, curvature, panels=400)
    assert np.abs(expected_sigmoid(shift, slope, curvature, 300) - right).max() < 1e-4
    assert np.abs(expected_sigmoid(shift, slope, curvature) - right).max() > 1e-3


def test_without_spread_it_is_the_sigmoid() -> None:
    shift = np.concatenate([np.linspace(-30, 30, 1201), [-1e6, -1e3, 1e3, 1e6]])
    none = np.zeros((len(shift), 3))
    np.testing.assert_allclose(expected_sigmoid(shift, none, none), expit(shift), rtol=0, atol=1e-5)


def test_far_from_zero_it_is_nothing_or_one() -> None:
    """Means from 13 and 8 standard deviations on, where a normal score is below zero in 1e-15 of cases."""
    for sign in [-1, 1]:
        for deviation in [0.0, 0.3, 1.0, 3.0, 6.0, 15.0]:
            check_far_from_zero_it_is_nothing_or_one(deviation, sign)


def check_far_from_zero_it_is_nothing_or_one(deviation: float, sign: int) -> None:
    far = sign * (13 + deviation * np.concatenate([np.linspace(8, 20, 200), [1e2, 1e4]]))
    slope = np.full((len(far), 1), deviation)
    found = expected_sigmoid(far, slope, np.zeros_like(slope))
    np.testing.assert_allclose(found, expit(sign * np.inf), rtol=0, atol=1e-4)


def test_the_sign_of_the_score_turns_the_answer_round(rng: np.random.Generator) -> None:
    shift, slope, curvature = rng.normal(0, 3, 50), rng.normal(0, 2, (50, 4)), rng.normal(0, 1, (50, 4))
    both = expected_sigmoid(shift, slope, curvature) + expected_sigmoid(-shift, slope, -curvature)
    np.testing.assert_allclose(both, 1.0, rtol=0, atol=1e-12)


def test_every_batch_axis_is_kept(rng: np.random.Generator) -> None:
    shift, slope, curvature = rng.normal(size=(3, 4)), rng.normal(size=(3, 4, 2)), rng.normal(size=(3, 4, 2))
    found = expected_sigmoid(shift, slope, curvature)
    assert found.shape == (3, 4)
    for i, j in np.ndindex(3, 4):
        alone = expected_sigmoid(shift[i, j], slope[i, j], curvature[i, j])
        assert found[i, j] == pytest.approx(float(alone), abs=1e-14)


def test_a_curvature_may_be_shared_by_rounds_or_by_trials(rng: np.random.Generator) -> None:
    for shape in [(5,), (3, 5), (2, 3, 5)]:
        check_a_curvature_may_be_shared_by_rounds_or_by_trials(shape, rng)


def check_a_curvature_may_be_shared_by_rounds_or_by_trials(
    shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    shift, slope = rng.normal(size=shape), rng.normal(size=(*shape, 2))
    for axes in np.ndindex(*[2] * len(shape)):
        part = rng.normal(size=(*(n if own else 1 for n, own in zip(shape, axes, strict=True)), 2))
        whole = np.broadcast_to(part, slope.shape)
        found = expected_sigmoid(shift, slope, part)
        np.testing.assert_allclose(found, expected_sigmoid(shift, slope, whole), rtol=0, atol=1e-13)


def test_jax_gives_the_same_numbers(rng: np.random.Generator) -> None:
    given = rng.normal(0, 4, 200), rng.normal(0, 2, (200, 5)), rng.normal(0, 1, (200, 5))
    found = jax.jit(expected_sigmoid)(*map(jnp.asarray, given))
    np.testing.assert_allclose(found, expected_sigmoid(*given), rtol=0, atol=1e-13)


@pytest.mark.slow
def test_single_precision_is_enough_for_a_probability(rng: np.random.Generator) -> None:
    given = rng.uniform(-30, 30, 500), rng.normal(0, 2, (500, 5)), rng.normal(0, 1, (500, 5))
    found = expected_sigmoid(*(jnp.asarray(part, jnp.float32) for part in given))
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, expected_sigmoid(*given), rtol=0, atol=5e-6)


def laws(problem: LogisticProblem, cases: int, seed: int) -> list[Law]:
    """Scores of the best and of random arms under the oracle's belief, one truth a case."""
    rng = np.random.default_rng(seed)
    draws = {name: rng.standard_normal((cases, *d.shape)) for name, d in problem.truth_draws().items()}
    truth = problem.truth(draws)
    emission = problem.emit(truth, rng.standard_normal((cases, problem.round_normals())))
    best = regret.oracle_context(known_shrinkage(problem.knowledge()), emission.noisy, truth.bias)
    design = truth.features.design(best)
    of = design.laws(truth.theta).of
    return [of(design.scores(truth.theta).argmax(-1)), of(rng.integers(0, problem.arms(), cases))]


PAPERS = LogisticProblem()
WIDE = LogisticProblem(prior_cov=10.0)


@pytest.mark.parametrize(("problem", "cases"), [(PAPERS, 2500), (WIDE, 600)], ids=["paper", "wide prior"])
@pytest.mark.slow
def test_at_the_papers_settings_it_is_exact_enough(problem: LogisticProblem, cases: int) -> None:
    for law in laws(problem, cases, seed=1):
        found = law.expected_sigmoid(problem.rewards.nodes)  # type: ignore[attr-defined]
        finer = partial(inverted, panels=30 if problem is PAPERS else 120)(*law)  # type: ignore[misc]
        errors = np.abs(found - finer)
        assert errors.max() < 1e-4
        assert np.quantile(errors, 0.99) < 1e-6


def test_nodes_grow_with_the_scores() -> None:
    assert PAPERS.rewards.nodes == NODES  # type: ignore[attr-defined]
    # Scores grow as the prior's standard deviation does, from a size just below the one NODES is for.
    assert WIDE.rewards.nodes == pytest.approx(NODES * np.sqrt(10) * 17.8 / 18, rel=0.02)  # type: ignore[attr-defined]
