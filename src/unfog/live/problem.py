"""A live problem: decide, reward, reveal, void, and what else can happen to it.

Every verb goes the same way: the request is checked; under the store's lock what has expired is written down,
the verb changes the state and its event is queued; then, without the lock, the commit that holds the event is
awaited, and only then is there an answer. A key that was used before gives the answer it had the first time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from unfog.inputs import InputError, shown
from unfog.live import answers, asking, inside, judging, names
from unfog.live.answers import Decision, Receipt
from unfog.live.arms import Arms
from unfog.live.asking import Ask
from unfog.live.errors import Unknown
from unfog.live.log import Row
from unfog.live.minds import OBEYED
from unfog.live.reference import fingerprint
from unfog.live.state import State
from unfog.live.terms import Terms
from unfog.live.turn import Done, Event, Turn, Work

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from unfog.live.store import Store


class Problem:
    """One problem of a store. Threads may share it."""

    def __init__(self, store: "Store", name: str, terms: Terms, note: str) -> None:
        """As the store has it."""
        self.store, self.name, self.terms, self.note = store, name, terms, note

    def __repr__(self) -> str:
        """Name, agent and what there is to know."""
        said = f": {self.note}" if self.note else ""
        return f"<live problem {self.name!r}, agent {self.terms.agent!r}{said}>"

    def decide(
        self,
        context: Any,
        *,
        unit: str | None = None,
        arms: Any = None,
        key: str | None = None,
        at: Any = None,
        noise: Any = None,
        forced: str | None = None,
        probability: float | None = None,
    ) -> Decision:
        """Choose an arm for a noisy context: a mapping by name, a sequence or an array; None: lost.

        `unit` says whose it is; `arms` which may be chosen this time; `at` when the reading was taken, for
        agents that use time; `noise` is the noise covariance of this reading alone. `forced` is an arm that
        somebody else has chosen, with this `probability`. The same `key` gives the same answer again.
        """
        ask = asking.ask(self.store.made(self.name), context, unit, arms, at, noise, forced, probability)

        known: list[Arms] = []

        def work(state: State, now: float) -> Event:
            self._refuse(state, ask)
            state.close_past(now)
            known.append(state.arms)
            name = state.id_of(state.number)
            return Event(name, state.decide(ask, now))

        done = self._act("decide", None, key, ask.request, work)
        arms = known[0] if known else self._arms()
        chances, shadows = arms.probabilities(done.body), arms.shadows(done.body)
        return answers.decision(done.decision or "", done.body, chances, shadows)

    def _arms(self) -> Arms:
        with self.store.lock:
            return self.store.state(self.name).arms

    def decide_many(self, asked: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """Several decisions, each asked for by a mapping of what `decide` takes, with one commit for all.

        Where one is refused, so are all.
        """
        wanted = asking.several("asked", asked)
        with self.store.together():
            asks = []
            for i, one in enumerate(wanted):
                with asking.in_place(f"asked[{i}]"):
                    asks.append(self.refuse(**one))
            asking.refuse_keys("asked", [one.get("key") for one in wanted], asks)
            state = self.store.state(self.name)
            state.minds.refuse_together("asked", asks, state.number)
            return [self.decide(**one) for one in wanted]

    def refuse(self, context: Any, *, key: str | None = None, **asked: Any) -> Ask:
        """Complain, as `decide` would, of what cannot be decided now; nothing is changed."""
        ask = asking.ask(self.store.made(self.name), context, **asked)
        with self.store.lock:
            if key is not None:
                turn = Turn(self.name, "decide", None, names.name("key", key), ask.request, _nothing)
                if self.store.known(turn) is not None:
                    return ask  # it has its answer, whatever arms there are by now
            self._refuse(self.store.state(self.name), ask)
        return ask

    def reward(self, decision: str, value: float, *, key: str | None = None) -> Receipt:
        """Report what a decision earned."""
        decision = names.name("decision", decision)
        paid = self.terms.check_reward("value", value)

        def work(state: State, now: float) -> Event | None:
            outcome = judging.reward(state, decision, paid, self._rows(decision))
            body = {"value": paid, "outcome": outcome}
            return None if outcome is None else self._applied(state, "reward", decision, body, now)

        return self._report("reward", decision, key, {"value": paid}, work)

    def reward_many(self, rewards: Mapping[str, float]) -> dict[str, Receipt]:
        """The rewards of several decisions, with one commit; where one is refused, so are all."""
        if not isinstance(rewards, Mapping):
            raise InputError("rewards", shown(rewards), "a mapping from decisions to rewards")
        paid = {
            names.name("decision", one): self.terms.check_reward("value", x) for one, x in rewards.items()
        }
        with self.store.together():
            state = self.store.state(self.name)
            for decision, value in paid.items():
                judging.reward(state, decision, value, self._rows(decision))
            return {decision: self.reward(decision, value) for decision, value in rewards.items()}

    def reveal(self, decision: str, context: Any, *, key: str | None = None) -> Receipt:
        """Tell the true context of a decision, whole or in part, when it becomes known."""
        decision = names.name("decision", decision)
        given = asking.context_of("context", context, self.terms.context, whole=False)
        told = {name: value for name, value in given.items() if value is not None}
        if not told:
            raise InputError("context", shown(context), "one coordinate at least")

        def work(state: State, now: float) -> Event | None:
            body = judging.reveal(state, decision, told, now, self._rows(decision))
            return None if body is None else self._applied(state, "reveal", decision, body, now)

        return self._report("reveal", decision, key, {"context": told}, work)

    def void(self, decision: str, *, key: str | None = None) -> Receipt:
        """It was never shown: learn nothing from it."""
        decision = names.name("decision", decision)

        def work(state: State, now: float) -> Event | None:
            news = judging.void(state, decision, self._rows(decision))
            return self._applied(state, "void", decision, {"outcome": "void"}, now) if news else None

        return self._report("void", decision, key, {}, work)

    def add_arm(self, arm: str, vector: Any = None) -> Receipt:
        """One more arm; with its numbers, where arms have any."""
        told = {names.name("arm", arm): None if vector is None else names.vector("vector", vector)}
        return self._changed({"add": told})

    def retire_arm(self, arm: str) -> Receipt:
        """From now on an arm is not chosen; what was learnt of it is kept."""
        return self._changed({"retire": [names.name("arm", arm)]})

    def restore_arm(self, arm: str) -> Receipt:
        """An arm that was retired may be chosen again."""
        return self._changed({"restore": [names.name("arm", arm)]})

    def freeze(self, arm: str) -> Receipt:
        """From now on one arm, whatever the context, until `thaw`."""
        return self._frozen(names.name("arm", arm))

    def thaw(self) -> Receipt:
        """The agent decides again."""
        return self._frozen(None)

    def shadow(self, agent: str) -> Receipt:
        """One more agent that decides on the same stream from now on, without being obeyed."""
        agent = names.name("agent", agent)

        def work(state: State, now: float) -> Event:
            if agent in state.minds:
                raise InputError("agent", repr(agent), "one that is not a shadow already")
            self.store.made(self.name).agent_named("agent", agent, state.arms.features)
            own = fingerprint("agent", agent)
            body = {"agent": agent, "outcome": "done"} | ({} if own is None else {"fingerprint": own})
            return self._applied(state, "shadow", None, body, now)

        return self._report("shadow", None, None, {"agent": agent}, work)

    def unshadow(self, agent: str) -> Receipt:
        """A shadow decides no more."""
        agent = names.name("agent", agent)

        def work(state: State, now: float) -> Event:
            shadows = [name for name in state.minds if name != OBEYED]
            if agent not in shadows:
                raise Unknown("agent", repr(agent), ", ".join(shadows) or "no shadow there is")
            body = {"agent": agent, "leaves": True, "outcome": "done"}
            return self._applied(state, "shadow", None, body, now)

        return self._report("shadow", None, None, {"agent": agent, "leaves": True}, work)

    def events(self, since: int = 0) -> list[dict[str, Any]]:
        """The log after the event `since`: mappings with seq, kind, decision, time and more."""
        return list(self.store.events(self.name, since))

    def pending(self) -> list[str]:
        """Decisions whose reward may still come, oldest first."""
        with self.store.lock:
            return [found.id for found in self.store.up_to_date(self.name).open.values() if not found.settled]

    def belief(self, unit: str | None = None) -> "xr.Dataset":
        """What is believed: the bias of a unit by name with its standard deviation, theta, weights."""
        with self.store.lock:
            return inside.belief(self.store.up_to_date(self.name), self._unit(unit))

    def expected(
        self, context: Any, *, unit: str | None = None, arms: Any = None, at: Any = None, noise: Any = None
    ) -> "xr.Dataset":
        """What each arm would be expected to earn in this context; nothing is decided or learnt."""
        ask = asking.ask(self.store.made(self.name), context, unit, arms, at, noise)
        with self.store.lock:
            state = self.store.up_to_date(self.name)
            state.arms.check(ask)
            return inside.expected(state, ask)

    def diagnostics(self) -> "xr.Dataset":
        """Whether it works: readings against the channel, rewards against what was said, arms, pending."""
        with self.store.lock:
            return inside.diagnosed(self.store.up_to_date(self.name), self.store.now())

    def figure(self) -> "Figure":
        """The same as a picture."""
        from unfog.live.figure import figure

        return figure(self.diagnostics(), self.name)

    def _unit(self, unit: str | None) -> str:
        """A unit that something was read of; unless named the only one, or no one's."""
        known = list(self.store.state(self.name).mind.channels)
        if unit is None:
            return known[0] if len(known) == 1 else ""
        if names.name("unit", unit) not in known:
            raise Unknown("unit", repr(unit), "a unit that decisions were made for")
        return unit

    def fingerprint(self) -> str:
        """A hash of all that is remembered: beliefs, pending decisions, and what comes next."""
        with self.store.lock:
            return self.store.digest(self.name)

    # How a verb goes.

    def _act(
        self, kind: str, decision: str | None, key: str | None, request: Mapping[str, Any], work: Work
    ) -> Done:
        key = None if key is None else names.name("key", key)
        return self.store.act(Turn(self.name, kind, decision, key, request, work))

    def _report(
        self, kind: str, decision: str | None, key: str | None, request: Mapping[str, Any], work: Work
    ) -> Receipt:
        done = self._act(kind, decision, key, request, work)
        return answers.receipt(done.seq, done.body["outcome"])

    def _refuse(self, state: State, ask: asking.Ask) -> None:
        """What cannot be decided now."""
        state.arms.check(ask)
        state.minds.refuse(ask, state.offer(ask))

    def _rows(self, decision: str) -> Callable[[], Sequence[Row]]:
        return lambda: self.store.log.of(self.name, decision)

    def _applied(
        self, state: State, kind: str, decision: str | None, body: dict[str, Any], now: float
    ) -> Event:
        state.apply(kind, decision, body, now)
        return Event(decision, body)

    def _changed(self, body: dict[str, Any]) -> Receipt:
        def work(state: State, now: float) -> Event:
            state.arms.refuse(body)
            return self._applied(state, "arms", None, {**body, "outcome": "done"}, now)

        return self._report("arms", None, None, body, work)

    def _frozen(self, arm: str | None) -> Receipt:
        def work(state: State, now: float) -> Event:
            known = state.arms.available
            if arm is not None and state.arms.vectors and arm not in known:
                raise InputError("arm", repr(arm), ", ".join(known))
            return self._applied(state, "freeze", None, {"arm": arm, "outcome": "done"}, now)

        return self._report("freeze", None, None, {"arm": arm}, work)


def _nothing(state: State, now: float) -> None:
    """The work of who only asks."""
