"""river behind a denoiser: its contextual policies; contexts are numbers by name.

`LinUCBDisjoint` has no intercept of its own: add a name that is always 1, and put it in `as_is`.
"""

from typing import Any

from unfog.adapters.libraries.names import Names
from unfog.adapters.libraries.wrapped import Wrapped
from unfog.inputs import InputError


class River(Wrapped[Names]):
    """A `river.bandit.base.ContextualPolicy`, its two verbs."""

    def pull(self, arm_ids: Any, context: Any, *, noise_cov: Any = None, group: Any = None) -> Any:
        """One of the arms."""
        return self.bandit.pull(arm_ids, context=self.way.decide(context, noise_cov, group))

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
        self.bandit.update(arm_id, self.way.learn(context, noise_cov, group), *reward_args, **reward_kwargs)


def wrapped(bandit: Any, names: Names) -> River:
    """A policy that asks for contexts."""
    if "ContextualPolicy" not in (kind.__name__ for kind in type(bandit).__mro__):
        allowed = "a contextual policy of river, such as river.bandit.LinUCBDisjoint"
        raise InputError("bandit", type(bandit).__name__, allowed)
    return River(bandit, names)
