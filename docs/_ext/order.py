"""The site's index names some pages that may not be written; those are left out without a word."""

import re
from pathlib import Path

from sphinx.application import Sphinx

_ENTRY = re.compile(r"^(?:guide|science|notebook)/[\w*-]+$")


def kept(text: str, folder: Path) -> str:
    """Without entries that match no page beyond those named before them."""
    named: set[Path] = set()
    lines = []
    for line in text.splitlines():
        if _ENTRY.match(line):
            found = {*folder.glob(f"{line}.md")} - named
            named |= found
            if not found:
                continue
        lines.append(line)
    return "\n".join(lines) + "\n"


def _read(app: Sphinx, name: str, content: list[str]) -> None:
    if name == "index":
        content[0] = kept(content[0], Path(app.srcdir))


def setup(app: Sphinx) -> dict[str, bool]:
    """Say to Sphinx when."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
