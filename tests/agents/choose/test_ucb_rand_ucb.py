"""Randomised Bayes-UCB: levels by their law, arms by the envelope, probabilities by both."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm, pareto

from tests.agents.choose.cases import Case, K, T
from unfog.agents.base import View
from unfog.agents.choose import RandUcb, ucb
from unfog.agents.choose.ucb import leads
from unfog.features import Context
from unfog.features.quadratic import quadratic
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Gaussian


def on_a_grid(mean: Array, sd: Array, levels: Array) -> Array:
    """The leader at each of these levels, by looking."""
    found: Array = np.argmax(mean + levels[:, None] * sd, -1)
    return found


GROWTH: Any = {"growth": 2.5, "patience": 0.7}  # much, so that it is seen


def noisily(view: View, noise: float = 4.0) -> View:
    """With rewards of this variance."""
    return view._replace(noise=lambda arm: np.full(T, noise))


def lines(case: Case, trial: int, noise: float = 4.0, arms: int = K) -> tuple[Array, Array]:
    """Means of the scores and slopes of their bounds in round 8, from the features written out."""
    _, mean, cov = case.explicit(trial)
    variance = np.diagonal(cov)
    return mean, np.sqrt(variance * (1 + 2.5 * np.log(1 + 8 * arms * variance / (0.7 * noise))))


def test_the_level_follows_its_power_law(rng: np.random.Generator) -> None:
    """Two arms that cross at a level: the second is taken as often as that is exceeded, six errors."""
    features = quadratic(np.asarray([[0.0], [1.0]]))  # phi = (a^2, c^2, a c)
    sure = Context(np.zeros(1), np.zeros((1, 1)))
    for crossing in (0.8, 1.3, 2.4):
        belief = Gaussian(np.asarray([-crossing, 0.0, 0.0]), np.diag([1.0, 0.0, 0.0]))
        view = View(sure, features.design(sure), belief)  # scores 0 and N(-crossing, 1)
        arms = RandUcb(level=0.7, tail=3.0).choose(view, rng.standard_normal((20_000, 2)))
        right = pareto(3.0, scale=0.7).sf(crossing)
        assert abs(arms.mean() - right) <= 6 * np.sqrt(right * (1 - right) / 20_000)


def test_it_takes_the_largest_bound_at_the_level_drawn(case: Case, rng: np.random.Generator) -> None:
    for masked in [False, True]:
        check_it_takes_the_largest_bound_at_the_level_drawn(case, rng, masked)


def check_it_takes_the_largest_bound_at_the_level_drawn(
    case: Case, rng: np.random.Generator, masked: bool
) -> None:
    chooser = RandUcb(level=0.2, tail=2.5, **GROWTH)
    normals = rng.standard_normal((T, 2))
    levels = 0.2 * np.exp(-0.5 * (normals**2).sum(-1)) ** (-1 / 2.5)
    masks = np.arange(K) != rng.integers(0, K, (T, 1)) if masked else None
    arms = chooser.choose(noisily(case.view(arms=masks)), normals)
    plain = []
    for trial in range(T):
        mean, slope = lines(case, trial, arms=K - 1 if masked else K)
        bounds = mean + levels[trial] * slope
        plain.append(np.argmax(bounds if masks is None else np.where(masks[trial], bounds, -np.inf)))
    np.testing.assert_array_equal(arms, plain)
    assert len(set(arms)) > 2


def test_neglect_is_measured_in_what_a_reward_teaches(case: Case) -> None:
    """By the noise of the best expected arm; without the number of the round nothing is known of neglect."""
    asked: list[Any] = []

    def noise(arm: Any) -> Array:
        asked.append(arm)
        return np.linspace(0.1, 5.0, T)

    chooser = RandUcb(**GROWTH)
    mean, slope = chooser.lines(case.view()._replace(noise=noise))
    plain = chooser.lines(noisily(case.view(None)))
    for trial in range(T):
        right = lines(case, trial, np.linspace(0.1, 5.0, T)[trial])
        np.testing.assert_allclose((mean[trial], slope[trial]), right)
        np.testing.assert_allclose(plain[1][trial] ** 2, np.diagonal(case.explicit(trial)[2]))
    np.testing.assert_array_equal(asked[0], mean.argmax(-1))
    np.testing.assert_array_equal(plain[1], chooser.lines(case.view())[1])  # rewards of 0 or 1


def test_each_arm_leads_where_it_is_seen_to_lead(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pairs in [2**22, 14]:
        check_each_arm_leads_where_it_is_seen_to_lead(rng, pairs, monkeypatch)


def check_each_arm_leads_where_it_is_seen_to_lead(
    rng: np.random.Generator, pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ucb, "PAIRS", pairs)
    levels = np.sort(rng.exponential(2.0, 3000))
    several = 0
    for _ in range(40):
        mean, sd = rng.normal(size=7), rng.gamma(1.0, size=7)
        low, high = leads(mean, sd)
        leader = on_a_grid(mean, sd, levels)
        several += len(set(leader)) > 2
        for arm in range(7):
            np.testing.assert_array_equal((low[arm] < levels) & (levels < high[arm]), leader == arm)
    assert several > 10


def test_of_equal_arms_the_first_one_leads() -> None:
    mean, sd = np.asarray([1.0, 0.0, 1.0, 0.0, 0.5]), np.asarray([0.5, 2.0, 0.5, 2.0, 0.5])
    low, high = leads(mean, sd)
    np.testing.assert_array_equal(low < high, [True, True, False, False, False])
    np.testing.assert_allclose(high[0], 1 / 1.5)  # 1 + 0.5 z = 2 z
    np.testing.assert_allclose(low[1], 1 / 1.5)
    arms = np.asarray([False, True, True, True, True])
    low, high = leads(mean, sd, arms)
    np.testing.assert_array_equal(low < high, [False, True, True, False, False])


def test_probabilities_are_those_of_the_levels(case: Case) -> None:
    """By the law of the level on a fine grid of its quantiles: right to one part in a hundred thousand."""
    chooser, n = RandUcb(level=0.4, tail=2.2, **GROWTH), 200_000
    levels = pareto(2.2, scale=0.4).isf((np.arange(n) + 0.5) / n)
    found = chooser.probabilities(noisily(case.view()), np.zeros((1, T, 2)))
    for trial in range(4):
        leader = on_a_grid(*lines(case, trial), levels)
        np.testing.assert_allclose(found[trial], np.bincount(leader, minlength=K) / n, atol=3e-5)
    assert ((found > 0) & (found < 1)).sum() > T


def test_nothing_known_of_the_arms_is_no_trouble() -> None:
    low, high = leads(np.zeros(3), np.zeros(3))
    np.testing.assert_array_equal(low < high, [True, False, False])


def test_an_arm_of_which_all_is_known_is_no_trouble() -> None:
    """To do nothing pays nothing for certain: the others are tried where their bounds are above that."""
    mean, sd = np.asarray([0.0, -1.0, -2.0]), np.asarray([0.0, np.sqrt(5), np.sqrt(6)])
    low, high = leads(mean, sd)
    np.testing.assert_array_equal(low < high, [True, True, True])
    np.testing.assert_allclose(high[0], 1 / np.sqrt(5))
    np.testing.assert_allclose([high[1], low[2]], 1 / (np.sqrt(6) - np.sqrt(5)))


def test_what_theta_is_worth_is_bounded_by_the_slope_of_the_leader(
    case: Case, rng: np.random.Generator
) -> None:
    """Steps 1 and 2 of the proof in docs/science/proofs.md, by draws: six standard errors."""
    for level in [0.5, 1.5, 3.0]:
        check_what_theta_is_worth_is_bounded_by_the_slope_of_the_leader(case, rng, level)


def check_what_theta_is_worth_is_bounded_by_the_slope_of_the_leader(
    case: Case, rng: np.random.Generator, level: float
) -> None:
    for trial in range(6):
        rows, mean, _ = case.explicit(trial)
        drawn = (
            case.belief.mean[trial] + rng.standard_normal((20_000, rows.shape[1])) @ case.belief.root[trial].T
        )
        most = (drawn @ rows.T).max(-1)
        worth, error = most.mean() - mean.max(), most.std() / np.sqrt(20_000)
        _, slope = lines(case, trial)
        assert (slope > np.sqrt(np.diagonal(case.explicit(trial)[2]))).all()
        low, high = leads(mean, slope)
        [leader] = np.flatnonzero((low < level) & (level < high))
        excess = norm.pdf(level) - level * norm.sf(level)
        assert worth <= level * slope[leader] + K * slope.max() * excess + 6 * error
        steeper = slope[on_a_grid(mean, slope, np.linspace(0.01, 30, 500))]
        assert (np.diff(steeper) >= -1e-12).all()


def by_pairs(mean: Array, slope: Array, level: float, tail: float, arms: Any = None) -> Array:
    """Probabilities from the levels at which `leads` says that each arm leads."""
    low, high = leads(mean, slope, arms)
    share = [np.maximum((level / np.maximum(z, level)) ** tail, 0) for z in (low, high)]
    found: Array = np.maximum(share[0] - share[1], 0)
    return found / found.sum()


def test_one_decision_needs_no_pairs(rng: np.random.Generator) -> None:
    for masked in [False, True]:
        check_one_decision_needs_no_pairs(rng, masked)


def check_one_decision_needs_no_pairs(rng: np.random.Generator, masked: bool) -> None:
    chooser, several = RandUcb(level=0.6, tail=2.5), 0
    for number in [1, 2, 3, 7, 40] * 60:
        slope = rng.gamma(1.0, size=number)
        mean = rng.normal(size=number) * rng.random() - slope**2 / 2  # many lead, one after the other
        if number == 7:  # arms that are equal, parallel, or meet in one point
            mean, slope = np.round(mean), np.round(slope)
        arms = (rng.random(number) < 0.6) | (np.arange(number) == rng.integers(number)) if masked else None
        found = chooser._one(mean, slope, arms)
        right = by_pairs(mean, slope, 0.6, 2.5, arms)
        np.testing.assert_allclose(found / found.sum(), right, rtol=1e-10, atol=1e-14)
        several += int(np.count_nonzero(found) > 2)
    assert several > 60


def test_the_envelope_is_that_of_the_level_integrated_over(rng: np.random.Generator) -> None:
    """Against counting who leads at the quantiles of the level: right to one part in ten thousand."""
    levels = pareto(3.0, scale=0.8).isf((np.arange(100_000) + 0.5) / 100_000)
    for _ in range(5):
        mean, slope = rng.normal(size=40), rng.gamma(2.0, size=40)
        counted = np.bincount(on_a_grid(mean, slope, levels), minlength=40) / levels.size
        np.testing.assert_allclose(RandUcb(level=0.8, tail=3.0)._one(mean, slope, None), counted, atol=5e-5)
