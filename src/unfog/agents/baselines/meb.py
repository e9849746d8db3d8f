"""MEB, for contexts with measurement errors, and what its paper compares it with.

`meb-naive` is theirs too. `meb-ts` and `meb-optimist` know of no error: they learn by `Posterior` and by
`Ridge`. All of them choose so that probabilities are kept off zero and one, and every arm is taken now and
then (`ClippedOptimism`, `ClippedThompson`).
"""

from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from unfog import validation
from unfog.agents.agent import Agent
from unfog.agents.base import Chooser, Evidence, Learner, ReportsChoice, View
from unfog.agents.baselines.base import Baseline, EitherKind, Ridge, Sizes
from unfog.agents.baselines.base import State as RidgeState
from unfog.agents.choose.greedy import best
from unfog.agents.choose.thompson import Thompson
from unfog.agents.choose.ucb import moments
from unfog.agents.denoise import Identity
from unfog.channel.knowledge import Knowledge
from unfog.features import Context, FeatureMap
from unfog.features.per_arm import PerArm
from unfog.features.quadrature import Quadrature
from unfog.maths.arrays import Array, Ints, holds_everywhere, matvec, pick
from unfog.maths.gaussian import Belief, Blocks, as_matrix
from unfog.maths.random import uniforms
from unfog.validation import InputError

PAPER = "Guo, Xu and Murphy, Online Learning in Bandits with Predicted Context"


class State(NamedTuple):
    """Sums over rounds."""

    ball: Belief  # N(V^-1 b, V^-1)
    errors: Array  # (..., m, m)  W, or (..., K, k, k) in blocks
    seen: Array  # (...,)  rewards


@dataclass(frozen=True, kw_only=True)
class Meb(EitherKind):
    """MEB, a bandit with measurement errors: least squares that subtract the errors' covariance.

    An error in the regressors shrinks ordinary least squares: sum x~x~' has sum Sigma_e too much. The
    classical remedy is to subtract it, which is right where rounds do not depend on the errors; a policy that
    looks at x~ makes them. Weights of rounds take that back, as if a policy that looks at nothing had chosen,
    here an even one, pi_nd(a) = 1 / K:

        w_t = pi_nd(A_t) / pi_t(A_t)
        V_a = l I + sum 1{A_t = a} w_t x~x~',   b_a = sum 1{A_t = a} w_t x~ r_t,   W_a = sum pi_nd(a) Sigma_e
        theta_a = (V_a - W_a)^-1 b_a  after a burn-in,  V_a^-1 b_a  before

    Then the arm with the largest x~'theta_a + alpha |x~|_{V_a^-1}, alpha = 1, with probability 1 - p0
    (`ClippedOptimism`). Y. Guo, Z. Xu and S. A. Murphy,
    *Online Learning in Bandits with Predicted Context*,
    and their code, which is the reference for l = 1, alpha = 1, p0 = 0.2 and a burn-in of 100 rounds; the run
    behind their table has one of 500. `meb-naive` is theirs too: no weights, and W_a = sum 1{A_t = a}
    Sigma_e. All that is sure, from the code; the text chooses greedily, as we remember it.

    **Other features.** They have contexts x and one theta for each arm: the maps `slopes` and `per_arm`. For
    any map that is a polynomial in c, here is what their sums become (this is ours). With chat = c + N(0,
    Sigma_e), the mean of a polynomial under N(chat, -Sigma_e), taken as a formula, is an unbiased estimate of
    its value at c, since N(0, -Sigma_e) undoes what N(0, Sigma_e) does to it. So x~ becomes the mean of
    phi(a, .) under that, which for c_i^2 is chat_i^2 - Sigma_ii, and Sigma_e becomes minus its covariance,
    which may depend on chat: G(a) Sigma_e G(a)' for linear maps, and 4 chat_i chat_j S_ij - 2 S_ij^2 between
    two squares. Both sums are unbiased then, as theirs are. Scores are those of phi(a, chat), as theirs.
    Weights to an even policy over many arms that share one theta are our extension, too: with w_t = 1 / (K
    pi_t(A_t)) the rounds of an arm that was chosen for its bound hardly count. On our problems with many arms
    `meb` loses to `meb-naive` and to `meb-optimist`.

    **A guard.** V - W may have no inverse; their code has none for that. Here no direction of V is taken
    for less signal than a share `signal` of it, 0.05: where more of it seems to be error, as in few rounds,
    so much is left. Where V - W is well above zero that changes nothing.

    It is told Sigma_e, takes errors to have mean zero, and so knows of no bias. It needs arms that may all be
    chosen in every round.

    Settings
    --------
    l, the burn-in, whether rounds are weighted, the guard; `zero_one` is that of Ridge.
    """

    ridge: float = 1.0
    burn: int = 100
    weighted: bool = True
    signal: float = 0.05

    name = "meb"
    note = "least squares less the covariance of errors"
    needs_report = "probability"
    squares = 2

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        validation.positive("ridge", self.ridge)
        validation.not_negative("burn", self.burn)
        validation.share("signal", self.signal)
        validation.flag("weighted", self.weighted)

    def check(self, known: Knowledge, features: FeatureMap) -> None:
        """A map whose moments are computed from points has none under a negative covariance."""
        super().check(known, features)
        if isinstance(features, Quadrature):
            raise InputError("features", "quadrature", "a map that is a polynomial in the context, by name")

    def setup(self, known: Knowledge) -> Array:
        """Sigma_e."""
        return known.noise_cov

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """Before the first reward."""
        ball = Ridge(ridge=self.ridge).start(known, rounds).ball
        return State(ball, np.zeros(known.prior_cov.shape), np.zeros(()))

    def belief(self, parameters: Array, state: State) -> Belief:
        """Around the corrected theta, as wide as V has it."""
        ball, errors, is_late = state.ball, state.errors, state.seen > self.burn + 1
        if holds_everywhere(~is_late):
            return ball
        xp = errors.__array_namespace__()
        # (V - W)^-1 b = t + R (I - R'W R)^-1 R'W t with V^-1 = R R' and t = V^-1 b.
        share, basis = xp.linalg.eigh(ball.root.mT @ errors @ ball.root)
        axes, limit = ball.root @ basis, 1 - self.signal
        factor = limit / xp.maximum(share, limit)  # the share of the apparent error that is subtracted
        projected = matvec(axes.mT, matvec(errors, ball.mean)) * factor / (1 - factor * share)
        shift = matvec(axes, projected)
        is_late = is_late.reshape(*is_late.shape, *[1] * (shift.ndim - is_late.ndim))
        return type(ball)(ball.mean + is_late * shift, ball.root)

    def update(self, parameters: Array, state: State, evidence: Evidence, reward: Array) -> State:
        """The state after one more round, weighted by the arm's probability."""
        if evidence.context is None or evidence.choice_report is None:
            raise ValueError("meb needs the noisy context, and the probability of the arm")
        features, arm, chat = evidence.features, evidence.arm, evidence.context.mean
        xp = chat.__array_namespace__()
        row = features.design(Context(chat, -parameters)).row(arm)
        variance = (
            features.arms * evidence.choice_report if self.weighted else xp.ones_like(evidence.choice_report)
        )  # 1 / w
        ball = state.ball.condition(row, reward, variance)
        blocks = isinstance(ball, Blocks)
        if self.weighted:
            error = error_of_all(features, chat, parameters, blocks)
        else:
            error = error_of(features, chat, parameters, arm, blocks)
        return State(ball, state.errors + error, state.seen + xp.ones((), dtype=chat.dtype))


def error_of(features: FeatureMap, chat: Array, cov: Array, arm: Ints, blocks: bool) -> Array:
    """An unbiased estimate of the error covariance of the arm's features, (..., m, m), or in blocks."""
    if isinstance(features, PerArm) and blocks:
        design = features.design(Context(chat, -cov))
        return -design.place(arm)[..., None, None] * design.cov
    return -features.design(Context(chat, -cov)).covariance(arm)


def error_of_all(features: FeatureMap, chat: Array, cov: Array, blocks: bool) -> Array:
    """The mean of `error_of` over all arms."""
    xp = chat.__array_namespace__()
    if isinstance(features, PerArm):
        error = -features.design(Context(chat, -cov)).cov / features.arms
        errors = xp.broadcast_to(error, (features.arms, *error.shape))
        return errors if blocks else as_matrix(errors)
    arms = xp.broadcast_to(xp.arange(features.arms), (*chat.shape[:-1], features.arms))
    contexts = xp.broadcast_to(chat[..., None, :], (*arms.shape, chat.shape[-1]))
    return -features.over_rounds().design(Context(contexts, -cov)).covariance(arms).mean(-3)


@dataclass(frozen=True, kw_only=True)
class Posterior(Ridge):
    """Ridge regression as wide as the noise of rewards, which knows of no error.

        V = l I + sum x x',    b = sum x r,    theta ~ N(V^-1 b, R^2 V^-1)

    Guo, Xu and Murphy compare `Meb` with it, with one theta for each arm.

    Settings
    --------
    Those of `Ridge`.
    """

    name = "ridge_posterior"

    def width(self, parameters: Sizes, state: RidgeState) -> Array:
        """R."""
        xp = state.volume.__array_namespace__()
        return xp.zeros_like(state.volume) + xp.asarray(parameters.noise, dtype=state.volume.dtype)


@dataclass(frozen=True, kw_only=True)
class ClippedOptimism(Chooser, ReportsChoice):
    """Optimism, clipped: an upper bound on every arm's score, and now and then another arm than the best.

        P(a) = 1 - p0 for the arm with the largest x'E[theta] + alpha sd(x'theta),   p0 / (K - 1) for others

    With two arms these are the policies of Guo, Xu and Murphy (`Meb`): probabilities in [p0, 1 - p0].
    For more arms their code would give p0 to each of the others, which cannot be where (K - 1) p0 > 1: here
    they share it evenly. In the first round all arms are as probable, as in their code of MEB; their plain
    optimist takes the first arm then.

    Settings
    --------
    `alpha` deviations are added to a score; `floor` is p0.
    """

    alpha: float = 1.0
    floor: float = 0.2

    name = "clipped_optimism"
    note = "the largest mean and so many deviations, now and then another arm"
    reports = "probability"
    propensity = "exact"

    def __post_init__(self) -> None:
        """Check the settings."""
        validation.not_negative("alpha", self.alpha)
        check_floor(self.floor)

    def normals(self, known: Knowledge) -> int:
        """Two, which make a uniform number."""
        return 2

    def choose(self, view: View, normals: Array) -> Ints:
        """The best arm, or another."""
        return self.choose_and_report(view, normals)[0]

    def choose_and_report(self, view: View, normals: Array) -> tuple[Ints, Array]:
        """The arm, and how probable it was."""
        xp, shares = normals.__array_namespace__(), self.shares(view)
        uniform, _ = uniforms(normals)
        shares = xp.broadcast_to(shares, (*normals.shape[:-1], shares.shape[-1]))
        arm = draw_arm(shares, uniform)
        return arm, pick(shares, arm)

    def probabilities(self, view: View, draws: Array) -> Array:
        """The probabilities themselves."""
        return self.shares(view)

    def shares(self, view: View) -> Array:
        """The probability of every arm: (..., K)."""
        mean, variance = moments(view)
        xp = mean.__array_namespace__()
        is_best = best(view.mask(mean + self.alpha * xp.sqrt(variance)))[..., None] == xp.arange(
            mean.shape[-1]
        )
        available = available_arms(view, mean)
        number = available.sum(-1)[..., None]
        other_share = self.floor * available / xp.maximum(number - 1, 1)
        shares: Array = xp.where(is_best, xp.where(number > 1, 1 - self.floor, 1.0), other_share)
        if view.round is None:
            return shares
        return xp.where((xp.asarray(view.round) == 0)[..., None], available / number, shares)


@dataclass(frozen=True, kw_only=True)
class ClippedThompson(Chooser):
    """Thompson sampling, clipped: the best arm of a draw, and now and then another.

    With two arms the first one is the better of a draw with probability

        Phi(z),    z = x'(E[theta_1] - E[theta_2]) / sd(x'(theta_1 - theta_2)),

    which is clipped to [p0, 1 - p0]: a standard normal is compared with z, clipped to the quantiles of p0 and
    1 - p0. With more arms the probabilities have no closed form, and an even share is mixed in instead, which
    gives them the same bounds: [p0 / (K - 1), 1 - p0]. It is what Guo, Xu and Murphy compare with
    (`Meb`).

    Settings
    --------
    `floor` is p0.
    """

    floor: float = 0.2

    name = "clipped_thompson"
    note = "the best arm of one draw of theta, now and then another"

    def __post_init__(self) -> None:
        """Check the setting."""
        check_floor(self.floor)

    def normals(self, known: Knowledge) -> int:
        """A draw of theta, and two for a mixture; with two arms the first of them is all."""
        return known.prior_mean.shape[-1] + 2

    def choose(self, view: View, normals: Array) -> Ints:
        """The arm that is better in a draw, unless that is too probable."""
        if view.design.scores(view.belief.centre).shape[-1] != 2 or view.arms is not None:
            return self._choose_mixed(view, normals)
        xp, lead = normals.__array_namespace__(), self.lead(view)
        limit = NormalDist().inv_cdf(1 - self.floor)
        second: Ints = (normals[..., 0] > xp.clip(lead, -limit, limit)).astype(xp.arange(2).dtype)
        return second

    def lead(self, view: View) -> Array:
        """How many deviations the first of two arms is ahead: (...,)."""
        first, xp = _first(view), view.belief.centre.__array_namespace__()
        gap = view.design.row(first) - view.design.row(first + 1)
        spread = xp.sqrt(view.belief.variance(gap))
        lead: Array = xp.vecdot(gap, view.belief.centre) / xp.maximum(spread, xp.finfo(spread.dtype).tiny)
        return lead

    def _choose_mixed(self, view: View, normals: Array) -> Ints:
        """Any arm with probability p0 n / (n - 1), where n of them may be chosen; else the best of a draw."""
        xp = normals.__array_namespace__()
        arm = Thompson().choose(view, normals[..., :-2])
        available = available_arms(view, view.design.scores(view.belief.centre))
        number = available.sum(-1)
        coin, uniform = uniforms(normals[..., -2:])
        random_arm = draw_arm(xp.broadcast_to(available, (*coin.shape, available.shape[-1])), uniform)
        share = self.floor * number / xp.maximum(number - 1, 1)
        chosen: Ints = xp.where(coin < share, random_arm, arm)
        return chosen


def _first(view: View) -> Ints:
    """The first arm, for every trial."""
    scores = view.design.scores(view.belief.centre)
    xp = scores.__array_namespace__()
    arm: Ints = xp.zeros(scores.shape[:-1], dtype=xp.arange(2).dtype)
    return arm


def available_arms(view: View, like: Array) -> Array:
    """One where an arm may be chosen, zero elsewhere: (..., K)."""
    xp = like.__array_namespace__()
    return xp.ones_like(like) if view.arms is None else xp.asarray(view.arms).astype(like.dtype)


def draw_arm(shares: Array, uniform: Array) -> Ints:
    """The arm that a uniform number draws with these shares (..., K): (...,)."""
    xp = shares.__array_namespace__()
    ends = xp.cumulative_sum(shares, axis=-1)
    arm: Ints = (ends > uniform[..., None] * ends[..., -1:]).argmax(-1)
    return arm


def check_floor(value: object) -> float:
    """A floor above zero, so that every arm can be chosen, and at most one half."""
    allowed = "a number above 0, at most 0.5"
    try:
        floor = validation.positive("floor", value)
    except InputError:
        raise InputError("floor", repr(value), allowed) from None
    if floor > 0.5:
        raise InputError("floor", repr(value), allowed)
    return floor


def _row(
    name: str, learner: Learner, binary_learner: Learner, thompson: bool, summary: str, knowledge: str
) -> Baseline:
    chooser = ClippedThompson() if thompson else ClippedOptimism()
    agent = Agent(
        name, Identity(), learner, chooser, summary=summary, reference=PAPER, binary_learner=binary_learner
    )
    return Baseline(
        agent,
        needs=knowledge,
        sees="noisy contexts",
        regret="regret_plug_in",
        home="baseline-meb",
        tuned="floor",
        grid=(0.005, 0.01, 0.02, 0.05, 0.1, 0.2),
    )


MEB = [
    _row(
        "meb",
        Meb(),
        Meb(zero_one=True),
        False,
        "subtracts the errors' covariance from weighted least squares",
        "the covariance of errors, which have mean zero",
    ),
    _row(
        "meb-naive",
        Meb(weighted=False),
        Meb(weighted=False, zero_one=True),
        False,
        "meb without weights",
        "the covariance of errors, which have mean zero",
    ),
    _row(
        "meb-ts",
        Posterior(),
        Posterior(zero_one=True),
        True,
        "Thompson sampling that knows of no error, with probabilities kept off 0 and 1",
        "the variance of rewards",
    ),
    _row(
        "meb-optimist",
        Ridge(),
        Ridge(zero_one=True),
        False,
        "optimism that knows of no error, with probabilities kept off 0 and 1",
        "nothing",
    ),
]
