"""theta in information form: a sum of one term for every round, each of which can be replaced.

A round that says value = row'theta + N(0, variance) adds row row' / variance to the precision and row value /
variance to the natural mean b; the belief is N(precision^-1 b, precision^-1). A prior of independent blocks
is kept in blocks: a row lies within one of them.

Digits: sums carry their rounding errors along (Knuth's two-sum), so a term is taken back to its last bit even
if it dwarfed all others: what is left is as exact as if it had never been there. Compiled programs may merge
a product with the sum it goes into and round the two differently; there a plain sum's error stays, 1e-16 of
the largest term ever taken back.

The root of the covariance is kept beside the sums, since to factorise the precision in every round, O(m^3),
takes several times as long as all the rest. A term goes in by Potter's formula (maths/gaussian.py) and comes
out by the same with the other sign: with f = root' row and s = variance +- f'f,

    root <- root -+ (root f) f' / (s + sqrt(variance s)).

Taking a term out loses digits if it was most of what is known of its row, s << variance, and may fail for
good if rounding leaves s negative. So the new term goes in first, and if s is still less than `LEAST` of the
variance, the root is recomputed from the sums. What limits it then is the precision itself: with its
diagonal scaled to one, its eigenvalues may not spread over more than about 1e15, or it cannot be factorised
(NumPy says so, JAX yields no numbers).
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from unfog import validation
from unfog.agents.base import Evidence, Grows, Learner, ReplacesTerms, Term
from unfog.agents.learn.conjugate import reward_variance
from unfog.channel.knowledge import Knowledge
from unfog.maths import gaussian
from unfog.maths.arrays import Array, Bools, matvec
from unfog.maths.gaussian import Belief, Blocks, Gaussian
from unfog.maths.linalg import inverse_root
from unfog.maths.trees import if_any, update_where

LEAST = 0.5  # share of the variance that must remain: at most one binary digit is lost


class Sum(NamedTuple):
    """A sum whose rounding errors are not lost."""

    total: Array
    rest: Array

    def plus(self, x: Array) -> "Sum":
        """The sum with one more term: `rest` takes the rounding error of `total`."""
        total = self.total + x
        added = total - self.total
        return Sum(total, self.rest + ((self.total - (total - added)) + (x - added)))

    @property
    def value(self) -> Array:
        """The sum of the terms."""
        return self.total + self.rest


class State(NamedTuple):
    """The belief about theta in information form."""

    precision: Sum  # (..., m, m), or (..., B, k, k)
    natural_mean: Sum  # (..., m), or (..., B, k)  precision times mean
    root: Array  # as precision: root root' is its inverse


class Parameters(NamedTuple):
    """What is known of rewards and theta before the first round."""

    reward_var: Array  # ()  sigma^2
    prior_cov: Array  # (m, m), or (B, k, k): independent blocks


@dataclass(frozen=True, kw_only=True)
class Revisable(Grows, Learner, ReplacesTerms):
    """A Gaussian learner that can take back: theta in information form, a sum of one term for every round.

        theta ~ N(P^-1 b, P^-1),   P = prior_cov^-1 + sum x x' / w,
        b = prior_cov^-1 prior_mean + sum x r / w
        w = sigma^2 + E[theta'Cov(phi)theta], as it was believed to be at the time

    When the context of a past round comes to be known, its term is replaced by another (`replace`), in any
    order and any number of times. The variance w of a reward is that given what is known of the context
    (heteroscedastic), and is kept with the round, since the very number that went in must come out. A prior
    of independent blocks is kept in blocks. Of the digits of these sums see learn/revisable.py.

    Settings
    --------
    `hetero` counts what is not known of the context as noise of the reward.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Incomplete(pairs=True), unfog.learn.Revisable(), unfog.choose.Ucb()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5, revealed=0.3, reveal_delay=5)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [5.2, 8.0]
    """

    hetero: bool = True

    name = "revisable"
    note = "can take back what a past round said, when more of its context becomes known"
    rewards = "gaussian"
    cost = 1.5
    squares = 3

    def __post_init__(self) -> None:
        """Check the setting."""
        validation.flag("hetero", self.hetero)

    def setup(self, known: Knowledge) -> Parameters:
        """The variance of a reward given its features; the prior's covariance tells whether it has blocks."""
        return Parameters(reward_variance(known), known.prior_cov)

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """The prior."""
        return start(known)

    def grow(self, old: Knowledge, new: Knowledge, state: State) -> State:
        """The state with the prior of the new arms."""
        return extend_state(old.prior_cov, state, self.start(new, None))

    def belief(self, parameters: Parameters, state: State) -> Belief:
        """The posterior."""
        return belief(parameters.prior_cov, state)

    def noise(self, parameters: Parameters, state: State, hidden: Array | float) -> Array:
        """The told variance, plus what the context hides."""
        return parameters.reward_var + hidden

    def term(self, parameters: Parameters, evidence: Evidence) -> Term:
        """The row, and sigma^2 + E[theta' Cov(phi) theta]."""
        if not self.hetero:
            return Term(evidence.row(), parameters.reward_var)
        return Term(evidence.row(), parameters.reward_var + evidence.context_variance())

    def update(self, parameters: Parameters, state: State, evidence: Evidence, reward: Array) -> State:
        """The belief after one more reward."""
        return self.replace(parameters, state, None, self.term(parameters, evidence), reward)

    def replace(
        self, parameters: Parameters, state: State, old: Term | None, new: Term, reward: Array
    ) -> State:
        """The belief with one round's term replaced by another, or with one more."""
        return replace_term(parameters.prior_cov, state, old, new, reward)


def start(known: Knowledge) -> State:
    """The prior."""
    xp = known.prior_cov.__array_namespace__()
    precision = xp.linalg.inv(known.prior_cov)
    natural_mean = matvec(precision, _as_blocks(known.prior_cov, known.prior_mean))
    sums = [Sum(x, xp.zeros_like(x)) for x in (precision, natural_mean)]
    return State(sums[0], sums[1], inverse_root(precision))


def extend_state(prior_cov: Array, state: State, fresh: State) -> State:
    """The state with the prior of new entries at the end of theta, taken from a fresh, longer state."""
    if prior_cov.ndim == 3:
        precision = _extend(state.precision, fresh.precision, -3)
        natural_mean = _extend(state.natural_mean, fresh.natural_mean, -2)
        return State(precision, natural_mean, gaussian.longer(state.root, fresh.root, -3))
    precision = Sum(*map(gaussian.larger, state.precision, fresh.precision))
    natural_mean = _extend(state.natural_mean, fresh.natural_mean, -1)
    return State(precision, natural_mean, gaussian.larger(state.root, fresh.root))


def _extend(old: Sum, fresh: Sum, axis: int) -> Sum:
    """The sum extended by the end of a longer one."""
    return Sum(*(gaussian.longer(x, y, axis) for x, y in zip(old, fresh, strict=True)))


def belief(prior_cov: Array, state: State) -> Belief:
    """The posterior."""
    root = state.root
    mean = matvec(root, matvec(root.mT, state.natural_mean.value))
    return Gaussian(mean, root) if prior_cov.ndim == 2 else Blocks(mean, root)


def term_value(term: Term, reward: Array) -> Array:
    """The value of a term: its own if it has one, else the reward."""
    return reward if isinstance(term.value, tuple) else term.value


def replace_term(prior_cov: Array, state: State, old: Term | None, new: Term, reward: Array) -> State:
    """The state with one round's term replaced by another, or with one more."""
    if old is None:
        return _add_term(prior_cov, state, new, term_value(new, reward))
    batch = new.row.shape[:-1]
    was, now = (_broadcast(term_value(term, reward), batch) for term in (old, new))
    state, old, new = (
        _broadcast_state(prior_cov, batch, state),
        _broadcast_term(batch, old),
        _broadcast_term(batch, new),
    )
    is_news = (old.row != new.row).any(-1) | (old.variance != new.variance) | (was != now)
    return update_where(is_news, partial(_replace_term, prior_cov), state, old, new, was, now)


def whiten(prior_cov: Array, state: State, vector: Array) -> Array:
    """The product root' vector, (..., m); two rows' inner product then is the covariance of their scores."""
    half = matvec(state.root.mT, _as_blocks(prior_cov, vector))
    return half.reshape(*half.shape[: half.ndim - prior_cov.ndim + 1], vector.shape[-1])


def whiten_mean(prior_cov: Array, state: State) -> Array:
    """The product root' b, (..., m): its inner product with a whitened row is the mean of the row's score."""
    half = matvec(state.root.mT, state.natural_mean.value)
    return half.reshape(*half.shape[: half.ndim - prior_cov.ndim + 1], -1)


def _add_term(prior_cov: Array, state: State, term: Term, value: Array) -> State:
    """The state with one more term."""
    root, _ = _update_root(prior_cov, state.root, term, 1)
    return State(*_update_sums(prior_cov, state, term, value, 1), root)


def _replace_term(prior_cov: Array, state: State, old: Term, new: Term, was: Array, now: Array) -> State:
    """The state with one term in place of another: sums may lose the old one first, the root must not."""
    without_old = State(*_update_sums(prior_cov, state, old, was, -1), state.root)
    precision, natural_mean = _update_sums(prior_cov, without_old, new, now, 1)
    with_new, _ = _update_root(prior_cov, state.root, new, 1)
    root, remaining = _update_root(prior_cov, with_new, old, -1)
    return State(precision, natural_mean, _repair_root(remaining < LEAST, root, precision.value))


def _repair_root(lost: Bools, root: Array, precision: Array) -> Array:
    """The root, recomputed where it lost digits, which is rare after the first rounds."""
    return if_any(
        lost,
        lambda: update_where(
            lost, lambda _, changed_precision: inverse_root(changed_precision), root, precision
        ),
        root,
    )


def _update_sums(prior_cov: Array, state: State, term: Term, value: Array, sign: int) -> tuple[Sum, Sum]:
    """The sums with a term more, or with one less."""
    xp = term.row.__array_namespace__()
    row = _as_blocks(prior_cov, term.row) / xp.sqrt(_per_trial(prior_cov, term.variance))
    scaled = _per_trial(prior_cov, term.variance**-0.5 * value)
    precision = (sign * row)[..., :, None] * row[..., None, :]
    return state.precision.plus(precision), state.natural_mean.plus(sign * row * scaled)


def _update_root(prior_cov: Array, root: Array, term: Term, sign: int) -> tuple[Array, Array]:
    """The root with a term more, or with one less, and s / variance; below `LEAST` the root is not valid."""
    xp, axes = root.__array_namespace__(), tuple(range(1 - prior_cov.ndim, 0))
    row, variance = _as_blocks(prior_cov, term.row), xp.asarray(term.variance)
    half = matvec(root.mT, row)
    remaining = 1 + sign * (half**2).sum(axes) / variance
    safe_remaining = xp.maximum(remaining, LEAST / 2)
    scaled = half / _per_trial(prior_cov, sign * variance * (safe_remaining + xp.sqrt(safe_remaining)))
    return root - matvec(root, half)[..., :, None] * scaled[..., None, :], remaining


def _per_trial(prior_cov: Array, values: Array) -> Array:
    """A number for every trial, (...,), to broadcast with vectors: (..., 1), or in blocks (..., 1, 1)."""
    xp = prior_cov.__array_namespace__()
    values = xp.asarray(values)
    return values.reshape(*values.shape, *(1,) * (prior_cov.ndim - 1))


def _broadcast_term(batch: tuple[int, ...], term: Term) -> Term:
    """The term with the axes of trials, even if they share its variance."""
    return Term(_broadcast(term.row, (*batch, term.row.shape[-1])), _broadcast(term.variance, batch))


def _broadcast_state(prior_cov: Array, batch: tuple[int, ...], state: State) -> State:
    """The state with the axes of trials, even if they have all been alike so far."""
    shape = (*batch, *prior_cov.shape)
    precision = Sum(*(_broadcast(x, shape) for x in state.precision))
    natural_mean = Sum(*(_broadcast(x, shape[:-1]) for x in state.natural_mean))
    return State(precision, natural_mean, _broadcast(state.root, shape))


def _broadcast(x: Array, shape: tuple[int, ...]) -> Array:
    """The array with this shape, which it usually has already."""
    return x if x.shape == shape else x.__array_namespace__().broadcast_to(x, shape)


def _as_blocks(prior_cov: Array, flat: Array) -> Array:
    """A vector laid out as the prior is: (..., m), or in blocks (..., B, k)."""
    return flat.reshape(*flat.shape[:-1], *prior_cov.shape[:-1])
