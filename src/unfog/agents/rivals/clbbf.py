"""CLBBF, a rival for contexts of which some coordinates are lost."""

from dataclasses import dataclass
from typing import Any

from unfog.agents.assemble import Agent
from unfog.agents.choose.ucb import moments
from unfog.agents.parts import View
from unfog.agents.rivals.imputation import Imputed
from unfog.agents.rivals.imputing import Imputing
from unfog.agents.rivals.optimism import Optimism
from unfog.agents.rivals.rival import Rival
from unfog.maths.arrays import Array, matvec

PAPER = (
    "Kim, Yun, Jeong, Nam, Shin and Combes, Contextual Linear Bandits under Noisy Features: "
    "Towards Bayesian Oracles"
)


@dataclass(frozen=True, kw_only=True)
class Lifting(Optimism):
    """CLBBF: contextual linear bandits with Bayesian features, some of which are lost.

    Lost numbers are imputed (rivals/imputation.py), x = [1, features of the imputed context], and with m
    features

        V = l I + sum x x',    theta = V^-1 sum x r,    l = (m + 1) ln(K T),
        argmax x'theta + beta_t |x|_{V^-1},
        beta_t = sqrt((m + 1) ln((t + 2) T)) + h_t + sqrt(m ln(K T)),
        h_t = G w p^(-3/2) sqrt(ln T ln(K T) / ((t + 2) S)),

    in round t = 0, 1, ..., which has S samples of w numbers each, a share p of them measured. In rounds t =
    1, 2, 4, 8, ... all past rounds are imputed anew with what is known of the law of readings by then, V and
    sum x r are made of them, and G = sum |x|_{V^-1} over them. Their baseline, here `clbbf-oful`, takes zero
    for what was lost, never goes back, and has G = 0.

    J.-h. Kim, S.-Y. Yun, M. Jeong, J. Nam, J. Shin and R. Combes, *Contextual Linear Bandits under Noisy
    Features: Towards Bayesian Oracles*. It must be told K and T alone; it sees noisy contexts, and what of
    them was lost. That contexts are Gaussian is what makes the imputed features, with an intercept, linear in
    what the Bayesian oracle expects; a bias that never changes goes into the intercept. Constants assume
    rewards with noise of variance one at most and |theta| <= 1.

    How sure we are: high where every arm has a context of its own (`own`), as in the paper: this is the
    authors' code to rounding, but for the first arm, which they draw and an optimist chooses. Medium for one
    context that arms share: there S = 1 and l, m and w are our reading; for features that are not linear in
    the context the paper promises nothing, and this is an extension. The intercept is common to all arms.

    This is optimism beside an intercept: it is the same for all arms, but not what it shares with their
    scores.

    Settings
    --------
    That of `Optimism`.
    """

    name = "lifting"
    note = "the largest mean and so many deviations, with an intercept"
    needs_learner = (Imputing,)

    def bounds(self, view: View) -> Array:
        """With |root'x + lift|^2 = |root'x|^2 + 2 x'(root lift) + |lift|^2."""
        belief: Any = view.belief  # `Raised`
        mean, variance = moments(view)
        xp = mean.__array_namespace__()
        shared = view.design.scores(matvec(belief.root, belief.lift))
        whole = variance + 2 * shared + xp.vecdot(belief.lift, belief.lift)[..., None]
        return view.among(mean + self.alpha * xp.sqrt(xp.maximum(whole, 0.0)))


GRID = (0.01, 0.03, 0.1, 0.2, 0.5, 1.0)

RIVALS = [
    Rival(
        Agent(
            "clbbf",
            Imputed(),
            Imputing(),
            Lifting(),
            binary=Imputing(zero_one=True),
            summary="imputes what was lost, past rounds anew, and is optimistic",
            reference=PAPER,
        ),
        told="the number of rounds",
        sees="noisy contexts, and what of them was lost",
        regret="regret",
        home="rival-clbbf",
        tuned="alpha",
        grid=GRID,
        sure="high",
    ),
    Rival(
        Agent(
            "clbbf-oful",
            Imputed(zero=True),
            Imputing(rebuild=False),
            Lifting(),
            binary=Imputing(rebuild=False, zero_one=True),
            summary="the baseline of CLBBF: what was lost is zero",
            reference=f"{PAPER}, OFUL",
        ),
        told="the number of rounds",
        sees="noisy contexts, with zeros where they were lost",
        regret="regret",
        home="rival-clbbf",
        tuned="alpha",
        grid=GRID,
        sure="high",
    ),
]
