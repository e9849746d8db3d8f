"""What bounds ask: every condition that is broken is named, or marked where it is."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.each import each
from tests.problems import random_knowledge, spd
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array
from unfog.theory import bounds, conditions
from unfog.theory.bounds import Bound
from unfog.theory.conditions import Case, linear_case
from unfog.validation import InputError

D, K, T = 3, 4, 10
Bounding = Callable[..., Bound]


def knowledge(**changes: Any) -> Knowledge:
    """Multiples of I, a narrow prior: what all of the bounds ask."""
    eye, zero = np.eye(D), np.zeros(D)
    plain = Knowledge(zero, 0.5 * eye, 0.7 * eye, 0.9 * eye, zero, 0.2 * eye, np.asarray(1.0))
    return plain._replace(**changes)


def case_of(known: Knowledge, norm: float = 1.0, size: int = D) -> Case:
    """With matrices scaled to a root mean square of `norm`."""
    matrices = np.random.default_rng(3).normal(size=(K, size, D))
    return linear_case(known, norm * matrices / linear_case(known, matrices).feature_norm)


FINE = case_of(knowledge())
EVERY: dict[str, Bounding] = {
    name: getattr(bounds, name)
    for name in ("lemma_1", "lemma_2", "lemma_2_linear", "theorem_1", "lemma_3", "lemma_4", "theorem_2")
}
UNOBSERVED = ("lemma_1", "lemma_2", "lemma_2_linear", "theorem_1")
LINEAR = ("lemma_1", "lemma_2_linear", "theorem_1")
WIDE = case_of(knowledge(prior_cov=0.31 * np.eye(D)))
BROKEN = [
    ("theta ~ N(0, lambda I)", case_of(knowledge(prior_mean=np.full(D, 0.1))), tuple(EVERY)),
    ("theta ~ N(0, lambda I)", case_of(knowledge(prior_cov=np.diag([0.1, 0.2, 0.2]))), tuple(EVERY)),
    ("Assumption 1: |phi| <= 1", case_of(knowledge(), 1.01), tuple(EVERY)),
    ("lambda/sigma^2 <= d/T", WIDE, UNOBSERVED),
    ("lambda/sigma^2 <= 1", case_of(knowledge(prior_cov=1.01 * np.eye(D))), ("lemma_3", "theorem_2")),
    ("phi(a, c) = G(a) c", FINE._replace(linear=None, bounded=True), LINEAR),
    ("Assumption 1: |phi| <= 1", FINE._replace(linear=None), ("lemma_2", "lemma_3", "lemma_4", "theorem_2")),
    ("m = d", case_of(knowledge(prior_mean=np.zeros(4), prior_cov=0.2 * np.eye(4)), size=4), LINEAR),
]


@each("name", EVERY)
@each("version", ["printed", "corrected"])
def test_where_all_holds_all_is_computed(name: str, version: str) -> None:
    found = EVERY[name](FINE, T, version)
    assert found.broken == ()
    assert found.holds.all()
    assert found.total > 0


@pytest.mark.parametrize(("asks", "case", "names"), BROKEN)
def test_a_broken_condition_is_named_or_marked(asks: str, case: Case, names: tuple[str, ...]) -> None:
    for name, version in product(names, ["printed", "corrected"]):
        names_or_marks(asks, case, name, version)


def names_or_marks(asks: str, case: Case, name: str, version: str) -> None:
    with pytest.raises(InputError) as error:
        EVERY[name](case, T, version)
    assert error.value.allowed == asks
    assert version in str(error.value)
    marked = EVERY[name](case, T, version, strict=False)
    assert [condition.asks for condition in marked.broken] == [asks]
    assert not marked.holds.any()
    assert np.isfinite(marked.total).all()


@each("name", [name for name in EVERY if name not in UNOBSERVED])
def test_setting_2_asks_neither_a_narrow_prior_nor_many_rounds(name: str) -> None:
    assert EVERY[name](WIDE, [1, T, 10**6]).holds.all()


@each("name", UNOBSERVED)
def test_marks_are_horizon_by_horizon(name: str) -> None:
    """The prior: lambda / sigma^2 = 0.2 <= 3 / T up to T = 15; T < d = 3 is too short."""
    horizon = np.array([[1, 2, 3], [15, 16, 10**6]])
    found = EVERY[name](FINE, horizon, strict=False)
    np.testing.assert_array_equal(found.holds, [[False, False, True], [True, False, False]])
    assert {condition.asks for condition in found.broken} == {"lambda/sigma^2 <= d/T", "d/T <= 1"}
    with pytest.raises(InputError, match=r"0\.2 > 3/16; allowed: lambda/sigma\^2 <= d/T"):
        EVERY[name](FINE, [3, 15, 16])
    with pytest.raises(InputError, match=r"d = 3, T = 2; allowed: d/T <= 1"):
        EVERY[name](FINE, [3, 2])


@each("field", ["context_cov", "noise_cov", "bias_cov"])
def test_printed_linear_bounds_ask_for_multiples_of_i_and_corrected_ones_do_not(field: str) -> None:
    cov = spd(np.random.default_rng(1), D, 0.3, 0.6)
    case = case_of(knowledge(**{field: cov}))
    for name in ("lemma_2_linear", "theorem_1"):
        with pytest.raises(InputError, match="multiples of I"):
            EVERY[name](case, T, "printed")
        assert EVERY[name](case, T).broken == ()


def test_a_known_mismatch_frees_lemma_1_from_linear_features() -> None:
    case = FINE._replace(linear=None, bounded=True)
    assert bounds.lemma_1(case, T, mismatch=0.5).broken == ()


def test_a_mean_square_is_enough_for_linear_maps_alone() -> None:
    """Of others nothing is proved without a largest norm."""
    for case, holds, found in [
        (FINE, True, "root mean square 1"),
        (FINE._replace(linear=None), False, "root mean square 1; no largest norm is known"),
        (FINE._replace(linear=None, bounded=True), True, "largest norm 1"),
        (FINE._replace(linear=None, bounded=True, feature_norm=1.1), False, "largest norm 1.1"),
    ]:
        condition = conditions.small_features(case)
        assert (bool(condition.holds), condition.actual) == (holds, found)


@each("field", ["noise_cov", "bias_cov"])
def test_the_printed_theorem_2_asks_for_multiples_of_i_and_its_lemmas_do_not(field: str) -> None:
    case = case_of(knowledge(**{field: spd(np.random.default_rng(1), D, 0.3, 0.6)}))
    with pytest.raises(InputError, match="allowed: Sigma_n, Sigma_gamma multiples of I"):
        bounds.theorem_2(case, T, "printed")
    for found in (bounds.theorem_2(case, T), bounds.lemma_4(case, T, "printed")):
        assert found.broken == ()
    context = case_of(knowledge(context_cov=spd(np.random.default_rng(1), D, 0.3, 0.6)))
    assert bounds.theorem_2(context, T, "printed").broken == ()


def test_equalities_may_be_met_up_to_rounding() -> None:
    case = case_of(knowledge(prior_cov=3 / T * np.eye(D)))
    assert bounds.theorem_1(case, T).broken == ()
    assert bounds.lemma_3(case_of(knowledge(prior_cov=np.eye(D))), T).broken == ()


def test_rewards_of_0_or_1_have_no_bounds() -> None:
    with pytest.raises(InputError, match="Gaussian rewards"):
        bounds.theorem_2(case_of(knowledge())._replace(known=knowledge(reward_var=None)), T)


def test_the_case_reads_the_problem() -> None:
    known = random_knowledge(2, 3, 3)
    case = linear_case(known, np.random.default_rng(0).normal(size=(5, 3, 3)))
    assert (case.dim, case.size, case.arms) == (3, 3, 5)
    assert case.reward_var == pytest.approx(0.7)
    assert case.prior_var == pytest.approx(np.linalg.norm(known.prior_cov, 2))


def mean_squares(known: Knowledge, matrices: Array, rng: np.random.Generator, n: int) -> list[Array]:
    """max_a |G(a) x|^2 in the first round, for x the context, beliefs about it, and their errors."""
    zero = np.zeros(len(known.context_mean))
    context = rng.multivariate_normal(known.context_mean, known.context_cov, n)
    bias, noise = (rng.multivariate_normal(zero, cov, n) for cov in (known.bias_cov, known.noise_cov))
    gain = known.context_cov @ np.linalg.inv(known.context_cov + known.noise_cov)
    plugin = known.context_mean + (context + bias + noise - known.context_mean) @ gain.T
    whole = known.context_cov @ np.linalg.inv(known.context_cov + known.noise_cov + known.bias_cov)
    exact = known.context_mean + (context + bias + noise - known.context_mean) @ whole.T
    told = known.context_mean + (context + noise - known.context_mean) @ gain.T
    views = (context, plugin, exact, told, context - plugin, told - plugin)
    return [((matrices @ view.T) ** 2).sum(-2).max(0) for view in views]


@each("seed", range(6))
def test_the_norm_bounds_contexts_beliefs_and_their_errors(seed: int, rng: np.random.Generator) -> None:
    known = random_knowledge(seed, D, D)
    matrices = rng.normal(size=(K, D, D))
    case = linear_case(known, matrices)
    for squares in mean_squares(known, matrices, rng, 20_000):
        assert squares.mean() <= case.feature_norm**2


# The largest is the context, what the agent believes of it, or the error of that.
@each("context, noise, bias, which", [(1, 1, 0.1, 0), (1, 0.5, 5, 1), (1, 3, 50, 4)])
def test_one_dimension_has_the_norm_exactly(
    context: float, noise: float, bias: float, which: int, rng: np.random.Generator
) -> None:
    """|G c| = |g| |c|: nothing is lost in the norm of a matrix. The error of the mean square is 0.3 %."""
    eye, zero = np.eye(1), np.zeros(1)
    one = Knowledge(zero, context * eye, noise * eye, bias * eye, zero, eye, np.ones(()))
    case = linear_case(one, np.array([[[0.3]], [[-0.8]]]))
    means = [x.mean() for x in mean_squares(one, np.array([[[0.8]]]), rng, 200_000)]
    assert np.argmax(means) == which
    assert case.feature_norm**2 == pytest.approx(means[which], rel=0.02)


def test_sets_of_actions_are_averaged(rng: np.random.Generator) -> None:
    known, sets = random_knowledge(3, D, D), rng.normal(size=(7, K, D, D))
    found = linear_case(known, sets)
    single = [linear_case(known, one) for one in sets]
    assert found.feature_norm**2 == pytest.approx(np.mean([case.feature_norm**2 for case in single]))
    assert found.linear is not None
    features = [case.linear for case in single if case.linear is not None]
    np.testing.assert_allclose(found.linear.gram, np.mean([f.gram for f in features], 0))
    assert found.linear.trace == pytest.approx(np.mean([f.trace for f in features]))
    assert found.linear.norm == pytest.approx(np.mean([f.norm for f in features]))


def test_the_linear_maps_sums_by_hand(rng: np.random.Generator) -> None:
    matrices = rng.normal(size=(K, D, D))
    found = linear_case(random_knowledge(3, D, D), matrices).linear
    assert found is not None
    np.testing.assert_allclose(found.gram, sum(G.T @ G for G in matrices))
    assert found.trace == pytest.approx(max((G**2).sum() for G in matrices))
    assert found.norm == pytest.approx(max(np.linalg.svd(G)[1][0] ** 2 for G in matrices))


def test_lists_of_matrices_are_taken() -> None:
    matrices = np.random.default_rng(3).normal(size=(K, D, D))
    found, direct = (linear_case(knowledge(), each) for each in (matrices.tolist(), matrices))
    assert found.feature_norm == direct.feature_norm


@each(
    "matrices",
    [
        np.ones((D, D)),
        np.ones((K, D, D + 1)),
        np.ones((K, D + 1, D)),
        np.ones((0, D, D)),
        np.ones((0, K, D, D)),
        np.full((K, D, D), np.nan),
        np.full((K, D, D), np.inf),
        [[[1.0, 2.0, 3.0], [1.0]]],
        "matrices",
        3.0,
        None,
    ],
)
def test_odd_matrices_are_refused_by_name(matrices: Any) -> None:
    with pytest.raises(InputError, match=r"^matrices: .*\(\.\.\., K, 3, 3\), K >= 1"):
        linear_case(knowledge(), matrices)


def test_a_prior_in_blocks_is_no_multiple_of_i() -> None:
    blocks = np.broadcast_to(np.eye(D), (2, D, D))
    case = FINE._replace(known=knowledge(prior_mean=np.zeros(2 * D), prior_cov=blocks))
    assert not conditions.centred_prior(case).holds
