"""Rounds to choose in, batch or one at a time, with everything about their arms written out; all choosers."""

from typing import Any

import numpy as np
import pytest

from tests.problems import every_row, spd
from unfog.agents.base import Chooser, View
from unfog.agents.choose import Epsilon, Greedy, Ids, RandUcb, Thompson, TopTwo, Ucb
from unfog.features import Context
from unfog.features.quadratic import quadratic
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Gaussian

T, K, D, M = 24, 5, 3, 9  # trials, arms, dimensions, features
NOW = np.asarray(7)
CHOOSERS: dict[str, Chooser] = {
    "thompson": Thompson(),
    "greedy": Greedy(),
    "ucb": Ucb(),
    "ucb growing": Ucb(quantile=0.8, growth=1.0),
    "randucb": RandUcb(),
    "randucb wide": RandUcb(level=0.3, tail=2.1),
    "epsilon": Epsilon(epsilon=0.3),
    "epsilon falling": Epsilon(epsilon=0.9, decay=0.5),
    "ids": Ids(),
    "ids wide": Ids(quantile=0.999),
    "ids drawn": Ids(samples=12),
    "top two": TopTwo(),
    "top two short": TopTwo(beta=0.7, redraws=1),
}
every = pytest.mark.parametrize("chooser", CHOOSERS.values(), ids=list(CHOOSERS))


class Case:
    """A batch of rounds, and one round of it at a time."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.actions = rng.normal(size=(T, K, D))
        self.context = Context(rng.normal(1.0, 1.0, (T, D)), spd(rng, D))
        scales = np.geomspace(1.0, 0.01, M)  # some directions are known well, so that arms differ in worth
        self.belief = Gaussian(rng.normal(size=(T, M)), scales * rng.normal(size=(T, M, M)))

    def view(self, time: Any = NOW, arms: Any = None) -> View:
        """All rounds side by side."""
        return View(self.context, quadratic(self.actions).design(self.context), self.belief, time, arms)

    def one(self, trial: int, time: Any = NOW, arms: Any = None, left: Any = slice(None)) -> View:
        """One round; `left` makes a round of its own of some of the arms."""
        context = Context(self.context.mean[trial], self.context.cov)
        belief = Gaussian(self.belief.mean[trial], self.belief.root[trial])
        return View(context, quadratic(self.actions[trial][left]).design(context), belief, time, arms)

    def explicit(self, trial: int) -> tuple[Array, Array, Array]:
        """Features of every arm as a matrix, and mean and covariance of the scores."""
        view = self.one(trial)
        rows = every_row(view.design, K)
        root = self.belief.root[trial]
        return rows, rows @ self.belief.mean[trial], rows @ root @ root.T @ rows.T
