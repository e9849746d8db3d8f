"""How a channel measures a context, which true contexts are shown and when, and what agents are told.

A world shows true contexts to agents that want them:

    revealed      the share of the rounds whose context is shown, `reveal_delay` rounds after the reward
    reveal        "random": each round by itself with that probability; "every": at equal distances, the
                  rounds t = 0, 1, ... in which floor((t + 1) revealed) grows; "on_request": those that agents
                  request
    reveal_share  of a context that is shown, every coordinate by itself is, with this probability

A round has 1 + d uniform numbers of its own, from a stream that nothing else is drawn from: a context is
shown where the first is below `revealed`, a coordinate where its own is below `reveal_share`. So what is
shown is independent of everything else and the same for all agents. It is also nested: what is shown at
random at one share is shown at every larger one, in runs that have everything else in common.

A channel may do more than add a bias and Gaussian noise:

    assumed noise  agents are told another covariance of the noise than it has
    tails          it is Student's t, with this number of degrees of freedom and that covariance as its scale
    missing        every coordinate of chat is lost with this probability, and reads mu_c
    drift          the bias walks, gamma_t = gamma_{t-1} + N(0, Sigma_drift), for `drift_rounds` rounds
    trouble from   the noise of this covariance and the walk begin in this round; before it the
                   channel is as assumed

Errors can also come from a record, one row a round, in place of noise and a bias that are drawn; coordinates
may be lost and drift be added all the same.

Regret is measured against an oracle that knows the true channel (`best`), gamma_t included, but not the lost
coordinates. Under heavy tails its belief is not Gaussian; the mean and covariance are exact, and so is
everything that depends on them alone: expected features of at most the second degree, rewards with Gaussian
noise.

Agents may be told more of the law of contexts than its mean and covariance. `prior_contexts` is a number of
true contexts of the past: taken from a sample that the world has (users, hours of a calibration), without
repetition, or else drawn from its law. With 0 agents are told the complete sample, if there is one.
`prior_noisy_contexts` is a number of noisy contexts that were read through one bias, which is not that of any
trial: agents are told a mixture of Gaussians fitted to them and moved to the told mean of contexts
(channel/deconvolution.py). Both are the same in every trial and for every seed: they are part of the problem.
Oracles and yardsticks know all contexts there are, whatever agents are told.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.channel import knowledge
from unfog.channel.deconvolution import deconvolve
from unfog.channel.knowledge import Knowledge, Shrinkage
from unfog.features import Context
from unfog.maths import student
from unfog.maths.arrays import Array, Ints, matvec
from unfog.maths.gaussian import from_moments
from unfog.maths.mixture import Mixture
from unfog.maths.random import generator
from unfog.validation import InputError, Numbers, check_keywords
from unfog.worlds.contexts import Contexts, Rows
from unfog.worlds.problem import Draws, Emission, Truth

MOST_DELAY = 10_000
MOST_WALK = 10**6
MOST_TAILS = 1000
MOST_EXAMPLES = 100_000
COMPONENTS = 5  # of the mixture that agents are told
WAYS = ("random", "every", "on_request")
ROUNDING = 1e-9  # (t + 1) revealed counts as a whole number if it is this close to one


@check_keywords
@dataclass(frozen=True, kw_only=True, eq=False)
class RevealFields:
    """What is shown of true contexts: fields that every world has."""

    revealed: float = 1.0
    reveal: str = "random"
    reveal_share: float = 1.0
    reveal_delay: int = 0

    @property
    def on_request(self) -> bool:
        """Whether true contexts are shown only where an agent asks for them."""
        return self.reveal == "on_request"

    @property
    def has_reveal_mask(self) -> bool:
        """Whether what is shown differs from round to round."""
        return self.on_request or self.revealed < 1 or self.reveal_share < 1

    @property
    def partial(self) -> bool:
        """Whether some of true contexts is never shown, or only later than their rewards."""
        return self.reveal_delay > 0 or self.has_reveal_mask

    def reveal_mask(self, uniforms: Array, number: Ints) -> Array | None:
        """A mask of what is shown, of contexts (...,) or of coordinates (..., d); None: all is shown.

        `uniforms` (..., 1 + d) are those of the rounds with these numbers. With "on_request" the mask is
        zero: whoever requests contexts replaces it.
        """
        if not self.has_reveal_mask:
            return None
        xp, first = uniforms.__array_namespace__(), uniforms[..., 0]
        if self.on_request:
            return xp.zeros_like(first)
        random = self.reveal == "random"
        is_revealed: Any = first < self.revealed if random else _grows(self.revealed, number, first)
        if self.reveal_share == 1:
            return is_revealed.astype(first.dtype)
        mask: Array = (is_revealed[..., None] & (uniforms[..., 1:] < self.reveal_share)).astype(first.dtype)
        return mask


def _grows(share: float, number: Ints, like: Array) -> Array:
    """Whether floor((t + 1) share) exceeds floor(t share), in the shape of `like`."""
    xp = like.__array_namespace__()
    before, after = (xp.floor(xp.asarray(number + one) * share + ROUNDING) for one in (0, 1))
    grows: Array = xp.broadcast_to(after > before, like.shape)
    return grows


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelFields(RevealFields):
    """What agents are not told of the channel: the fields that every world has."""

    assumed_noise_cov: Numbers = 0.0
    tails: int = 0
    missing: float = 0.0
    drift_cov: Numbers = 0.0
    drift_rounds: int = 1000
    trouble_from: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class KnowledgeFields:
    """What agents are told of contexts besides their moments: fields that every world has."""

    prior_contexts: int = 0
    prior_noisy_contexts: int = 0


class Measurement(NamedTuple):
    """A channel with everything that can be computed in advance."""

    known: Knowledge  # as agents are told: with the assumed noise
    noise_cov: Array  # (d, d)  as it is
    noise_root: Array  # (d, d)
    assumed_root: Array  # (d, d)  of the noise that agents assume
    bias_root: Array  # (d, d)
    drift_root: Array | None  # (d, d)
    errors: Array | None  # (n, d)  of a record, in place of the bias and the noise
    measured: Array | None  # (n, d)  0 where the record lacks a reading, 1 elsewhere; None: it lacks none
    shrinkage: Shrinkage  # with this noise, Gaussian
    heavy: student.Noise | None  # where it is not
    plain: bool  # nothing out of the ordinary
    tails: int  # 0: Gaussian
    missing: float
    drift_rounds: int
    trouble_from: int
    together: int = 1  # how many coordinates next to each other get lost together

    @property
    def is_misspecified(self) -> bool:
        """Whether agents assume another covariance of the noise than it has."""
        return self.noise_cov is not self.known.noise_cov

    def normals(self) -> int:
        """Standard normals of a round: d for the noise, used or not, and those for tails and lost values."""
        dim = self.noise_root.shape[0]
        return dim + self.tails + dim * (self.missing > 0)

    def cells(self) -> int:
        """Numbers that a measurement keeps in memory temporarily, beyond a few for each coordinate."""
        square = self.noise_root.size
        grid = 0 if self.heavy is None else 3 * len(self.heavy.logs) + 4 * square
        return self.tails + grid + 6 * square * (self.missing > 0)

    def draws(self) -> dict[str, Draws]:
        """Normals for gamma*, and for its steps where it drifts."""
        dim = self.noise_root.shape[0]
        walk = {"walk": Draws("normal", (self.drift_rounds, dim))}
        return {"bias": Draws("normal", (dim,)), **({} if self.drift_root is None else walk)}

    def bias(self, draws: Mapping[str, Array]) -> tuple[Array, Array | None]:
        """gamma* of a trial, zero if errors are recorded; and the bias of every round if it drifts."""
        xp = draws["bias"].__array_namespace__()
        bias = matvec(xp.asarray(self.bias_root), draws["bias"])
        bias = bias if self.errors is None else xp.zeros_like(bias)
        if "walk" not in draws:
            return bias, None
        steps = matvec(xp.asarray(self.drift_root), draws["walk"][..., 1:, :])
        return bias, xp.cumulative_sum(xp.concat([bias[..., None, :], steps], axis=-2), axis=-2)

    def of_units(self, bias: Array, draws: Array) -> Array:
        """The biases of all units (..., units, d): `bias` for the first, draws for the others."""
        xp = draws.__array_namespace__()
        others = matvec(xp.asarray(self.bias_root), draws)
        return xp.concat([bias[..., None, :], others], axis=-2)


def make_measurement(fields: ChannelFields, known: Knowledge, errors: Array | None = None) -> Measurement:
    """The channel that these fields describe, checked.

    >>> import unfog
    >>> from unfog.worlds.measurement import make_measurement
    >>> problem = unfog.GaussianProblem(dim=2, actions=5, missing=0.1)
    >>> make_measurement(problem, problem.knowledge()).missing
    0.1
    """
    check_channel(fields)
    assumed = _read_covariance("assumed_noise_cov", fields.assumed_noise_cov, known)
    drift = _read_covariance("drift_cov", fields.drift_cov, known)
    for field, is_set in (("tails", fields.tails), ("assumed_noise_cov", assumed is not None)):
        if is_set and errors is not None:
            raise InputError(field, getattr(fields, field), "0 where errors come from the data")
    noise = known.noise_cov
    if assumed is not None and not np.array_equal(assumed, noise):
        known = known._replace(noise_cov=assumed)
    return Measurement(
        known=known,
        noise_cov=noise,
        noise_root=from_moments(noise[0], noise).root,
        assumed_root=from_moments(noise[0], known.noise_cov).root,
        bias_root=from_moments(noise[0], known.bias_cov).root,
        drift_root=None if drift is None else from_moments(drift[0], drift).root,
        errors=None if errors is None else np.where(np.isnan(errors), 0.0, errors),
        measured=None if errors is None or not np.isnan(errors).any() else 1.0 - np.isnan(errors),
        shrinkage=knowledge.shrinkage(known.context_mean, known.context_cov, noise),
        heavy=student.noise(noise, fields.tails) if fields.tails else None,
        plain=known.noise_cov is noise and drift is None and not fields.tails and not fields.missing,
        tails=int(fields.tails),
        missing=float(fields.missing),
        drift_rounds=int(fields.drift_rounds),
        trouble_from=int(fields.trouble_from),
    )


def check_channel(fields: ChannelFields) -> None:
    """Check the fields that can be checked without the knowledge of agents."""
    if validation.count("tails", fields.tails, 0, MOST_TAILS) in (1, 2):
        raise InputError("tails", fields.tails, "0 for Gaussian noise, or 3 and more degrees of freedom")
    check_revealing(fields)
    check_share("missing", fields.missing, 0.99)
    if fields.tails and fields.trouble_from:
        raise InputError("trouble_from", fields.trouble_from, "0 where noise has heavy tails")
    if fields.tails and fields.missing:
        raise InputError("missing", fields.missing, "0 where noise has heavy tails")
    validation.count("drift_rounds", fields.drift_rounds, most=MOST_WALK)
    validation.count("trouble_from", fields.trouble_from, 0, MOST_WALK)


def check_revealing(fields: RevealFields) -> None:
    """Check the fields that say which true contexts are shown."""
    check_share("revealed", fields.revealed, 1.0)
    check_share("reveal_share", fields.reveal_share, 1.0)
    validation.one_of("reveal", fields.reveal, WAYS)
    validation.count("reveal_delay", fields.reveal_delay, 0, MOST_DELAY)


def check_share(field: str, share: object, most: float) -> None:
    """Raise InputError unless the share is a number from 0 to `most`."""
    number = isinstance(share, int | float | np.number) and not isinstance(share, bool)
    if not number or not 0 <= share <= most:  # type: ignore[operator]
        raise InputError(field, validation.display(share), f"a number from 0 to {most:g}")


def _read_covariance(field: str, value: Numbers, known: Knowledge) -> Array | None:
    """A covariance, or None for the number 0, which stands for the default."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value == 0:
        return None
    try:
        return validation.covariance(field, value, known.context_mean.shape[0])
    except InputError as error:
        meaning = "the bias to stay" if field == "drift_cov" else "the truth"
        raise InputError(field, error.value, f"0 for {meaning}, or {error.allowed}") from None


def emit(
    channel: Measurement, context: Array, truth: Truth, normals: Array, number: Ints | None, row: Ints | None
) -> Emission:
    """A measurement of the context with the channel's own normals (..., n), in the round of this number."""
    xp = normals.__array_namespace__()
    dim, tails = context.shape[-1], channel.tails
    bias = truth.bias
    if truth.path is not None and number is not None:  # after the last step it stays where it is
        bias = truth.path[:, xp.clip(number - channel.trouble_from, 0, truth.path.shape[1] - 1)]
    extra = normals[..., dim:]
    if channel.errors is None:
        noise = matvec(
            _current(channel, channel.noise_root, channel.assumed_root, number, xp), normals[..., :dim]
        )
    else:
        noise = xp.asarray(channel.errors)[row]
    if tails:
        noise = noise / xp.sqrt((extra[..., :tails] ** 2).mean(-1))[..., None]
    noisy = context + bias + noise
    mask = None if channel.measured is None else xp.asarray(channel.measured, dtype=noisy.dtype)[row]
    if channel.missing:
        lots = extra[..., tails : tails + dim]
        lots = xp.repeat(lots[..., :: channel.together], channel.together, axis=-1)
        is_measured = (lots >= NormalDist().inv_cdf(channel.missing)).astype(noisy.dtype)
        mask = is_measured if mask is None else mask * is_measured
    if mask is not None:
        noisy = xp.where(mask > 0, noisy, xp.asarray(channel.known.context_mean))
    return Emission(context, noisy, None if channel.drift_root is None else bias, mask)


def _current(channel: Measurement, true: Array, assumed: Array, number: Ints | None, xp: Any) -> Array:
    """The matrix (d, d) that holds in a round: the assumed one until the trouble begins, then the true."""
    true, assumed = xp.asarray(true), xp.asarray(assumed)
    if number is None or channel.trouble_from == 0:
        return true
    current: Array = xp.where((xp.asarray(number) >= channel.trouble_from)[..., None, None], true, assumed)
    return current


def best(channel: Measurement, emission: Emission, bias: Array, number: Ints | None = None) -> Context | None:
    """The belief of an oracle that knows the channel and its bias; None if agents are told all of that."""
    if channel.plain and emission.bias is None:
        return None
    noisy, mask, bias = emission.noisy, emission.mask, bias if emission.bias is None else emission.bias
    xp = noisy.__array_namespace__()
    known = channel.known
    mean, cov = map(xp.asarray, (known.context_mean, known.context_cov))
    noise = _current(channel, channel.noise_cov, known.noise_cov, number, xp)
    if channel.heavy is not None:
        heavy = student.Noise(*map(xp.asarray, channel.heavy))
        shift, cov_after = student.moments(student.mixture(heavy, cov, noisy - mean - bias), cov)
        return Context(mean + shift, cov_after)
    if mask is None and channel.trouble_from == 0:
        shrinkage = Shrinkage(*map(xp.asarray, channel.shrinkage))
    elif mask is None:
        shrinkage = knowledge.shrinkage(mean, cov, noise)
    else:
        shrinkage = knowledge.masked_shrinkage(mean, cov, noise, mask)
    return Context(knowledge.posterior_mean(shrinkage, noisy, bias), shrinkage.cov)


def check_knowledge(fields: KnowledgeFields) -> None:
    """Check the fields that can be checked without the world."""
    validation.count("prior_contexts", fields.prior_contexts, 0, MOST_EXAMPLES)
    least, noisy = COMPONENTS * 10, fields.prior_noisy_contexts
    if validation.count("prior_noisy_contexts", noisy, 0, MOST_EXAMPLES) and noisy < least:
        raise InputError(
            "prior_noisy_contexts", noisy, f"0, or a whole number from {least} to {MOST_EXAMPLES}"
        )


def add_knowledge(
    fields: KnowledgeFields, known: Knowledge, contexts: Contexts, channel: Measurement
) -> Knowledge:
    """The knowledge of agents, with what these fields add to it."""
    check_knowledge(fields)
    if fields.prior_contexts:
        known = known._replace(sample=_sample(fields.prior_contexts, known.sample, contexts))
    if fields.prior_noisy_contexts:
        known = known._replace(mixture=_mixture(fields.prior_noisy_contexts, known, contexts, channel))
    return known


def _sample(number: int, sample: Array | None, contexts: Contexts) -> Array:
    """Some contexts of a sample, or new ones if there is no sample."""
    rng = generator(0, 0, "told contexts")
    if sample is None:
        return contexts.draw(rng.standard_normal((number, contexts.normals)), None)
    if number > len(sample):
        raise InputError("prior_contexts", number, f"0 for all, or at most the {len(sample)} that there are")
    return sample[rng.permutation(len(sample))[:number]]


def _mixture(number: int, known: Knowledge, contexts: Contexts, channel: Measurement) -> Mixture:
    """A mixture fitted to noisy contexts, which have the true noise; the fit assumes what agents assume."""
    if isinstance(contexts, Rows):
        raise InputError("prior_noisy_contexts", number, "0 where contexts come from a record")
    least = COMPONENTS * (len(known.context_mean) + 1)
    if number < least:
        raise InputError(
            "prior_noisy_contexts", number, f"0, or at least {least} for contexts of this dimension"
        )
    rng = generator(0, 0, "told noisy contexts")
    true = contexts.draw(rng.standard_normal((number, contexts.normals)), None)
    bias = channel.bias_root @ rng.standard_normal(true.shape[1])
    noisy = true + bias + rng.standard_normal(true.shape) @ channel.noise_root.T
    return deconvolve(noisy, known.noise_cov, components=COMPONENTS, mean=known.context_mean)
