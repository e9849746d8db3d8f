"""Two services on one database, clients that ask both, and what must hold whatever is done to them."""

import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import httpx
import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.serve.process import free_port
from tests.serve.running import TERMS
from unfog.live.errors import StoreError
from unfog.serve import auth
from unfog.serve.client import Client, RemoteProblem
from unfog.serve.key_storage import KeyTable

RUN = [sys.executable, "-c", "from unfog.cli import main; main()"]
CLIENTS = 6
GRACE = 0.3  # seconds for answers that were on their way
ANSWERED = ("arm", "probability", "denoised", "sd", "number")


def url_of(dsn: str) -> str:
    """An address that a command takes."""
    told = conninfo_to_dict(dsn)
    return f"postgresql://{told['user']}@{told['host']}:{told['port']}/{told['dbname']}"


def key_of(dsn: str, *scopes: str, problems: tuple[str, ...] = ()) -> str:
    """A new key of a database."""
    made, text = auth.made(scopes, problems, "", time.time())
    KeyTable(dsn).add(made)
    return text


class Process:
    """One `unfog serve`, on a port that stays its own."""

    def __init__(self, dsn: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._told = ["serve", "--store", dsn, "--port", str(self.port), "--advertise", self.url]
        self.process: subprocess.Popen[bytes]

    def start(self) -> None:
        self.process = subprocess.Popen([*RUN, *self._told], stdout=subprocess.DEVNULL)

    def until_ready(self) -> None:
        while not self.is_ready():
            assert self.process.poll() is None, "the service did not start"
            time.sleep(0.02)

    def is_ready(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"{self.url}/readyz", timeout=2).status_code == 200
        return False

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.send(signal.SIGKILL)
        self.process.wait()


class Pair:
    """Two processes, and a key for all."""

    def __init__(self, dsn: str) -> None:
        self.dsn, self.key, self.reader = dsn, key_of(dsn, "admin"), key_of(dsn, "read")
        self.processes = [Process(url_of(dsn)), Process(url_of(dsn))]
        for process in self.processes:
            process.start()
        try:
            for process in self.processes:
                process.until_ready()
        except BaseException:
            self.end()
            raise

    def ask(self, process: Process, method: str, path: str, **told: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.key}"} | told.pop("headers", {})
        return httpx.request(method, f"{process.url}{path}", headers=headers, timeout=30, **told)

    def make(self, name: str, **terms: Any) -> None:
        found = self.ask(self.processes[0], "POST", "/v1/problems", json={"name": name, **TERMS, **terms})
        assert found.status_code == 201, found.text

    def said(self, statement: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn, autocommit=True, options="-c search_path=unfog") as connection:
            return connection.execute(statement).fetchall()

    def owner(self, name: str) -> Process:
        """The process that serves a problem, once one does."""
        while True:
            for found, url, alive in self.said(
                "SELECT problem, url, lease_until > clock_timestamp() FROM owner"
            ):
                if found == name and alive and url in [one.url for one in self.processes]:
                    return next(one for one in self.processes if one.url == url)
            time.sleep(0.02)

    def other(self, process: Process) -> Process:
        return next(one for one in self.processes if one is not process)

    def end(self) -> None:
        for process in self.processes:
            process.end()


class Load:
    """Clients of both processes. `kept` is what was acknowledged, by key; `times` when, by process."""

    def __init__(self, pair: Pair, name: str) -> None:
        self.kept: dict[str, Any] = {}
        self.times: dict[str, list[float]] = {process.url: [] for process in pair.processes}
        self.wrong: list[str] = []
        self._pair, self._name, self._stop = pair, name, threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(i,)) for i in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def served(self, process: Process) -> float:
        """Wait until a process has answered its clients from now on; the longest they have had to wait."""
        since, times = time.monotonic(), self.times[process.url]
        before = len(times)
        while len(times) == before or times[-1] < since + GRACE:
            assert time.monotonic() < since + 30, "nobody takes over"
            assert not self.wrong, self.wrong
            time.sleep(0.005)
        first = [since, *times[before:]]
        return max(after - one for one, after in pairwise(first))

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert self.wrong == []

    def _work(self, number: int) -> None:
        try:
            url = self._pair.processes[number % 2].url
            with Client(url, self._pair.key, timeout=5, retries=0) as client:
                self._ask(client, number)
        except Exception as error:  # noqa: BLE001
            self.wrong.append(repr(error))

    def _ask(self, client: Client, number: int) -> None:
        walks, i = RemoteProblem(client, self._name, ""), 0
        while not self._stop.is_set():
            key, context = f"{number}-{i}", {"steps": 0.1 * i % 5, "sleep": -1.0}
            made = self._until_done(client, key, partial(walks.decide, context, unit=f"u{number}"))
            if made is not None and i % 2:
                self._until_done(client, f"{key} paid", partial(walks.reward, made.id, 1.0))
            i += 1

    def _until_done(self, client: Client, key: str, work: Any) -> Any:
        """With the same key until it is acknowledged."""
        while not self._stop.is_set():
            try:
                done = work(key=key)
            except StoreError:
                time.sleep(0.02)
            else:
                self.kept[key] = done
                self.times[client.url].append(time.monotonic())
                return done
        return None


def check(pair: Pair, load: Load, name: str, verify: bool = False) -> int:
    """What was acknowledged is there, as it was answered, and once; epochs never go down: count of rows."""
    rows = pair.said(
        "SELECT seq, event.epoch, kind, decision, key, body FROM event JOIN problem ON event.problem = id"
        f" WHERE name = '{name}' ORDER BY seq"
    )
    assert [row[0] for row in rows] == [*range(1, len(rows) + 1)]
    epochs = [row[1] for row in rows]
    assert epochs == sorted(epochs)  # no row of an old epoch after one of a new epoch
    bodies = {key: (decision, json.loads(body)) for _, _, _, decision, key, body in rows if key is not None}
    assert len(bodies) == sum(row[4] is not None for row in rows)
    for key, told in load.kept.items():
        decision, body = bodies[key]
        if key.endswith("paid"):
            assert told.outcome == body["outcome"]
        else:
            answered = {part: body[part] for part in ANSWERED}
            assert (decision, answered) == (told.id, {part: getattr(told, part) for part in ANSWERED})
    for process in pair.processes:
        found = pair.ask(process, "POST", f"/v1/problems/{quote(name)}/replay", json={"verify": verify})
        assert found.status_code == 200, found.text
        assert found.json()["same"], found.text
    return len(rows)
