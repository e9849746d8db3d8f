"""A synthetic world in time: contexts, biases and errors drawn exactly (`Dynamics` in channel/dynamics.py).

`MovementFields` say how the world moves, and when rounds take place. A part that is not wanted has covariance
0. The level walks. The bias walks where `bias_time` is 0, and comes back to zero with that time constant
otherwise. All other parts come back to zero. The course of a trial is drawn from that:

    times     t_0 = 0, then steps of one length, some of them longer by a gap of exponential length
    part      x_0 ~ N(0, cov); over a step h one with a time constant tau keeps exp(-h / tau) and is refreshed
              by N(0, (1 - exp(-2 h / tau)) cov), one that walks gains N(0, h walk)
    cycle     a cos(2 pi t / period) + b sin(2 pi t / period), a and b ~ N(0, cov)
    context   mean + level + fast + cycles;    error  the part that comes back to zero, without the white one

Units have courses of their own, at the same times. After its last round a course stays where it is and so
does time: readings of one moment.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.channel.dynamics import Dynamics, Moving
from unfog.channel.knowledge import Knowledge
from unfog.features.base import MapBuilder
from unfog.maths.arrays import Array, Ints, matvec
from unfog.maths.gaussian import singular_root
from unfog.maths.linalg import recurrence
from unfog.validation import InputError, Numbers, check_keywords
from unfog.worlds import contexts, measurement
from unfog.worlds.composed import Composed, Noisy, Parts, arms, described
from unfog.worlds.contexts import UnitFields, assumed_law
from unfog.worlds.measurement import Measurement, check_share
from unfog.worlds.problem import Draws, Emission, Truth

PARTS = ("fast", "level", "bias", "error")
MOST_DIM = 100
MOST_ROUNDS = 10**6
MOST_NUMBERS = 10**7  # of a trial's course


class Spacing(NamedTuple):
    """When rounds take place."""

    step: float
    gaps: float  # the share of steps that are longer
    gap_time: float  # how much longer they are on average

    @property
    def mean(self) -> float:
        """The mean length of a step."""
        return self.step + self.gaps * self.gap_time

    def times(self, uniforms: Array) -> Array:
        """The times of rounds (..., n), from uniforms (..., n, 2)."""
        xp = uniforms.__array_namespace__()
        longer = (uniforms[..., 1:, 0] < self.gaps) * -xp.log1p(-uniforms[..., 1:, 1])
        steps = self.step + self.gap_time * longer
        return xp.concat([xp.zeros_like(steps[..., :1]), xp.cumulative_sum(steps, axis=-1)], axis=-1)


@check_keywords
@dataclass(frozen=True, kw_only=True, eq=False)
class MovementFields:
    """Covariances are a number (times I), a list (the diagonal) or a matrix; 0 for a part that is not there.

    A step of time is `step` long and, with probability `gaps`, longer by `gap_time` on average.
    """

    dim: int = 4
    fast_cov: Numbers = 0.5
    fast_time: float = 10.0
    level_cov: Numbers = 0.5
    level_walk: Numbers = 0.001
    cycle_cov: Numbers = 0.0
    periods: list[float] | tuple[float, ...] = ()
    bias_cov: Numbers = 1.0
    bias_time: float = 0.0
    bias_walk: Numbers = 0.001
    error_cov: Numbers = 0.5
    error_time: float = 5.0
    noise_cov: Numbers = 0.5
    step: float = 1.0
    gaps: float = 0.0
    gap_time: float = 100.0

    @cached_property
    def dynamics(self) -> Dynamics:
        """The dynamics that these fields describe, checked."""
        dim = validation.count("dim", self.dim, most=MOST_DIM)
        bias_time = validation.not_negative("bias_time", self.bias_time) or np.inf
        periods, cycles = self._cycles()
        fast, bias = self._part("fast", self.fast_time), self._part("bias", bias_time)
        for name, part in (("fast_cov", fast), ("bias_cov", bias)):
            if part is None:
                raise InputError(name, 0, "a covariance: this part there is always")
        return Dynamics(
            fast=fast,
            bias=bias,
            white=validation.covariance("noise_cov", self.noise_cov, dim),
            level=self._part("level", np.inf),
            error=self._part("error", self.error_time),
            periods=periods,
            cycles=cycles,
            since=0.0,  # the courses of all units begin there, whenever one is read first
        ).check(dim)

    @cached_property
    def spacing(self) -> Spacing:
        """The spacing of rounds that these fields describe, checked."""
        check_share("gaps", self.gaps, 1.0)
        step, longer = validation.positive("step", self.step), validation.positive("gap_time", self.gap_time)
        return Spacing(step, float(self.gaps), longer)

    def moments(self, rounds: int) -> dict[str, Array]:
        """Covariances of context, noise and bias; those that grow are averaged over the rounds."""
        dynamics, half = self.dynamics, 0.5 * (rounds - 1) * self.spacing.mean
        zero = np.zeros((self.dim, self.dim))
        level = zero if dynamics.level is None else _average(dynamics.level, half)
        cycles = zero if dynamics.cycles is None else dynamics.cycles.sum(0)
        return {
            "context_cov": dynamics.fast.cov + level + cycles,
            "noise_cov": self.white + (zero if dynamics.error is None else dynamics.error.cov),
            "bias_cov": _average(dynamics.bias, half),
        }

    @property
    def white(self) -> Array:
        """The covariance of the noise that is new in every reading."""
        return validation.covariance("noise_cov", self.noise_cov, self.dim)

    def _part(self, name: str, time: float) -> Any:
        """A part, or None; one that walks may start with covariance 0."""
        walks = isinstance(time, float) and time == np.inf and f"{name}_walk" in vars(self)
        time = time if walks else validation.positive(f"{name}_time", time)
        cov, walk = self._cov(f"{name}_cov"), self._cov(f"{name}_walk") if walks else None
        if cov is None and walk is None:
            return None
        return Moving(np.zeros((self.dim, self.dim)) if cov is None else cov, time, walk)

    def _cycles(self) -> tuple[tuple[float, ...], Array | None]:
        """The periods of cycles, and a covariance for each."""
        cov, values = self._cov("cycle_cov"), self.periods
        if not isinstance(values, list | tuple) or (cov is None) != (not values):
            raise InputError("periods", values, "a list of positive numbers with a cycle_cov, none without")
        periods = tuple(validation.positive("periods", one) for one in values)
        return periods, None if cov is None else np.tile(cov, (len(periods), 1, 1))

    def _cov(self, field: str) -> Array | None:
        """A covariance, or None for the number 0."""
        value: Any = vars(self)[field]
        zero = isinstance(value, int | float) and not isinstance(value, bool) and value == 0
        return None if zero else validation.covariance(field, value, self.dim)


def _average(part: Moving, half: float) -> Array:
    """The covariance of a part, averaged over the time of a course; `half` is half of that time."""
    return part.cov if part.walk is None else part.cov + half * part.walk


class Course(NamedTuple):
    """A trial: times (..., n), the rest (..., units, n, d)."""

    times: Array
    contexts: Array
    biases: Array
    errors: Array


def draws(dynamics: Dynamics, rounds: int, units: int, dim: int) -> dict[str, Draws]:
    """The draws that a course is made from."""
    base = {
        "path": Draws("normal", (len(PARTS), units, rounds, dim)),
        "times": Draws("uniform", (rounds, 2)),
    }
    cycles = {"cycles": Draws("normal", (units, len(dynamics.periods), 2, dim))}
    return {**base, **(cycles if dynamics.periods else {})}


def course(dynamics: Dynamics, mean: Array, spacing: Spacing, samples: Mapping[str, Array]) -> Course:
    """The course of every trial."""
    normals = samples["path"]
    xp = normals.__array_namespace__()
    times = spacing.times(samples["times"])
    steps = xp.concat([times[..., :1], times[..., 1:] - times[..., :-1]], axis=-1)[..., None, :]
    parts = {
        name: move_part(part, normals[..., index, :, :, :], steps)
        for index, name in enumerate(PARTS)
        if (part := dynamics._asdict()[name]) is not None
    }
    zero = xp.zeros_like(parts["bias"])
    contexts = xp.asarray(mean) + parts["fast"] + parts.get("level", zero)
    if dynamics.periods:
        contexts = contexts + sum_cycles(dynamics, samples["cycles"], times)
    return Course(times, contexts, parts["bias"], parts.get("error", zero))


def move_part(part: Moving, normals: Array, steps: Array) -> Array:
    """A part at all times (..., n, d) from as many normals, after steps (..., n), the first of which is 0."""
    xp = normals.__array_namespace__()
    start = matvec(xp.asarray(singular_root(part.cov)), normals)
    if part.time == np.inf:
        keep = xp.ones_like(steps)
        walk = xp.zeros_like(start)
        if part.walk is not None:
            walk = matvec(xp.asarray(singular_root(part.walk)), normals)
        fresh = xp.sqrt(steps)[..., None] * walk
    else:
        keep = xp.exp(-steps / part.time) if part.time else (steps == 0).astype(steps.dtype)
        fresh = xp.sqrt(1 - keep**2)[..., None] * start
    fresh = xp.concat([start[..., :1, :], fresh[..., 1:, :]], axis=-2)
    return recurrence(xp.broadcast_to(keep, fresh.shape[:-1]), fresh)


def sum_cycles(dynamics: Dynamics, normals: Array, times: Array) -> Array:
    """The sum of all cycles at these times (..., units, n, d), from normals (..., units, p, 2, d)."""
    xp = normals.__array_namespace__()
    total = 0.0
    for index, period in enumerate(dynamics.periods):
        amplitudes = matvec(
            xp.asarray(singular_root(np.asarray(dynamics.cycles)[index])), normals[..., index, :, :]
        )
        angle = (2 * np.pi / period * times)[..., None, :, None]
        total = total + amplitudes[..., :1, :] * xp.cos(angle) + amplitudes[..., 1:, :] * xp.sin(angle)
    return total  # type: ignore[return-value]


@check_keywords
@dataclass(frozen=True, kw_only=True, eq=False)
class TemporalProblem(UnitFields, MovementFields, Composed):
    """A synthetic world in time, whose truth is known: contexts and errors move as a `Dynamics` has it.

        c(t)    = mu_c + level + fast + cycles          chat(t) = c(t) + bias + error + white

    The course of a trial is drawn once, for `path_rounds` rounds; then it stays. Units have contexts and
    biases of their own. Scores are phi(a, c)'theta*, and regret is against c itself.

    Agents are told moments: the mean and the covariance of contexts, the covariance of error and white
    together as that of the noise, and that of the bias; what walks is averaged over the rounds of the course.
    And they are told `dynamics`, the constants of time as they are, unless `tell_dynamics` is false.

    For constants of time see `MovementFields`, for the others `GaussianProblem`.

    The white part is the channel's noise: `assumed_noise_cov`, `tails` and `missing` are about it alone. The
    bias moves by fields of its own, and `drift_cov` is refused.

    >>> import unfog
    >>> problem = unfog.TemporalProblem(dim=2, actions=5, revealed=0.1)
    >>> result = unfog.run(problem, agents=["temporal", "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()
    [7.5, 15.1]
    """

    actions: int | Array = 40
    action_law: str = "normal"
    features: str | MapBuilder = "product"
    context_mean: Numbers = 1.0
    path_rounds: int = 1000
    prior_mean: Numbers = 0.0
    prior_cov: Numbers = 0.25
    reward_var: float = 1.0
    tell_dynamics: bool = True
    has_bias = False

    def __post_init__(self) -> None:
        """Check every field, and make the parts."""
        _ = self._parts

    def _compose(self) -> Parts:
        dynamics, dim, owners = self.dynamics, self.dim, contexts.units(self)
        self._check(owners.number)
        payoff = Noisy(validation.positive("reward_var", self.reward_var))
        arm_set = arms(self.actions, self.action_law, self.features, dim)
        laws: Any = {"context_mean": self.context_mean, **self.moments(self.path_rounds)}
        known = described(dim, arm_set.one(), payoff, self.prior_mean, self.prior_cov, **laws)
        white = measurement.make_measurement(self, known._replace(noise_cov=self.white))
        known = known._replace(dynamics=dynamics if self.tell_dynamics else None)
        return Parts(known, assumed_law(known), white, arm_set, payoff, units=owners)

    def _assume(self, known: Knowledge, channel: Measurement) -> Knowledge:
        """What agents know, with the white part that they assume."""
        if not channel.is_misspecified:
            return known
        white, error, dynamics = channel.known.noise_cov, self.dynamics.error, known.dynamics
        noise = white + (np.zeros_like(white) if error is None else error.cov)
        assumed = None if dynamics is None else dynamics._replace(white=white)
        return known._replace(noise_cov=noise, dynamics=assumed)

    def _check(self, number: int) -> None:
        """Raise InputError for courses that are too large, and for fields without a meaning here."""
        rounds = validation.count("path_rounds", self.path_rounds, most=MOST_ROUNDS)
        if number * rounds * self.dim > MOST_NUMBERS:
            raise InputError("path_rounds", rounds, f"so few that units x rounds x dim <= {MOST_NUMBERS:,}")
        validation.flag("tell_dynamics", self.tell_dynamics)
        if not isinstance(self.drift_cov, int | float) or self.drift_cov != 0:
            raise InputError("drift_cov", self.drift_cov, "0: here bias_walk and bias_time move the bias")

    def truth_draws(self) -> Mapping[str, Draws]:
        """Normals for theta*, the actions, and the course."""
        inherited = {
            name: one for name, one in super().truth_draws().items() if name not in ("bias", "units")
        }
        return {**inherited, **draws(self.dynamics, self.path_rounds, self.units, self.dim)}

    def truth(self, draws: Mapping[str, Array]) -> Truth:
        """theta*, the actions and the course of a trial; the bias is that of the first unit, at the start."""
        parts = self._parts
        trial = course(self.dynamics, parts.known.context_mean, self.spacing, draws)
        bias = trial.biases[..., 0, 0, :]
        return Truth(self._theta(draws), bias, parts.arms.features(draws), course=trial)

    def emit(self, truth: Truth, normals: Array, number: Ints | None = None) -> Emission:
        """The context of a round's unit at the round's time, and its measurement."""
        parts, trial, batch = self._parts, truth.course, normals.shape[:-1]
        xp = normals.__array_namespace__()
        index = xp.clip(xp.asarray(0 if number is None else number), 0, self.path_rounds - 1)
        unit = self._unit(normals, number)
        unit_ids = xp.zeros(batch, dtype=xp.int32) if unit is None else unit
        context, bias, error = (contexts.own(one, unit_ids, index) for one in trial[1:])
        own = parts.contexts.normals
        rest = normals[..., own : own + parts.channel.normals()]
        emission = measurement.emit(
            parts.channel, context, truth._replace(bias=bias + error), rest, number, None
        )
        at = xp.broadcast_to(trial.times[..., index], batch)
        return emission._replace(at=at, bias=bias, unit=unit if self.observe_units else None)
