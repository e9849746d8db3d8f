"""A process that writes to a log, to be killed or starved: writer.py PATH what number.

- threads: eight threads add and commit rows, and say so on the standard output once `commit` returned
- commits: so many commits of one row, then it kills itself
- full, normal: the same in that mode, each commit acknowledged by its key on the standard output
- found: every key that is in the file, acknowledged
- hold: opens the log and waits for its standard input to end
- starve: no file may grow beyond so many bytes; after the first error it may again
- faults: the first, second, ... call to the disk fails (see shim.c); what the log says is held to its rows
"""

import ctypes
import errno
import os
import resource
import signal
import sys
import threading
from pathlib import Path

from unfog.live.backend import Row
from unfog.live.errors import StoreError
from unfog.live.log import EventLog
from unfog.live.sqlite import SqliteBackend

TEXT = '{"note": "' + "the context of a walk " * 20 + '"}'


def put(log: EventLog, guard: threading.Lock, key: str) -> int:
    with guard:
        seq = log.last + 1
        epoch = log.epoch
        log.add([Row(seq, f"p{seq % 3}", "decide", f"d{seq}", key, float(seq), TEXT)], epoch)
    log.commit(seq, epoch)
    return seq


def threads(log: EventLog, number: int) -> None:
    guard = threading.Lock()

    def work(name: int) -> None:
        for i in range(10**9):
            key = f"{number}-{name}-{i}"
            seq = put(log, guard, key)
            os.write(1, f"{seq} {key}\n".encode())  # one short write to a pipe is never torn

    for name in range(8):
        threading.Thread(target=work, args=(name,)).start()


def commits(log: EventLog, number: int) -> None:
    for i in range(number):
        put(log, threading.Lock(), f"own-{i}")
    os.kill(os.getpid(), signal.SIGKILL)


def acknowledged(log: EventLog, number: int) -> None:
    for i in range(number):
        put(log, threading.Lock(), f"own-{i}")
        os.write(1, f"own-{i}\n".encode())
    os.kill(os.getpid(), signal.SIGKILL)


def found(log: EventLog, number: int) -> None:
    for row in log.read():
        os.write(1, f"{row.key}\n".encode())
    os.kill(os.getpid(), signal.SIGKILL)


def faults(log: EventLog, number: int) -> None:
    """Print for each call that failed whether anything was refused."""
    arm, path = ctypes.CDLL(None).unfog_arm, Path(log.backend.label)
    log.close()
    for code in (errno.EIO, errno.ENOSPC):
        for call in range(1, number):
            arm(call, code)
            said, expected = used(path, call)
            if arm(0, 0):
                break
            with EventLog(SqliteBackend(path)) as again:
                keys = {row.key for row in again.read()}
            assert expected["done"] <= keys, (call, said, expected)
            assert not expected["refused"] & keys, (call, said, expected)
            path.unlink()
            print(call, "refused" if said else "done", said, flush=True)


def used(path: Path, call: int) -> tuple[str, dict[str, set[str]]]:
    """Open a log and commit three rows, on a disk that may fail."""
    said = ""
    expected: dict[str, set[str]] = {"done": set(), "refused": set(), "unknown": set()}
    try:
        with EventLog(SqliteBackend(path)) as log:
            for key in (f"{call}-{i}" for i in range(3)):
                try:
                    put(log, threading.Lock(), key)
                    expected["done"].add(key)
                except StoreError as error:
                    said = str(error)
                    expected["refused" if "nothing was changed" in said else "unknown"].add(key)
                    list(log.read())
    except StoreError as error:
        said = said or str(error)
    return said, expected


def hold(log: EventLog, number: int) -> None:
    log.announce(f"http://127.0.0.1:{number}" if number else None)
    print("held", flush=True)
    sys.stdin.read()


def starve(log: EventLog, number: int) -> None:
    guard, hard = threading.Lock(), resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (number, hard))
    kept = log.last
    try:
        for _ in range(10_000):
            kept = put(log, guard, f"s{log.last + 1}")
    except StoreError as error:
        print(error)
    else:
        print("no error")
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    list(log.read(after=kept))  # whoever asks the file makes the log usable again
    print(kept, log.last, flush=True)
    print(put(log, guard, f"s{log.last + 1}"), flush=True)
    log.close()


if __name__ == "__main__":
    what = {"threads": threads, "commits": commits, "hold": hold, "starve": starve, "faults": faults}
    what |= {"full": acknowledged, "normal": acknowledged, "found": found}
    sync = "normal" if sys.argv[2] == "normal" else "full"
    what[sys.argv[2]](EventLog(SqliteBackend(sys.argv[1], sync)), int(sys.argv[3]))
