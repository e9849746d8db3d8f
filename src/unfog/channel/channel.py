"""A channel as callers describe it, in the units of their sensors, and as agents use it.

    noisy = context + bias + gamma + n,    gamma ~ N(0, bias_cov),    n ~ N(0, noise_cov)

Agents assume a centred bias, so the part of the `bias` that is already known is subtracted. And units differ:
a prior of 1 for a slope makes no sense for a context of 1,648 steps. So coordinates are standardised,

    z = (context - mean) / sd,    sd^2 the variances of contexts,

and an agent's beliefs are converted back to the caller's units. With mean 0, variance 1 and no known bias
nothing changes, not even the last bit.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.channel.dynamics import Dynamics, Moving
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array
from unfog.maths.mixture import Mixture
from unfog.validation import InputError

NEEDED = ("context_mean", "context_cov", "noise_cov", "bias_cov")
ALLOWED = (
    "the channel of a calibration (unfog.calibrate), or a mapping with context_mean, context_cov, noise_cov,"
    " bias_cov and, if there is one, the known bias"
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
    mixture: Mixture | None = None  # the distribution of contexts, if it is given as a mixture
    dynamics: Dynamics | None = None  # how contexts and errors move in time
    person_cov: Array | None = None  # (d, d)  the part of context_cov that differs between units

    @property
    def is_complete(self) -> bool:
        """Whether the moments of contexts and biases are known; those that are not are not numbers."""
        parts = self.context_mean, self.context_cov, self.bias_cov
        return not any(np.isnan(part).any() for part in parts)

    def to_knowledge(self, units: "Units", **prior: Any) -> Knowledge:
        """The knowledge of an agent, in these units; `prior` adds the priors of theta and of rewards."""
        by = 1 / units.scale
        both = by[:, None] * by
        known = Knowledge(
            units.inside(self.context_mean),
            self.context_cov * both,
            self.noise_cov * both,
            self.bias_cov * both,
            **prior,
            contexts=None if self.contexts is None else units.inside(self.contexts),
            sample=None if self.sample is None else units.inside(self.sample),
            mixture=None if self.mixture is None else _scale_mixture(self.mixture, units, both),
            dynamics=None if self.dynamics is None else _scale_dynamics(self.dynamics, by),
            person_cov=None if self.person_cov is None else self.person_cov * both,
        )
        return known.limited()

    def to_json(self, *, sample: bool = False) -> dict[str, Any]:
        """The channel as JSON: numbers, lists and mappings of them; fields that are None are left out.

        The true contexts of the study are left out, too, unless `sample` asks for them.
        """
        fields = self._replace(sample=self.sample if sample else None)._asdict()
        return {name: _to_json(value) for name, value in fields.items() if value is not None}

    def __str__(self) -> str:
        """A line for each moment, a column for each coordinate; of true contexts only how many there are."""
        rows = {
            "context mean": self.context_mean,
            "context sd": np.sqrt(np.diag(self.context_cov)),
            "noise sd": np.sqrt(np.diag(self.noise_cov)),
            "bias": self.bias,
            "bias sd": np.sqrt(np.diag(self.bias_cov)),
        }
        lines = [f"{name:13}" + " ".join(f"{x:<12.4g}" for x in row).rstrip() for name, row in rows.items()]
        lines += [] if self.sample is None else [f"with {len(self.sample):,} true contexts of the past"]
        others = self._fields[self._fields.index("contexts") :]
        return "\n".join(lines + [f"with {name}" for name in others if getattr(self, name) is not None])

    def __repr__(self) -> str:
        """One line, without the numbers."""
        return f"<Channel of {len(self.context_mean)} coordinates>"


class Units(NamedTuple):
    """Conversion between the caller's units and an agent's, coordinate by coordinate."""

    centre: Array  # (d,)
    scale: Array  # (d,)
    bias: Array  # (d,)  subtracted from noisy contexts

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
    """Units in which contexts have mean 0 and variance 1."""
    return Units(channel.context_mean, np.sqrt(np.diag(channel.context_cov)), channel.bias)


def keep_units(channel: Channel) -> Units:
    """The caller's own units, but for the known bias."""
    zero = np.zeros_like(channel.bias)
    return Units(zero, np.ones_like(zero), channel.bias)


def channel(value: Any, names: Sequence[str]) -> Channel:
    """Read the channel that a caller describes, and check it field by field."""
    fields = _read_fields(value)
    for name in sorted(map(str, fields.keys() - {*Channel._fields})):
        cov = f"{name.removesuffix('_sd')}_cov"
        if name.endswith("_sd") and cov in NEEDED:
            raise InputError(f"channel.{name}", "a standard deviation", f"{cov}, of variances: its square")
        raise InputError(f"channel.{name}", "no such field", ", ".join(Channel._fields))
    for name in NEEDED:
        if fields.get(name) is None:
            raise InputError(f"channel.{name}", "missing", ALLOWED)
    d = len(names)
    parts: dict[str, Any] = {
        "context_mean": validation.vector("channel.context_mean", fields["context_mean"], d)
    }
    for name in NEEDED[1:]:
        parts[name] = validation.covariance(f"channel.{name}", fields[name], d, exact=name != "context_cov")
    parts["bias"] = validation.vector(
        "channel.bias", 0.0 if fields.get("bias") is None else fields["bias"], d
    )
    for name in ("sample", "contexts"):
        if fields.get(name) is not None:
            parts[name] = validation.rows(f"channel.{name}", fields[name], d, f"rows of {d} numbers")
    return Channel(
        **parts,
        mixture=_read_mixture(fields.get("mixture"), d),
        dynamics=_read_dynamics(fields.get("dynamics"), d),
    )


def _to_json(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _to_json(part) for name, part in value._asdict().items() if part is not None}
    if isinstance(value, float) and value == np.inf:
        return "inf"
    return [_to_json(part) for part in value] if isinstance(value, list | tuple) else value


def _read_fields(argument: Any) -> dict[str, Any]:
    """The fields of a mapping, a channel or the knowledge of an agent; priors of theta are left out."""
    if isinstance(argument, Channel | Knowledge):
        return {name: value for name, value in argument._asdict().items() if name in Channel._fields}
    if not isinstance(argument, Mapping):
        raise InputError("channel", argument, ALLOWED)
    return dict(argument)


def _read_mixture(value: Any, dim: int) -> Mixture | None:
    if value is None or isinstance(value, Mixture):
        return value
    parts = _check_mapping("channel.mixture", value, Mixture._fields)
    weights, means, covs = (np.asarray(parts.get(name), np.float64) for name in Mixture._fields)
    if means.shape != (len(weights), dim) or covs.shape != (len(weights), dim, dim):
        raise InputError("channel.mixture", value, f"weights, means and covs of components of {dim} numbers")
    return Mixture(weights, means, covs)


def _read_dynamics(value: Any, dim: int) -> Dynamics | None:
    if value is None:
        return None
    if isinstance(value, Dynamics):
        return value.check(dim)
    parts = _check_mapping("channel.dynamics", value, Dynamics._fields)
    for name in ("fast", "bias", "level", "error"):
        if parts.get(name) is not None:
            parts[name] = _read_moving(f"channel.dynamics.{name}", parts[name])
    for name in ("white", "cycles"):
        if parts.get(name) is not None:
            parts[name] = np.asarray(parts[name], np.float64)
    if "fast" not in parts or "bias" not in parts:
        raise InputError("channel.dynamics", value, "fast and bias, at least")
    parts["periods"] = tuple(parts.get("periods", ()))
    return Dynamics(**{"white": None, **parts}).check(dim)


def _read_moving(field: str, value: Any) -> Moving:
    if isinstance(value, Moving):
        return value
    parts = _check_mapping(field, value, Moving._fields)
    walk = parts.get("walk")
    time = (
        np.inf if parts.get("time") == "inf" else validation.not_negative(f"{field}.time", parts.get("time"))
    )
    return Moving(
        np.asarray(parts["cov"], np.float64), time, None if walk is None else np.asarray(walk, np.float64)
    )


def _check_mapping(field: str, value: Any, allowed: Sequence[str]) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not value.keys() <= {*allowed}:
        raise InputError(field, value, f"a mapping with {', '.join(allowed)}")
    return dict(value)


def _scale_mixture(mixture: Mixture, units: Units, both: Array) -> Mixture:
    return Mixture(mixture.weights, units.inside(mixture.means), mixture.covs * both)


def _scale_dynamics(dynamics: Dynamics, by: Array) -> Dynamics:
    both = by[:, None] * by
    return dynamics._replace(
        fast=dynamics.fast.scaled(by),
        bias=dynamics.bias.scaled(by),
        white=None if dynamics.white is None else dynamics.white * both,
        cycles=None if dynamics.cycles is None else dynamics.cycles * both,
        level=None if dynamics.level is None else dynamics.level.scaled(by),
        error=None if dynamics.error is None else dynamics.error.scaled(by),
    )
