"""What a caller says besides the log, and of which logs it can be said.

What does not concern a log is refused: who names a column of a live store would take it to be used.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from unfog.evaluation.read.columns import Columns
from unfog.evaluation.read.live import Store
from unfog.validation import InputError, shown

Opener = Callable[[Path], AbstractContextManager[Store]]
"""Opens the file of a live store, such as `unfog.live.open`."""

WHY = {
    "columns": "only tables have columns",
    "problem": "only live logs have problems",
    "arms": "it lists its arms itself",
    "coordinates": "it names its coordinates itself",
    "probability": "it has its own probabilities",
}


class Asked(NamedTuple):
    """None for what is not said."""

    columns: Columns | None
    problem: str | None
    arms: list[str] | None
    coordinates: list[str] | None
    probability: float | None
    opener: Opener | None

    def only(self, what: str, *taken: str) -> "Asked":
        """Itself, if nothing else is said than what such a log takes."""
        for name, why in WHY.items():
            value = getattr(self, name)
            if value is not None and name not in taken:
                field = "coordinates of the context" if name == "coordinates" else name
                said = value if isinstance(value, str) else shown(value)
                raise InputError(field, said, f"nothing, for {what}: {why}")
        return self

    @property
    def of_table(self) -> Columns:
        """The columns, and the probability where all arms were drawn evenly."""
        found = self.columns or Columns()
        own = {} if self.probability is None else {"probability": self.probability}
        return Columns(**{**vars(found), **own})
