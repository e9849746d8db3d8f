"""Who holds a store: a small file beside it, for the sentence that refuses a second opener.

SQLite's lock on the store decides who holds it. The file beside it only says who that is: a holder that was
killed leaves one behind, which does no harm, and where none could be written the sentence names nobody.
Within one process a list of open stores decides first: to open and close a file that this process has locked
would drop the lock, because POSIX locks belong to the process.
"""

import contextlib
import json
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from unfog.live.errors import Held

_open: "WeakValueDictionary[Path, Holder]" = WeakValueDictionary()
_guard = threading.Lock()


class Holder:
    """One store, held by this process."""

    def __init__(self, path: Path) -> None:
        """Claim the path within this process; the file is written by `announce`, once the lock is there."""
        self.path = path
        self.pid = os.getpid()
        self.since = time.time()
        self.url: str | None = None
        with _guard:
            if path in _open and _open[path].pid == self.pid:
                raise Held(f"{path.name} is held by this process already; close it first")
            _open[path] = self

    def announce(self) -> None:
        """Say who holds the store, and where it can be reached."""
        said = {
            "pid": self.pid,
            "host": socket.gethostname(),
            "since": self.since,
            "program": program(),
            "url": self.url,
        }
        draft = beside(self.path).with_name(f"{beside(self.path).name}.{self.pid}")
        try:
            draft.write_text(json.dumps(said), "utf-8")
            draft.replace(beside(self.path))
        except OSError:  # a full disk must not keep anybody from reading the store
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)

    def release(self) -> None:
        """Give the path back, while the lock is still there: later the file may be the next holder's."""
        with contextlib.suppress(OSError):
            beside(self.path).unlink(missing_ok=True)
        self.forget()

    def forget(self) -> None:
        """Give the path back within this process; what lies beside the store is not ours."""
        with _guard:
            if _open.get(self.path) is self:
                del _open[self.path]


def beside(path: Path) -> Path:
    """Where it is said who holds a store."""
    return path.with_name(f"{path.name}-holder")


def program() -> str:
    """What runs here, without its arguments, which may be nobody's business."""
    script = Path(sys.argv[0] if sys.argv and sys.argv[0] else "-")
    name = script.parent.name if script.name == "__main__.py" else script.name
    return f"{Path(sys.executable).name} {name}"


def refusal(path: Path) -> Held:
    """The sentence for a second opener."""
    said = _said(path)
    if said is None:
        return Held(f"{path.name} is held by another process; close it there first")
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(said["since"]))
    who = f"process {said['pid']} ({said['program']}) on {said['host']} since {since}"
    ask = f"it can be reached at {said['url']}: ask it there with --url {said['url']}"
    return Held(f"{path.name} is held by {who}; {ask if said['url'] else 'close it there first'}")


def _said(path: Path) -> dict[str, Any] | None:
    """What the file says, if it can be read and its process is not known to be dead."""
    try:
        said = json.loads(beside(path).read_text("utf-8"))
        said = {"pid": int(said["pid"]), "since": float(said["since"])} | {
            name: said[name] for name in ("host", "program", "url")
        }
        if said["host"] == socket.gethostname():
            os.kill(said["pid"], 0)
    except PermissionError:  # it runs, as somebody else
        return said
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return said
