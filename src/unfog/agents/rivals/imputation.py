"""Imputing what was lost of a reading."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.agents.parts import Denoiser, Privilege, Rewinds
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths.arrays import Array, Ints, matvec, settled

SINGULAR = 1e-15  # of the largest eigenvalue: what is smaller is taken for zero


class Parameters(NamedTuple):
    """Nothing but shapes."""

    sample: Array  # (S, w)  zeros: S samples a round, of w numbers
    certain: Array  # (d, d)  zeros: no doubt is left of what is imputed


class State(NamedTuple):
    """Sums over samples."""

    rounds: Array  # ()
    measured: Array  # (...,)  n
    total: Array  # (..., w)  sum x
    moment: Array  # (..., w, w)  sum x x'


class Law(NamedTuple):
    """The law of readings as it is estimated in a round, with that round's reading."""

    time: Array  # ()  the number of the round, from 0
    share: Array  # (...,)  p
    mean: Array  # (..., w)  nu
    cov: Array  # (..., w, w)  Sigma; not always positive, with few samples

    def imputed(self, readings: Array) -> Array:
        """Samples (..., s, w) of one trial with what was lost, not a number, set to what is expected."""
        xp, lost = readings.__array_namespace__(), readings.__array_namespace__().isnan(readings)
        if settled(~lost):
            return readings
        mean = self.mean[..., None, :]
        known = matvec(self._gains(lost), xp.where(lost, 0.0, readings - mean))
        found: Array = xp.where(lost, mean + known, readings)
        return found

    def _gains(self, lost: Array) -> Array:
        """Sigma_.S Sigma_SS^+ for every sample: (..., s, w) -> (..., s, w, w)."""
        xp, size = lost.__array_namespace__(), lost.shape[-1]
        if 2**size > lost.shape[-2]:
            return _gain(self.cov[..., None, :, :], lost)
        # There are fewer ways to lose numbers than samples, and all samples have one covariance.
        places = 2 ** np.arange(size)
        table = _gain(self.cov[..., None, :, :], xp.asarray((np.arange(2**size)[:, None] & places) > 0))
        which: Ints = (lost * xp.asarray(places)).sum(-1)
        found: Array = xp.take_along_axis(table, which[..., None, None], -3)
        return found


def _gain(cov: Array, lost: Any) -> Array:
    """Sigma_.S Sigma_SS^+, zero in the columns of what was lost."""
    xp = cov.__array_namespace__()
    there = (~lost).astype(cov.dtype)
    both = there[..., :, None] * there[..., None, :]
    least = max(SINGULAR, 4 * float(xp.finfo(cov.dtype).eps))  # single precision sees no further
    inverse: Array = xp.linalg.pinv(both * cov, rtol=least, hermitian=True)
    return cov @ (both * inverse)


def samples(known: Knowledge) -> tuple[int, int]:
    """How many samples a round has, and how many numbers a sample has."""
    dim, size = known.context_mean.shape[-1], known.prior_mean.shape[-1]
    return (dim // size, size) if size < dim and dim % size == 0 else (1, dim)


@dataclass(frozen=True, kw_only=True)
class Imputed(Denoiser, Rewinds):
    """Impute what was lost of a reading by the law of readings, which is estimated from readings alone.

    Over all samples x so far, N of them with w numbers each, a lost number counting as zero and n being
    measured,

        p = max(1, n) / (w N),    nu = sum x / (N p),
        Sigma = (sum x x' / N) o [((p - 1) / p^2) I + 1 1' / p^2] - nu nu',

    and of a sample the numbers U that were lost are set to nu_U + Sigma_US Sigma_SS^+ (x_S - nu_S), S being
    those measured. Nothing is shrunk towards the mean: the noise stays in, and theta is learnt for noisy
    features.

    Where every arm has a context of its own (features/linear.py) each of these is a sample, K in a round;
    else the one context is. Which of the two it is shows in the sizes: m features and m K numbers.

    J.-h. Kim, S.-Y. Yun, M. Jeong, J. Nam, J. Shin and R. Combes, *Contextual Linear Bandits under Noisy
    Features: Towards Bayesian Oracles*; formulas as in the authors' code.

    Settings
    --------
    With `zero` what was lost is zero, and nothing is estimated.
    """

    zero: bool = False

    name = "imputed"
    note = "estimates the law of readings, and imputes what was lost"
    takes_gaps = True
    cost = 0.7

    def __post_init__(self) -> None:
        """Check the setting."""
        validation.flag("zero", self.zero)

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Parameters:
        """Nothing of what is told but the sizes."""
        return Parameters(np.zeros(samples(known)), np.zeros(known.context_cov.shape))

    def start(self, parameters: Parameters) -> State:
        """No samples."""
        width = parameters.sample.shape[-1]
        return State(np.zeros(()), np.zeros(()), np.zeros(width), np.zeros((width, width)))

    def update(self, parameters: Parameters, state: State, noisy: Array, context: Array | None) -> State:
        """With the samples of one more round."""
        xp = noisy.__array_namespace__()
        readings = noisy.reshape(*noisy.shape[:-1], *parameters.sample.shape)
        lost = xp.isnan(readings)
        there = xp.where(lost, 0.0, readings)
        measured = (~lost).astype(noisy.dtype).sum((-2, -1))
        sums = state.total + there.sum(-2), state.moment + there.mT @ there
        return State(state.rounds + 1, state.measured + measured, *sums)

    def predict(self, parameters: Parameters, state: State, noisy: Array) -> Context:
        """The reading with what was lost imputed, with certainty."""
        return context_of(self.hindsight(parameters, state, noisy), parameters.certain, noisy)

    def hindsight(self, parameters: Parameters, state: State, noisy: Array) -> Any:
        """The `Law` with this round's samples: what learners of rivals/clbbf.py look back with."""
        number, width = parameters.sample.shape
        state = self.update(parameters, state, noisy, None)
        xp, many = noisy.__array_namespace__(), number * state.rounds
        share = xp.maximum(state.measured, 1.0) / (width * many)
        if self.zero:
            return Law(state.rounds - 1, share, 0 * state.total, 0 * state.moment)
        mean = state.total / (many * share)[..., None]
        weight = xp.where(xp.eye(width, dtype=bool), share[..., None, None], share[..., None, None] ** 2)
        cov = state.moment / weight / many - mean[..., :, None] * mean[..., None, :]
        return Law(state.rounds - 1, share, mean, cov)

    def unbiased(self, parameters: Parameters, noisy: Array) -> Array:
        """The reading, gaps and all: it may be imputed anew."""
        return noisy


def context_of(law: Law, certain: Array, noisy: Array) -> Context:
    """The context (..., d) of a reading, taken for the reading where that was measured."""
    width = law.mean.shape[-1]
    readings = noisy.reshape(*noisy.shape[:-1], -1, width)
    return Context(law.imputed(readings).reshape(noisy.shape), certain)
