"""A service as a process of its own, to be killed or stopped: served.py PATH PORT [sync] [events a snapshot]."""

import sys

import unfog
from unfog.live import remembered
from unfog.serve.doors import Open
from unfog.serve.server import run
from unfog.serve.service import Service
from unfog.serve.settings import Settings
from unfog.serve.shelf import Single


def main(path: str, port: int, sync: str = "full", every: int = 500) -> None:
    remembered.SNAPSHOT_EVERY = every
    store = unfog.live.open(path, sync=sync)
    run(Service(Single(store), Settings(), Open()), "127.0.0.1", port)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:4], *map(int, sys.argv[4:5]))
