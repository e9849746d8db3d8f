"""A channel as a caller tells of it, in the units of its sensor, and as agents want it.

    noisy = context + bias + gamma + n,    gamma ~ N(0, bias_cov),    n ~ N(0, noise_cov)

Agents take a bias to be centred, so the `bias` that is known already is subtracted. And units differ: a
prior of 1 for a slope says little of 1,648 steps. So each coordinate is measured in deviations from its mean,

    z = (context - mean) / sd,    sd^2 the variances of contexts,

and what an agent believes is told in the caller's units again. With mean 0, variance 1 and no known bias
nothing changes, not even the last bit.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.channel.dynamics import Moving, Tempo
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array
from unfog.maths.mixture import Mixture
from unfog.validation import InputError

NEEDED = ("context_mean", "context_cov", "noise_cov", "bias_cov")
ALLOWED = (
    "found.channel of unfog.calibrate(...), or a mapping with context_mean, context_cov, noise_cov, bias_cov"
    " and, if there is one, the known bias"
)


class Channel(NamedTuple):
    """What is known of contexts and of the way they are measured."""

    context_mean: Array  # (d,)
    context_cov: Array  # (d, d)
    noise_cov: Array  # (d, d)
    bias_cov: Array  # (d, d)
    bias: Array  # (d,)  mean error of a reading, as far as it is known
    sample: Array | None = None  # (n, d)  true contexts of the past
    contexts: Array | None = None  # (n, d)  all there are, each as likely
    mixture: Mixture | None = None  # the law of contexts, where it is told as one
    tempo: Tempo | None = None  # how contexts and errors move in time

    def told(self, units: "Units", **prior: Any) -> Knowledge:
        """What an agent is told, in these units; the priors of theta and rewards come with it."""
        by = 1 / units.scale
        both = by[:, None] * by
        return Knowledge(
            units.inside(self.context_mean),
            self.context_cov * both,
            self.noise_cov * both,
            self.bias_cov * both,
            **prior,
            contexts=None if self.contexts is None else units.inside(self.contexts),
            sample=None if self.sample is None else units.inside(self.sample),
            mixture=None if self.mixture is None else _mixture(self.mixture, units, both),
            tempo=None if self.tempo is None else _tempo(self.tempo, by),
        )

    def written(self) -> dict[str, Any]:
        """As JSON has it: numbers, lists and mappings of them; what is not told is left out."""
        return {name: _plain(value) for name, value in self._asdict().items() if value is not None}


class Units(NamedTuple):
    """Between the caller's units and an agent's, coordinate by coordinate."""

    centre: Array  # (d,)
    scale: Array  # (d,)
    bias: Array  # (d,)  to be taken off noisy contexts

    def inside(self, context: Array) -> Array:
        """A true context (..., d) in the agent's units."""
        return (context - self.centre) / self.scale

    def read(self, noisy: Array) -> Array:
        """A noisy context (..., d) in the agent's units, without the known bias."""
        return (noisy - self.bias - self.centre) / self.scale

    def noise(self, cov: Array) -> Array:
        """A noise covariance (d, d) in the agent's units."""
        return cov / self.scale / self.scale[:, None]

    def outside(self, context: Array) -> Array:
        """A context (..., d) in the caller's units."""
        return context * self.scale + self.centre


def standard(channel: Channel) -> Units:
    """Deviations from the mean."""
    return Units(channel.context_mean, np.sqrt(np.diag(channel.context_cov)), channel.bias)


def as_it_is(channel: Channel) -> Units:
    """The caller's own units, but for the known bias."""
    nothing = np.zeros_like(channel.bias)
    return Units(nothing, np.ones_like(nothing), channel.bias)


def channel(told: Any, names: Sequence[str]) -> Channel:
    """The channel that a caller tells of, for these coordinates: checked, field by field."""
    given = _fields(told)
    for name in NEEDED:
        if given.get(name) is None:
            raise InputError(f"channel.{name}", None, ALLOWED)
    unknown = sorted(given.keys() - {*Channel._fields})
    if unknown:
        raise InputError(f"channel.{unknown[0]}", "no such field", ", ".join(Channel._fields))
    d = len(names)
    made: dict[str, Any] = {
        "context_mean": validation.vector("channel.context_mean", given["context_mean"], d)
    }
    for name in NEEDED[1:]:
        made[name] = validation.covariance(f"channel.{name}", given[name], d)
    made["bias"] = validation.vector("channel.bias", 0.0 if given.get("bias") is None else given["bias"], d)
    for name in ("sample", "contexts"):
        if given.get(name) is not None:
            made[name] = validation.rows(f"channel.{name}", given[name], d, f"rows of {d} numbers")
    return Channel(
        **made, mixture=_told_mixture(given.get("mixture"), d), tempo=_told_tempo(given.get("tempo"), d)
    )


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(part) for name, part in value._asdict().items() if part is not None}
    if isinstance(value, float) and value == np.inf:
        return "inf"
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def _fields(told: Any) -> dict[str, Any]:
    """A mapping, a channel, or what an agent of the lab is told; priors of theta are no part of it."""
    if isinstance(told, Channel | Knowledge):
        return {name: value for name, value in told._asdict().items() if name in Channel._fields}
    if not isinstance(told, Mapping):
        raise InputError("channel", told, ALLOWED)
    return dict(told)


def _told_mixture(given: Any, dim: int) -> Mixture | None:
    if given is None or isinstance(given, Mixture):
        return given
    parts = _mapping("channel.mixture", given, Mixture._fields)
    weights, means, covs = (np.asarray(parts.get(name), np.float64) for name in Mixture._fields)
    if means.shape != (len(weights), dim) or covs.shape != (len(weights), dim, dim):
        raise InputError("channel.mixture", given, f"weights, means and covs of components of {dim} numbers")
    return Mixture(weights, means, covs)


def _told_tempo(given: Any, dim: int) -> Tempo | None:
    if given is None:
        return None
    if isinstance(given, Tempo):
        return given.check(dim)
    parts = _mapping("channel.tempo", given, Tempo._fields)
    for name in ("fast", "bias", "level", "error"):
        if parts.get(name) is not None:
            parts[name] = _told_moving(f"channel.tempo.{name}", parts[name])
    for name in ("white", "cycles"):
        if parts.get(name) is not None:
            parts[name] = np.asarray(parts[name], np.float64)
    if "fast" not in parts or "bias" not in parts:
        raise InputError("channel.tempo", given, "fast and bias, at least")
    parts["periods"] = tuple(parts.get("periods", ()))
    return Tempo(**{"white": None, **parts}).check(dim)


def _told_moving(field: str, given: Any) -> Moving:
    if isinstance(given, Moving):
        return given
    parts = _mapping(field, given, Moving._fields)
    walk = parts.get("walk")
    time = (
        np.inf if parts.get("time") == "inf" else validation.not_negative(f"{field}.time", parts.get("time"))
    )
    return Moving(
        np.asarray(parts["cov"], np.float64), time, None if walk is None else np.asarray(walk, np.float64)
    )


def _mapping(field: str, given: Any, allowed: Sequence[str]) -> dict[str, Any]:
    if not isinstance(given, Mapping) or not given.keys() <= {*allowed}:
        raise InputError(field, given, f"a mapping with {', '.join(allowed)}")
    return dict(given)


def _mixture(mixture: Mixture, units: Units, both: Array) -> Mixture:
    return Mixture(mixture.weights, units.inside(mixture.means), mixture.covs * both)


def _tempo(tempo: Tempo, by: Array) -> Tempo:
    both = by[:, None] * by
    return tempo._replace(
        fast=tempo.fast.scaled(by),
        bias=tempo.bias.scaled(by),
        white=None if tempo.white is None else tempo.white * both,
        cycles=None if tempo.cycles is None else tempo.cycles * both,
        level=None if tempo.level is None else tempo.level.scaled(by),
        error=None if tempo.error is None else tempo.error.scaled(by),
    )
