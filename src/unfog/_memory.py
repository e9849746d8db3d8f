"""How much memory is available, so that work that cannot fit is refused before it starts.

On Linux this is what the kernel reports as available, or what is left of the limit of a control group
(version 1 or 2) if that is less; elsewhere it is the machine's memory. A share of it is left to others.
UNFOG_MEMORY, such as 8GB, overrides it. If nothing is known nothing is refused.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from unfog.validation import InputError

VARIABLE = "UNFOG_MEMORY"
SHARE = 0.9  # of what is available: estimates are rough, and other programs need memory, too
UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
AMOUNT = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)\s*([a-z]*)")
WITHOUT_LIMIT = 2**60  # version 1 writes a number larger than this if there is no limit


def limit(root: Path = Path("/")) -> int | None:
    """Bytes that may be used: UNFOG_MEMORY, or a share of what is available; None if unknown."""
    setting = os.environ.get(VARIABLE, "").strip()
    if setting:
        return amount(VARIABLE, setting)
    free_bytes = available(root)
    return None if free_bytes is None else int(SHARE * free_bytes)


def amount(field: str, text: str) -> int:
    """Bytes, from words such as 8GB, 512 MiB or 4000000000."""
    match = AMOUNT.fullmatch(text.strip().lower())
    if match is None or match[2] not in UNITS or float(match[1]) <= 0:
        raise InputError(field, repr(text), "an amount of memory, such as 8GB, 512MB or 2GiB")
    return int(float(match[1]) * UNITS[match[2]])


def check_memory(fields: Sequence[str], what: str, amount: float) -> None:
    """Raise an error about these fields if they need more bytes than may be used."""
    most = limit()
    if most is not None and amount > most:
        raise InputError(", ".join(fields), f"{what} {format_bytes(amount)}", f"what fits in {free(most)}")


def free(most: int) -> str:
    """How much may be used, in words, and whether UNFOG_MEMORY says so."""
    return (
        f"{VARIABLE}, {format_bytes(most)}"
        if os.environ.get(VARIABLE, "").strip()
        else f"about {format_bytes(most)} free"
    )


def format_bytes(amount: float) -> str:
    """An amount of bytes with its unit."""
    for unit in ("TB", "GB", "MB", "kB"):
        if amount >= UNITS[unit.lower()]:
            return f"{amount / UNITS[unit.lower()]:.3g} {unit}"
    return "1 byte" if amount == 1 else f"{amount:.0f} bytes"


def available(root: Path = Path("/")) -> int | None:
    """Bytes that are available without swapping; None if the system does not say."""
    amounts = [one for one in (_read_available(root), *_read_groups(root)) if one is not None]
    return min(amounts) if amounts else None


def _read_available(root: Path) -> int | None:
    """The available memory that the kernel reports, or all memory."""
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
        number = next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))
        return 1024 * int(number)
    except (OSError, StopIteration, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _read_groups(root: Path) -> Iterator[int | None]:
    """What is left of the limits of this process's control groups, up to the root."""
    for line in _read_text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        kinds, _, path = rest.partition(":")
        if kinds and "memory" not in kinds.split(","):
            continue
        top = root / ("sys/fs/cgroup/memory" if kinds else "sys/fs/cgroup")
        limit_file, usage_file, entry = (
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            if kinds
            else ("memory.max", "memory.current", "inactive_file")
        )
        parts = [one for one in path.split("/") if one]
        for depth in range(len(parts), -1, -1):
            yield _read_rest(top.joinpath(*parts[:depth]), limit_file, usage_file, entry)


def _read_rest(group: Path, limit_file: str, usage_file: str, entry: str) -> int | None:
    """A limit less its usage, without inactive file pages, which the kernel can reclaim."""
    bound, usage = (
        _parse_number(_read_text(group / limit_file)),
        _parse_number(_read_text(group / usage_file)) or 0,
    )
    if bound is None or bound >= WITHOUT_LIMIT:
        return None
    lines = [line.split() for line in _read_text(group / "memory.stat").splitlines()]
    cached = next((_parse_number(line[1]) or 0 for line in lines if len(line) == 2 and line[0] == entry), 0)
    return max(0, bound - max(0, usage - cached))


def _read_text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _parse_number(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None
