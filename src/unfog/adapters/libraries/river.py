"""river behind a denoiser: its contextual policies; contexts are numbers by name.

`LinUCBDisjoint` has no intercept of its own: add a name that is always 1, and put it in `as_is`.

A wrapped policy is a contextual policy to river (`isinstance` says so), and plays in its `evaluate_offline`.
Its clone starts anew, as river has it: a policy that has learnt nothing, behind the denoiser as it was before
the first decision.
"""

import copy
from typing import Any

from unfog.adapters.libraries.names import Names
from unfog.adapters.libraries.wrapped import Wrapped
from unfog.validation import InputError


class River(Wrapped[Names]):
    """A `river.bandit.base.ContextualPolicy`, its verbs."""

    takes_gaps = True  # a name that is missing was lost: `unfog.adapters.river.evaluate` asks

    def __init__(self, bandit: Any, way: Names) -> None:
        """Keep also how it all began, from the first context on: until then the denoiser may be fitted."""
        super().__init__(bandit, way)
        self._first: Names | None = None

    def pull(self, arm_ids: Any, context: Any, *, noise_cov: Any = None, group: Any = None) -> Any:
        """One of the arms."""
        self._begin()
        with self.way.deciding(context, noise_cov, group) as denoised:
            return self.bandit.pull(arm_ids, context=denoised)

    def update(
        self,
        arm_id: Any,
        context: Any,
        *reward_args: Any,
        noise_cov: Any = None,
        group: Any = None,
        **reward_kwargs: Any,
    ) -> None:
        """Learn from a reward."""
        self._begin()
        with self.way.learning(context, noise_cov, group) as denoised:
            self.bandit.update(arm_id, denoised, *reward_args, **reward_kwargs)

    def clone(self, *args: Any, **options: Any) -> "River":
        """As before the first decision; what river's `clone` takes is for the policy."""
        first = self.way if self._first is None else self._first
        return River(self.bandit.clone(*args, **options), copy.deepcopy(first))

    def _begin(self) -> None:
        if self._first is None:
            self._first = copy.deepcopy(self.way)


def wrapped(bandit: Any, names: Names) -> River:
    """A policy that asks for contexts."""
    kinds: dict[str, Any] = {kind.__name__: kind for kind in type(bandit).__mro__}
    if "ContextualPolicy" not in kinds:
        allowed = "a contextual policy of river, such as river.bandit.LinUCBDisjoint"
        raise InputError("bandit", type(bandit).__name__, allowed)
    kinds["ContextualPolicy"].register(River)
    return River(bandit, names)
