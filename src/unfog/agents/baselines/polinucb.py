"""poLinUCB: a part of the context is seen only after the arm is chosen, and optimism reaches to it too.

The denoiser (`Regressed`) learns from pairs what follows a reading, the learner (`Served`) has the paper's
ellipsoid for theta, and the chooser (`JointOptimism`) is optimistic about theta and the context at once.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.agents.agent import Agent
from unfog.agents.base import BoundsMean, Denoiser, Evidence, Privilege, State, View
from unfog.agents.baselines.base import Baseline, Ridge, Sizes, sizes
from unfog.agents.choose.greedy import Largest
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.features.base import Sloped
from unfog.maths.arrays import Array, Ints, matvec
from unfog.maths.gaussian import Belief, Gaussian
from unfog.validation import InputError

PAPER = (
    "Wang, Ye, Feng, Badanidiyuru and Xu, Follow-ups Also Matter: Improving Contextual Bandits via "
    "Post-serving Contexts"
)
MOST_STEPS = 100
MOST_POWERS = 9


class RegressionState(NamedTuple):
    """A regression of several numbers on the same ones."""

    seen: Array  # (...,)  pairs
    root: Array  # (..., p, p)  of X^-1
    weights: Array  # (..., p, q)  Phi
    scatter: Array  # (..., q, q)  l I and products of residuals


@dataclass(frozen=True, kw_only=True)
class Regressed(Denoiser, BoundsMean):
    """Learn what follows a reading from pairs: ridge regression of true contexts on what was read before
    them.

        zhat(x) = Phi'f(x),   Phi = X^-1 sum f(x) z',   X = l I + sum f(x) f(x)',
        f(x) = [1, x, ..., x^powers]
        |zhat(x) - E[z | x]| <= e_t = C_0 |f(x)|_{X^-1} ln(t / delta)

    The empirical risk minimiser and the ball of *Follow-ups Also Matter* (`Served`), with the rate
    1/2 of linear functions. X^-1 is kept as a square root by the rank-one update of maths/gaussian.py. The
    covariance of z given x is the mean of products of residuals and of one l I; they add up by the exact
    recursion (z - zhat)(z - zhat)' / (1 + f'X^-1 f). Features that are not linear in z are expected under
    N(zhat, that), as section 6.3 of the paper would have it. Nothing is told.

    Of a context the first `before` coordinates may be x itself, read as they are; the others are z then. With
    `before` zero the whole reading is x, and the whole context z.

    Settings
    --------
    `before` and `powers` as above, `ridge` is l, `constant` C_0; `delta` the ball's chance.

    The ball holds what it should with probability 1 - delta.
    """

    before: int = 0
    powers: int = 1
    ridge: float = 1.0
    constant: float = 1.0
    delta: float = 0.05

    name = "regressed"
    note = "learns from pairs what true contexts follow a reading, and how far off that may be"
    squares = 4

    def __post_init__(self) -> None:
        """Check the settings."""
        validation.count("before", self.before, 0)
        validation.count("powers", self.powers, 1, MOST_POWERS)
        validation.positive("ridge", self.ridge)
        validation.not_negative("constant", self.constant)
        validation.share("delta", self.delta)

    @property
    def sees_context(self) -> bool:
        """Always: it learns from pairs."""
        return True

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Array:
        """Nothing is told: a zero for each coordinate says how many there are."""
        xp, dim = known.context_mean.__array_namespace__(), known.context_mean.shape[0]
        if self.before >= dim:
            raise InputError("before", self.before, f"less than {dim}, the dimension of contexts")
        return xp.zeros_like(known.context_mean)

    def start(self, parameters: Array) -> RegressionState:
        """No pair yet."""
        dim = parameters.shape[0]
        p, q = 1 + self.powers * (self.before or dim), dim - self.before
        return RegressionState(
            np.zeros(()), np.eye(p) / self.ridge**0.5, np.zeros((p, q)), self.ridge * np.eye(q)
        )

    def predict(self, parameters: Array, state: RegressionState, noisy: Array) -> Context:
        """N(zhat, C), and x as it was read."""
        xp = noisy.__array_namespace__()
        mean = matvec(state.weights.mT, self._basis(noisy))
        cov = state.scatter / (state.seen + 1)[..., None, None]
        if not self.before:
            return Context(mean, cov)
        zeros = xp.zeros((*cov.shape[:-1], self.before), dtype=cov.dtype)
        above = xp.zeros((*cov.shape[:-2], self.before, parameters.shape[0]), dtype=cov.dtype)
        full_cov = xp.concat([above, xp.concat([zeros, cov], axis=-1)], axis=-2)
        return Context(xp.concat([noisy[..., : self.before], mean], axis=-1), full_cov)

    def reach(self, parameters: Array, state: RegressionState, noisy: Array) -> Array:
        """e_t for every coordinate of z, and zero for those of x."""
        xp = noisy.__array_namespace__()
        half = matvec(state.root.mT, self._basis(noisy))
        length = xp.sqrt(xp.vecdot(half, half))
        radius = self.constant * length * xp.log((state.seen + 1) / self.delta)
        after = xp.arange(parameters.shape[0]) >= self.before
        return radius[..., None] * after.astype(noisy.dtype)

    def update(
        self, parameters: Array, state: RegressionState, noisy: Array, context: Any
    ) -> RegressionState:
        """The regression after one more pair."""
        xp, row = noisy.__array_namespace__(), self._basis(noisy)
        half = matvec(state.root.mT, row)
        total = 1 + xp.vecdot(half, half)
        gain = matvec(state.root, half)
        residual = context[..., self.before :] - matvec(state.weights.mT, row)
        step = gain[..., :, None] * (residual / total[..., None])[..., None, :]
        scaled = half / (total + xp.sqrt(total))[..., None]
        return RegressionState(
            state.seen + 1,
            state.root - gain[..., None] * scaled[..., None, :],
            state.weights + step,
            state.scatter + residual[..., :, None] * (residual / total[..., None])[..., None, :],
        )

    def _basis(self, noisy: Array) -> Array:
        """f(x), (..., p)."""
        xp = noisy.__array_namespace__()
        x = noisy[..., : self.before or noisy.shape[-1]]
        powers = [x**power for power in range(1, self.powers + 1)]
        basis: Array = xp.concat([xp.ones_like(x[..., :1]), *powers], axis=-1)
        return basis


class Counted(NamedTuple):
    """An ellipsoid without its width, or one for each arm."""

    ball: Belief  # N(w_hat, A^-1)
    seen: Array  # (...,), or (..., K) where arms have blocks: n
    longest: Array  # (...,)  L_u^2 so far


@dataclass(frozen=True, kw_only=True)
class Served(Ridge):
    """poLinUCB: contexts that are seen after the arm is chosen, and optimism about them too.

        r = u'w + noise,   u = (x, z),   z = phi(x) + noise seen after serving,   x before it
        A = l I + sum u u',   w_hat = A^-1 sum u r,   |w - w_hat|_A <= zeta
        zeta = sqrt(l) S + R sqrt(d_u ln((1 + n L_u^2 / l) / delta)),    |z - phi_hat(x)| <= e_t
        argmax_a max_{z, w} (x, z)'w

    C. Wang, Z. Ye, Z. Feng, A. Badanidiyuru and H. Xu, *Follow-ups Also Matter: Improving Contextual Bandits
    via Post-serving Contexts* (Algorithm 1, its equations 3 to 6). The formulas are known well. For each arm
    there is a w of its own, n its rounds (the map `per_arm`; sections 6.2 and 6.3 have one w for all and
    features of z, which are the other maps here). The paper has 2 for S, since it takes |theta_a| and
    |beta_a| to be at most 1: here S is how long theta is, as its prior has it. No bound L_u is told: the
    longest row so far stands for it. C_0 of e_t (`Regressed`) is "some universal constant", and delta
    is not said: 1 and 0.05 are ours (low). So is how the maximum is found (`JointOptimism`), and
    that `alpha` scales both radii: with those of the theorem, alpha = 1, it loses to LinUCB at its home, with
    a tenth of them the order of its paper's curves holds there. So the row has a tenth.

    Here x is the noisy context and z the true one, which it is shown after each reward. It learns theta from
    true features alone, since rewards depend on them: with x beside them it would learn more numbers than
    there are. Regret is against one who knows phi(x) = E[z | x]: the Bayesian oracle. Its features need
    slopes in the context, which maps by quadrature do not have. Rewards of 0 or 1 are taken for any numbers.

    Settings
    --------
    Besides those of a ridge regression: `delta`, the chance that an ellipsoid is wrong.
    """

    delta: float = 0.05

    name = "served"
    note = "ridge regression, its width by the number of rounds"
    needs = (BoundsMean,)
    needs_features = (Sloped,)

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        validation.share("delta", self.delta)

    def setup(self, known: Knowledge) -> Sizes:
        """R; S and d_u, those of one arm where the prior has blocks."""
        if known.prior_cov.ndim < 3:
            return sizes(known)
        mean = known.prior_mean.reshape(len(known.prior_cov), -1)
        spread = np.trace(known.prior_cov, axis1=-2, axis2=-1)
        return Sizes(sizes(known).noise, np.sqrt(np.vecdot(mean, mean) + spread), mean.shape[-1])

    def start(self, known: Knowledge, rounds: int | None) -> Counted:  # type: ignore[override]
        """Before the first reward."""
        ball = super().start(known, rounds).ball
        return Counted(ball, np.zeros(known.prior_cov.shape[:-2]), np.zeros(()))

    def width(self, parameters: Sizes, state: State) -> Array:
        """Zeta: (...,), or (..., K) where arms have blocks."""
        xp = state.seen.__array_namespace__()
        longest = state.longest[..., None] if _has_blocks(state) else state.longest
        volume = xp.log((1 + state.seen * longest / self.ridge) / self.delta)
        width: Array = self.ridge**0.5 * parameters.norm + parameters.noise * xp.sqrt(parameters.dim * volume)
        return width

    def update(self, parameters: Sizes, state: State, evidence: Evidence, reward: Array) -> Counted:  # type: ignore[override]
        """The state after one more row and its reward."""
        row = evidence.row()
        xp = row.__array_namespace__()
        one = xp.ones((), dtype=row.dtype)
        longest = xp.maximum(state.longest, xp.vecdot(row, row))
        arms = xp.arange(state.seen.shape[-1]) == evidence.arm[..., None] if _has_blocks(state) else one
        seen = state.seen + xp.asarray(arms, dtype=row.dtype)
        return Counted(state.ball.condition(row, reward, one), seen, longest)


def _has_blocks(state: State) -> bool:
    """Whether arms have blocks of their own."""
    return not isinstance(state.ball, Gaussian)


class Ball(NamedTuple):
    """Where the context of every arm may be; each arm is evaluated at a context of its own."""

    many: Any  # the map, for as many contexts as there are arms
    arm: Ints  # (..., K)
    mean: Array  # (..., 1, d)
    cov: Array  # (..., 1, d, d)  of a context given its mean
    reach: Array  # (..., 1, d)

    def rows(self, at: Array) -> Array:
        """The expected features of every arm at contexts (..., K, d): (..., K, m)."""
        rows: Array = self.many.design(Context(at, self.cov)).row(self.arm)
        return rows

    def slope(self, at: Array, theta: Array) -> Array:
        """The slope of every arm's score, each for a theta of its own (..., K, m): (..., K, d)."""
        slopes: Array = self.many.slope(at, theta, self.arm)
        return slopes


@dataclass(frozen=True, kw_only=True)
class JointOptimism(Largest):
    """Optimism about theta and about the context at once: poLinUCB's rule, and its search.

        argmax_a max_z max_w phi(a, z)'w    with z in an ellipsoid around zhat and w in one around theta_hat

    Given z the best w is theta_hat + S psi / |psi|_S with S the covariance of the belief, which has the width
    of the ellipsoid in it. Given w the best z lies where the score's slope points: exactly so for maps linear
    in z, to first order for others. The two are found in turns, `steps` of them. Each turn raises the score
    of a linear map. There may be two tops: the search goes once where the slope at zhat points and once the
    other way, and the higher end counts. A few turns suffice (tests compare with a search of the whole ball).
    The paper says what is to be maximised and not how: that it is in turns is ours.

    Settings
    --------
    `alpha` scales both ellipsoids, `steps` is how many turns the search takes.
    """

    alpha: float = 1.0
    steps: int = 3

    name = "joint_optimism"
    note = "the best arm of the best theta and the best context that may be"

    def __post_init__(self) -> None:
        """Check the settings."""
        validation.not_negative("alpha", self.alpha)
        validation.count("steps", self.steps, 0, MOST_STEPS)

    def bounds(self, view: View) -> Array:
        """The best score of every arm that may be chosen: (..., K)."""
        features, (mean, cov) = view.features, view.context
        if features is None or not isinstance(features, Sloped):
            raise ValueError("features: joint_optimism needs a map with slopes")
        xp = mean.__array_namespace__()
        reach = xp.zeros_like(mean) if view.reach is None else view.reach
        arm = xp.broadcast_to(xp.arange(features.arms), (*mean.shape[:-1], features.arms))
        ball = Ball(
            features.over_rounds(), arm, mean[..., None, :], cov[..., None, :, :], reach[..., None, :]
        )
        ends = [self._search(view.belief, ball, sign) for sign in (1.0, -1.0)]
        return view.mask(xp.maximum(*ends))

    def _search(self, belief: Belief, ball: Ball, sign: float) -> Array:
        """A top of every arm's score: (..., K)."""
        xp, theta = ball.mean.__array_namespace__(), belief.centre[..., None, :]
        at, radius = (
            xp.broadcast_to(ball.mean, (*ball.arm.shape, ball.mean.shape[-1])),
            self.alpha * ball.reach,
        )
        for step in range(self.steps):
            cov_row, deviation = toward(belief, ball.rows(at))
            best_theta = theta + self.alpha * cov_row / _positive(deviation)[..., None]
            direction = radius * ball.slope(at, best_theta)
            length = _positive(xp.sqrt(xp.vecdot(direction, direction)))[..., None]
            at = ball.mean + (sign if step == 0 else 1.0) * radius * direction / length
        rows = ball.rows(at)
        score: Array = (rows * theta).sum(-1) + self.alpha * toward(belief, rows)[1]
        return score


def _positive(x: Array) -> Array:
    """The number, or one where it is zero, to divide by: what is divided is zero, too."""
    xp = x.__array_namespace__()
    return xp.where(x > 0, x, xp.ones_like(x))


def toward(belief: Belief, rows: Array) -> tuple[Array, Array]:
    """Cov row (..., K, m) and the deviation of row'theta (..., K), for one row an arm: (..., K, m).

    A belief in blocks has one for each arm, outside of which the arm's row is zero.
    """
    xp = rows.__array_namespace__()
    if isinstance(belief, Gaussian):
        half = rows @ belief.root
        return half @ belief.root.mT, xp.sqrt(xp.vecdot(half, half))
    number, size = belief.root.shape[-3:-1]
    one_hot = xp.eye(number, dtype=rows.dtype)[..., None]
    arm_rows = (rows.reshape(*rows.shape[:-1], number, size) * one_hot).sum(-2)
    half = matvec(belief.root.mT, arm_rows)
    cov_row = one_hot * matvec(belief.root, half)[..., None, :]
    return cov_row.reshape(*cov_row.shape[:-2], -1), xp.sqrt(xp.vecdot(half, half))


POLINUCB = [
    Baseline(
        Agent(
            "polinucb",
            Regressed(),
            Served(),
            JointOptimism(alpha=0.1),
            binary_learner=Served(zero_one=True),
            summary="learns which true contexts follow noisy ones; optimism about them and about theta",
            reference=PAPER,
        ),
        needs="how noisy rewards are, and how long theta is",
        sees="noisy contexts, and true ones after the reward",
        regret="regret",
        home="baseline-polinucb",
        tuned="alpha",
        grid=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
        sure="medium",
    )
]
