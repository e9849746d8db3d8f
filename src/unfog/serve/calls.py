"""A request as an operation sees it, and an answer as it is sent."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

from unfog.live import Problem, Store
from unfog.serve.media import JSON
from unfog.serve.settings import Settings
from unfog.validation import InputError


class Call(NamedTuple):
    """What was asked for."""

    store: Store  # the one that has the problem, or the one that is meant
    settings: Settings
    name: str = ""  # of the problem
    decision: str = ""
    body: Any = None  # as bodies.py has checked it; text of the body where it is NDJSON
    query: Mapping[str, str] = {}
    key: str | None = None  # of the header `Idempotency-Key`

    @property
    def problem(self) -> Problem:
        """The problem that is named."""
        return self.store.handle(self.name)

    def once(self, key: str | None) -> str | None:
        """The key of a body, or that of the header; where there are both they must be the same."""
        if key is not None and self.key is not None and key != self.key:
            raise InputError("key", repr(key), "as in the header Idempotency-Key, or in one place only")
        return self.key if key is None else key

    def number(self, field: str, least: int, most: int, unless_told: int) -> int:
        """A whole number of the query."""
        text = self.query.get(field)
        if text is None:
            return unless_told
        if not text.isascii() or not text.isdigit() or len(text) > 20 or not least <= int(text) <= most:
            raise InputError(field, repr(text), f"a whole number from {least} to {most}")
        return int(text)


class Answer(NamedTuple):
    """What is sent."""

    body: bytes | AsyncIterator[bytes]
    status: int = 200
    kind: str = JSON
    headers: Mapping[str, str] = {}
