"""Optimistic linear bandits: LinUCB, OFUL, LinRel and SupLinUCB.

**LinUCB**: ridge regression and a constant number of deviations.

    A = I + sum x x',    theta = A^-1 sum x r,    argmax x'theta + alpha sqrt(x'A^-1 x)

L. Li, W. Chu, J. Langford and R. E. Schapire, *A Contextual-Bandit Approach to Personalized News Article
Recommendation* (one theta for all arms; the map `per_arm` gives one for each). alpha = 1 +
sqrt(ln(2 / delta) / 2), which is 2.36 with delta = 0.05. It takes the features of a noisy context for the
features. Known well.

**OFUL** has a confidence ellipsoid in place of a constant.

**LinRel** does least squares along directions which were seen often enough. All rounds are learnt from:
SupLinRel, which sorts them into stages, is to LinRel what SupLinUCB is to LinUCB. The paper has no
experiment.

**SupLinUCB** learns in stages, each from rounds of its own. That the rounds of a stage are picked without
regard to their rewards makes these independent and the regret's bound provable; it explores far more than
LinUCB. The paper has no experiment.
"""

from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import Any, NamedTuple, cast

import numpy as np

from unfog import validation
from unfog.agents.agent import Agent
from unfog.agents.base import Chooser, Evidence, Learner, ReportsChoice, View
from unfog.agents.baselines.base import Baseline, EitherKind, Optimism, Ridge, Sizes, State
from unfog.agents.choose.greedy import Largest, best, for_all
from unfog.agents.choose.ucb import moments
from unfog.agents.denoise import Identity
from unfog.channel.knowledge import Knowledge
from unfog.maths import gaussian
from unfog.maths.arrays import Array, Ints, matvec
from unfog.maths.gaussian import Belief, Blocks, Gaussian

LINUCB_PAPER = (
    "Li, Chu, Langford and Schapire, A Contextual-Bandit Approach to Personalized News Article Recommendation"
)
ALPHA = 1 + sqrt(log(2 / 0.05) / 2)

LINUCB = [
    Baseline(
        Agent(
            "linucb",
            Identity(),
            Ridge(),
            Optimism(alpha=ALPHA),
            binary_learner=Ridge(zero_one=True),
            summary="ridge regression, and a constant number of deviations",
            reference=LINUCB_PAPER,
        ),
        needs="nothing",
        tuned="alpha",
        grid=(0.05, 0.1, 0.2, 0.5, 1.0, 2.0),
    )
]


OFUL_PAPER = "Abbasi-Yadkori, Pal and Szepesvari, Improved Algorithms for Linear Stochastic Bandits"


@dataclass(frozen=True, kw_only=True)
class Ellipsoid(Ridge):
    """OFUL: ridge regression, and the ellipsoid that holds theta in all rounds at once.

        V = l I + sum x x',    theta_hat = V^-1 sum x r,    argmax x'theta_hat + beta_t |x|_{V^-1}
        beta_t = R sqrt(2 ln(det(V)^(1/2) det(l I)^(-1/2) / delta)) + sqrt(l) S

    Y. Abbasi-Yadkori, D. Pal and C. Szepesvari, *Improved Algorithms for Linear Stochastic Bandits*. It must
    be told R, how noisy rewards are (their tails are no heavier than those of N(0, R^2)), and S, a bound of
    |theta|: here its size as the prior has it. It takes the features of a noisy context for the features. Its
    paper shows curves and no numbers. The formula is known well; l = 1 and delta = 0.05 are ours, as the
    paper leaves both open (their sureness is medium).

    Settings
    --------
    Those of `Ridge`, and `delta`, how probable it is that theta is ever outside.
    """

    delta: float = 0.05

    name = "ellipsoid"
    note = "ridge regression with the ellipsoid of OFUL"

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        validation.share("delta", self.delta)

    def width(self, parameters: Sizes, state: State) -> Array:
        """beta_t."""
        xp = state.volume.__array_namespace__()
        noise: Array = parameters.noise * xp.sqrt(state.volume - 2 * log(self.delta))
        return noise + sqrt(self.ridge) * parameters.norm


OFUL = [
    Baseline(
        Agent(
            "oful",
            Identity(),
            Ellipsoid(),
            Optimism(),
            binary_learner=Ellipsoid(zero_one=True),
            summary="ridge regression, and an ellipsoid that holds theta in all rounds at once",
            reference=OFUL_PAPER,
        ),
        needs="how noisy rewards are, how long theta is",
        tuned="alpha",
        grid=(0.03, 0.06, 0.125, 0.25, 0.5, 1.0),
    )
]


LINREL_PAPER = "Auer, Using Confidence Bounds for Exploitation-Exploration Trade-offs"


class LinRelState(NamedTuple):
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

    def start(self, known: Knowledge, rounds: int | None) -> LinRelState:
        """Nothing was seen."""
        shape = known.prior_cov.shape
        return LinRelState(np.zeros(shape), np.zeros(shape[:-1]))

    def belief(self, parameters: Array, state: LinRelState) -> Belief:
        """The mean of least squares, and both widths."""
        xp = state.gram.__array_namespace__()
        values, vectors = xp.linalg.eigh(state.gram)
        is_seen = values >= 1
        inverse = xp.where(is_seen, 1 / xp.where(is_seen, values, 1.0), 0.0)
        mean = matvec(vectors, inverse * matvec(vectors.mT, state.total))
        roots = [vectors * x[..., None, :] for x in (xp.sqrt(inverse), xp.where(is_seen, 0.0, 1.0))]
        form = Blocks if parameters.ndim == 3 else Gaussian
        return form(mean, xp.concat(roots, axis=-1))

    def update(self, parameters: Array, state: LinRelState, evidence: Evidence, reward: Array) -> LinRelState:
        """The state after one more row and its reward."""
        row = evidence.row()
        row = row.reshape(*row.shape[:-1], *parameters.shape[:-1])
        paid = reward.reshape(*reward.shape, *[1] * (parameters.ndim - 1))
        return LinRelState(state.gram + row[..., :, None] * row[..., None, :], state.total + row * paid)


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
        _, rest_variance = moments(view._replace(belief=form(centre, root[..., half:])))
        factor = sqrt(log(2 * self.horizon * mean.shape[-1] / self.delta))
        return view.mask(mean + self.scale * (factor * xp.sqrt(weights) + xp.sqrt(rest_variance)))


LINREL = [
    Baseline(
        Agent(
            "linrel",
            Identity(),
            Spectral(),
            TwoWidths(),
            binary_learner=Spectral(zero_one=True),
            summary="least squares along directions that were seen often enough, and a width for all others",
            reference=LINREL_PAPER,
        ),
        needs="the horizon",
        tuned="scale",
        grid=(0.03, 0.06, 0.125, 0.25, 0.5, 1.0),
    )
]


SUPLINUCB_PAPER = "Chu, Li, Reyzin and Schapire, Contextual Bandits with Linear Payoff Functions"
NO_STAGE = -1.0  # the stage of a round that no stage learns from


def stages(horizon: int) -> int:
    """S, one at least."""
    return max(1, ceil(log(horizon)))


class Staged(NamedTuple):
    """One ellipsoid a stage; and the belief from all rewards, for those who ask for one."""

    whole: Belief  # N(theta, A^-1) of all rounds, which decides nothing
    each: Belief  # N(theta_s, A_s^-1), with an axis of stages after those of trials

    @property
    def mean(self) -> Array:
        """The mean from all rounds."""
        return self.whole.mean

    @property
    def root(self) -> Array:
        """The root from all rounds."""
        return self.whole.root

    @property
    def centre(self) -> Array:
        """The mean from all rounds as one vector, (..., m)."""
        return self.whole.centre

    def sample(self, normals: Array) -> Array:
        """A draw of theta from standard normals (..., m), as all rounds have it."""
        return self.whole.sample(normals)

    def variance(self, row: Array, half: Array | None = None) -> Array:
        """The variance of row'theta as all rounds have it: (..., m) -> (...,)."""
        return self.whole.variance(row, half)

    def in_front(self, axes: int) -> Belief:
        """The ellipsoids with the axis of stages moved before the `axes` axes of trials."""
        xp, form = self.each.mean.__array_namespace__(), type(self.each)
        own = 1 if form is gaussian.Gaussian else 2  # axes of a mean; a root has one more
        mean = xp.moveaxis(self.each.mean, -1 - own, 0)
        root = xp.moveaxis(self.each.root, -2 - own, 0)
        missing = [1] * (axes + 1 + own - mean.ndim)
        return form(*(x.reshape(x.shape[0], *missing, *x.shape[1:]) for x in (mean, root)))


@dataclass(frozen=True, kw_only=True)
class StagedRidge(EitherKind):
    """Ridge regression in stages, each of which learns from rounds of its own.

        A_s = I + sum x x',    theta_s = A_s^-1 sum x r    over the rounds of stage s = 1, ..., ceil(ln T)

    W. Chu, L. Li, L. Reyzin and R. E. Schapire, *Contextual Bandits with Linear Payoff Functions*, after
    SupLinRel (P. Auer). Which stage learns from a round the chooser says (`Stages`). It must be told T, and
    takes the features of a noisy context for the features. Rewards are between 0 and 1 in the paper, and
    features and theta no longer than 1; others are taken as they are, in whatever units. Known well.

    Settings
    --------
    `horizon` is T; `zero_one` where rewards are 0 or 1, which it takes for any numbers.
    """

    horizon: int = 1000

    name = "staged-ridge"
    note = "ridge regression, in stages"
    needs_report = "stage"
    own_belief = True
    cost = 5.0

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        validation.count("horizon", self.horizon)

    @property
    def squares(self) -> int:
        """One a stage."""
        return stages(self.horizon)

    def setup(self, known: Knowledge) -> tuple[()]:
        """Nothing."""
        return ()

    def start(self, known: Knowledge, rounds: int | None) -> Staged:
        """Before the first reward: A_s = I; in blocks where the prior has blocks."""
        eye = np.broadcast_to(np.eye(known.prior_cov.shape[-1]), known.prior_cov.shape)
        ball = gaussian.belief_from_moments(np.zeros(known.prior_mean.shape), eye)
        number = stages(self.horizon)
        return Staged(ball, type(ball)(*(np.broadcast_to(x, (number, *x.shape)) for x in ball)))

    def belief(self, parameters: tuple[()], state: Staged) -> Belief:
        """The ellipsoids, which are the state itself."""
        return cast(Belief, state)

    def update(self, parameters: tuple[()], state: Staged, evidence: Evidence, reward: Array) -> Staged:
        """The state after one more row and its reward, for the stage that the chooser told."""
        if evidence.choice_report is None:
            raise ValueError("a learner in stages must be told the stage of a round")
        row = evidence.row()
        xp, number = row.__array_namespace__(), stages(self.horizon)
        one = xp.ones((), dtype=row.dtype)
        # A row of zeros says nothing: the other stages stay as they are.
        is_stage = (xp.arange(number) == evidence.choice_report[..., None]).astype(row.dtype)
        rows = is_stage[..., None] * row[..., None, :]
        joint = state.whole.condition(row, reward, one)
        return Staged(joint, state.each.condition(rows, reward[..., None], one))


@dataclass(frozen=True, kw_only=True)
class Stages(ReportsChoice, Chooser):
    """SupLinUCB: arms are sorted out stage by stage, until one is uncertain or all are known well.

    Stage s gives every arm a width w = alpha |x|_{A_s^-1} and a bound u = x'theta_s + w. A round begins with
    all arms at stage 1, and asks of the arms that are left:

        all w <= 1 / sqrt(T)    the arm with the largest u is chosen, and no stage learns from the round
        all w <= 2^-s           arms with u >= max u - 2^(1 - s) are left, for stage s + 1
        else                    an arm with w > 2^-s is chosen, and stage s learns from the round

    with alpha = sqrt(ln(2 T K / delta) / 2). W. Chu, L. Li, L. Reyzin and R. E. Schapire, *Contextual Bandits
    with Linear Payoff Functions*, after SupLinRel (P. Auer). It must be told T, the `horizon`. Known well.
    The paper lets any arm with w > 2^-s be chosen: here it is the one with the largest w (medium). delta =
    0.05 is ours (medium).

    Settings
    --------
    `horizon` is T, `delta` a probability, and `scale` multiplies alpha.
    """

    horizon: int = 1000
    delta: float = 0.05
    scale: float = 1.0

    name = "stages"
    note = "arms that are left stage by stage, until one is too uncertain or all are certain"
    reports = "stage"
    propensity = "exact"
    needs_learner = (StagedRidge,)

    def __post_init__(self) -> None:
        """Check the settings."""
        validation.count("horizon", self.horizon)
        validation.share("delta", self.delta)
        validation.not_negative("scale", self.scale)

    def misses(self, learner: Learner) -> str:
        """Stages in which the learner learns: as many, so the same horizon."""
        if isinstance(learner, StagedRidge) and learner.horizon != self.horizon:
            return f"a learner with the same horizon, {self.horizon}, and not {learner.horizon}"
        return super().misses(learner)

    def normals(self, known: Knowledge) -> int:
        """No random numbers."""
        return 0

    def choose(self, view: View, normals: Array) -> Ints:
        """The arm of the stage at which the round ends."""
        return self.choose_and_report(view, normals)[0]

    def choose_and_report(self, view: View, normals: Array) -> tuple[Ints, Array]:
        """The arm, and its stage, counted from 0, or -1 where none learns from the round."""
        xp = normals.__array_namespace__()
        arm, stage = self._end_of_round(view)
        return for_all(arm, normals), stage + xp.zeros(normals.shape[:-1], dtype=stage.dtype)

    def probabilities(self, view: View, draws: Array) -> Array:
        """One for the arm that is chosen, and zero for the others."""
        xp = draws.__array_namespace__()
        arms = xp.arange(view.design.scores(view.belief.centre).shape[-1])
        probabilities: Array = (arms == self._end_of_round(view)[0][..., None]).astype(draws.dtype)
        return probabilities

    def bounds(self, view: View) -> tuple[Array, Array]:
        """Upper bounds and widths of every arm at every stage: (S, ..., K) each."""
        staged = cast(Any, view.belief).in_front(view.context.mean.ndim - 1)
        mean, variance = view.design.scores(staged.centre), view.design.variances(staged)
        xp = mean.__array_namespace__()
        alpha = sqrt(log(2 * self.horizon * mean.shape[-1] / self.delta) / 2)
        width = self.scale * alpha * xp.sqrt(variance)
        return mean + width, width

    def _end_of_round(self, view: View) -> tuple[Ints, Array]:
        """The arm and the stage (...,) at which the round ends."""
        upper, width = self.bounds(view)
        xp = upper.__array_namespace__()
        remaining = xp.ones(upper.shape[1:], dtype=bool) if view.arms is None else view.arms > 0
        arm = best(xp.where(remaining, upper[0], -xp.inf))
        stage = xp.full(upper.shape[1:-1], NO_STAGE, dtype=upper.dtype)
        is_open = xp.ones(upper.shape[1:-1], dtype=bool)
        for s in range(upper.shape[0]):
            u, w = (xp.where(remaining, x[s], -xp.inf) for x in (upper, width))
            widest, bound = w.max(-1), 2.0 ** -(s + 1)
            is_certain = widest <= self.horizon**-0.5
            is_wide = ~is_certain & (widest > bound)
            arm = xp.where(is_open & (is_certain | is_wide), xp.where(is_certain, best(u), best(w)), arm)
            stage = xp.where(is_open & is_wide, float(s), stage)
            is_open = is_open & ~is_certain & ~is_wide
            remaining = remaining & (u >= u.max(-1)[..., None] - 2 * bound)
        return arm, stage


SUPLINUCB = [
    Baseline(
        Agent(
            "suplinucb",
            Identity(),
            StagedRidge(),
            Stages(),
            binary_learner=StagedRidge(zero_one=True),
            summary="LinUCB in stages, each of which learns from rounds of its own",
            reference=SUPLINUCB_PAPER,
        ),
        needs="the horizon",
        tuned="scale",
        grid=(0.01, 0.03, 0.1, 0.25, 0.5, 1.0),
    )
]
