"""A bandit of another library whose contexts are denoised on their way in; what has no context is its own."""

from typing import Any, Generic, TypeVar

Way = TypeVar("Way")


class Wrapped(Generic[Way]):
    """The bandit, with the verbs that take contexts written anew by each library's file."""

    def __init__(self, bandit: Any, way: Way) -> None:
        """Keep the bandit, not a copy of it, and the way in for contexts."""
        self.bandit, self.way = bandit, way

    def __getattr__(self, name: str) -> Any:
        """Everything else is the bandit's."""
        # A copy or a pickle asks before there is a bandit to ask.
        if name == "bandit" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.bandit, name)

    def __repr__(self) -> str:
        return f"wrap({self.bandit!r})"
