"""A world composed of parts: contexts x channel x arms x payoff, all scores being phi(a, c)'theta*.

`Arms` are the actions, given or drawn once a trial, and the map that makes features of them. A payoff is what
a score pays: Gaussian noise around it (`Noisy`), or 0 and 1 by its sigmoid (`Binary`). A round's normals are
laid out in this order: the contexts' own, the channel's (noise first), those that say whose round it is where
there are several units, the reward's.

`Sample` is the posterior of a context that is one of a finite sample: Bayes' rule over its atoms. Given the
true channel, gamma_t included, but not the lost coordinates, the posterior weights are

    w_i ~ p(chat - gamma_t - u_i),    p the density of the noise in the coordinates that were measured,

Gaussian or Student's t. The Gaussian belief of `best` (worlds/measurement.py) has the sample's first two
moments right and its shape wrong. Here the posterior is reduced to its mean and covariance, which is exact
for everything that depends on these alone: expected features of at most the second degree, and rewards with
Gaussian noise.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from unfog import _memory, validation
from unfog.channel.knowledge import Knowledge, masked_inverse
from unfog.features.base import Context, FeatureMap, MapBuilder
from unfog.features.linear import product
from unfog.features.link import Identity, Rewards, Sigmoid
from unfog.features.per_arm import effect_groups
from unfog.features.quadratic import quadratic
from unfog.features.registry import BUILT_IN, builder, check_map, numbers, prior
from unfog.maths import gaussian, mixture
from unfog.maths.arrays import Array, Ints
from unfog.maths.gaussian import Belief
from unfog.maths.logistic import NODES, sigmoid
from unfog.validation import InputError, Numbers, check_keywords
from unfog.worlds import contexts, measurement
from unfog.worlds.contexts import Atoms, Contexts, RecordTime, Units
from unfog.worlds.measurement import ChannelFields, KnowledgeFields, Measurement, add_knowledge
from unfog.worlds.problem import Draws, Emission, Truth

ActionLaw = Literal["normal", "uniform", "folded"]
ACTION_LAWS: tuple[ActionLaw, ...] = get_args(ActionLaw)
MOST_ACTIONS = 10**6
FEW = 2  # actions that are enough to check a map that does not depend on their number
ALIKE = (quadratic, product)
BARE = ("per_arm", "slopes", "own")  # maps whose arms differ by their index alone
PRIORS = 5  # matrices of theta's size in memory while a covariance is checked and its root computed
LAWS = ("context_mean", "context_cov", "noise_cov", "bias_cov")


class Arms(NamedTuple):
    """The actions of a world and their feature map."""

    build: MapBuilder
    shape: tuple[int, ...]  # (K, ...) of the actions of one trial
    actions: Array | None  # the actions where they are not drawn
    law: ActionLaw  # uniform: on [-1, 1]; folded: the absolute value of a normal

    def one(self) -> FeatureMap:
        """The features of one set of actions: those given, or zeros, as few as are enough (`sample_size`)."""
        return self.build(
            np.zeros((self.sample_size, *self.shape[1:])) if self.actions is None else self.actions
        )

    @property
    def sample_size(self) -> int:
        """How many actions `one` has: only a few for a map that does not depend on their number."""
        return min(FEW, self.shape[0]) if self.build in ALIKE and self.actions is None else self.shape[0]

    def cells(self) -> int:
        """Numbers that one design keeps in memory temporarily, beyond a few for each arm."""
        return self.one().cells

    def table(self) -> int:
        """Numbers that the map of one trial keeps, without actions that the caller gave."""
        features, actions = self.one(), np.empty(0) if self.actions is None else self.actions
        values = features if isinstance(features, tuple) else vars(features).values()
        arrays = [x for x in values if isinstance(x, np.ndarray) and not np.may_share_memory(x, actions)]
        return sum(x.size for x in arrays) * self.shape[0] // self.sample_size

    def draws(self) -> dict[str, Draws]:
        """The draws that actions are made from; none if the caller gave them."""
        law: Literal["normal", "uniform"] = "uniform" if self.law == "uniform" else "normal"
        return {} if self.actions is not None else {"actions": Draws(law, self.shape)}

    def features(self, draws: Mapping[str, Array]) -> FeatureMap:
        """The feature map of every trial."""
        if self.actions is None:
            return self.build(_draw_actions(self.law, draws["actions"]))
        xp = draws["theta"].__array_namespace__()
        trials = draws["theta"].shape[:-1]
        return self.build(xp.broadcast_to(xp.asarray(self.actions), (*trials, *self.actions.shape)))


def arms(actions: object, law: str, features: str | MapBuilder, dim: int) -> Arms:
    """The arms that these fields describe, checked.

    >>> from unfog.worlds.composed import arms
    >>> made = arms(10, "normal", "quadratic", dim=2)
    >>> made.shape, made.one().size
    ((10, 2), 6)
    """
    build, is_built_in = builder(features), isinstance(features, str) and features in BUILT_IN
    action_law = next(one for one in ACTION_LAWS if one == validation.one_of("action_law", law, ACTION_LAWS))
    if isinstance(actions, bool | int | float | np.number | str) and features != "matrix":
        shape = validation.count("actions", actions, most=MOST_ACTIONS), dim
        # Arms with features of their own need no actions: zeros take their place.
        result = Arms(build, shape, np.zeros(shape) if features in BARE else None, action_law)
        if build not in ALIKE:  # the check below needs all of them
            _memory.check_memory(("actions", "dim"), f"{shape[0]}, {dim}: they take", 16 * shape[0] * dim)
    else:
        values = _read_actions(actions, dim, features if is_built_in else None)
        result = Arms(build, values.shape, values, action_law)
    check_map(result.one, result.sample_size, dim)
    return result


def _draw_actions(law: ActionLaw, draws: Array) -> Array:
    """Actions of this law, from standard draws."""
    if law == "uniform":
        return 2 * draws - 1
    return draws if law == "normal" else abs(draws)


def _read_actions(actions: object, dim: int, name: object) -> Array:
    """The actions that a caller gives; maps written in Python may take any shape."""
    if name in BARE:
        raise InputError("actions", actions, f"a whole number: with {name} an arm has no numbers of its own")
    if name == "matrix":
        allowed = f"K matrices of m rows of {dim} numbers"
        matrices = validation.rows("actions", actions, None, allowed)
        if matrices.ndim != 3 or matrices.shape[2] != dim:
            raise InputError("actions", f"an array of shape {matrices.shape}", allowed)
        return matrices
    width = None if name is None else dim
    return validation.rows("actions", actions, width, f"a whole number, or K rows of {dim} numbers")


class Noisy(NamedTuple):
    """r = score + N(0, sigma^2); a share of rewards is `outlier` instead, of which agents are not told.

    >>> from unfog.worlds.composed import Noisy
    >>> Noisy(reward_var=1.0).normals, Noisy(reward_var=1.0, outliers=0.1).normals
    (1, 2)
    """

    reward_var: float
    outliers: float = 0.0
    outlier: float = 0.0
    rewards: Rewards = Identity()

    @property
    def normals(self) -> int:
        """One for the noise; with outliers another before it, which decides whether the reward is one."""
        return 2 if self.outliers else 1

    @property
    def plain(self) -> bool:
        """Whether rewards are as agents are told."""
        return not self.outliers

    @property
    def variance(self) -> Array:
        """sigma^2."""
        return np.asarray(self.reward_var)

    def pay(self, score: Array, normals: Array) -> Array:
        """The score plus N(0, sigma^2)."""
        paid = score + self.reward_var**0.5 * normals[..., -1]
        if not self.outliers:
            return paid
        xp = paid.__array_namespace__()
        is_outlier = normals[..., -2] < NormalDist().inv_cdf(self.outliers)
        rewards: Array = xp.where(is_outlier, xp.asarray(self.outlier, dtype=paid.dtype), paid)
        return rewards


class Binary(NamedTuple):
    """r ~ Bernoulli(sigmoid(score)). Two normals make a uniform number, exp(-(x^2 + y^2) / 2)."""

    nodes: int = NODES
    normals: int = 2
    variance: None = None
    plain: bool = True

    @property
    def rewards(self) -> Rewards:
        """Mean rewards are probabilities, averaged with so many nodes."""
        return Sigmoid(nodes=self.nodes)

    def pay(self, score: Array, normals: Array) -> Array:
        """1 with probability sigmoid(score), else 0."""
        xp = score.__array_namespace__()
        uniform = xp.exp(-0.5 * (normals[..., -2] ** 2 + normals[..., -1] ** 2))
        return xp.where(uniform < sigmoid(score), xp.ones_like(score), xp.zeros_like(score))


Payoff: TypeAlias = Noisy | Binary


class Sample(NamedTuple):
    """The atoms, and the channel they are seen through."""

    points: mixture.Points
    channel: Measurement
    precision: Array  # (d, d)  of the noise as it is

    def posterior(self, emission: Emission, bias: Array) -> Context:
        """The posterior given a round's measurement; `bias` is that of all rounds, unless it drifts."""
        noisy = emission.noisy
        xp = noisy.__array_namespace__()
        precision = xp.asarray(self.precision, dtype=noisy.dtype)
        if emission.mask is not None:
            precision = masked_inverse(xp.asarray(self.channel.noise_cov, dtype=noisy.dtype), emission.mask)
        seen = noisy - (bias if emission.bias is None else emission.bias)
        return Context(
            *mixture.points_posterior(
                mixture.like(self.points, noisy), precision, seen, float(self.channel.tails)
            )
        )


def sample(points: Array, channel: Measurement) -> Sample:
    """The sample of these atoms (n, d), seen through a channel."""
    xp = channel.noise_cov.__array_namespace__()
    return Sample(mixture.points(points), channel, xp.linalg.inv(channel.noise_cov))


class Parts(NamedTuple):
    """What a world is made of.

    >>> from unfog.worlds.composed import Parts
    >>> Parts._fields[:5]
    ('known', 'contexts', 'channel', 'arms', 'payoff')
    """

    known: Knowledge
    contexts: Contexts
    channel: Measurement
    arms: Arms
    payoff: Payoff
    record_time: RecordTime | None = None  # of the record that contexts or errors come from
    units: Units = Units()


@check_keywords
@dataclass(frozen=True, kw_only=True, eq=False)
class Composed(KnowledgeFields, ChannelFields, ABC):
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
    units, observe_units = 1, True  # unless a world has fields for several
    steady = False  # every round has a context of its own, unless a world has it otherwise
    packages: ClassVar[tuple[str, ...]] = ()  # those besides NumPy whose versions decide the world
    note: str = field(init=False, repr=False, default="")

    @abstractmethod
    def _compose(self) -> Parts:
        """Make the parts and check them; called once, when they are first needed."""

    @cached_property
    def _parts(self) -> Parts:
        parts = self._compose()
        if self.trouble_from and parts.channel.is_misspecified and isinstance(parts.contexts, Atoms):
            allowed = "0 where contexts are drawn from a sample and assumed_noise_cov is given"
            raise InputError("trouble_from", self.trouble_from, allowed)
        known = self._assume(parts.known, parts.channel)
        known = add_knowledge(self, known, parts.contexts, parts.channel)
        return parts._replace(known=known._replace(groups=effect_groups(parts.arms.one())))

    def _assume(self, known: Knowledge, channel: Measurement) -> Knowledge:
        """What agents know, with the noise that they assume."""
        return known._replace(noise_cov=channel.known.noise_cov)

    @cached_property
    def _prior(self) -> Belief:
        mean, cov = self._parts.known.prior_mean, self._parts.known.prior_cov
        return gaussian.belief_from_moments(mean, cov)

    def knowledge(self) -> Knowledge:
        """What agents are told."""
        return self._parts.known

    @property
    def rewards(self) -> Rewards:
        """How rewards depend on scores."""
        return self._parts.payoff.rewards

    @property
    def plain(self) -> bool:
        """Whether channel, theta and rewards are as agents are told, and all true contexts shown at once."""
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
        return self.units if self.observe_units else 1

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
        """Numbers that the features of one round keep in memory temporarily."""
        return self._parts.arms.cells() + self._parts.channel.cells()

    def table(self) -> int:
        """Numbers that the features of a trial keep as long as it is played."""
        return self._parts.arms.table()

    def truth_draws(self) -> Mapping[str, Draws]:
        """Normals for theta* and gamma*, the actions where they are drawn, a number for the first row."""
        parts = self._parts
        draws = {"theta": Draws("normal", parts.known.prior_mean.shape), **parts.channel.draws()}
        others = {"units": Draws("normal", (self.units - 1, parts.known.context_mean.shape[0]))}
        first = {"first": Draws("uniform", ())} if parts.record_time else {}
        steady = {"context": Draws("normal", (parts.contexts.normals,))} if self.steady else {}
        return {**draws, **parts.arms.draws(), **first, **(others if self.units > 1 else {}), **steady}

    def truth(self, draws: Mapping[str, Array]) -> Truth:
        """theta*, gamma* and the actions of a trial, and its first row."""
        parts, theta = self._parts, self._theta(draws)
        xp = theta.__array_namespace__()
        bias, path = parts.channel.bias(draws)
        first = xp.floor(draws["first"] * parts.record_time.rows) if parts.record_time else None
        biases = parts.channel.of_units(bias, draws["units"]) if self.units > 1 else None
        context = parts.contexts.draw(draws["context"], None) if self.steady else None
        return Truth(theta, bias, parts.arms.features(draws), first, path, biases, context)

    def _theta(self, draws: Mapping[str, Array]) -> Array:
        """theta* of a trial, from the prior."""
        xp = draws["theta"].__array_namespace__()
        return type(self._prior)(*map(xp.asarray, self._prior)).sample(self.theta_scale * draws["theta"])

    def round_normals(self) -> int:
        """The normals of a context, its measurement, its unit and its reward."""
        parts = self._parts
        return parts.contexts.normals + parts.channel.normals() + parts.units.normals + parts.payoff.normals

    def emit(self, truth: Truth, normals: Array, number: Ints | None = None) -> Emission:
        """A context and its measurement."""
        parts, own = self._parts, self._parts.contexts.normals
        row, at = (None, None) if parts.record_time is None else parts.record_time.read(truth.first, number)
        context = self._context(truth, normals[..., :own], row)
        unit, rest = self._unit(normals, number), normals[..., own : own + parts.channel.normals()]
        if unit is not None and truth.biases is not None:
            truth = truth._replace(bias=contexts.own(truth.biases, unit))
        emission = measurement.emit(parts.channel, context, truth, rest, number, row)._replace(at=at)
        if unit is not None:
            emission = emission._replace(bias=truth.bias, unit=unit if self.observe_units else None)
        if truth.context is not None:  # it can be learnt, so regret is against the context itself
            xp = context.__array_namespace__()
            no_cov = xp.zeros((context.shape[-1],) * 2, dtype=context.dtype)
            return emission._replace(best=Context(context, no_cov))
        if not self.has_bias:  # likewise
            return emission
        return emission._replace(best=measurement.best(parts.channel, emission, truth.bias, number))

    def _context(self, truth: Truth, normals: Array, row: Ints | None) -> Array:
        """The context of the trial, if all rounds share one, else that of the round."""
        if truth.context is None:
            return self._parts.contexts.draw(normals, row)
        xp = normals.__array_namespace__()
        return xp.broadcast_to(truth.context, (*normals.shape[:-1], truth.context.shape[-1]))

    def _unit(self, normals: Array, number: Ints | None) -> Ints | None:
        """The unit that the round belongs to."""
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
        """The posterior of a context that is one of a sample, by Bayes' rule."""
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
    """The knowledge of agents, from fields that are numbers, lists or matrices; errors name the field.

    `blame` are the fields that say how many features there are.

    >>> from unfog.worlds.composed import arms
    >>> from unfog.worlds.composed import described
    >>> from unfog.worlds.composed import Noisy
    >>> laws = {"context_mean": 0.0, "context_cov": 1.0, "noise_cov": [0.5, 2.0], "bias_cov": 1.0}
    >>> known = described(2, arms(3, "normal", "product", 2).one(), Noisy(1.0), 0.0, 0.1, **laws)
    >>> known.noise_cov.tolist()
    [[0.5, 0.0], [0.0, 2.0]]
    """
    what = f"the prior of {features.size} features takes"
    _memory.check_memory(blame, what, PRIORS * 8 * numbers(features, prior_cov))
    moments: dict[str, Any] = {
        name: (validation.vector if name == "context_mean" else validation.covariance)(name, value, dim)
        for name, value in laws.items()
    }
    mean, cov = prior(features, prior_mean, prior_cov)
    return Knowledge(**moments, prior_mean=mean, prior_cov=cov, reward_var=payoff.variance)
