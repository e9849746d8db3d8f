"""What a channel may do besides adding a bias and Gaussian noise, and what can be known of a context then.

    actual noise   the noise has another covariance than agents are told
    tails          it is Student's t, with so many degrees of freedom and that covariance as its scale
    missing        every coordinate of chat is lost with this probability, and reads mu_c
    drift          the bias walks, gamma_t = gamma_{t-1} + N(0, Sigma_drift), for `drift_rounds` rounds
    revealed       true contexts are shown for this share of the rounds, `late` rounds after the reward

Regret is measured against one who knows the channel as it is, gamma_t included, though not what was lost.
Under heavy tails this belief is not Gaussian; its mean and covariance are exact, and so is all that hangs on
them alone: expected features of the second degree at most, rewards with Gaussian noise.
"""

from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from unfog import inputs
from unfog.features import Context
from unfog.inputs import InputError, Numbers
from unfog.maths import student
from unfog.maths.arrays import Array, Ints, matvec
from unfog.maths.gaussian import from_moments
from unfog.model import shrinkage
from unfog.model.knowledge import Knowledge
from unfog.model.shrinkage import Shrinkage
from unfog.worlds.problem import Emission

MOST_LATE = 10_000
MOST_WALK = 10**6
MOST_TAILS = 1000


class Channel(NamedTuple):
    """A channel with everything made that can be made once."""

    noise_cov: Array  # (d, d)  as it is
    noise_root: Array  # (d, d)
    shrinkage: Shrinkage  # with this noise, Gaussian
    heavy: student.Noise | None  # where it is not
    plain: bool  # nothing out of the ordinary
    tails: int  # 0: Gaussian
    missing: float
    drift_root: Array | None  # (d, d)
    drift_rounds: int
    revealed: float
    late: int

    def normals(self) -> int:
        """Standard normals of a round for what is out of the ordinary."""
        return self.tails + self.noise_root.shape[0] * (self.missing > 0) + (self.revealed < 1)

    def cells(self) -> int:
        """Numbers that a measurement keeps in memory for a moment, beyond a few for each coordinate."""
        dim = self.noise_root.shape[0]
        grid = 0 if self.heavy is None else 3 * len(self.heavy.logs) + 4 * dim * dim
        return self.tails + grid + 6 * dim * dim * (self.missing > 0)


def channel(
    known: Knowledge,
    actual_noise_cov: Numbers,
    tails: int,
    missing: float,
    drift_cov: Numbers,
    drift_rounds: int,
    revealed: float,
    late: int,
) -> Channel:
    """The channel that these fields describe, checked."""
    actual, drift = _given("actual_noise_cov", actual_noise_cov, known), _given("drift_cov", drift_cov, known)
    if inputs.count("tails", tails, 0, MOST_TAILS) in (1, 2):
        raise InputError("tails", tails, "0 for Gaussian noise, or 3 and more degrees of freedom")
    _check_share("missing", missing, 0.99)
    _check_share("revealed", revealed, 1.0)
    if tails and missing:
        raise InputError("missing", missing, "0 where noise has heavy tails")
    noise_cov = known.noise_cov if actual is None else actual
    return Channel(
        noise_cov=noise_cov,
        noise_root=from_moments(noise_cov[0], noise_cov).root,
        shrinkage=shrinkage.shrinkage(known.context_mean, known.context_cov, noise_cov),
        heavy=student.noise(noise_cov, tails) if tails else None,
        plain=actual is None and drift is None and not tails and not missing,
        tails=int(tails),
        missing=float(missing),
        drift_root=None if drift is None else from_moments(drift[0], drift).root,
        drift_rounds=inputs.count("drift_rounds", drift_rounds, most=MOST_WALK),
        revealed=float(revealed),
        late=inputs.count("late", late, 0, MOST_LATE),
    )


def _given(field: str, value: Numbers, known: Knowledge) -> Array | None:
    """A covariance, or None where it is the number 0: nothing out of the ordinary."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value == 0:
        return None
    try:
        return inputs.covariance(field, value, known.context_mean.shape[0])
    except InputError as error:
        meaning = "the bias to stay" if field == "drift_cov" else "what agents are told"
        raise InputError(field, error.value, f"0 for {meaning}, or {error.allowed}") from None


def _check_share(field: str, share: object, most: float) -> None:
    number = isinstance(share, int | float | np.number) and not isinstance(share, bool)
    if not number or not 0 <= share <= most:  # type: ignore[operator]
        raise InputError(field, repr(share), f"a number from 0 to {most:g}")


def walked(channel: Channel, bias: Array, steps: Array) -> Array:
    """The bias of every round, (..., rounds, d), from its first value and standard steps of that shape."""
    xp = bias.__array_namespace__()
    moved = matvec(xp.asarray(channel.drift_root), steps[..., 1:, :])
    start = xp.concat([bias[..., None, :], moved], axis=-2)
    path: Array = xp.cumulative_sum(start, axis=-2)
    return path


def bias_at(path: Array, number: Ints) -> Array:
    """The bias of rounds with these numbers; after the last step it stays where it is."""
    xp = path.__array_namespace__()
    found: Array = path[:, xp.minimum(number, path.shape[1] - 1)]
    return found


def emit(
    channel: Channel, known: Knowledge, context: Array, bias: Array, drawn: Array, extra: Array
) -> Emission:
    """A measurement of the context: drawn (..., d) makes the noise, extra (..., n) the rest."""
    xp = drawn.__array_namespace__()
    noise = matvec(xp.asarray(channel.noise_root), drawn)
    dim, first = context.shape[-1], channel.tails
    if channel.tails:
        noise = noise / xp.sqrt((extra[..., :first] ** 2).mean(-1))[..., None]
    noisy, mask = context + bias + noise, None
    if channel.missing:
        mask = (extra[..., first : first + dim] >= NormalDist().inv_cdf(channel.missing)).astype(noisy.dtype)
        noisy = xp.where(mask > 0, noisy, xp.asarray(known.context_mean))
    shown = None
    if channel.revealed < 1:
        level = NormalDist().inv_cdf(channel.revealed) if channel.revealed else -np.inf
        shown = (extra[..., -1] <= level).astype(noisy.dtype)
    best = None if channel.plain else _best(channel, known, noisy, bias, mask)
    return Emission(context, noisy, bias if channel.drift_root is not None else None, mask, shown, best)


def _best(channel: Channel, known: Knowledge, noisy: Array, bias: Array, mask: Array | None) -> Context:
    """What one believes of the context who knows the channel and its bias."""
    xp = noisy.__array_namespace__()
    mean, cov, noise = map(xp.asarray, (known.context_mean, known.context_cov, channel.noise_cov))
    if channel.heavy is not None:
        heavy = student.Noise(*map(xp.asarray, channel.heavy))
        moved, left = student.moments(student.mixture(heavy, cov, noisy - mean - bias), cov)
        return Context(mean + moved, left)
    if mask is None:
        shrunk = Shrinkage(*map(xp.asarray, channel.shrinkage))
    else:
        shrunk = shrinkage.masked_shrinkage(mean, cov, noise, mask)
    return Context(shrinkage.posterior_mean(shrunk, noisy, bias), shrunk.cov)
