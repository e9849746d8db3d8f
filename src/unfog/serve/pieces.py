"""A long answer as JSON, written in pieces.

The past of 200,000 decisions is some 50 MB. To write that in one go would keep the interpreter to itself for
a second, and nobody else would be answered meanwhile. So long lists are written some values at a time.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from unfog.serve.media import encode

VALUES = 2000  # of a list that are written in one go: some hundreds of microseconds
LETTERS = 1 << 16  # that are sent at a time


def written(value: Any) -> Iterator[bytes]:
    """The same bytes as in one go, a part at a time."""
    waiting, size = list[str](), 0
    for part in _parts(value):
        waiting.append(part)
        size += len(part)
        if size >= LETTERS:
            yield "".join(waiting).encode()
            waiting, size = [], 0
    yield "".join(waiting).encode()


def _parts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield "{"
        for i, (name, one) in enumerate(value.items()):
            yield f"{',' if i else ''}{encode(name)}:"
            yield from _parts(one)
        yield "}"
    elif isinstance(value, list) and len(value) > VALUES:
        for start in range(0, len(value), VALUES):
            yield ("," if start else "[") + encode(value[start : start + VALUES])[1:-1]
        yield "]"
    else:
        yield encode(value)
