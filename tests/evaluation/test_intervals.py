"""Values and intervals: the delta method, weights that do not look ahead, degrees of freedom."""

import numpy as np

from unfog.evaluation.estimators import Scores
from unfog.evaluation.intervals import Value, adaptive, value
from unfog.maths.arrays import Array


def scores(n: int = 300) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(1)
    den = rng.exponential(1.0, n)
    return den * rng.normal(3.0, 1.0, n), den, rng.uniform(0.5, 2.0, n)


def test_error_is_that_of_the_delta_method() -> None:
    """V = N / D: the gradient is (1, -V) / D, the covariance of the sums that of their terms."""
    num, den, h = scores()
    found = value(Scores(num, den), h)
    terms = np.stack([h * num, h * den], axis=1)
    top, bottom = terms.sum(axis=0)
    slope = np.array([1.0, -top / bottom]) / bottom
    np.testing.assert_allclose(found.mean, top / bottom, rtol=1e-12)
    np.testing.assert_allclose(found.se, np.sqrt(slope @ (terms.T @ terms) @ slope), rtol=1e-12)
    np.testing.assert_allclose(found.influence @ found.influence, found.se**2, rtol=1e-12)


def test_without_denominators_it_is_the_mean_and_its_standard_error() -> None:
    num, *_ = scores()
    found = value(Scores(num))
    np.testing.assert_allclose([found.mean, found.se], [num.mean(), num.std() / np.sqrt(len(num))])


def test_what_a_model_wobbles_by_adds_to_each_rounds_influence() -> None:
    num, _, h = scores()
    found = value(Scores(num, wobble=h))
    np.testing.assert_allclose(found.influence, (num - num.mean() + h) / len(num))


def test_one_round_or_none_says_nothing_of_an_error() -> None:
    for den in (None, np.array([2.0])):
        one = value(Scores(np.array([4.0]), den))
        assert np.isfinite(one.mean)
        assert np.isnan(one.se)
        assert np.isnan(one.interval(0.95)).all()
    single = value(Scores(np.array([3.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0])))
    assert single.mean == 3.0
    assert np.isnan(single.se)
    assert np.isnan(value(Scores(np.zeros(3), np.zeros(3))).mean)


def test_differences_are_paired() -> None:
    num, *_ = scores()
    one, other = value(Scores(num)), value(Scores(num + 0.5))
    gap = other.less(one)
    np.testing.assert_allclose([gap.mean, gap.se], [0.5, 0.0], atol=1e-12)


def test_degrees_are_rounds_for_normal_scores_and_fewer_for_heavy_tails() -> None:
    """The variance of the estimated degrees at 200,000 normal scores is about 1 %: four of these."""
    rng = np.random.default_rng(2)
    normal = value(Scores(rng.normal(size=200_000)))
    assert abs(normal.degrees / 200_000 - 1) < 0.05
    heavy = value(Scores(rng.standard_normal(200_000) ** 5))
    assert heavy.degrees < 2_000
    one = Value(0.0, 1.0, np.eye(1000)[0])
    np.testing.assert_allclose(one.degrees, 2.0, rtol=2e-3)


def test_an_interval_is_students_for_these_degrees() -> None:
    """One round decides, so there are two degrees: 4.303 errors at 95 %."""
    found = Value(1.0, 0.5, np.where(np.arange(100_000) == 7, 0.5, 0.0))
    np.testing.assert_allclose(found.interval(0.95), [1 - 4.3027 * 0.5, 1 + 4.3027 * 0.5], rtol=1e-3)
    narrow, wide = found.interval(0.5), found.interval(0.99)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def table(n: int = 1000) -> tuple[Array, Array, Array]:
    """A policy, a logger whose probabilities fall as it learns, the weights."""
    rng = np.random.default_rng(3)
    floor = np.geomspace(1 / 3, 0.01, n)
    law = np.stack([1 - 2 * floor, floor, floor], axis=1)
    policy = rng.dirichlet(np.ones(3), n)
    arm = (rng.random(n)[:, None] > law.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return policy, law, policy[np.arange(n), arm] / law[np.arange(n), arm]


def test_weights_of_time_do_not_look_ahead() -> None:
    """Other rounds from 400 on, however far off they are: weights up to their stretch's end stay."""
    policy, law, _ = table()
    before = adaptive(policy, law)
    law[400:] = [0.9998, 1e-4, 1e-4]
    after = adaptive(policy, law)
    np.testing.assert_array_equal(before[:425], after[:425])
    assert (after[425:450] < 0.5 * before[425:450]).all()


def test_weights_of_time_make_stretches_vary_alike() -> None:
    policy, law, _ = table(20_000)
    h = adaptive(policy, law)
    expected = (policy**2 / law).sum(axis=1)
    varied = (h**2 * expected).reshape(20, -1).mean(axis=1)
    plain = expected.reshape(20, -1).mean(axis=1)
    assert plain.max() / plain.min() > 10
    assert varied.max() / varied.min() < 1.3


def test_where_nothing_could_be_drawn_weights_are_ones() -> None:
    law = np.tile([1.0, 0.0], (80, 1))
    np.testing.assert_array_equal(adaptive(1 - law, law), np.ones(80))
