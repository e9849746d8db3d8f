"""Vowpal Wabbit behind a denoiser: a `Workspace` made with `--cb_explore_adf`, and contexts as numbers.

Its examples are lines of text. The numbers of the context stand in the namespace c of the shared line, each
action in the namespace a of a line of its own:

    shared |c temperature:21.5 rain:0.2
    0:-0.7:0.25 |a heat
    |a wait

so `-q ca` gives every action an intercept and slopes of its own. The actions are told to `wrap`, once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from unfog import validation
from unfog.adapters.libraries.contexts import readings
from unfog.adapters.libraries.names import Names
from unfog.adapters.libraries.wrapped import Wrapped
from unfog.validation import InputError

SEPARATORS = (" ", "|", ":", "\n")  # what the text format reads as the end of a name


class VowpalWabbit(Wrapped[Names]):
    """A `Workspace`: it says how likely each action should be, and learns from the cost of one."""

    def __init__(self, bandit: Any, names: Names, actions: Sequence[str | int]) -> None:
        """Keep the workspace, the way in, and the actions in their order."""
        super().__init__(bandit, names)
        self.actions = [_word("actions", action) for action in actions]
        if len(set(self.actions)) < max(len(self.actions), 1):
            raise InputError("actions", validation.shown(actions), "one or more names, no name twice")

    def predict(self, context: Any, *, noise_cov: Any = None, group: Any = None) -> list[float]:
        """The probability of each action, in the order they were told."""
        with self.way.deciding(_by_name(context), noise_cov, group) as denoised:
            return list(self.bandit.predict(self._text(denoised)))

    def learn(
        self,
        context: Any,
        action: str | int,
        cost: float,
        probability: float,
        *,
        noise_cov: Any = None,
        group: Any = None,
    ) -> None:
        """Learn the cost (minus the reward) of an action that had been drawn with this probability."""
        chosen = validation.one_of("action", str(action), self.actions)
        price = float(validation.numbers("cost", cost, "a number"))
        chance = validation.positive("probability", probability)
        if chance > 1:
            raise InputError("probability", probability, "a probability above 0")
        with self.way.learning(_by_name(context), noise_cov, group) as denoised:
            self.bandit.learn(self._text(denoised, chosen, f"0:{price!r}:{chance!r} "))

    def _text(self, context: Mapping[Any, Any], chosen: str | None = None, label: str = "") -> str:
        numbers = " ".join(f"{_word('context', name)}:{float(value)!r}" for name, value in context.items())
        lines = [f"{label if action == chosen else ''}|a {action}" for action in self.actions]
        return "\n".join([f"shared |c {numbers}", *lines])


def _by_name(context: Any) -> Any:
    """Numbers in a row are called 0, 1, 2."""
    if isinstance(context, Mapping | str):
        return context
    rows = readings("context", context)
    if len(rows) > 1:
        raise InputError(
            "context", f"{len(rows)} rows", "the numbers of one context: it decides one at a time"
        )
    return dict(enumerate(rows[0].tolist()))


def _word(field: str, name: object) -> str:
    word = str(name)
    if not word or any(mark in word for mark in SEPARATORS):
        raise InputError(field, validation.shown(name), "names without blanks, '|' and ':'")
    return word


def wrapped(bandit: Any, names: Names, actions: Sequence[str | int]) -> VowpalWabbit:
    """A workspace that explores among actions."""
    words = bandit.get_arguments().split()
    # --cb_explore, which takes one line, sets the other too.
    if "--cb_explore_adf" not in words or "--cb_explore" in words:
        allowed = "a vowpalwabbit.Workspace made with --cb_explore_adf"
        raise InputError("bandit", f"a Workspace made with {bandit.get_arguments()!r}", allowed)
    return VowpalWabbit(bandit, names, actions)
