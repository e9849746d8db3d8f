"""A world put together: contexts x channel x arms x payoff, all scores being phi(a, c)'theta*.

A round's normals are laid out in this order: the contexts' own, the channel's (noise first), those that say
whose round it is where there are several units, the reward's.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from unfog import _memory, validation
from unfog.channel.knowledge import Knowledge
from unfog.features.base import Context, FeatureMap
from unfog.features.link import Rewards
from unfog.features.registry import numbers, prior
from unfog.maths import gaussian
from unfog.maths.arrays import Array, Ints
from unfog.maths.gaussian import Belief
from unfog.validation import InputError, Numbers
from unfog.worlds import channel as channels
from unfog.worlds import units
from unfog.worlds.arms import Arms
from unfog.worlds.channel import Channel, ChannelFields
from unfog.worlds.clock import Clock
from unfog.worlds.contexts import Atoms, Contexts
from unfog.worlds.discrete import Sample, sample
from unfog.worlds.payoffs import Payoff
from unfog.worlds.problem import Draws, Emission, Truth
from unfog.worlds.told import ToldFields, told
from unfog.worlds.units import Units

PRIORS = 5  # matrices of theta's size while a covariance is checked, and its root taken
LAWS = ("context_mean", "context_cov", "noise_cov", "bias_cov")


class Parts(NamedTuple):
    """What a world is made of.

    >>> from unfog.worlds.composed import Parts
    >>> Parts._fields[:5]
    ('known', 'contexts', 'channel', 'arms', 'payoff')
    """

    known: Knowledge
    contexts: Contexts
    channel: Channel
    arms: Arms
    payoff: Payoff
    clock: Clock | None = None  # of the record that contexts or errors come from
    units: Units = Units()


@dataclass(frozen=True, kw_only=True, eq=False)
class Composed(ToldFields, ChannelFields, ABC):
    """The fields of every world, and the `Problem` made of parts, which subclasses put together.

    >>> import unfog
    >>> from unfog.worlds.composed import Composed
    >>> issubclass(unfog.GaussianProblem, Composed)
    True
    >>> unfog.GaussianProblem(dim=2, actions=5).plain  # all is as agents are told
    True
    """

    has_bias = True
    theta_scale = 1.0  # what agents are told of theta's spread is right, unless a world has it otherwise
    units, tell_units = 1, True  # unless a world has fields for several
    steady = False  # every round has a context of its own, unless a world has it otherwise
    packages: ClassVar[tuple[str, ...]] = ()  # those besides NumPy whose versions decide the world
    note: str = field(init=False, repr=False, default="")

    @abstractmethod
    def _compose(self) -> Parts:
        """The parts, checked; asked for once, when they are first needed."""

    @cached_property
    def _parts(self) -> Parts:
        made = self._compose()
        other = made.channel.noise_cov is not made.known.noise_cov
        if self.trouble_from and other and isinstance(made.contexts, Atoms):
            allowed = "0 where contexts are drawn from a sample and actual_noise_cov is given"
            raise InputError("trouble_from", self.trouble_from, allowed)
        return made._replace(known=told(self, made.known, made.contexts, made.channel))

    @cached_property
    def _prior(self) -> Belief:
        mean, cov = self._parts.known.prior_mean, self._parts.known.prior_cov
        return gaussian.belief_from_moments(mean, cov, in_blocks=cov.ndim == 3)

    def knowledge(self) -> Knowledge:
        """What agents are told."""
        return self._parts.known

    @property
    def rewards(self) -> Rewards:
        """How rewards hang on scores."""
        return self._parts.payoff.rewards

    @property
    def plain(self) -> bool:
        """Whether channel, theta and rewards are as agents are told, and no true context is held back."""
        return (
            self._parts.channel.plain
            and self._parts.payoff.plain
            and self.theta_scale == 1
            and self.units == 1
            and not self.steady
            and not self.partial
        )

    @property
    def several(self) -> int:
        """How many units agents are told of."""
        return self.units if self.tell_units else 1

    @property
    def digest(self) -> str:
        """The sha256 of a file of one's own that the world is made of; empty where there is none."""
        return ""

    @property
    def discrete(self) -> bool:
        """Whether contexts are drawn from a finite sample; worlds of `Atoms` say so."""
        return False

    def arms(self) -> int:
        """How many actions there are."""
        return self._parts.arms.shape[0]

    def cells(self) -> int:
        """Numbers that the features of one round keep in memory for a moment."""
        return self._parts.arms.cells() + self._parts.channel.cells()

    def table(self) -> int:
        """Numbers that the features of a trial keep as long as it is played."""
        return self._parts.arms.table()

    def truth_draws(self) -> Mapping[str, Draws]:
        """Normals for theta* and gamma*, the actions where they are drawn, a number for the first row."""
        parts = self._parts
        draws = {"theta": Draws("normal", parts.known.prior_mean.shape), **parts.channel.draws()}
        others = {"units": Draws("normal", (self.units - 1, parts.known.context_mean.shape[0]))}
        first = {"first": Draws("uniform", ())} if parts.clock else {}
        steady = {"context": Draws("normal", (parts.contexts.normals,))} if self.steady else {}
        return {**draws, **parts.arms.draws(), **first, **(others if self.units > 1 else {}), **steady}

    def truth(self, draws: Mapping[str, Array]) -> Truth:
        """theta*, gamma* and the actions of a trial, and its first row."""
        parts, theta = self._parts, self._theta(draws)
        xp = theta.__array_namespace__()
        bias, path = parts.channel.bias(draws)
        first = xp.floor(draws["first"] * parts.clock.rows) if parts.clock else None
        biases = parts.channel.of_units(bias, draws["units"]) if self.units > 1 else None
        context = parts.contexts.draw(draws["context"], None) if self.steady else None
        return Truth(theta, bias, parts.arms.features(draws), first, path, biases, context)

    def _theta(self, draws: Mapping[str, Array]) -> Array:
        """theta* of a trial, from the prior."""
        xp = draws["theta"].__array_namespace__()
        return type(self._prior)(*map(xp.asarray, self._prior)).sample(self.theta_scale * draws["theta"])

    def round_normals(self) -> int:
        """A context's, its measurement's, its unit's and its reward's."""
        parts = self._parts
        return parts.contexts.normals + parts.channel.normals() + parts.units.normals + parts.payoff.normals

    def emit(self, truth: Truth, normals: Array, number: Ints | None = None) -> Emission:
        """A context and its measurement."""
        parts, own = self._parts, self._parts.contexts.normals
        row, at = (None, None) if parts.clock is None else parts.clock.read(truth.first, number)
        context = self._context(truth, normals[..., :own], row)
        unit, rest = self._unit(normals, number), normals[..., own : own + parts.channel.normals()]
        if unit is not None and truth.biases is not None:
            truth = truth._replace(bias=units.own(truth.biases, unit))
        emission = channels.emit(parts.channel, context, truth, rest, number, row)._replace(at=at)
        if unit is not None:
            emission = emission._replace(bias=truth.bias, unit=unit if self.tell_units else None)
        if truth.context is not None:  # it will be found out, so that regret is against the context itself
            xp = context.__array_namespace__()
            nothing = xp.zeros((context.shape[-1],) * 2, dtype=context.dtype)
            return emission._replace(best=Context(context, nothing))
        if not self.has_bias:  # likewise
            return emission
        return emission._replace(best=channels.best(parts.channel, emission, truth.bias, number))

    def _context(self, truth: Truth, normals: Array, row: Ints | None) -> Array:
        """The context of the trial, where there is one for all rounds, else of the round."""
        if truth.context is None:
            return self._parts.contexts.draw(normals, row)
        xp = normals.__array_namespace__()
        return xp.broadcast_to(truth.context, (*normals.shape[:-1], truth.context.shape[-1]))

    def _unit(self, normals: Array, number: Ints | None) -> Ints | None:
        """Whose round it is."""
        parts = self._parts
        before = parts.contexts.normals + parts.channel.normals()
        return parts.units.of(normals[..., before : before + parts.units.normals], number)

    @cached_property
    def _sample(self) -> Sample:
        contexts = self._parts.contexts
        if not isinstance(contexts, Atoms):
            raise TypeError(f"{type(self).__name__} draws its contexts from no sample")
        return sample(contexts.atoms, self._parts.channel)

    def posterior(self, truth: Truth, emission: Emission) -> Context:
        """What Bayes' rule says of a context that is one of a sample."""
        return self._sample.posterior(emission, truth.bias)

    def reward(self, score: Array, normals: Array) -> Array:
        """A reward, from the last of the round's normals."""
        return self._parts.payoff.pay(score, normals)


def described(
    dim: int,
    features: FeatureMap,
    payoff: Payoff,
    prior_mean: Numbers,
    prior_cov: Numbers,
    *,
    blame: tuple[str, ...] = ("actions", "dim"),
    **laws: Numbers,
) -> Knowledge:
    """What agents are told, from fields that are numbers, lists or matrices, checked by their names.

    `blame` are the fields that say how many features there are.

    >>> from unfog.worlds.arms import arms
    >>> from unfog.worlds.composed import described
    >>> from unfog.worlds.payoffs import Noisy
    >>> laws = {"context_mean": 0.0, "context_cov": 1.0, "noise_cov": [0.5, 2.0], "bias_cov": 1.0}
    >>> known = described(2, arms(3, "normal", "product", 2).one(), Noisy(1.0), 0.0, 0.1, **laws)
    >>> known.noise_cov.tolist()
    [[0.5, 0.0], [0.0, 2.0]]
    """
    what = f"the prior of {features.size} features takes"
    _memory.refuse(blame, what, PRIORS * 8 * numbers(features, prior_cov))
    made: dict[str, Any] = {
        name: (validation.vector if name == "context_mean" else validation.covariance)(name, value, dim)
        for name, value in laws.items()
    }
    mean, cov = prior(features, prior_mean, prior_cov)
    return Knowledge(**made, prior_mean=mean, prior_cov=cov, reward_var=payoff.variance)
