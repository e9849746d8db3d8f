"""A record of one's own in a file."""

import csv
import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unfog import _io
from unfog.validation import InputError
from unfog.worlds.record import Columns

MOST_BYTES = 10**9


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordedFile(Columns):
    """A record of one's own in a CSV file: `kind = "recorded"`.

    Paths are relative to the spec's file, or to the working directory. The file is read when the data are
    first needed; the hash of its bytes is part of what identifies a run, so that an unfinished run is not
    gone on with after the file has changed.

    `file` has a header and a row for each moment. For the other fields see `Columns`.

    >>> from unfog.lab.datasets.recorded import RecordedFile
    >>> RecordedFile(file="rooms.csv", noisy=["read"], true=["truth"]).file  # not looked for yet
    'rooms.csv'
    """

    file: str = ""

    def __post_init__(self) -> None:
        """Check every field; the file is not needed for it."""
        if not isinstance(self.file, str) or not self.file:
            raise InputError("file", self.file, "the path of a CSV file")
        super().__post_init__()

    @property
    def digest(self) -> str:
        """The sha256 of the file."""
        return hashlib.sha256(self._content()).hexdigest()

    def _content(self) -> bytes:
        return _io.content("file", self.file, "the path of a CSV file", MOST_BYTES)

    def _table(self) -> tuple[Mapping[str, Any], str]:
        source = Path(self.file).name
        try:
            rows = list(csv.reader(io.StringIO(self._content().decode("utf-8-sig"), newline="")))
        except (UnicodeDecodeError, csv.Error) as error:
            problem = f"{source} is no CSV file in UTF-8 ({error})"
            raise InputError("data", problem, "a header, and rows of values between commas") from None
        names, rows = [name.strip() for name in rows[0]] if rows else [], [row for row in rows[1:] if row]
        if not rows:
            raise InputError("data", f"{source} has no rows", "a header, and rows of values between commas")
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise InputError("data", f"{source} has two columns {twice[0]!r}", "a name for each column")
        for number, row in enumerate(rows, 1):
            if len(row) != len(names):
                problem = f"{source}, row {number}: {len(row)} values"
                raise InputError("data", problem, f"{len(names)}, as many as the header has names")
        return {name: [row[index] for row in rows] for index, name in enumerate(names)}, source


def beside(fields: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Fields of a problem, with a file that lies beside its spec named by its whole path."""
    file = fields.get("file")
    if isinstance(file, str) and file and _io.is_file(folder / file):
        return {**fields, "file": str((folder / file).resolve())}
    return dict(fields)
