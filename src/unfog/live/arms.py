"""The arms of a live problem: which there are, which may be chosen, and with which probability one is.

With a floor f and K arms that may be chosen, an arm that the agent takes with probability p is taken with

    (1 - f) p + f / K:

in a share f of decisions any arm is taken, by numbers of a stream of its own. That is exact, and no arm that
may be chosen has less than f / K, so that the log can say what another policy would have earned.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from unfog import validation
from unfog.features import FeatureMap
from unfog.live.config import Made
from unfog.live.requests import Ask
from unfog.maths.arrays import Array
from unfog.validation import InputError


class Arms:
    """All arms there ever were, in the order they came."""

    def __init__(self, made: Made) -> None:
        """The arms that the problem was made with."""
        self.made, self.vectors = made, dict(made.terms.arms)
        self.features = made.first()
        self.order = list(self.vectors)
        self.place = {name: i for i, name in enumerate(self.order)}
        self.active = dict.fromkeys(self.vectors, True)
        self.frozen: str | None = None
        self.eras: list[tuple[int, tuple[str, ...]]] = [(0, tuple(self.vectors))]

    @property
    def available(self) -> tuple[str, ...]:
        """The arms that may be chosen."""
        return self.eras[-1][1]

    def available_at(self, number: int) -> tuple[str, ...]:
        """The arms that might be chosen when the decision of this number was made."""
        return next(found for first, found in reversed(self.eras) if first <= number)

    def check(self, ask: Ask) -> None:
        """Refuse arms that there are not, or not now."""
        if ask.vectors is not None:
            if not self.made.terms.arm_size:
                raise InputError("arms", "vectors", "names: the vectors were told when the problem was made")
            self.made.brought(ask.vectors)
        elif not self.vectors:
            raise InputError("arms", "none", "a mapping from the names of arms to their vectors")
        else:
            for name in ask.arms or ():
                self._refuse_inactive("arms", name)
        choice = self.choice(ask)
        if not choice:
            raise InputError("arms", "none are left", "arms that may be chosen: add some, or restore some")
        if self.frozen is not None and self.frozen not in choice:
            raise InputError("arms", repr(list(choice)), f"{self.frozen!r} among them: it is frozen")
        forced = ask.request.get("forced")
        if forced is not None and forced not in (choice if ask.arms else self.place):
            raise InputError("forced", repr(forced), ", ".join(choice))

    def _refuse_inactive(self, field: str, name: str) -> None:
        if not self.active.get(name):
            raise InputError(field, repr(name), ", ".join(self.available))

    def choice(self, ask: Ask) -> tuple[str, ...] | list[str]:
        """The arms that may be chosen this time."""
        return self.available if ask.arms is None else ask.arms

    def mask(self, ask: Ask) -> Array | None:
        """True where an arm may be chosen, (1, K); None for all of them."""
        if ask.vectors is not None or (ask.arms is None and len(self.available) == len(self.vectors)):
            return None
        found = np.zeros((1, len(self.vectors)), dtype=bool)
        found[0, [self.place[name] for name in self.choice(ask)]] = True
        return found

    def features_of(self, vectors: Mapping[str, Any] | None) -> FeatureMap:
        """The map of all arms, or of those that come with a decision."""
        return self.features if vectors is None else self.made.brought(vectors)

    def mixed(self, ask: Ask, place: int, shares: Array, drawn: Array | None) -> dict[str, Any]:
        """The arm that an agent takes and its probability; its own shares, where they are not zero.

        `drawn` are two uniform numbers for the floor.
        """
        order = self.order if ask.vectors is None else list(ask.vectors)
        choice, floor = self.choice(ask), self.made.terms.floor
        arm, found = order[place], {order[i]: x for i, x in enumerate(shares.tolist()) if x}
        if drawn is not None and drawn[0] < floor:
            arm = choice[min(int(drawn[1] * len(choice)), len(choice) - 1)]
        chance = floor / len(choice) + (1 - floor) * found.get(arm, 0.0)
        return {"arm": arm, "probability": chance, "shares": found}

    def obeyed(self, ask: Ask, chosen: dict[str, Any]) -> dict[str, Any]:
        """What is done: as the agent has chosen, unless an arm is frozen, or was forced by somebody else."""
        if self.frozen is not None:
            chosen = {"arm": self.frozen, "probability": 1.0, "shares": {self.frozen: 1.0}, "frozen": True}
        if "forced" in ask.request:
            chosen = chosen | {"arm": ask.request["forced"], "probability": ask.request.get("given")}
        return chosen

    def probabilities(self, body: Mapping[str, Any]) -> dict[str, float]:
        """With which probability the agent takes each arm that might be chosen, from a decision's event."""
        return self._with_floor(body, body["shares"], 0.0 if body.get("frozen") else self.made.terms.floor)

    def shadows(self, body: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """What the shadows would have done, from a decision's event."""
        return {
            name: {
                "arm": one["arm"],
                "probability": one["probability"],
                "probabilities": self._with_floor(body, one["shares"], self.made.terms.floor),
            }
            for name, one in body.get("shadow", {}).items()
        }

    def _with_floor(
        self, body: Mapping[str, Any], shares: Mapping[str, float], floor: float
    ) -> dict[str, float]:
        choice = body.get("arms") or self.available_at(body["number"])
        found = dict.fromkeys(choice, floor / len(choice))
        for name, share in shares.items():
            found[name] += (1 - floor) * share
        return found

    def refuse(self, body: Mapping[str, Any]) -> None:
        """Complain of a change that cannot be."""
        if body.get("add"):
            self._refuse_added(body["add"])
        for change, state in (("retire", True), ("restore", False)):
            for name in body.get(change, ()):
                if self.active.get(name) is not state:
                    those = ", ".join(one for one, active in self.active.items() if active is state)
                    raise InputError(change, repr(name), those or "none there are")
        if self.frozen in body.get("retire", ()):
            raise InputError("retire", repr(self.frozen), "other arms: this one is frozen")

    def _refuse_added(self, added: Mapping[str, Any]) -> None:
        for name in added:
            if name in self.place:
                raise InputError("add", repr(name), "a new name; an arm that was retired is restored")
        if not self.vectors:
            raise InputError("add", "an arm", "nothing: in this problem arms come with each decision")
        if len(self.vectors) + len(added) > validation.MOST_ARMS:
            raise InputError("add", f"{len(added)} arms", f"{validation.MOST_ARMS} arms in all")

    def with_added(self, added: Mapping[str, Any]) -> FeatureMap:
        """The map of all arms there would be."""
        return self.made.features({**self.vectors, **added})

    def change(self, body: Mapping[str, Any], number: int) -> None:
        """Arms come, go and come back, from the decision of this number on."""
        added = body.get("add", {})
        self.vectors |= added
        self.order = list(self.vectors)
        self.place = {name: i for i, name in enumerate(self.order)}
        self.active |= dict.fromkeys((*added, *body.get("restore", ())), True)
        self.active |= dict.fromkeys(body.get("retire", ()), False)
        if added:
            self.features = self.made.features(self.vectors)
        self.eras.append((number, tuple(name for name, active in self.active.items() if active)))

    def content(self) -> list[Any]:
        """All that changes, in nested values that do not change any more."""
        return [{**self.vectors}, {**self.active}, self.frozen, [*self.eras]]

    def fill(self, content: list[Any]) -> None:
        """Take back what `content` gave."""
        self.vectors, self.active, self.frozen, eras = content
        self.eras = [(first, tuple(found)) for first, found in eras]
        self.order = list(self.vectors)
        self.place = {name: i for i, name in enumerate(self.order)}
        if self.vectors:
            self.features = self.made.features(self.vectors)
