"""How likely a round is beyond the elliptical potential: against exact tails and simulation."""

import numpy as np
from scipy import stats

from tests.each import each
from tests.problems import random_knowledge
from unfog.maths.arrays import Array
from unfog.theory import bounds
from unfog.theory.bounds import LIMIT, chernoff_tail, escape
from unfog.theory.conditions import Case, linear_case

DRAWS = 200_000


def posed(seed: int, ratio: float, size: float = 1.0) -> tuple[Case, Array]:
    """A random case with so large a prior variance, features of this root mean square, and its matrices."""
    known = random_knowledge(seed, 3, 3)._replace(prior_mean=np.zeros(3), prior_cov=0.7 * ratio * np.eye(3))
    matrices = np.random.default_rng(seed).normal(size=(5, 3, 3))
    matrices *= size / linear_case(known, matrices).feature_norm
    return linear_case(known, matrices), matrices


def test_the_step_holds_up_to_the_limit() -> None:
    assert 2 * np.log1p(LIMIT) >= LIMIT
    assert 2 * np.log1p(LIMIT + 0.01) < LIMIT + 0.01


@each("least", [1.0, 5.0, 20.0, 60.0])
@each("mean", [0.0, 0.7])
def test_the_tail_is_above_the_exact_one_and_not_far(mean: float, least: float) -> None:
    spread, d = 0.8, 4
    exact = stats.ncx2(d, d * mean**2 / spread + 1e-12).sf(least / spread)
    found = chernoff_tail(np.full(d, mean), spread * np.eye(d), least)
    assert exact <= found <= min(1, 100 * exact)


@each("seed", range(4))
def test_rounds_are_beyond_no_more_often_than_it_says(seed: int, rng: np.random.Generator) -> None:
    case, matrices = posed(seed, 0.5)
    known, zero = case.known, np.zeros(3)
    context = rng.multivariate_normal(known.context_mean, known.context_cov, DRAWS)
    away = (
        context - known.context_mean + rng.multivariate_normal(zero, known.noise_cov + known.bias_cov, DRAWS)
    )
    both, more = known.context_cov + known.noise_cov, known.bias_cov
    plugin, exact = (
        known.context_mean + away @ np.linalg.solve(cov, known.context_cov) for cov in (both, both + more)
    )
    for view in (context, plugin, exact):
        largest = ((matrices @ view.T) ** 2).sum(-2).max(0)
        share = np.mean(largest * 0.5 > LIMIT)
        assert share <= escape(case) + 5 * np.sqrt(escape(case) / DRAWS)


def test_a_narrow_prior_and_small_features_are_never_beyond() -> None:
    assert escape(posed(1, 1e-4)[0]) < 1e-100
    assert escape(posed(1, 1.0, 0.0)[0]) == 0
    chances = [escape(posed(1, ratio)[0]) for ratio in (0.01, 0.1, 1.0)]
    assert 0 < chances[0] < chances[1] < chances[2] < 1


def test_other_maps_need_a_largest_norm() -> None:
    case = posed(1, 1.0)[0]._replace(linear=None)
    assert escape(case) == 1
    assert escape(case._replace(bounded=True)) == 0
    assert escape(case._replace(bounded=True, feature_norm=1.6)) == 1


def test_sets_of_actions_count_with_the_largest() -> None:
    case, matrices = posed(1, 0.5)
    sets = linear_case(case.known, np.stack([matrices, matrices / 9]))
    assert escape(sets) == escape(case)


def test_bounds_carry_it_where_they_use_the_step() -> None:
    case = posed(1, 0.01)[0]
    chance = escape(case)
    for name in ("lemma_1", "theorem_1", "lemma_3", "theorem_2"):
        assert getattr(bounds, name)(case, 10, strict=False).escape == chance
    for name in ("lemma_2", "lemma_2_linear", "lemma_4", "at_random"):
        assert getattr(bounds, name)(case, 10, strict=False).escape == 0
