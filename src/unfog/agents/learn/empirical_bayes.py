"""The learner that is told nothing of rewards: where they lie, how far they spread, how large effects are."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unfog.agents.base import Estimates, EstimatesScales, Evidence, Grows, Learner, ReplacesTerms, Term
from unfog.channel.knowledge import Knowledge
from unfog.maths import gaussian
from unfog.maths.arrays import Array, Bools, matvec
from unfog.maths.gaussian import Belief, Blocks, Gaussian
from unfog.maths.linalg import inverse_root
from unfog.maths.trees import where

SIGNAL, NOISE = 0.3, 0.7  # parts of the rewards' variance: first guesses
WORTH = 2.0  # observations for which a guess counts
STEPS = 10  # of EM, each time
FEWEST = 4  # rewards for the first estimate
EARLY, GROWTH = (8, 12, 16), 1.3


class Parameters(NamedTuple):
    """How theta is made up."""

    groups: Array  # (k, G)  one where an entry of a block belongs to a group that shares a spread
    location: Array  # ()  1 if each block begins with an intercept, to which the rewards' location belongs
    blocks: Array  # (B,)  zeros; as many as there are blocks
    joined: bool = False  # whether the belief is one vector and not blocks


class Scales(NamedTuple):
    """What the last estimate said."""

    location: Array  # (...,)   of rewards, less the first
    noise: Array  # (...,)   variance of a reward, arm and context known
    spread: Array  # (..., G)  prior variances, of standardised features
    centre: Array  # (..., k)  of features
    scale: Array  # (..., k)


class State(NamedTuple):
    """Weighted sums over rewarded rounds, with rewards less the first one; and what follows from them."""

    first: Array  # (...,)  the first reward, or zero where rewards have no location; zero before
    rewards: Array  # (...,)  how many
    weight: Array  # (...,)  sum of the weights
    total: Array  # (...,)  of rewards
    square: Array  # (...,)  of squared rewards
    cross: Array  # (..., B, k, k)  of x x'
    moment: Array  # (..., B, k)  of x r
    scales: Scales
    is_set: Array  # (...,)  1 once scales were estimated
    mean: Array  # (..., B, k)
    root: Array  # (..., B, k, k)


def is_due(number: int) -> bool:
    """Whether the scales are estimated before the decision of this number, from 0."""
    if number <= EARLY[-1]:
        return number in EARLY
    last = EARLY[-1]
    while last < number:
        last = int(last * GROWTH) + 1
    return last == number


@dataclass(frozen=True, kw_only=True)
class EmpiricalBayes(Grows, Learner, ReplacesTerms, EstimatesScales):
    """A Gaussian learner that is told nothing of rewards: it learns the scales of its own prior.

    Rewards r = m + x'theta + N(0, w) have a location m, a noise variance s^2, w = s^2 + theta'Cov(phi)theta,
    and effects theta ~ N(0, diag(tau)), in standardised features. m is the mean of rewards; each group of
    entries of theta (intercepts; slopes on a coordinate) has one tau. At growing numbers of decisions these
    are estimated anew by expectation and maximisation, from weighted sums over rounds:

        tau_j = (sum over j of E[theta^2] + 2 guess_j) / (entries of j + 2)
        s^2 = (E[sum of weighted squared residuals] + 2 guess) / (rewards + 2)
        j: a group;   guess_j, guess: first guesses;   E: the mean under the belief with the scales so far

    The first guesses are parts of the rewards' variance v, worth two observations each: 0.3 v for intercepts,
    0.3 v / d for slopes on each of d coordinates, 0.7 v for the noise. Sums are kept about the first reward,
    and features are standardised when scales are estimated, which no sum has to know: moving or scaling
    rewards or coordinates changes nothing but units.

    A. P. Dempster, N. M. Laird and D. B. Rubin, *Maximum Likelihood from Incomplete Data via the EM
    Algorithm*; D. J. C. MacKay, *Bayesian Interpolation*, for scales of priors.

    It has no settings.

    >>> import unfog
    >>> agent = unfog.AGENTS["hedged"]
    >>> problem = unfog.GaussianProblem(dim=2, actions=3, features="per_arm", prior_cov=9.0)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=200, trials=20, seed=0)
    >>> result.agent.values.tolist()
    ['hedged', 'naive']
    """

    name = "empiricalbayes"
    note = "learns where rewards lie, how far they spread, and how large effects are"
    rewards = "gaussian"
    cost = 3.0
    squares = 3

    @property
    def interpreted(self) -> str:
        """Compiled programs do not know when scales are due."""
        return "the scales that its learner estimates now and then are computed by the NumPy engine alone"

    def setup(self, known: Knowledge) -> Parameters:
        """How theta is made up: blocks, if its prior has them, and groups."""
        xp, prior = known.prior_mean.__array_namespace__(), known.prior_cov
        is_joined = prior.ndim == 2
        size, blocks = prior.shape[-1], 1 if is_joined else prior.shape[0]
        groups = known.groups or (0,) * size
        onehot = np.asarray(groups)[:, None] == np.arange(max(groups) + 1)
        dtype = known.prior_mean.dtype
        location = float(known.groups is not None)
        return Parameters(
            xp.asarray(onehot, dtype=dtype),
            xp.asarray(location, dtype=dtype),
            xp.zeros(blocks, dtype=dtype),
            is_joined,
        )

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """No rewards."""
        parameters = self.setup(known)
        xp, zero = parameters.location.__array_namespace__(), parameters.location * 0
        size, number = parameters.groups.shape
        block = xp.zeros((parameters.blocks.shape[0], size), dtype=zero.dtype)
        matrix = xp.zeros((*block.shape, size), dtype=zero.dtype)
        one = zero + 1
        scales = Scales(zero, one, xp.ones(number, dtype=zero.dtype), block[0], block[0] + 1)
        return State(zero, zero, zero, zero, zero, matrix, block, scales, zero, block, matrix)

    def belief(self, parameters: Parameters, state: State) -> Belief:
        """The posterior at the scales of the last estimate."""
        if parameters.joined:
            return Gaussian(state.mean[..., 0, :], state.root[..., 0, :, :])
        return Blocks(state.mean, state.root)

    def noise(self, parameters: Parameters, state: State, hidden: Array | float) -> Array:
        """The estimated variance, plus what the context hides."""
        return state.scales.noise + hidden

    def term(self, parameters: Parameters, evidence: Evidence) -> Term:
        """The row, and what the context hides."""
        return Term(evidence.row(), evidence.context_variance())

    def fit(self, parameters: Parameters, state: State, old: Term | None, new: Term, reward: Array) -> Term:
        """The term with its variance in units of the noise."""
        xp = state.is_set.__array_namespace__()
        ratio = 1 + xp.where(state.is_set > 0, new.variance / state.scales.noise, 0.0)
        return Term(new.row, ratio)

    def replace(
        self, parameters: Parameters, state: State, old: Term | None, new: Term, reward: Array
    ) -> State:
        """The sums with one round's term replaced, or with a new one, and the belief that follows."""
        xp = state.first.__array_namespace__()
        first = xp.where(state.rewards > 0, state.first, parameters.location * reward)
        value = reward - first
        changes = [(_weigh(parameters, new), 1.0)]
        if old is None:
            state = state._replace(first=first, rewards=state.rewards + xp.ones_like(value))
        else:
            changes.insert(0, (_weigh(parameters, old), -1.0))
        for (row, weight), sign in changes:
            signed = sign * weight
            state = state._replace(
                weight=state.weight + signed,
                total=state.total + signed * value,
                square=state.square + signed * value**2,
                cross=state.cross + signed[..., None, None, None] * (row[..., :, None] * row[..., None, :]),
                moment=state.moment + (signed * value)[..., None, None] * row,
            )
        return refresh(parameters, state)

    def update(self, parameters: Parameters, state: State, evidence: Evidence, reward: Array) -> State:
        """The state after a reward."""
        term = self.fit(parameters, state, None, self.term(parameters, evidence), reward)
        return self.replace(parameters, state, None, term, reward)

    def is_due(self, number: int) -> bool:
        """Before decisions 8, 12, 16, and at numbers that grow by three in ten after them."""
        return is_due(number)

    def is_ready(self, state: State, arms: int) -> Bools:
        """Once scales were estimated and two rewards an arm have come: eight at least, 64 suffice."""
        return (state.is_set > 0) & (self.wanted(state, arms) == 0)

    def wanted(self, state: State, arms: int) -> Array:
        """Rewards until there are two an arm: eight at least, 64 suffice."""
        xp = state.rewards.__array_namespace__()
        wanted: Array = xp.maximum(max(8, min(2 * arms, 64)) - state.rewards, 0.0)
        return wanted

    def estimates(self, parameters: Parameters, state: State) -> Estimates:
        """The scales of the last estimate; features as they are, by the weights of their rewards."""
        xp, scales = state.first.__array_namespace__(), state.scales
        count = xp.where(state.weight > 0, state.weight, 1.0)[..., None]
        total = state.cross.sum(-3)
        mean = parameters.location * total[..., 0, :] / count
        cov = total / count[..., None] - mean[..., :, None] * mean[..., None, :]
        return Estimates(state.first + scales.location, scales.noise, mean, cov, state.is_set)

    def grow(self, old: Knowledge, new: Knowledge, state: State) -> State:
        """The state with blocks for the new arms, of which nothing is known but the prior."""
        fresh = self.start(new, None)
        longer = state._replace(
            cross=gaussian.longer(state.cross, fresh.cross, -3),
            moment=gaussian.longer(state.moment, fresh.moment, -2),
            mean=gaussian.longer(state.mean, fresh.mean, -2),
            root=gaussian.longer(state.root, fresh.root, -3),
        )
        return refresh(self.setup(new), longer)

    def estimate_scales(self, parameters: Parameters, state: State) -> State:
        """The scales estimated anew, where there are rewards enough."""
        xp = state.first.__array_namespace__()
        scales = estimate(parameters, state)
        enough = state.rewards >= FEWEST
        merged = where(enough, scales, state.scales)
        return refresh(parameters, state._replace(scales=merged, is_set=xp.where(enough, 1.0, state.is_set)))


@dataclass(frozen=True, kw_only=True)
class LinearProbability(EmpiricalBayes):
    """A linear model of the probability that a reward is 1, which learns the scales of its prior.

    The learner `empiricalbayes` on rewards of 0 or 1, as if they were any numbers: econometrics' linear
    probability model. An arm with an intercept and slopes of its own is ranked by them as by logits, unless
    probabilities are near 0 or 1.

    W. H. Greene, *Econometric Analysis*, on models of binary choice.

    It has no settings.

    >>> import unfog
    >>> agent = unfog.AGENTS["hedged"].for_rewards("bernoulli")
    >>> agent.learner
    LinearProbability()
    """

    name = "linearprobability"
    note = "takes rewards of 0 or 1 for numbers, and learns their scales"
    rewards = "bernoulli"
    is_linear = True


def _weigh(parameters: Parameters, term: Term) -> tuple[Array, Array]:
    """The row of a term in blocks (..., B, k), and its weight (...,)."""
    row = term.row.reshape(*term.row.shape[:-1], parameters.blocks.shape[0], parameters.groups.shape[0])
    return row, 1 / term.variance


def _standard(scales: Scales) -> Array:
    """T, (..., 1, k, k), with T x the standardised features; x begins with 1 where features have centres."""
    xp, scale = scales.scale.__array_namespace__(), scales.scale
    size = scale.shape[-1]
    matrix = (1 / scale)[..., :, None] * xp.eye(size, dtype=scale.dtype)
    first = xp.asarray(np.arange(size) == 0, dtype=scale.dtype)
    moved: Array = matrix - (scales.centre / scale)[..., :, None] * first
    return moved[..., None, :, :]


def _sums(parameters: Parameters, state: State, scales: Scales) -> tuple[Array, Array]:
    """Sums of x x' and of x (r - location), in standardised features."""
    matrix = _standard(scales)
    cross = matrix @ state.cross @ matrix.mT
    moment = state.moment - (parameters.location * scales.location)[..., None, None] * state.cross[..., 0]
    return cross, matvec(matrix, moment)


def _posterior(
    parameters: Parameters, cross: Array, moment: Array, noise: Array, spread: Array
) -> tuple[Array, Array]:
    """Mean (..., B, k) and root (..., B, k, k) of theta, in standardised features."""
    xp = cross.__array_namespace__()
    prior = matvec(parameters.groups, 1 / spread)[..., None, :]
    eye = xp.eye(cross.shape[-1], dtype=cross.dtype)
    root = inverse_root(cross / noise[..., None, None, None] + prior[..., None] * eye)
    return matvec(root, matvec(root.mT, moment / noise[..., None, None])), root


def refresh(parameters: Parameters, state: State) -> State:
    """The belief that follows from the sums, in features as they are; zero before the first estimate."""
    xp, scales = state.first.__array_namespace__(), state.scales
    mean, root = _posterior(parameters, *_sums(parameters, state, scales), scales.noise, scales.spread)
    back = _standard(scales).mT
    start = state.first + scales.location
    first = xp.asarray(np.arange(mean.shape[-1]) == 0, dtype=mean.dtype)
    mean = matvec(back, mean) + (parameters.location * start)[..., None, None] * first
    is_set = state.is_set[..., None, None]
    return state._replace(mean=is_set * mean, root=is_set[..., None] * (back @ root))


def _guess(parameters: Parameters, variance: Array, cross: Array, count: Array) -> Array:
    """The first guesses of the spreads, (..., G): shared among coordinates; one where theta has one group."""
    xp = cross.__array_namespace__()
    number = parameters.groups.shape[-1]
    if number == 1:
        size = xp.linalg.diagonal(cross).sum((-2, -1)) / count
        return (SIGNAL * variance / xp.where(size > 0, size, 1.0))[..., None]
    shares = np.concatenate([[1.0], np.full(number - 1, 1.0 / (number - 1))])
    return SIGNAL * variance[..., None] * xp.asarray(shares, dtype=cross.dtype)


def estimate(parameters: Parameters, state: State) -> Scales:
    """The scales, by EM from those of the last estimate."""
    xp = state.first.__array_namespace__()
    count = xp.where(state.weight > 0, state.weight, 1.0)
    location = parameters.location * state.total / count
    squares = state.square - count * location**2
    least = xp.finfo(count.dtype).tiny ** 0.5  # of rewards that are all the same: one over it is finite
    variance = xp.maximum(squares / count, least)
    centre, scale = _moments(parameters, state, count)
    scales = Scales(location, state.scales.noise, state.scales.spread, centre, scale)
    cross, moment = _sums(parameters, state, scales)
    guess, noise_guess = _guess(parameters, variance, cross, count), NOISE * variance
    is_set = state.is_set > 0
    spread = where(is_set, scales.spread, guess)
    noise = xp.where(is_set, scales.noise, noise_guess)
    entries = parameters.groups.sum(0) * parameters.blocks.shape[0]
    for _ in range(STEPS):
        mean, root = _posterior(parameters, cross, moment, noise, spread)
        second = (mean**2 + (root**2).sum(-1)).sum(-2)
        spread = (matvec(parameters.groups.mT, second) + WORTH * guess) / (entries + WORTH)
        fitted = (matvec(cross, mean) * mean).sum((-2, -1)) - 2 * (mean * moment).sum((-2, -1))
        unsure = ((cross @ root) * root).sum((-3, -2, -1))
        rest = xp.maximum(squares + fitted + unsure, 0.0)
        noise = (rest + WORTH * noise_guess) / (state.rewards + WORTH)
    return Scales(location, noise, spread, centre, scale)


def _moments(parameters: Parameters, state: State, count: Array) -> tuple[Array, Array]:
    """Centre and scale of the features, (..., k): 0 and 1 for an intercept, and where features have none."""
    xp = state.cross.__array_namespace__()
    total = state.cross.sum(-3)
    is_slope = parameters.location * xp.asarray(np.arange(total.shape[-1]) > 0, dtype=total.dtype)
    centre = is_slope * total[..., 0, :] / count[..., None]
    variance = xp.linalg.diagonal(total) / count[..., None] - centre**2
    scale = xp.where((is_slope > 0) & (variance > 0), xp.sqrt(xp.maximum(variance, 0.0)), 1.0)
    return centre, scale
