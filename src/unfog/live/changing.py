"""What changes a problem itself: arms come and go, one is frozen, shadows join and leave."""

from collections.abc import Iterable, Mapping
from typing import Any

from unfog import validation
from unfog.live.answers import Receipt
from unfog.live.errors import Unknown
from unfog.live.handle import Handle
from unfog.live.minds import OBEYED
from unfog.live.reference import fingerprint
from unfog.live.state import State
from unfog.live.turn import Event
from unfog.validation import InputError


class Changing(Handle):
    """Verbs that are about no decision."""

    def add_arm(self, arm: str, vector: Any = None) -> Receipt:
        """One more arm; with its numbers, where arms have any."""
        told = {
            validation.check_name("arm", arm): None
            if vector is None
            else validation.arm_vector("vector", vector)
        }
        return self._changed({"add": told})

    def retire_arm(self, arm: str) -> Receipt:
        """From now on an arm is not chosen; what was learnt of it is kept."""
        return self._changed({"retire": [validation.check_name("arm", arm)]})

    def restore_arm(self, arm: str) -> Receipt:
        """An arm that was retired may be chosen again."""
        return self._changed({"restore": [validation.check_name("arm", arm)]})

    def change_arms(
        self, *, add: Mapping[str, Any] | None = None, retire: Iterable[str] = (), restore: Iterable[str] = ()
    ) -> Receipt:
        """Several such changes as one: all of them, or where one cannot be none."""
        told: dict[str, Any] = {"add": validation.check_arms("add", add, {}) if add else {}}
        for change, given in (("retire", retire), ("restore", restore)):
            told[change] = validation.check_names(change, given) if given else []
        if not any(told.values()):
            raise InputError("arms", "nothing to do", "add, retire or restore")
        return self._changed({change: given for change, given in told.items() if given})

    def freeze(self, arm: str) -> Receipt:
        """From now on one arm, whatever the context, until `thaw`."""
        return self._frozen(validation.check_name("arm", arm))

    def thaw(self) -> Receipt:
        """The agent decides again."""
        return self._frozen(None)

    def shadow(self, agent: str) -> Receipt:
        """One more agent that decides on the same stream from now on, without being obeyed."""
        agent = validation.check_name("agent", agent)

        def work(state: State, now: float) -> Event:
            if agent in state.minds:
                raise InputError("agent", repr(agent), "one that is not a shadow already")
            self.store.made(self.name).agent_named("agent", agent, state.arms.features, new="agent")
            own = fingerprint("agent", agent)
            body = {"agent": agent, "outcome": "done"} | ({} if own is None else {"fingerprint": own})
            return self._applied(state, "shadow", None, body, now)

        return self._report("shadow", None, None, {"agent": agent}, work)

    def unshadow(self, agent: str) -> Receipt:
        """A shadow decides no more."""
        agent = validation.check_name("agent", agent)

        def work(state: State, now: float) -> Event:
            shadows = [name for name in state.minds if name != OBEYED]
            if agent not in shadows:
                raise Unknown("agent", repr(agent), ", ".join(shadows) or "no shadow there is")
            body = {"agent": agent, "leaves": True, "outcome": "done"}
            return self._applied(state, "shadow", None, body, now)

        return self._report("shadow", None, None, {"agent": agent, "leaves": True}, work)

    def _changed(self, body: dict[str, Any]) -> Receipt:
        def work(state: State, now: float) -> Event:
            state.refuse_arms(body)
            return self._applied(state, "arms", None, {**body, "outcome": "done"}, now)

        return self._report("arms", None, None, body, work)

    def _frozen(self, arm: str | None) -> Receipt:
        def work(state: State, now: float) -> Event:
            known = state.arms.available
            if arm is not None and state.arms.vectors and arm not in known:
                raise InputError("arm", repr(arm), ", ".join(known))
            return self._applied(state, "freeze", None, {"arm": arm, "outcome": "done"}, now)

        return self._report("freeze", None, None, {"arm": arm}, work)
