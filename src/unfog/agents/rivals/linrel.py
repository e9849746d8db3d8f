"""LinRel, a rival that does least squares along directions which were seen often enough.

All rounds are learnt from: SupLinRel, which sorts them into stages, is to LinRel what SupLinUCB is to LinUCB
(rivals/suplinucb.py). The paper has no experiment.
"""

from dataclasses import dataclass
from math import log, sqrt
from typing import NamedTuple

import numpy as np

from unfog import validation
from unfog.agents.assemble import Agent
from unfog.agents.choose.largest import Largest
from unfog.agents.choose.ucb import moments
from unfog.agents.denoise import Identity
from unfog.agents.evidence import Evidence
from unfog.agents.parts import View
from unfog.agents.rivals.either import EitherKind
from unfog.agents.rivals.rival import Rival
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array, matvec
from unfog.maths.gaussian import Belief, Blocks, Gaussian

PAPER = "Auer, Using Confidence Bounds for Exploitation-Exploration Trade-offs"


class State(NamedTuple):
    """Sums over rounds; of each block, where the prior has blocks."""

    gram: Array  # (..., m, m)  sum x x', or (..., B, k, k)
    total: Array  # (..., m)  sum x r, or (..., B, k)


@dataclass(frozen=True, kw_only=True)
class Spectral(EitherKind):
    """Least squares along directions that were seen often enough.

    With ZZ' = sum x x' = U diag(l_1, ..., l_m) U', U_k the eigenvectors whose eigenvalues are at least 1 and
    U_v the others,

        |a|^2 = x'U_k diag(1 / l) U_k'x,    r'a = x'U_k diag(1 / l) U_k' sum x r,    |v| = |U_v'x|

    P. Auer, *Using Confidence Bounds for Exploitation-Exploration Trade-offs*. a are the weights by which
    past rewards r are added up, and v is what of x they do not reach. It takes the features of a noisy
    context for the features. The paper has rewards between 0 and 1 and features and a theta no longer than 1;
    others are taken as they are, in whatever units. Known well.

    The root of its belief is [U_k diag(1 / sqrt(l)), U_v], with zeros for the columns that are left out: the
    first half of its columns gives |a| and the second |v|.

    Settings
    --------
    `zero_one` where rewards are 0 or 1, which it takes for any numbers.
    """

    name = "spectral"
    note = "least squares along directions that were seen often enough"
    cost = 5.0
    own_belief = True  # its root is no covariance's

    def setup(self, known: Knowledge) -> Array:
        """The prior's covariance, which tells whether it has blocks."""
        return known.prior_cov

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """Nothing was seen."""
        shape = known.prior_cov.shape
        return State(np.zeros(shape), np.zeros(shape[:-1]))

    def belief(self, parameters: Array, state: State) -> Belief:
        """The mean of least squares, and both widths."""
        xp = state.gram.__array_namespace__()
        values, vectors = xp.linalg.eigh(state.gram)
        seen = values >= 1
        inverse = xp.where(seen, 1 / xp.where(seen, values, 1.0), 0.0)
        mean = matvec(vectors, inverse * matvec(vectors.mT, state.total))
        halves = [vectors * x[..., None, :] for x in (xp.sqrt(inverse), xp.where(seen, 0.0, 1.0))]
        form = Blocks if parameters.ndim == 3 else Gaussian
        return form(mean, xp.concat(halves, axis=-1))

    def update(self, parameters: Array, state: State, evidence: Evidence, reward: Array) -> State:
        """With one more row and its reward."""
        row = evidence.row()
        row = row.reshape(*row.shape[:-1], *parameters.shape[:-1])
        paid = reward.reshape(*reward.shape, *[1] * (parameters.ndim - 1))
        return State(state.gram + row[..., :, None] * row[..., None, :], state.total + row * paid)


@dataclass(frozen=True, kw_only=True)
class TwoWidths(Largest):
    """LinRel: a width along directions that were seen often enough, and another one for all others.

        argmax r'a + |a| sqrt(ln(2 T K / delta)) + |v|

    with r'a, |a| and |v| of `Spectral`. P. Auer, *Using Confidence Bounds for Exploitation-Exploration
    Trade-offs*. It must be told T, the `horizon`; delta = 0.05 is ours (medium).

    Settings
    --------
    `horizon` is T, `delta` a probability, and `scale` multiplies both widths.
    """

    horizon: int = 1000
    delta: float = 0.05
    scale: float = 1.0

    name = "two-widths"
    note = "the largest mean and two widths, of what was seen often and of the rest"
    needs_learner = (Spectral,)

    def __post_init__(self) -> None:
        """Check the settings."""
        validation.count("horizon", self.horizon)
        validation.share("delta", self.delta)
        validation.not_negative("scale", self.scale)

    def bounds(self, view: View) -> Array:
        """The upper bound of the score of every arm that may be chosen: (..., K)."""
        xp, (centre, root) = view.belief.root.__array_namespace__(), view.belief
        half, form = root.shape[-1] // 2, type(view.belief)
        mean, weights = moments(view._replace(belief=form(centre, root[..., :half])))
        _, rest = moments(view._replace(belief=form(centre, root[..., half:])))
        factor = sqrt(log(2 * self.horizon * mean.shape[-1] / self.delta))
        return view.among(mean + self.scale * (factor * xp.sqrt(weights) + xp.sqrt(rest)))


RIVALS = [
    Rival(
        Agent(
            "linrel",
            Identity(),
            Spectral(),
            TwoWidths(),
            binary=Spectral(zero_one=True),
            summary="least squares along directions that were seen often enough, and a width for all others",
            reference=PAPER,
        ),
        told="the horizon",
        sees="noisy contexts, taken for true ones",
        regret="regret_true_context",
        tuned="scale",
        grid=(0.03, 0.06, 0.125, 0.25, 0.5, 1.0),
    )
]
