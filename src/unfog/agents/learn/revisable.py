"""A Gaussian learner that can take back: theta in information form, a sum of one term for every round.

A round whose reward is row'theta + N(0, variance) adds row row' / variance to the precision and row reward /
variance to the natural mean b; the belief is N(precision^-1 b, precision^-1). When the context of a past
round comes to be known, its term is replaced by another (`replace`), in any order and any number of times.
The variance is that of the reward given what is known of the context (heteroscedastic),

    sigma^2 + E[theta' Cov(phi) theta]   under the belief at the time,

and is kept with the round, since the very number that went in must come out. A prior of independent blocks is
kept in blocks.

Digits: sums carry their rounding errors along (Knuth's two-sum), so a term is taken back to its last bit even
if it dwarfed all others: what is left is as exact as if it had never been there. Compiled programs may merge
a product with the sum it goes into and round the two differently; there a plain sum's error stays, 1e-16 of
the largest term ever taken back. What limits the belief is the precision itself: with its diagonal scaled to
one, its eigenvalues may not spread over more than about 1e15, or it cannot be factorised (NumPy says so, JAX
yields no numbers). A downdate of a square root would cost less a round than the factorisation here, O(m^3),
but it fails for good where rounding makes the matrix indefinite in between.
"""

from dataclasses import dataclass
from typing import NamedTuple

from unfog import inputs
from unfog.agents.evidence import Evidence
from unfog.agents.learn.conjugate import reward_variance
from unfog.agents.parts import Learner, TakesBack, Term
from unfog.maths.arrays import Array, matvec
from unfog.maths.blocks import Belief, Blocks
from unfog.maths.gaussian import Gaussian
from unfog.model.knowledge import Knowledge


class Parameters(NamedTuple):
    """What is known of rewards and theta to begin with."""

    reward_var: Array  # ()  sigma^2
    prior_cov: Array  # (m, m), or (B, k, k): independent blocks


class Sum(NamedTuple):
    """A sum whose rounding errors are not lost."""

    total: Array
    rest: Array

    def plus(self, x: Array) -> "Sum":
        """With one more term: `rest` takes what the rounding of `total` leaves out."""
        total = self.total + x
        part = total - self.total
        return Sum(total, self.rest + ((self.total - (total - part)) + (x - part)))

    @property
    def value(self) -> Array:
        """What the terms add up to."""
        return self.total + self.rest


class State(NamedTuple):
    """The belief about theta in information form."""

    precision: Sum  # (..., m, m), or (..., B, k, k)
    natural_mean: Sum  # (..., m), or (..., B, k)  precision times mean


@dataclass(frozen=True, kw_only=True)
class Revisable(Learner, TakesBack):
    """Its setting: `hetero` counts what is not known of the context as noise of the reward."""

    hetero: bool = True

    name = "revisable"
    note = "can take back what a past round said, when more of its context becomes known"
    rewards = "gaussian"
    cost = 4.0

    def __post_init__(self) -> None:
        """Check the setting."""
        inputs.flag("hetero", self.hetero)

    def setup(self, known: Knowledge) -> Parameters:
        """The variance of a reward given its features; the prior's covariance tells whether it has blocks."""
        return Parameters(reward_variance(known), known.prior_cov)

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """The prior."""
        xp = known.prior_cov.__array_namespace__()
        precision = xp.linalg.inv(known.prior_cov)
        natural_mean = matvec(precision, _cut(known.prior_cov, known.prior_mean))
        return State(*(Sum(x, xp.zeros_like(x)) for x in (precision, natural_mean)))

    def belief(self, parameters: Parameters, state: State) -> Belief:
        """The posterior: with precision = L L', a root of the covariance is the transpose of L^-1."""
        precision = state.precision.value
        xp = precision.__array_namespace__()
        root = xp.linalg.inv(xp.linalg.cholesky(precision)).mT
        mean = matvec(root, matvec(root.mT, state.natural_mean.value))
        return Gaussian(mean, root) if parameters.prior_cov.ndim == 2 else Blocks(mean, root)

    def noise(self, parameters: Parameters, state: State) -> Array:
        """As told."""
        return parameters.reward_var

    def term(self, parameters: Parameters, evidence: Evidence) -> Term:
        """The row, and sigma^2 + E[theta' Cov(phi) theta]."""
        if not self.hetero:
            return Term(evidence.row(), parameters.reward_var)
        return Term(evidence.row(), _variance(parameters, evidence.belief, evidence.covariance()))

    def update(self, parameters: Parameters, state: State, evidence: Evidence, reward: Array) -> State:
        """The belief after one more reward."""
        return self.replace(parameters, state, None, self.term(parameters, evidence), reward)

    def replace(
        self, parameters: Parameters, state: State, old: Term | None, new: Term, reward: Array
    ) -> State:
        """The belief with one round's term replaced by another, or with one more."""
        if old is not None:
            state = _add(parameters, state, old, reward, -1)
        return _add(parameters, state, new, reward, 1)


def _variance(parameters: Parameters, belief: Belief, spread: Array) -> Array:
    """sigma^2 + E[theta' Cov(phi) theta]: Cov(phi) (..., m, m)."""
    xp, axes = spread.__array_namespace__(), parameters.prior_cov.ndim
    mean = belief.mean.reshape(*belief.mean.shape[: belief.mean.ndim + 1 - axes], spread.shape[-1])
    own = _own_blocks(parameters.prior_cov, spread)
    uncertain = ((own @ belief.root) * belief.root).sum(tuple(range(-axes, 0)))
    found: Array = parameters.reward_var + xp.vecdot(mean, matvec(spread, mean)) + uncertain
    return found


def _add(parameters: Parameters, state: State, term: Term, reward: Array, sign: int) -> State:
    """The sums with a term more, or with one less."""
    xp = term.row.__array_namespace__()
    row, ones = _cut(parameters.prior_cov, term.row), (1,) * (parameters.prior_cov.ndim - 1)
    variance, reward = xp.asarray(term.variance), xp.asarray(reward)
    scale = sign * variance.reshape(*variance.shape, *ones)
    value = reward.reshape(*reward.shape, *ones)
    precision = row[..., :, None] * row[..., None, :] / scale[..., None]
    return State(state.precision.plus(precision), state.natural_mean.plus(row * value / scale))


def _cut(prior_cov: Array, flat: Array) -> Array:
    """A vector as the prior has it: (..., m) as it is, or in blocks (..., B, k)."""
    return flat.reshape(*flat.shape[:-1], *prior_cov.shape[:-1])


def _own_blocks(prior_cov: Array, spread: Array) -> Array:
    """The blocks on the diagonal, (..., B, k, k), where the prior has blocks: theta's others are zero."""
    if prior_cov.ndim == 2:
        return spread
    xp = spread.__array_namespace__()
    number, size, _ = prior_cov.shape
    grid = spread.reshape(*spread.shape[:-2], number, size, number, size)
    own: Array = (grid * xp.eye(number, dtype=spread.dtype)[:, None, :, None]).sum(-2)
    return own
