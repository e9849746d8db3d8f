"""What agents are told of the law of contexts beyond its mean and covariance.

`told_contexts` true contexts of the past: so many of a sample that the world has (users, hours of a
calibration), without repetition, or else drawn from its law. Without it agents are told the whole sample,
where there is one. And a mixture of Gaussians, fitted to `told_noisy` noisy contexts that were read through
one bias, which is no trial's, and moved to the told mean of contexts (channel/deconvolution.py).

Both are the same in every trial and for every seed: they are part of the problem. Oracles and yardsticks know
all contexts there are, whatever agents are told.
"""

from dataclasses import dataclass

from unfog import validation
from unfog.channel.deconvolution import deconvolve
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array
from unfog.maths.mixture import Mixture
from unfog.maths.random import generator
from unfog.validation import InputError
from unfog.worlds.channel import Channel
from unfog.worlds.contexts import Contexts, Rows

MOST_TOLD = 100_000
COMPONENTS = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class ToldFields:
    """What agents are told of contexts besides their moments: fields that every world has."""

    told_contexts: int = 0
    told_noisy: int = 0


def check(fields: ToldFields) -> None:
    """Refuse what needs no world to be refused."""
    validation.count("told_contexts", fields.told_contexts, 0, MOST_TOLD)
    least, noisy = COMPONENTS * 10, fields.told_noisy
    if validation.count("told_noisy", noisy, 0, MOST_TOLD) and noisy < least:
        raise InputError("told_noisy", noisy, f"0, or a whole number from {least} to {MOST_TOLD}")


def told(fields: ToldFields, known: Knowledge, contexts: Contexts, channel: Channel) -> Knowledge:
    """What agents know, with what these fields add to it."""
    check(fields)
    if fields.told_contexts:
        known = known._replace(sample=_sample(fields.told_contexts, known.sample, contexts))
    if fields.told_noisy:
        known = known._replace(mixture=_mixture(fields.told_noisy, known, contexts, channel))
    return known


def _sample(number: int, given: Array | None, contexts: Contexts) -> Array:
    """Some of the contexts given, or new ones."""
    source = generator(0, 0, "told contexts")
    if given is None:
        return contexts.draw(source.standard_normal((number, contexts.normals)), None)
    if number > len(given):
        raise InputError("told_contexts", number, f"0 for all, or at most the {len(given)} that there are")
    return given[source.permutation(len(given))[:number]]


def _mixture(number: int, known: Knowledge, contexts: Contexts, channel: Channel) -> Mixture:
    """Fitted to noisy contexts: their noise is the one there is, the fit takes it for the one told."""
    if isinstance(contexts, Rows):
        raise InputError("told_noisy", number, "0 where contexts come from a record")
    least = COMPONENTS * (len(known.context_mean) + 1)
    if number < least:
        raise InputError("told_noisy", number, f"0, or at least {least} for contexts of this dimension")
    source = generator(0, 0, "told noisy contexts")
    true = contexts.draw(source.standard_normal((number, contexts.normals)), None)
    bias = channel.bias_root @ source.standard_normal(true.shape[1])
    noisy = true + bias + source.standard_normal(true.shape) @ channel.noise_root.T
    return deconvolve(noisy, known.noise_cov, components=COMPONENTS, mean=known.context_mean)
