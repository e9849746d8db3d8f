"""A live problem's terms made into what a round needs: units, features, knowledge, agents."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from unfog.agents.agent import Agent, refuse_misfit
from unfog.agents.catalogue import Catalogue, named, unknown_channel, without_channel
from unfog.channel import channel as channels
from unfog.channel.knowledge import Knowledge
from unfog.features import FeatureMap
from unfog.features.per_arm import PerArm
from unfog.features.registry import builder, check_map, in_blocks, prior
from unfog.live import memory
from unfog.live.terms import Terms
from unfog.maths.arrays import Array
from unfog.validation import InputError

PAIRS = (
    "{agent} learns from pairs: a reward waits for its true context, which must come whole."
    " Agents such as late take contexts in part, and rewards without."
)
ORDINARY = (
    "No channel is told, so readings are taken for the truth: an ordinary contextual bandit."
    " Pairs of noisy and true contexts from before (unfog.calibrate) are what it would need to do better."
)


class Made:
    """What terms come to."""

    def __init__(self, terms: Terms, *, new: bool = True) -> None:
        """Refuse, by their names, terms that do not go together; new ones, too, for which memory is short."""
        self.terms, d = terms, len(terms.context)
        told = terms.channel
        self.channel = unknown_channel(d) if told is None else told
        standard = terms.standardise and told is not None
        self.units = (channels.standard if standard else channels.as_it_is)(self.channel)
        self._build = builder(terms.features)
        check_map(self.first, len(terms.arms) or 1, d)
        self.agent = self.agent_named("agent", terms.agent, self.first(), new="arms" if new else "")

    @cached_property
    def note(self) -> str:
        """What a caller should know of these terms."""
        if self.terms.channel is None:
            return ORDINARY
        return PAIRS.format(agent=self.agent.name) if self.agent.awaits_context else ""

    def first(self) -> FeatureMap:
        """The map of the arms that there are when the problem is made; of one, where arms come later."""
        terms = self.terms
        return self.features(terms.arms) if terms.arms else self.brought({"": [0.0] * (terms.arm_size or 0)})

    @property
    def per_arm(self) -> bool:
        """Whether an arm needs no numbers of its own, and brings features of its own."""
        return self.terms.features == "per_arm"

    def features(self, arms: Mapping[str, Any]) -> FeatureMap:
        """The map of these arms, in their order."""
        if self.per_arm:
            for name, vector in arms.items():
                if vector is not None:
                    allowed = "a name alone: with per_arm an arm has no numbers of its own"
                    raise InputError(f"arms.{name}", vector, allowed)
            return self._build(np.zeros((len(arms), len(self.terms.context))))
        return self._build(self._vectors("arms", arms))

    def brought(self, arms: Mapping[str, Any]) -> FeatureMap:
        """The map of arms that come with a decision."""
        if self.terms.arm_size is None:
            allowed = "names, or a mapping from names to vectors; or arm_size for arms that come later"
            raise InputError("arms", "none", allowed)
        if self.per_arm:
            allowed = "none with per_arm, where each arm that there is has features of its own"
            raise InputError("arm_size", self.terms.arm_size, allowed)
        return self._build(self._vectors("arms", arms))

    def _vectors(self, field: str, arms: Mapping[str, Any]) -> Array:
        """The numbers of these arms, (K, p)."""
        terms, shape = self.terms, self.arm_shape
        for name, vector in arms.items():
            if vector is None:
                allowed = f"a vector for each arm, with the features {terms.features!r}"
                raise InputError(f"{field}.{name}", "a name alone", allowed)
            found = np.shape(vector)
            if shape is not None and found != shape:
                raise InputError(
                    f"{field}.{name}", vector, f"numbers of shape {shape}, as the other arms have"
                )
        return np.asarray(list(arms.values()), dtype=np.float64)

    @cached_property
    def arm_shape(self) -> tuple[int, ...] | None:
        """The shape of an arm's numbers; None where arms have none."""
        terms = self.terms
        first = next(iter(terms.arms.values()), None)
        shape: tuple[int, ...] | None = (terms.arm_size,) if terms.arm_size else None
        shape = shape if first is None else np.shape(first)
        d = len(terms.context)
        if shape is not None and terms.features in ("product", "quadratic") and shape != (d,):
            raise InputError(
                "arms", f"vectors of shape {shape}", f"vectors of {d} numbers, one for each coordinate"
            )
        if shape is not None and terms.features == "matrix" and (len(shape) != 2 or shape[1] != d):
            raise InputError("arms", f"numbers of shape {shape}", f"matrices of rows of {d} numbers")
        return shape

    def whole(self, shown: Mapping[str, float]) -> Array:
        """A true context in the agents' units, (1, d): not a number where it is not known."""
        raw = np.array([[shown.get(name, np.nan) for name in self.terms.context]])
        return self.units.inside(raw)

    def knowledge(self, features: FeatureMap) -> Knowledge:
        """What agents are told, with a prior for these features."""
        terms = self.terms
        mean, cov = prior(features, terms.prior_mean, terms.prior_cov)
        variance = None if terms.reward_var is None else np.asarray(terms.reward_var)
        return self.channel.told(self.units, prior_mean=mean, prior_cov=cov, reward_var=variance)

    def refuse_large(self, field: str, agent: Agent, features: FeatureMap) -> None:
        """Complain of features of which an agent would take more memory than may be; nothing is made yet."""
        m = features.size
        shape: tuple[int, ...] = m, m
        if isinstance(features, PerArm) and in_blocks(features, self.terms.prior_cov):
            shape = features.arms, features.block, features.block
        mean, cov = (np.broadcast_to(np.zeros(()), size) for size in (m, shape))  # one number each
        told = self.channel.told(self.units, prior_mean=mean, prior_cov=cov, reward_var=None)
        memory.refuse_large(field, agent, told)

    def agent_named(self, field: str, name: str, features: FeatureMap, *, new: str = "") -> Agent:
        """The agent of this name, if it can play here.

        Where it is new `new` is the field that is at fault if it would take too much memory.
        """
        (agent,) = named([name], field, Catalogue(self.terms.rewards))
        if agent.privileged is not None:
            raise InputError(field, f"{name!r} is told the bias", "agents that need not be told the truth")
        if self.terms.channel is None:
            agent = without_channel(field, agent)
        if new:
            self.refuse_large(new, agent, features)
        known = self.knowledge(features)
        try:
            refuse_misfit(
                agent, known, features, rewards=self.terms.rewards, partial=False, has_bias=False, logged=True
            )
        except InputError as error:
            raise error.renamed(field) from None
        return agent


def needed(channel: dict[str, Any] | None, agent: Agent) -> dict[str, Any] | None:
    """A channel as it is written, without samples of contexts that this agent never looks at."""
    if channel is None:
        return None
    unused = {"sample", "contexts"} - {*agent.denoiser.needs_knowledge}
    return {name: value for name, value in channel.items() if name not in unused}
