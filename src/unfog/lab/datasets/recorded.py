"""A record of one's own in a file."""

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unfog import _io
from unfog._table import check_once, csv_rows
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
        return hashlib.sha256(self._read_bytes()).hexdigest()

    def _read_bytes(self) -> bytes:
        return _io.content("file", self.file, "the path of a CSV file", MOST_BYTES)

    def _table(self) -> tuple[Mapping[str, Any], Sequence[int], str]:
        source = Path(self.file).name
        try:
            text = self._read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError("file", f"{source} cannot be read ({error})", "CSV in UTF-8") from None
        names, rows = csv_rows(io.StringIO(text, newline=""), source=source)
        check_once(names, source)
        if not (numbered := list(rows)):
            raise InputError("file", f"no rows in {source}", "a header, and rows of values between commas")
        numbers, cells = zip(*numbered, strict=True)
        return dict(zip(names, map(list, zip(*cells, strict=True)), strict=True)), numbers, source


def beside(fields: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Fields of a problem, with the path of a file beside its spec made absolute."""
    file = fields.get("file")
    if isinstance(file, str) and file and _io.is_file(folder / file):
        return {**fields, "file": str((folder / file).resolve())}
    return dict(fields)
