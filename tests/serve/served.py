"""A service as a process of its own, to be killed or stopped: served.py PATH PORT delay every.

Each commit takes `delay` seconds longer than it does, so that a kill falls into one often enough; a snapshot
is due after `every` events.
"""

import sys
import time

import unfog
from unfog.live import cache
from unfog.live.backend import Change
from unfog.live.log import EventLog
from unfog.serve.auth import LocalhostOnly
from unfog.serve.server import bound, run
from unfog.serve.service import Service, Single
from unfog.serve.settings import Settings


def slow(log: EventLog, delay: float) -> None:
    """Let its disk take its time."""
    flush = log._flush

    def later(change: Change | None = None) -> None:
        time.sleep(delay)
        flush(change)

    log._flush = later  # type: ignore[method-assign]


def main(path: str, port: int, delay: float, every: int) -> None:
    cache.SNAPSHOT_EVERY = every
    store = unfog.live.open(path)
    slow(store.processor.log, delay)
    run(Service(Single(store), Settings(), LocalhostOnly()), bound("127.0.0.1", port), lambda: None)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
