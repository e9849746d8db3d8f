"""Requests whose bodies are on their way. When the service stops nobody waits for the rest of them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from unfog.serve.refusals import busy

STOPPING = "The service is stopping; nothing was done."


class Readers:
    """Their tasks. Used by the event loop alone."""

    def __init__(self) -> None:
        """None yet."""
        self._tasks = set[asyncio.Task[Any]]()
        self._left = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A body is read; a complaint where the service stops before it is there."""
        if self._left:
            raise busy(STOPPING)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            yield
        except asyncio.CancelledError:
            task.uncancel()
            raise busy(STOPPING) from None
        finally:
            self._tasks.discard(task)

    def leave(self) -> None:
        """The service stops."""
        self._left = True
        for task in self._tasks:
            task.cancel()
