"""What takes long is done beside the writers, by threads of its own; so much of it at a time, and no more.

A place is taken before the body of a request is read, and left when its answer is sent: until then it takes
memory. Who finds none is told to ask again.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from unfog.serve.operations import Operation
from unfog.serve.refusals import busy

MOST = 16  # operations at a time
LARGE = 2  # of them with bodies that may be as large as a log
LATER = 5  # seconds after which to ask again for what takes very long


class Room:
    """The places. Used by the event loop alone."""

    def __init__(self) -> None:
        """All are free."""
        self._taken: Counter[str] = Counter()
        self._threads = ThreadPoolExecutor(MOST, "beside the writers")

    @contextmanager
    def place(self, operation: Operation) -> Iterator[None]:
        """Where an operation may take its time; a complaint where there is none."""
        wanted = {"": MOST}
        if operation.large:
            wanted["large"] = LARGE
        if operation.alone:
            wanted[operation.id] = 1
        for kind, most in wanted.items():
            if self._taken[kind] >= most:
                what = "that take long" if not kind else "of this kind"
                said = f"{most} requests {what} are under way already; nothing was done."
                raise busy(said, LATER if kind else 1)
        self._taken.update(wanted.keys())
        try:
            yield
        finally:
            self._taken.subtract(wanted.keys())

    async def do(self, work: Callable[[], Any]) -> Any:
        """What work comes to that is done by a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """No more of it; what is under way is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)
