"""How much memory there is to work in, so that what cannot fit is refused before anything is made.

On Linux it is what the kernel says is available, or what is left of the limit of a control group (version 1
or 2) where that is less; elsewhere the memory there is. Of either a share is left to others. UNFOG_MEMORY,
such as 8GB, says it instead. Where nothing is known nothing is refused.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from unfog.validation import InputError

VARIABLE = "UNFOG_MEMORY"
SHARE = 0.9  # of what is available: the estimates are good to a factor, and others live here too
UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
AMOUNT = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)\s*([a-z]*)")
WITHOUT_LIMIT = 2**60  # version 1 writes a number as large where there is none


def limit(root: Path = Path("/")) -> int | None:
    """Bytes that may be taken: as UNFOG_MEMORY says, or a share of what is available; None: unknown."""
    told = os.environ.get(VARIABLE, "").strip()
    if told:
        return amount(VARIABLE, told)
    found = available(root)
    return None if found is None else int(SHARE * found)


def amount(field: str, text: str) -> int:
    """Bytes, from words such as 8GB, 512 MiB or 4000000000."""
    found = AMOUNT.fullmatch(text.strip().lower())
    if found is None or found[2] not in UNITS or float(found[1]) <= 0:
        raise InputError(field, repr(text), "an amount of memory, such as 8GB, 512MB or 2GiB")
    return int(float(found[1]) * UNITS[found[2]])


def refuse(fields: Sequence[str], what: str, amount: float) -> None:
    """Complain of these fields where what they ask for, in bytes, is more than may be taken."""
    most = limit()
    if most is not None and amount > most:
        raise InputError(", ".join(fields), f"{what} {said(amount)}", f"what fits in {free(most)}")


def free(most: int) -> str:
    """How much may be taken, and by whose word."""
    return f"{VARIABLE}, {said(most)}" if os.environ.get(VARIABLE, "").strip() else f"about {said(most)} free"


def said(amount: float) -> str:
    """Bytes in words."""
    for unit in ("TB", "GB", "MB", "kB"):
        if amount >= UNITS[unit.lower()]:
            return f"{amount / UNITS[unit.lower()]:.3g} {unit}"
    return "1 byte" if amount == 1 else f"{amount:.0f} bytes"


def available(root: Path = Path("/")) -> int | None:
    """Bytes that can be had without others losing theirs; None where the system does not say."""
    found = [one for one in (_free(root), *_left(root)) if one is not None]
    return min(found) if found else None


def _free(root: Path) -> int | None:
    """What the kernel says is available, or all there is."""
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
        found = next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))
        return 1024 * int(found)
    except (OSError, StopIteration, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _left(root: Path) -> Iterator[int | None]:
    """What is left of the limit of each control group that this process is in, up to the root of all."""
    for line in _words(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        kinds, _, path = rest.partition(":")
        if kinds and "memory" not in kinds.split(","):
            continue
        top = root / ("sys/fs/cgroup/memory" if kinds else "sys/fs/cgroup")
        most, used, files = (
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            if kinds
            else ("memory.max", "memory.current", "inactive_file")
        )
        parts = [one for one in path.split("/") if one]
        for depth in range(len(parts), -1, -1):
            yield _rest(top.joinpath(*parts[:depth]), most, used, files)


def _rest(group: Path, most: str, used: str, files: str) -> int | None:
    """A limit less what is used of it; pages of files that nobody looks at are given back when asked for."""
    bound, taken = _number(_words(group / most)), _number(_words(group / used)) or 0
    if bound is None or bound >= WITHOUT_LIMIT:
        return None
    lines = [line.split() for line in _words(group / "memory.stat").splitlines()]
    idle = next((_number(line[1]) or 0 for line in lines if len(line) == 2 and line[0] == files), 0)
    return max(0, bound - max(0, taken - idle))


def _words(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _number(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None
