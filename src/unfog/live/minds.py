"""The agents of a live problem: the one that is obeyed, and its shadows, which see and learn the same."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unfog.agents.base import Moment
from unfog.agents.round import Denoised, Offer
from unfog.channel.knowledge import Knowledge
from unfog.features import FeatureMap
from unfog.live.asking import Ask
from unfog.live.made import Made
from unfog.live.mind import Law, Mind, Seen
from unfog.live.opened import Open
from unfog.maths.arrays import Array
from unfog.validation import InputError

OBEYED = ""  # the name under which the agent stands whose arms are taken


class Choice(NamedTuple):
    """What one agent would do."""

    denoised: Denoised
    place: int  # of the arm
    shares: Array  # (K,)  with which probability it takes each


class Minds(Mapping[str, Mind]):
    """By name; the one that is obeyed first."""

    def __init__(self, made: Made, features: FeatureMap) -> None:
        """The problem's own agent."""
        self._made = made
        self._found = {OBEYED: Mind(made.agent, made.knowledge(features), made.terms.seed)}

    def __getitem__(self, name: str) -> Mind:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    @property
    def obeyed(self) -> Mind:
        """The one whose arms are taken."""
        return self._found[OBEYED]

    def join(self, agent: str, features: FeatureMap) -> None:
        """One more shadow, from now on."""
        found = self._made.agent_named("shadow", agent, features)
        self._found[agent] = Mind(found, self._made.knowledge(features), self._made.terms.seed)

    def leave(self, agent: str, opened: Iterable[Open]) -> None:
        """A shadow decides no more, and what it kept of open decisions goes with it."""
        del self._found[agent]
        for found in opened:
            found.seen.pop(agent, None)

    @property
    def use_contexts(self) -> bool:
        """Whether one of them learns from true contexts."""
        return any(mind.agent.sees_context for mind in self._found.values())

    @property
    def lag(self) -> int:
        """How many rounds later a round is learnt from again, at most; 0: never."""
        lags = [mind.agent.revisits[0].lag for mind in self._found.values() if mind.agent.revisits]
        return max(lags, default=0)

    def refuse(self, ask: Ask, offer: Offer) -> None:
        """Complain of a unit, a time or a noise that the one that is obeyed can make nothing of."""
        _refuse(self.obeyed, ask.unit, offer)

    def refuse_together(self, field: str, asks: Sequence[Ask], number: int) -> None:
        """Complain of requests that the one that is obeyed cannot follow one after the other.

        The first will be the decision of this number. Each by itself is sound.
        """
        agent, last = self.obeyed.agent, dict[str, float]()
        for i, ask in enumerate(asks):
            if agent.looks_back is not None and ask.unit != asks[0].unit:
                raise InputError(f"{field}[{i}].unit", repr(ask.unit), "one unit, for this agent")
            now = float(number + i) if ask.at is None else ask.at
            if agent.timed is not None and now < last.get(ask.unit, now):
                before = last[ask.unit]
                raise InputError(f"{field}[{i}].at", f"{now} after {before}", "times that never go back")
            last[ask.unit] = now

    def choose(self, unit: str, offer: Offer, features: FeatureMap, number: int) -> dict[str, Choice]:
        """Everyone's choice in the decision of this number."""
        found = {}
        for name, mind in self._present(unit, offer):
            normals = mind.advance()
            considered = mind.consider(unit, offer, features)
            view = considered.view
            belief = None if mind.agent.looks_back is None else view.belief
            denoised = Denoised(considered.reading, view.context, belief)
            found[name] = Choice(denoised, *mind.choose(considered, normals, number))
        return found

    def denoise(self, unit: str, offer: Offer, features: FeatureMap) -> dict[str, Denoised]:
        """What everyone makes of a reading, for a decision whose arm is known; random numbers are drawn."""
        found = {}
        for name, mind in self._present(unit, offer):
            mind.advance()
            found[name] = mind.denoise(unit, offer, features)
        return found

    def _present(self, unit: str, offer: Offer) -> Iterator[tuple[str, Mind]]:
        """The one that is obeyed, and those shadows that can make something of this reading.

        A shadow that cannot sits the decision out: it must never stop the others.
        """
        for name, mind in self._found.items():
            try:
                if name != OBEYED:
                    _refuse(mind, unit, offer)
            except InputError:
                continue
            yield name, mind

    def skip(self) -> None:
        """Draw the random numbers of a decision that is not made."""
        for mind in self._found.values():
            mind.advance()

    def observe(self, unit: str, kept: Mapping[str, Denoised]) -> dict[str, Seen]:
        """The channels learn from a reading; what everyone keeps of it."""
        return {name: self._found[name].observe(unit, denoised) for name, denoised in kept.items()}

    def reward(self, found: Open, features: FeatureMap, value: float) -> Law | None:
        """Everyone learns from a reward, or keeps it for the true context it awaits.

        What the one that is obeyed had expected of it.
        """
        expected = None
        for name, seen in found.seen.items():
            mind = self._found[name]
            found.seen[name], law = mind.reward(found.unit, seen, found.place, features, value)
            expected = law if name == OBEYED else expected
        return expected

    def reveal(self, found: Open, features: FeatureMap, context: Array) -> None:
        """A true context (1, d), not a number where it is not known, to those who learn from such."""
        whole = not np.isnan(context).any()
        for name, seen in found.seen.items():
            mind = self._found[name]
            if mind.agent.revises is not None or (mind.agent.awaits_context and whole):
                found.seen[name] = mind.reveal(found.unit, seen, found.place, features, context)

    def revisit(self, name: str, found: Open, features: FeatureMap) -> None:
        """One of them learns from a past decision again."""
        if name in found.seen and not found.voided:
            seen = found.seen[name]
            found.seen[name] = self._found[name].revisit(found.unit, seen, found.place, features)

    def grow(self, before: Knowledge, after: Knowledge, opened: Iterable[Open]) -> None:
        """Arms came: there is more to believe of theta, also with decisions that are still open."""
        for name, mind in self._found.items():
            mind.grow(before, after)
            for found in opened:
                if name in found.seen:
                    found.seen[name] = mind.grown(found.seen[name])

    def awaits_context(self, found: Open) -> bool:
        """Whether a reward would have to be kept until the true context is known."""
        return self.obeyed.agent.awaits_context and found.seen[OBEYED].known is None

    def awaits(self, found: Open) -> bool:
        """Whether a reward is kept that cannot be learnt from before the true context is known."""
        waits = not found.dropped and not found.voided and self.awaits_context(found)
        return waits and found.seen[OBEYED].reward is not None

    def content(self) -> dict[str, Any]:
        """All that changes, in nested values."""
        return {name: mind.content() for name, mind in self._found.items()}

    def fill(self, content: Mapping[str, Any], features: FeatureMap) -> None:
        """As they were."""
        for name, told in content.items():
            if name not in self._found:
                self.join(name, features)
            self._found[name].fill(told, self._made.knowledge(features))


def _refuse(mind: Mind, unit: str, offer: Offer) -> None:
    """Complain of what an agent can make nothing of; nothing is changed."""
    who, channel = repr(mind.agent.name), mind.memory(unit).denoiser
    if mind.agent.looks_back is not None and unit != next(iter(mind.channels), unit):
        allowed = f"one unit: the learner of {who} looks back on past rounds as those of one"
        raise InputError("unit", repr(unit), allowed)
    if mind.agent.timed is None:
        if offer.noise is not None:
            allowed = f"none: to the denoiser of {who} all readings are alike"
            raise InputError("noise", "given for one reading", allowed)
        return
    moment = mind.agent.timed.stamp(channel, Moment(offer.time, offer.at, offer.noise))
    mind.agent.timed.before(mind.setup.denoiser, channel, moment)
