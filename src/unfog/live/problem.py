"""A live problem: decide, reward, reveal, void.

Each request is checked here, at the door; what becomes of a report is judged by live/judging.py. A key that
was used before gives the answer it had the first time.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from unfog import validation
from unfog.live import answers, asking, judging
from unfog.live.answers import Decision, Receipt
from unfog.live.arms import Arms
from unfog.live.asking import Ask
from unfog.live.changing import Changing
from unfog.live.errors import Conflict
from unfog.live.looking import Looking
from unfog.live.state import State
from unfog.live.turn import Event, Turn
from unfog.validation import InputError, shown

if TYPE_CHECKING:
    pass


class Problem(Changing, Looking):
    """One problem of a store. Threads may share it.

    >>> import unfog
    >>> store = unfog.live.open("walks.unfog")
    >>> channel = {"context_mean": [7000], "context_cov": 4e6, "noise_cov": 1e6, "bias_cov": 4e6}
    >>> walks = store.problem("walks", context=["steps"], arms=["send", "wait"], channel=channel, seed=1)
    >>> d = walks.decide({"steps": 1648}, unit="ann")
    >>> walks.reveal(d.id, {"steps": 7065}).outcome
    'noted'
    >>> walks.reward(d.id, 1.0).outcome
    'learnt'
    >>> store.close()
    """

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
                turn = Turn(
                    self.name, "decide", None, validation.check_name("key", key), ask.request, _nothing
                )
                if self.store.known(turn) is not None:
                    return ask  # it has its answer, whatever arms there are by now
            self._refuse(self.store.state(self.name), ask)
        return ask

    def reward(self, decision: str, value: float, *, key: str | None = None) -> Receipt:
        """Report what a decision earned."""
        decision = validation.check_name("decision", decision)
        paid = self.terms.check_reward("value", value)

        def work(state: State, now: float) -> Event | None:
            outcome = judging.reward(state, decision, paid, self._rows(decision))
            body = {"value": paid, "outcome": outcome}
            return None if outcome is None else self._applied(state, "reward", decision, body, now)

        return self._report("reward", decision, key, {"value": paid}, work)

    def reward_many(
        self, rewards: Mapping[str, float], *, keys: Mapping[str, str] | None = None
    ) -> dict[str, Receipt]:
        """The rewards of several decisions, with one commit; where one is refused, so are all.

        `keys` are those of rewards, by decision: the same key gives the same receipt again.
        """
        if not isinstance(rewards, Mapping):
            raise InputError("rewards", shown(rewards), "a mapping from decisions to rewards")
        paid = {
            validation.check_name("decision", one): self.terms.check_reward("value", x)
            for one, x in rewards.items()
        }
        with self.store.together():
            state, own = self.store.state(self.name), _keys(keys, paid)
            for decision, value in paid.items():
                turn = Turn(self.name, "reward", decision, own.get(decision), {"value": value}, _nothing)
                if self.store.known(turn) is None:
                    judging.reward(state, decision, value, self._rows(decision))
            return {one: self.reward(one, value, key=own.get(one)) for one, value in rewards.items()}

    def reveal(self, decision: str, context: Any, *, key: str | None = None) -> Receipt:
        """Tell the true context of a decision, whole or in part, when it becomes known."""
        decision = validation.check_name("decision", decision)
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
        decision = validation.check_name("decision", decision)

        def work(state: State, now: float) -> Event | None:
            news = judging.void(state, decision, self._rows(decision))
            return self._applied(state, "void", decision, {"outcome": "void"}, now) if news else None

        return self._report("void", decision, key, {}, work)

    def _refuse(self, state: State, ask: asking.Ask) -> None:
        """What cannot be decided now."""
        state.arms.check(ask)
        state.minds.refuse(ask, state.offer(ask))


def _keys(keys: Mapping[str, str] | None, paid: Mapping[str, float]) -> dict[str, str]:
    """Keys of rewards by decision, each of one reward."""
    if keys is None:
        return {}
    if not isinstance(keys, Mapping):
        raise InputError("keys", shown(keys), "a mapping from decisions to keys")
    found: dict[str, str] = {}
    for decision, key in keys.items():
        if decision not in paid:
            raise InputError("keys", shown(decision), "decisions that are rewarded")
        if validation.check_name(f"keys.{decision}", key) in found.values():
            raise Conflict(f"keys.{decision}", shown(key), "a key for each reward")
        found[decision] = key
    return found


def _nothing(state: State, now: float) -> None:
    """The work of who only asks."""
