"""A table in Markdown."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """With bars in its cells escaped, and each cell on one line."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell(one) for one in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def cell(text: str) -> str:
    """One cell."""
    return " ".join(text.split()).replace("|", "\\|")


def code(value: object) -> str:
    """A value as code."""
    return f"`{value}`"
