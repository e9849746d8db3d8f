"""The keys of the newest rows, so that a caller who holds its lock can look for one without the disk."""

from collections import OrderedDict
from collections.abc import Sequence

from unfog.live.errors import Conflict, Stale
from unfog.live.place import Row

SIZE = 4096


class Recent:
    """Every row with a key after `floor`, by problem and key."""

    def __init__(self) -> None:
        self.floor = 0
        self._rows: OrderedDict[tuple[str, str], Row] = OrderedDict()

    def start(self, floor: int) -> None:
        """Remember nothing, from here on."""
        self.floor = floor
        self._rows.clear()

    def check(self, rows: Sequence[Row]) -> None:
        """Refuse a key that is taken: at the commit it would take the rows of others down with it."""
        keys = [(row.problem, row.key) for row in rows if row.key is not None]
        if len(set(keys)) < len(keys):
            raise Conflict("key", [key for _, key in keys], "a key for each row")
        for key in keys:
            if key in self._rows:
                raise Conflict("key", key[1], "a key that no other row of the problem has")

    def add(self, rows: Sequence[Row], committed: int) -> None:
        """Remember rows; the oldest are forgotten, those not yet committed never."""
        for row in rows:
            if row.key is not None:
                self._rows[row.problem, row.key] = row
        while len(self._rows) > SIZE:
            oldest = next(iter(self._rows.values()))
            if oldest.seq > committed:
                break
            self._rows.popitem(last=False)
            self.floor = oldest.seq

    def find(self, problem: str, key: str, mark: int) -> Row | None:
        """The row with this key among those after `mark`."""
        if mark < self.floor:
            raise Stale(key)
        row = self._rows.get((problem, key))
        return row if row is not None and row.seq > mark else None
