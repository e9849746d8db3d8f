"""Thompson sampling: the arm for a given draw, and the frequencies of arms over many."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from tests.agents.choose.cases import Case, K, M
from tests.problems import feature_moments, quadratic_phi, spd
from unfog.agents.base import Chooser, View
from unfog.agents.choose import Thompson, thompson
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.features.linear import matrix, product
from unfog.features.per_arm import per_arm
from unfog.features.quadratic import quadratic
from unfog.features.quadrature import quadrature
from unfog.maths import gaussian
from unfog.maths.gaussian import Blocks


def test_it_takes_as_many_normals_as_there_are_features(known: Knowledge) -> None:
    assert Thompson().normals(known) == 9


def test_the_arm_is_the_best_for_its_draw(known: Knowledge, rng: np.random.Generator) -> None:
    actions, context = rng.normal(size=(6, 3)), Context(known.context_mean, known.context_cov)
    belief = gaussian.from_moments(known.prior_mean, known.prior_cov)
    rows, _ = feature_moments(quadratic_phi, actions, context)
    view = View(context, quadratic(actions).design(context), belief)
    arms = []
    for normals in rng.standard_normal((200, 9)):
        theta = known.prior_mean + np.linalg.cholesky(known.prior_cov) @ normals
        arms.append(int(Thompson().choose(view, normals)))
        assert arms[-1] == max(range(6), key=lambda arm: float(rows[arm] @ theta))
    assert len(set(arms)) > 3


def test_arms_come_as_often_as_they_are_best(known: Knowledge, rng: np.random.Generator) -> None:
    draws, arms = 40_000, 5
    actions, context = rng.normal(size=(arms, 3)), Context(known.context_mean, known.context_cov)
    start = gaussian.from_moments(known.prior_mean, known.prior_cov)
    row, variance = rng.normal(size=9), np.asarray(0.5)
    belief = start.condition(row, np.asarray(2.0), variance)
    view = View(context, quadratic(actions).design(context), belief)
    chosen = Thompson().choose(view, rng.standard_normal((draws, 9)))

    precision = np.linalg.inv(known.prior_cov)
    cov = np.linalg.inv(precision + np.outer(row, row) / variance)
    mean = cov @ (precision @ known.prior_mean + row * 2.0 / variance)
    rows, _ = feature_moments(quadratic_phi, actions, context)
    thetas = rng.multivariate_normal(mean, cov, draws)
    best = (thetas @ rows.T).argmax(1)

    table = np.stack([np.bincount(arm, minlength=arms) for arm in (chosen, best)])
    assert table.min() > 100
    # Chi-square test of equal frequencies: a right chooser fails with probability 0.001.
    assert chi2_contingency(table).pvalue > 0.001


def test_trials_draw_apart(rng: np.random.Generator) -> None:
    trials, arms, d = 50, 4, 2
    actions, means = rng.normal(size=(trials, arms, d)), rng.normal(1.0, 1.0, (trials, d))
    theta, roots = rng.normal(size=(trials, 3 * d)), rng.normal(size=(trials, 3 * d, 3 * d))
    cov, normals = spd(rng, d), rng.standard_normal((trials, 3 * d))
    context = Context(means, cov)
    view = View(context, quadratic(actions).design(context), gaussian.Gaussian(theta, roots))
    chosen = Thompson().choose(view, normals)
    for i in range(trials):
        rows, _ = feature_moments(quadratic_phi, actions[i], Context(means[i], cov))
        assert chosen[i] == (rows @ (theta[i] + roots[i] @ normals[i])).argmax()


def test_thompson_states_the_share_of_draws(case: Case, rng: np.random.Generator) -> None:
    draws = rng.standard_normal((30, M))
    rows, mean, _ = case.explicit(1)
    root = case.belief.root[1]
    best = [int((mean + rows @ root @ z).argmax()) for z in draws]
    odds = Thompson().probabilities(case.one(1), draws)
    assert odds.tolist() == pytest.approx([best.count(arm) / 30 for arm in range(K)])


MAPS = "product", "quadratic", "per arm", "per arm, in blocks", "matrix", "quadrature"


def maps(rng: np.random.Generator, trials: tuple[int, ...]) -> dict[str, Any]:
    """Every map, with beliefs about a theta of its size."""
    actions = rng.normal(size=(*trials, 5, 3))
    table = rng.normal(size=(*trials, 5, 4, 3))
    found: dict[str, Any] = {
        "product": product(actions),
        "quadratic": quadratic(actions),
        "per arm": per_arm(actions),
        "per arm, in blocks": per_arm(actions),
        "matrix": matrix(table),
        "quadrature": quadrature(lambda a, c: np.concat([np.tanh(a * c), a + 0 * c], -1), 3)(actions),
    }
    return found


def test_draws_side_by_side_are_draws_one_by_one(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for trials in [(), (1,), (6,)]:
        for name in MAPS:
            check_draws_side_by_side_are_draws_one_by_one(name, trials, rng, monkeypatch)


def check_draws_side_by_side_are_draws_one_by_one(
    name: str, trials: tuple[int, ...], rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    features, context = maps(rng, trials)[name], Context(rng.normal(size=(*trials, 3)), spd(rng, 3))
    m = features.size
    belief: Any = gaussian.Gaussian(rng.normal(size=(*trials, m)), rng.normal(size=(*trials, m, m)))
    if name.endswith("blocks"):
        belief = Blocks(rng.normal(size=(*trials, 5, 4)), rng.normal(size=(*trials, 5, 4, 4)))
    masks: Any = rng.random((*trials, 5)) < 0.7
    masks[..., 2] = True
    view = View(context, features.design(context), belief, None, masks)
    for shape in {(40, *trials, m), (40, m)}:
        draws = rng.standard_normal(shape)
        right = Chooser.probabilities(Thompson(), view, draws)
        assert np.count_nonzero(right) > 1
        np.testing.assert_array_equal(Thompson().probabilities(view, draws), right)
        monkeypatch.setattr(thompson, "ROOM", 200)
        np.testing.assert_array_equal(Thompson().probabilities(view, draws), right)
        monkeypatch.undo()
