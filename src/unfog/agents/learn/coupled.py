"""theta and the bias in one Gaussian."""

from dataclasses import dataclass
from typing import NamedTuple, cast

from unfog import validation
from unfog.agents.base import Evidence, Grows, Hindsight
from unfog.agents.learn.conjugate import reward_variance
from unfog.agents.learn.hindsight import FromNoisy
from unfog.channel.knowledge import Knowledge, known_shrinkage, posterior_mean
from unfog.features import Context, FeatureMap
from unfog.features.base import Liftable, Sloped
from unfog.maths import gaussian
from unfog.maths.arrays import Array, matvec
from unfog.maths.gaussian import Belief, Blocks
from unfog.maths.linalg import cholesky, inverse, product
from unfog.validation import InputError


class Parameters(NamedTuple):
    """What is told of rewards and of the channel."""

    reward_var: Array  # ()
    channel: Hindsight  # before the first noisy context


class State(NamedTuple):
    """theta given u, and what rewards say of u."""

    theta: Belief  # an axis in front of theta's: in the mean 1 + d for a and the columns of L, in the root 1
    precision: Array  # (..., d, d)  Q
    natural_mean: Array  # (..., d)  q


@dataclass(frozen=True, kw_only=True)
class Coupled(Grows, FromNoisy):
    """theta and the bias in one Gaussian: an extended Kalman filter, for the cost of a rank-one update.

    Were the bias zero, the context of a round would have the mean c0; the bias gamma shifts it by u = B
    gamma, and c ~ N(c0 - u, M^-1). About the means of the decision, theta = m and u = s, a reward is linear
    in both:

        r = x'theta - h'(u - s) + N(0, v),   x = psi(a),   u = B gamma,   B = Sigma_c (Sigma_c + Sigma_n)^-1
        v = sigma^2 + E[theta'Cov(phi)theta] - h'Cov(u)h
        m: the mean of theta;   s: the mean of u;   h: the slope of psi(a)'m in the context

    Cov(phi) with all that is not known of the context: v is the variance that theta and u do not explain to
    first order, the second order of their product included (A. H. Jazwinski, *Stochastic Processes and
    Filtering Theory*, on filters of both orders).

    The joint belief is kept as theta given u, N(a + L u, P), and as what rewards say of u, precision Q and
    natural mean q. A reward is then a rank-one update. With e = r - h's - x'a, k = L'x - h, w = v + x'P x:

        a <- a + P x e / w,   L <- L - P x k'/ w,   P <- P - P x x'P / w,   Q <- Q + k k'/ w,
        q <- q + k e / w.

    Noisy contexts say nothing of theta given u: what they say of the bias, N(g, S), the denoiser keeps, also
    from rounds that are never paid. Before a decision the two are put together,

        u ~ N(s, U),   U^-1 = (B S B')^-1 + Q,   s = U ((B S B')^-1 B g + q),
        theta ~ N(a + L s, P + L U L').

    So L is hindsight: what becomes known of the bias later moves theta as it would have moved the rows of the
    past. Given u a prior in blocks stays in blocks. A reward that is late is linearised where its decision
    was.

    A slope holds near the point it was taken at, and a bias that walks leaves that point: L u would lead
    theta astray without end. So after each reward a share `fade` of L is settled where the bias was believed
    to be,

        a <- a + fade L s,    L <- (1 - fade) L,

    which leaves the mean of theta as it is and lets go of a part of its variance. For the choice of an arm
    theta and the context are taken for independent: tr(J'Cov(theta, c)), by which the mean of their product
    differs (J the slope of phi), was tried in the scores and in the mean of the reward, and made no
    difference in regret.

    Settings
    --------
    The share of theta's hanging on the bias that is settled each round, `fade`.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Exact(), unfog.learn.Coupled(), unfog.choose.RandUcb()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [5.1, 8.0]
    """

    fade: float = 0.03

    name = "coupled"
    note = "one Gaussian over theta and the bias: rewards, too, say something of the bias"
    rewards = "gaussian"
    needs_features = (Sloped, Liftable)
    cost = 1.5
    squares = 2

    def __post_init__(self) -> None:
        """Check the setting."""
        if validation.not_negative("fade", self.fade) > 1:
            raise InputError("fade", repr(self.fade), "a share, from 0 to 1")

    def setup(self, known: Knowledge) -> Parameters:
        """The noise of rewards, and the channel."""
        xp = known.bias_cov.__array_namespace__()
        zeros = xp.zeros_like(known.context_mean)
        return Parameters(reward_variance(known), Hindsight(known_shrinkage(known), zeros, known.bias_cov))

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """The prior, in which theta does not depend on the bias."""
        prior = gaussian.belief_from_moments(known.prior_mean, known.prior_cov)
        xp, d = prior.root.__array_namespace__(), known.context_mean.shape[-1]
        mean = xp.concat([prior.mean[None], xp.zeros((d, *prior.mean.shape), dtype=prior.root.dtype)])
        zeros = xp.zeros((d, d), dtype=prior.root.dtype)
        return State(type(prior)(mean, prior.root[None]), zeros, zeros[0])

    def grow(self, old: Knowledge, new: Knowledge, state: State) -> State:
        """The state with the prior of the new arms, which does not depend on the bias."""
        return state._replace(theta=gaussian.extend_belief(state.theta, self.start(new, None).theta))

    def belief(self, parameters: Parameters, state: State) -> Belief:
        """The belief from rewards alone: the denoiser knows what noisy contexts say of the bias."""
        belief = theta_belief(state.theta, *shift_belief(state, parameters.channel))
        return type(belief)(belief.mean, gaussian.square(belief.root))

    def noise(self, parameters: Parameters, state: State, hidden: Array | float) -> Array:
        """The told variance, plus what the context hides."""
        return parameters.reward_var + hidden

    def look_back(
        self, parameters: Parameters, state: State, features: FeatureMap, hindsight: Hindsight, noisy: Array
    ) -> tuple[Belief, Context]:
        """The belief about theta, and about this round's context, from all measurements and rewards."""
        shift, root = shift_belief(state, hindsight)
        unbiased = posterior_mean(hindsight.shrinkage, noisy, parameters.channel.mean)
        context = Context(unbiased - shift, hindsight.shrinkage.cov + product(root, root.mT))
        return theta_belief(state.theta, shift, root), context

    def update(self, parameters: Parameters, state: State, evidence: Evidence, reward: Array) -> State:
        """The joint belief after one more reward, linearised about what was believed at its decision."""
        row, (context, shift) = evidence.row(), evidence.shift()
        xp, theta = row.__array_namespace__(), state.theta
        slope = cast(Sloped, evidence.features).slope(context.mean, evidence.belief.centre, evidence.arm)
        linear = xp.vecdot(slope, matvec(context.cov - parameters.channel.shrinkage.cov, slope))
        variance = parameters.reward_var + evidence.context_variance() - linear
        # The columns of L are conditioned as a is: on h, where a is on r - h's.
        values = xp.concat([(reward - xp.vecdot(slope, shift))[..., None], slope], axis=-1)
        residuals, rows = values - matvec(theta.centre, row), row[..., None, :]
        per_total = residuals / (variance + theta.variance(rows)[..., 0])[..., None]
        after = theta.condition(rows, values, variance[..., None])
        return State(
            self._settle(after, shift),
            state.precision + residuals[..., 1:, None] * per_total[..., None, 1:],
            state.natural_mean - residuals[..., 1:] * per_total[..., :1],
        )

    def _settle(self, theta: Belief, shift: Array) -> Belief:
        """The belief with a share of L fixed at this u, (..., d)."""
        xp, rows = shift.__array_namespace__(), theta.centre
        mean_row = rows[..., :1, :] + self.fade * (shift[..., None, :] @ rows[..., 1:, :])
        mean = xp.concat([mean_row, (1 - self.fade) * rows[..., 1:, :]], axis=-2)
        return type(theta)(mean.reshape(theta.mean.shape), theta.root)


def shift_belief(state: State, hindsight: Hindsight) -> tuple[Array, Array]:
    """Mean s (..., d) of u, and a root of its covariance U (..., d, d), from noisy contexts and rewards."""
    xp, gain = hindsight.mean.__array_namespace__(), hindsight.shrinkage.gain
    # By Woodbury's identity: G S G' is singular to rounding where a coordinate is hardly measured.
    precision = inverse(hindsight.cov) + product(product(gain.mT, state.precision), gain)
    root = product(gain, cholesky(inverse(precision)))
    shift = matvec(gain, hindsight.mean)
    mean = shift + matvec(root, matvec(root.mT, state.natural_mean - matvec(state.precision, shift)))
    return mean, xp.broadcast_to(root, (*mean.shape, mean.shape[-1]))


def theta_belief(theta: Belief, shift: Array, shift_root: Array) -> Belief:
    """The belief about theta, with u ~ N(s, U); blocks are kept apart."""
    xp, slopes = shift_root.__array_namespace__(), theta.centre[..., 1:, :].mT
    mean, spread = theta.centre[..., 0, :] + matvec(slopes, shift), slopes @ shift_root
    root = theta.root[..., 0, :, :]
    if isinstance(theta, Blocks):
        root = theta.root[..., 0, :, :, :]
        mean = mean.reshape(*mean.shape[:-1], *root.shape[-3:-1])
        spread = spread.reshape(*mean.shape, spread.shape[-1])
    root = xp.broadcast_to(root, (*mean.shape, root.shape[-1]))
    return type(theta)(mean, xp.concat([root, spread], axis=-1))
