"""The file of an experiment: what it says, and what the experiment is called unless it says so."""

import re
from pathlib import Path
from typing import Any

from unfog import _io
from unfog.lab.recorded import beside
from unfog.validation import LONGEST_LOOKED_UP


def read(path: Path) -> tuple[dict[str, Any], str]:
    """Its tables, a file of data that lies beside it by its whole path; and its name as names may be."""
    data = _io.toml("experiment", path)
    if isinstance(data.get("problem"), dict):
        data["problem"] = beside(data["problem"], path.parent)
    return data, re.sub(r"[^A-Za-z0-9._-]", "-", path.stem).lstrip(".-")[:LONGEST_LOOKED_UP] or "spec"
