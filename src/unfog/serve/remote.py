"""A problem of a service: the verbs of `unfog.live.Problem`, asked over HTTP."""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import uuid4

from unfog import validation
from unfog.live import asking
from unfog.live.answers import Decision, Receipt
from unfog.live.named import dataset
from unfog.live.terms import Terms
from unfog.serve import outgoing
from unfog.serve.outgoing import address, plain
from unfog.validation import InputError, shown

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from unfog.serve.client import Client


class Remote:
    """One problem of a service. Threads may share it."""

    def __init__(self, client: "Client", name: str, note: str) -> None:
        """As the service has it."""
        self.client, self.name, self.note = client, name, note
        self._at = address(name)

    def __repr__(self) -> str:
        """Name and where it is."""
        return f"<live problem {self.name!r} of {self.client.url}>"

    @property
    def terms(self) -> Terms:
        """The terms with which it was made: the first event of its log."""
        return Terms.read(self.client.get(f"{self._at}/events", limit=1))

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
        """Choose an arm for a noisy context, as `unfog.live.Problem.decide` does."""
        given = {"context": context, "unit": unit, "arms": arms, "key": _own(key), "at": at, "noise": noise}
        told = outgoing.asked({**given, "forced": forced, "probability": probability})
        return Decision(**self.client.post(f"{self._at}/decide", told, again=True))

    def decide_many(self, asked: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """Several decisions with one commit for all; where one is refused, so are all."""
        wanted = asking.several("asked", asked)
        told = [
            outgoing.asked({**one, "key": _own(one.get("key"))}, f"asked[{i}].")
            for i, one in enumerate(wanted)
        ]
        if not told:
            return []
        found = self.client.post(f"{self._at}/decide", {"asked": told}, again=True)
        return [Decision(**one) for one in found["decisions"]]

    def reward(self, decision: str, value: float, *, key: str | None = None) -> Receipt:
        """Report what a decision earned."""
        return self._report(decision, "reward", {"value": plain("value", value)}, key)

    def reward_many(
        self, rewards: Mapping[str, float], *, keys: Mapping[str, str] | None = None
    ) -> dict[str, Receipt]:
        """The rewards of several decisions, with one commit; where one is refused, so are all."""
        if not isinstance(rewards, Mapping):
            raise InputError("rewards", shown(rewards), "a mapping from decisions to rewards")
        if not rewards:
            return {}
        told = {
            validation.check_name("decision", one): plain("value", value) for one, value in rewards.items()
        }
        own = {one: _own((keys or {}).get(one)) for one in told}
        found = self.client.post(f"{self._at}/rewards", {"rewards": told, "keys": own}, again=True)
        return {one: Receipt(**receipt) for one, receipt in found["receipts"].items()}

    def reveal(self, decision: str, context: Any, *, key: str | None = None) -> Receipt:
        """Tell the true context of a decision, whole or in part, when it becomes known."""
        return self._report(decision, "reveal", {"context": plain("context", context)}, key)

    def void(self, decision: str, *, key: str | None = None) -> Receipt:
        """It was never shown: learn nothing from it."""
        return self._report(decision, "void", {}, key)

    def _report(self, decision: str, what: str, told: dict[str, Any], key: str | None) -> Receipt:
        at = f"{self._at}/decisions/{quote(validation.check_name('decision', decision), safe='')}/{what}"
        return Receipt(**self.client.post(at, {**told, "key": _own(key)}, again=True))

    def add_arm(self, arm: str, vector: Any = None) -> Receipt:
        """One more arm; with its numbers, where arms have any."""
        return self.change_arms(add={validation.check_name("arm", arm): vector})

    def retire_arm(self, arm: str) -> Receipt:
        """From now on an arm is not chosen; what was learnt of it is kept."""
        return self.change_arms(retire=[arm])

    def restore_arm(self, arm: str) -> Receipt:
        """An arm that was retired may be chosen again."""
        return self.change_arms(restore=[arm])

    def change_arms(
        self, *, add: Mapping[str, Any] | None = None, retire: Iterable[str] = (), restore: Iterable[str] = ()
    ) -> Receipt:
        """Several such changes as one: all of them, or where one cannot be none."""
        told = {"retire": plain("retire", retire), "restore": plain("restore", restore)}
        return self._changed("arms", told | ({"add": plain("add", add)} if add else {}))

    def freeze(self, arm: str) -> Receipt:
        """From now on one arm, whatever the context, until `thaw`."""
        return self._changed("freeze", {"arm": validation.check_name("arm", arm)})

    def thaw(self) -> Receipt:
        """The agent decides again."""
        return self._changed("freeze", {"arm": None})

    def shadow(self, agent: str) -> Receipt:
        """One more agent that decides on the same stream from now on, without being obeyed."""
        return self._changed("shadow", {"agent": validation.check_name("agent", agent)})

    def unshadow(self, agent: str) -> Receipt:
        """A shadow decides no more."""
        return self._changed("shadow", {"agent": validation.check_name("agent", agent), "leave": True})

    def _changed(self, what: str, told: dict[str, Any]) -> Receipt:
        return Receipt(**self.client.post(f"{self._at}/{what}", told, again=False))

    def take_in_table(self, text: str) -> int:
        """Decisions that were made elsewhere, as CSV: how many. Where one is refused, so are all."""
        done = self.client.post(f"{self._at}/table", {"table": text}, again=False, long=True)
        return int(done["decisions"])

    def events(self, since: int = 0) -> list[dict[str, Any]]:
        """The log after the event `since`: mappings with seq, kind, decision, time and more."""
        return list(self.client.events(self.name, since))

    def pending(self) -> list[str]:
        """Decisions whose reward may still come, oldest first."""
        found: list[str] = self.client.get(f"{self._at}/pending")["pending"]
        return found

    def about(self) -> dict[str, Any]:
        """What there is to know of the problem itself: arms, units, shadows, counts."""
        found: dict[str, Any] = self.client.get(self._at)
        return found

    def belief(self, unit: str | None = None) -> "xr.Dataset":
        """What is believed: the bias of a unit by name with its standard deviation, theta, weights."""
        return dataset(self.client.get(f"{self._at}/belief", unit=unit))

    def expected(
        self, context: Any, *, unit: str | None = None, arms: Any = None, at: Any = None, noise: Any = None
    ) -> "xr.Dataset":
        """What each arm would be expected to earn in this context; nothing is decided or learnt."""
        told = outgoing.asked({"context": context, "arms": arms, "at": at, "noise": noise})
        query = {name: json.dumps(value) for name, value in told.items()}
        return dataset(self.client.get(f"{self._at}/expected", unit=unit, **query))

    def diagnostics(self) -> "xr.Dataset":
        """Whether it works: readings against the channel, rewards against what was said, arms, pending."""
        return dataset(self.client.get(f"{self._at}/diagnostics"))

    def history(self, unit: str | None = None, points: int = 2000) -> dict[str, Any]:
        """The past of all units or of one, as JSON can hold it: what a page shows."""
        found: dict[str, Any] = self.client.get(f"{self._at}/history", unit=unit, points=points)
        return found

    def figure(self) -> "Figure":
        """The same as a picture."""
        from unfog.live.figure import figure

        return figure(self.diagnostics(), self.name)

    def fingerprint(self) -> str:
        """A hash of all that is remembered: beliefs, pending decisions, and what comes next."""
        return str(self.client.get(f"{self._at}/fingerprint")["fingerprint"])


def _own(key: str | None) -> str:
    """The caller's key, or one that nobody has used."""
    return uuid4().hex if key is None else validation.check_name("key", key)
