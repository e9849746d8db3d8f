"""Two processes that share a database, clients that ask them, and what must hold whatever is done to them."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psycopg

from tests.live.owning import NAME
from unfog.live.postgres.ownership import Shared

ROOT = Path(__file__).parents[2]
CLIENTS = 6
GRACE = 0.2  # seconds for answers that were on their way
PATIENCE = 1.0  # seconds a client waits for an answer


class Process:
    """One that serves."""

    def __init__(self, dsn: str) -> None:
        paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        command = [sys.executable, "-m", "tests.live.owning", dsn]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": paths}
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.send(signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


class Pair:
    """Two processes on one database, under load."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        first = Process(dsn)
        self.processes = [first, Process(dsn)]
        self.kept: dict[str, list[Any]] = {}  # what was acknowledged, by key
        self.last = 0.0  # when a decision was acknowledged
        self._served_at = ""
        self._stop = threading.Event()
        self._clients = [threading.Thread(target=self._work, args=(i,)) for i in range(CLIENTS)]
        for client in self._clients:
            client.start()

    def said(self, statement: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn, autocommit=True, options="-c search_path=unfog") as connection:
            return connection.execute(statement).fetchall()

    def owner(self) -> Process:
        """The process that has the problem."""
        while True:
            ((url, alive),) = self.said("SELECT url, lease_until > clock_timestamp() FROM owner")
            found = [one for one in self.processes if one.url == url]
            if alive and found:
                return found[0]
            time.sleep(0.02)

    def served_again(self, since: float) -> float:
        """Wait until another process answers, and say for how many seconds nobody did."""
        while self.last <= since:
            assert time.monotonic() < since + 30, "nobody takes over"
            time.sleep(0.005)
        return self.last - since

    def kill(self) -> float:
        """The owner, and start another."""
        owner = self.owner()
        owner.end()
        seconds = self.served_again(time.monotonic() + GRACE) + GRACE
        new = Process(self.dsn)
        self.processes = [new if one is owner else one for one in self.processes]
        return seconds

    def stop_and_wake(self) -> float:
        """The owner is stopped until another has taken over; then it goes on where it was."""
        owner = self.owner()
        ((epoch,),) = self.said("SELECT epoch FROM owner")
        owner.send(signal.SIGSTOP)
        seconds = self.served_again(time.monotonic() + GRACE) + GRACE
        ((now, rows),) = self._of(epoch)
        assert now > epoch
        owner.send(signal.SIGCONT)
        time.sleep(0.5)
        assert self._of(epoch) == [(now, rows)]  # nobody else was stopped meanwhile
        return seconds

    def _of(self, epoch: int) -> list[tuple[Any, ...]]:
        return self.said(
            f"SELECT (SELECT epoch FROM owner), (SELECT count(*) FROM event WHERE epoch <= {int(epoch)})"
        )

    def end(self) -> None:
        """No more load, no more processes."""
        self._stop.set()
        for client in self._clients:
            client.join()
        for process in self.processes:
            process.end()

    def _work(self, client: int) -> None:
        number = 0
        while not self._stop.is_set():
            key = f"{client}-{number}"
            made = self._until_done({"do": "decide", "context": [0.1 * number % 5, -1.0], "key": key})
            if made and number % 2:
                paid = {"do": "reward", "decision": made[0], "value": 1.0, "key": f"{key} paid"}
                self._until_done(paid)
            number += 1

    def _until_done(self, asked: dict[str, Any]) -> list[Any]:
        """Ask one process and then the other, with the same key, until it is acknowledged."""
        while not self._stop.is_set():
            for process in sorted(self.processes, key=lambda one: one.url != self._served_at):
                with contextlib.suppress(OSError, ValueError):
                    said = ask(process.url, asked)
                    if "done" in said:
                        self.kept[asked["key"]] = said["done"]
                        self.last, self._served_at = time.monotonic(), process.url
                        return list(said["done"])
            time.sleep(0.02)
        return []

    def check(self) -> int:
        """Everything that was acknowledged is there, as it was answered, and once; the count of rows."""
        with Shared(self.dsn, "tcp://check") as shared:
            while True:
                with contextlib.suppress(Exception):
                    store = shared.store(NAME)
                    break
                time.sleep(0.1)
            rows = list(store.processor.log.read(NAME))
            assert store.replay(verify=True)[NAME].same
        epochs = [epoch for (epoch,) in self.said("SELECT epoch FROM event ORDER BY seq")]
        assert epochs == sorted(epochs)  # no row of an old epoch after one of a new epoch
        assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
        keys = [row.key for row in rows if row.key is not None]
        assert len(set(keys)) == len(keys)
        found = {row.key: row for row in rows}
        for key, told in self.kept.items():
            body = json.loads(found[key].body)
            if told:
                assert told == [found[key].decision, body["arm"], body["number"]]
        decided = [json.loads(row.body)["number"] for row in rows if row.kind == "decide"]
        assert decided == list(range(len(decided)))
        return len(rows)


def ask(url: str, asked: dict[str, Any]) -> dict[str, Any]:
    """One request over a connection of its own; an answer that does not come is an error."""
    host, _, port = url.removeprefix("tcp://").partition(":")
    with socket.create_connection((host, int(port)), PATIENCE) as connection:
        connection.settimeout(PATIENCE)
        connection.sendall(json.dumps(asked).encode() + b"\n")
        with connection.makefile() as answers:
            found: dict[str, Any] = json.loads(answers.readline())
            return found
