"""The arms of a live problem: which exist, which may be chosen, and with which probability each is chosen.

With K arms that may be chosen, an arm that the agent takes with probability p is taken with

    (1 - epsilon) p + epsilon / K:

in a share epsilon of decisions an arm is drawn uniformly, from a random stream of its own. These
probabilities are exact, and none is below epsilon / K, so that the log can say what another policy would have
earned.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from unfog import validation
from unfog.features import FeatureMap
from unfog.live.config import PreparedProblem
from unfog.live.requests import DecisionRequest
from unfog.maths.arrays import Array
from unfog.validation import InputError, nearest_arm


class Arms:
    """All arms that the problem ever had, in the order in which they came."""

    def __init__(self, config: PreparedProblem) -> None:
        """Begin with the arms that the problem was created with."""
        self.made, self.vectors = config, dict(config.terms.arms)
        self.features = config.first()
        self.order = list(self.vectors)
        self.place = {name: i for i, name in enumerate(self.order)}
        self.active = dict.fromkeys(self.vectors, True)
        self.pinned: str | None = None
        self.eras: list[tuple[int, tuple[str, ...]]] = [(0, tuple(self.vectors))]

    @property
    def available(self) -> tuple[str, ...]:
        """The arms that may be chosen."""
        return self.eras[-1][1]

    def available_at(self, number: int) -> tuple[str, ...]:
        """The arms that could be chosen when decision `number` was made."""
        return next(names for first, names in reversed(self.eras) if first <= number)

    def check(self, ask: DecisionRequest) -> None:
        """Raise InputError if the request names arms that do not exist or may not be chosen now."""
        if ask.vectors is not None:
            if not self.made.terms.arm_size:
                raise InputError("arms", "vectors", "names: vectors were set when the problem was created")
            self.made.brought(ask.vectors)
        elif not self.vectors:
            raise InputError("arms", "none", "a mapping from the names of arms to their vectors")
        else:
            for name in ask.arms or ():
                self._check_active("arms", name)
        choice = self.choice(ask)
        if not choice:
            raise InputError("arms", "none are left", "arms that may be chosen: add some, or restore some")
        if self.pinned is not None and self.pinned not in choice:
            raise InputError("arms", repr(list(choice)), f"{self.pinned!r} among them: it is pinned")
        logged_arm = ask.request.get("logged_arm")
        if logged_arm is not None and logged_arm not in (choice if ask.arms else self.place):
            near = nearest_arm(logged_arm, choice)
            raise InputError("logged_arm", repr(logged_arm), ", ".join(choice), near)

    def _check_active(self, field: str, name: str) -> None:
        if not self.active.get(name):
            near = nearest_arm(name, self.available)
            raise InputError(field, repr(name), ", ".join(self.available), near)

    def choice(self, ask: DecisionRequest) -> tuple[str, ...] | list[str]:
        """The arms that may be chosen in this decision."""
        return self.available if ask.arms is None else ask.arms

    def mask(self, ask: DecisionRequest) -> Array | None:
        """True where an arm may be chosen, (1, K); None for all of them."""
        if ask.vectors is not None or (ask.arms is None and len(self.available) == len(self.vectors)):
            return None
        mask = np.zeros((1, len(self.vectors)), dtype=bool)
        mask[0, [self.place[name] for name in self.choice(ask)]] = True
        return mask

    def features_of(self, vectors: Mapping[str, Any] | None) -> FeatureMap:
        """The feature map of all arms, or of those that came with this decision."""
        return self.features if vectors is None else self.made.brought(vectors)

    def mixed(
        self, ask: DecisionRequest, index: int, probabilities: Array, uniforms: Array | None
    ) -> dict[str, Any]:
        """The arm that is taken, its probability, and the agent's own probabilities where they are not zero.

        `uniforms` are two uniform random numbers to explore with; None if epsilon is 0.
        """
        order = self.order if ask.vectors is None else list(ask.vectors)
        choice, epsilon = self.choice(ask), self.made.terms.epsilon
        arm, chances = order[index], {order[i]: x for i, x in enumerate(probabilities.tolist()) if x}
        if uniforms is not None and uniforms[0] < epsilon:
            arm = choice[min(int(uniforms[1] * len(choice)), len(choice) - 1)]
        chance = epsilon / len(choice) + (1 - epsilon) * chances.get(arm, 0.0)
        return {"arm": arm, "probability": chance, "agent_probabilities": chances}

    def carry_out(self, ask: DecisionRequest, choice: dict[str, Any]) -> dict[str, Any]:
        """The choice that is carried out: the agent's, unless an arm is pinned or somebody else chose."""
        if self.pinned is not None:
            certain = {self.pinned: 1.0}
            choice = {"arm": self.pinned, "probability": 1.0, "agent_probabilities": certain, "pinned": True}
        if "logged_arm" in ask.request:
            probability = ask.request.get("logged_probability")
            choice = choice | {"arm": ask.request["logged_arm"], "probability": probability}
        return choice

    def probabilities(self, body: Mapping[str, Any]) -> dict[str, float]:
        """The probability of each arm that the agent may take, from a decision's event."""
        return self._with_epsilon(
            body, body["agent_probabilities"], 0.0 if body.get("pinned") else self.made.terms.epsilon
        )

    def shadows(self, body: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """The choices of the shadows, from a decision's event."""
        return {
            name: {
                "arm": choice["arm"],
                "probability": choice["probability"],
                "probabilities": self._with_epsilon(
                    body, choice["agent_probabilities"], self.made.terms.epsilon
                ),
            }
            for name, choice in body.get("shadows", {}).items()
        }

    def _with_epsilon(
        self, body: Mapping[str, Any], probabilities: Mapping[str, float], epsilon: float
    ) -> dict[str, float]:
        choice = body.get("arms") or self.available_at(body["number"])
        chances = dict.fromkeys(choice, epsilon / len(choice))
        for name, chance in probabilities.items():
            chances[name] += (1 - epsilon) * chance
        return chances

    def check_change(self, body: Mapping[str, Any]) -> None:
        """Raise InputError if this change of arms is impossible."""
        if body.get("add"):
            self._check_added(body["add"])
        for change, state in (("retire", True), ("restore", False)):
            for name in body.get(change, ()):
                if self.active.get(name) is not state:
                    candidates = ", ".join(arm for arm, active in self.active.items() if active is state)
                    raise InputError(change, repr(name), candidates or "none: there are no such arms")
        if self.pinned in body.get("retire", ()):
            raise InputError("retire", repr(self.pinned), "other arms: this one is pinned")

    def _check_added(self, added: Mapping[str, Any]) -> None:
        for name in added:
            if name in self.place:
                raise InputError("add", repr(name), "a new name; an arm that was retired is restored")
        if not self.vectors:
            raise InputError("add", "an arm", "nothing: in this problem arms come with each decision")
        if len(self.vectors) + len(added) > validation.MOST_ARMS:
            raise InputError("add", f"{len(added)} arms", f"{validation.MOST_ARMS} arms in all")

    def with_added(self, added: Mapping[str, Any]) -> FeatureMap:
        """The feature map of all arms, these included."""
        return self.made.features({**self.vectors, **added})

    def change(self, body: Mapping[str, Any], number: int) -> None:
        """Add, retire and restore arms, from the decision with this number on."""
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
        """Everything that changes, copied into nested values."""
        return [{**self.vectors}, {**self.active}, self.pinned, [*self.eras]]

    def fill(self, content: list[Any]) -> None:
        """Restore what `content` returned."""
        self.vectors, self.active, self.pinned, eras = content
        self.eras = [(first, tuple(names)) for first, names in eras]
        self.order = list(self.vectors)
        self.place = {name: i for i, name in enumerate(self.order)}
        if self.vectors:
            self.features = self.made.features(self.vectors)
