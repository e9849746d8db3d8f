"""How long the work of a problem takes: what is short may be done by the event loop itself.

That depends on its arms, its coordinates, its agents and the machine; so it is measured, in time of the
processor, which does not count what others take. Before anything is known it is taken to be long.
"""

SHORT = 0.005  # seconds
SHARE = 0.2  # of the newest in the mean


class Lengths:
    """The mean of each problem's newest work, by name."""

    def __init__(self) -> None:
        """Nothing is known."""
        self._means: dict[str, float] = {}

    def add(self, name: str, seconds: float) -> None:
        """Work that was done."""
        before = self._means.get(name, seconds)
        self._means[name] = before + SHARE * (seconds - before)

    def is_short(self, name: str) -> bool:
        """Whether what comes next will be done soon."""
        return self._means.get(name, SHORT) < SHORT
