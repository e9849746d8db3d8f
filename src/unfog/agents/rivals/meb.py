"""MEB, a rival for contexts with measurement errors, and what its paper compares it with.

`meb-naive` is theirs too. `meb-ts` and `meb-optimist` know of no error: they learn by `Posterior`, and choose
by rivals/clipped.py.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unfog import validation
from unfog.agents.assemble import Agent
from unfog.agents.denoise import Identity
from unfog.agents.evidence import Evidence
from unfog.agents.parts import Learner
from unfog.agents.rivals.clipped import ClippedOptimism, ClippedThompson
from unfog.agents.rivals.either import EitherKind
from unfog.agents.rivals.ridge import Ridge, Sizes
from unfog.agents.rivals.ridge import State as Ellipsoid
from unfog.agents.rivals.rival import Rival
from unfog.channel.knowledge import Knowledge
from unfog.features import Context, FeatureMap
from unfog.features.per_arm import PerArm
from unfog.features.quadrature import Quadrature
from unfog.maths.arrays import Array, Ints, matvec, settled
from unfog.maths.gaussian import Belief, Blocks, whole
from unfog.validation import InputError

PAPER = "Guo, Xu and Murphy, Online Learning in Bandits with Predicted Context"


class State(NamedTuple):
    """What rounds add up to."""

    ball: Belief  # N(V^-1 b, V^-1)
    errors: Array  # (..., m, m)  W, or (..., K, k, k) in blocks
    seen: Array  # (...,)  rewards


@dataclass(frozen=True, kw_only=True)
class Meb(EitherKind):
    """MEB, a bandit with measurement errors: least squares that subtract the errors' covariance.

    An error in the regressors shrinks ordinary least squares: sum x~x~' has sum Sigma_e too much. The
    classical remedy is to subtract it, which is right where rounds do not hang on the errors; a policy that
    looks at x~ makes them. Weights of rounds take that back, as if a policy that looks at nothing had chosen,
    here an even one, pi_nd(a) = 1 / K:

        w_t = pi_nd(A_t) / pi_t(A_t)
        V_a = l I + sum 1{A_t = a} w_t x~x~',   b_a = sum 1{A_t = a} w_t x~ r_t,   W_a = sum pi_nd(a) Sigma_e
        theta_a = (V_a - W_a)^-1 b_a  after a burn-in,  V_a^-1 b_a  before

    Then the arm with the largest x~'theta_a + alpha |x~|_{V_a^-1}, alpha = 1, with probability 1 - p0
    (rivals/clipped.py). Y. Guo, Z. Xu and S. A. Murphy,
    *Online Learning in Bandits with Predicted Context*,
    and their code, which is the reference for l = 1, alpha = 1, p0 = 0.2 and a burn-in of 100 rounds; the run
    behind their table has one of 500. `meb-naive` is theirs too: no weights, and W_a = sum 1{A_t = a}
    Sigma_e. All that is sure, from the code; the text chooses greedily, as we remember it.

    **Other features.** They have contexts x and one theta for each arm: the maps `slopes` and `per_arm`. For
    any map that is a polynomial in c, here is what their sums become (this is ours). With chat = c + N(0,
    Sigma_e), the mean of a polynomial under N(chat, -Sigma_e), taken as a formula, is an unbiased estimate of
    its value at c, since N(0, -Sigma_e) undoes what N(0, Sigma_e) does to it. So x~ becomes the mean of
    phi(a, .) under that, which for c_i^2 is chat_i^2 - Sigma_ii, and Sigma_e becomes minus its covariance,
    which may hang on chat: G(a) Sigma_e G(a)' for linear maps, and 4 chat_i chat_j S_ij - 2 S_ij^2 between
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
    hears = "probability"
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
        ball, errors, late = state.ball, state.errors, state.seen > self.burn + 1
        if settled(~late):
            return ball
        xp = errors.__array_namespace__()
        # (V - W)^-1 b = t + R (I - R'W R)^-1 R'W t with V^-1 = R R' and t = V^-1 b.
        share, basis = xp.linalg.eigh(ball.root.mT @ errors @ ball.root)
        axes, most = ball.root @ basis, 1 - self.signal
        kept = most / xp.maximum(share, most)  # of what seems to be error
        half = matvec(axes.mT, matvec(errors, ball.mean)) * kept / (1 - kept * share)
        moved = matvec(axes, half)
        late = late.reshape(*late.shape, *[1] * (moved.ndim - late.ndim))
        return type(ball)(ball.mean + late * moved, ball.root)

    def update(self, parameters: Array, state: State, evidence: Evidence, reward: Array) -> State:
        """With one more round, as probable as the chooser says."""
        if evidence.context is None or evidence.told is None:
            raise ValueError("meb needs the noisy context, and the probability of the arm")
        features, arm, chat = evidence.features, evidence.arm, evidence.context.mean
        xp = chat.__array_namespace__()
        row = features.design(Context(chat, -parameters)).row(arm)
        variance = features.arms * evidence.told if self.weighted else xp.ones_like(evidence.told)  # 1 / w
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
    """The mean of that over all arms."""
    xp = chat.__array_namespace__()
    if isinstance(features, PerArm):
        each = -features.design(Context(chat, -cov)).cov / features.arms
        found = xp.broadcast_to(each, (features.arms, *each.shape))
        return found if blocks else whole(found)
    arms = xp.broadcast_to(xp.arange(features.arms), (*chat.shape[:-1], features.arms))
    there = xp.broadcast_to(chat[..., None, :], (*arms.shape, chat.shape[-1]))
    return -features.over_rounds().design(Context(there, -cov)).covariance(arms).mean(-3)


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

    def width(self, parameters: Sizes, state: Ellipsoid) -> Array:
        """R."""
        xp = state.volume.__array_namespace__()
        return xp.zeros_like(state.volume) + xp.asarray(parameters.noise, dtype=state.volume.dtype)


def _row(name: str, learner: Learner, binary: Learner, thompson: bool, summary: str, told: str) -> Rival:
    chooser = ClippedThompson() if thompson else ClippedOptimism()
    agent = Agent(name, Identity(), learner, chooser, summary=summary, reference=PAPER, binary=binary)
    return Rival(
        agent,
        told=told,
        sees="noisy contexts",
        regret="regret_plug_in",
        home="rival-meb",
        tuned="floor",
        grid=(0.005, 0.01, 0.02, 0.05, 0.1, 0.2),
    )


RIVALS = [
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
