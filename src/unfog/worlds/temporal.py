"""A synthetic world in time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unfog import validation
from unfog.features.base import MapBuilder
from unfog.maths.arrays import Array, Ints
from unfog.validation import InputError, Numbers
from unfog.worlds import channel as channels
from unfog.worlds import course, units
from unfog.worlds.arms import arms
from unfog.worlds.composed import Composed, Parts, described
from unfog.worlds.contexts import as_told
from unfog.worlds.movement import MovementFields
from unfog.worlds.payoffs import Noisy
from unfog.worlds.problem import Draws, Emission, Truth
from unfog.worlds.units import UnitFields

MOST_ROUNDS = 10**6
MOST_NUMBERS = 10**7  # of a trial's course


@dataclass(frozen=True, kw_only=True, eq=False)
class TemporalProblem(UnitFields, MovementFields, Composed):
    """A synthetic world in time, whose truth is known: contexts and errors move as channel/dynamics.py has
    it.

        c(t)    = mu_c + level + fast + cycles          chat(t) = c(t) + bias + error + white

    The course of a trial is drawn once (worlds/course.py), for `path_rounds` rounds; then it stays. Units
    have contexts and biases of their own. Scores are phi(a, c)'theta*, and regret is against c itself.

    Agents are told moments: the mean and the covariance of contexts, the covariance of error and white
    together as that of the noise, and that of the bias; what walks is averaged over the rounds of the course.
    And they are told `tempo`, the constants of time as they are, unless `tell_tempo` is false.

    For constants of time see `MovementFields`, for the others `GaussianProblem`.

    The white part is the channel's noise: `actual_noise_cov`, `tails` and `missing` are about it alone. The
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
    tell_tempo: bool = True
    has_bias = False

    def __post_init__(self) -> None:
        """Check every field, and make the parts."""
        _ = self._parts

    def _compose(self) -> Parts:
        tempo, dim, owners = self.tempo, self.dim, units.units(self)
        self._check(owners.number)
        payoff = Noisy(validation.positive("reward_var", self.reward_var))
        found = arms(self.actions, self.action_law, self.features, dim)
        laws: Any = {"context_mean": self.context_mean, **self.moments(self.path_rounds)}
        known = described(dim, found.one(), payoff, self.prior_mean, self.prior_cov, **laws)
        white = channels.channel(self, known._replace(noise_cov=self.white))
        known = known._replace(tempo=tempo if self.tell_tempo else None)
        return Parts(known, as_told(known), white, found, payoff, units=owners)

    def _check(self, number: int) -> None:
        """Refuse what would not fit, or has no meaning here."""
        rounds = validation.count("path_rounds", self.path_rounds, most=MOST_ROUNDS)
        if number * rounds * self.dim > MOST_NUMBERS:
            raise InputError("path_rounds", rounds, f"so few that units x rounds x dim <= {MOST_NUMBERS:,}")
        validation.flag("tell_tempo", self.tell_tempo)
        if not isinstance(self.drift_cov, int | float) or self.drift_cov != 0:
            raise InputError("drift_cov", self.drift_cov, "0: here bias_walk and bias_time move the bias")

    def truth_draws(self) -> Mapping[str, Draws]:
        """Normals for theta*, the actions, and the course."""
        drawn = {name: one for name, one in super().truth_draws().items() if name not in ("bias", "units")}
        return {**drawn, **course.draws(self.tempo, self.path_rounds, self.units, self.dim)}

    def truth(self, draws: Mapping[str, Array]) -> Truth:
        """theta*, the actions and the course of a trial; the bias is that of the first unit, at the start."""
        parts = self._parts
        made = course.course(self.tempo, parts.known.context_mean, self.spacing, draws)
        bias = made.biases[..., 0, 0, :]
        return Truth(self._theta(draws), bias, parts.arms.features(draws), course=made)

    def emit(self, truth: Truth, normals: Array, number: Ints | None = None) -> Emission:
        """The context of a round's unit at the round's time, and its measurement."""
        parts, made, batch = self._parts, truth.course, normals.shape[:-1]
        xp = normals.__array_namespace__()
        place = xp.clip(xp.asarray(0 if number is None else number), 0, self.path_rounds - 1)
        unit = self._unit(normals, number)
        whose = xp.zeros(batch, dtype=xp.int32) if unit is None else unit
        context, bias, error = (units.own(one, whose, place) for one in made[1:])
        own = parts.contexts.normals
        rest = normals[..., own : own + parts.channel.normals()]
        found = channels.emit(parts.channel, context, truth._replace(bias=bias + error), rest, number, None)
        at = xp.broadcast_to(made.times[..., place], batch)
        return found._replace(at=at, bias=bias, unit=unit if self.tell_units else None)
