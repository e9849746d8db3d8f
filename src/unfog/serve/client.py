"""A service, asked as one asks a store: the same verbs, the same answers, the same errors.

client = unfog.serve.Client("http://127.0.0.1:8000")
walks = client.problem("walks")
d = walks.decide({"steps": 1648, "sleep": None}, unit="ann")
walks.reward(d.id, 1.0)

Every decision and report carries a key, one of its own where the caller gives none: so it can be asked for
again after an answer was lost, and nothing is decided or counted twice.
"""

import json
import os
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from unfog import validation
from unfog.live.errors import StoreError, Unknown
from unfog.live.replay import Replayed
from unfog.live.schema import LAST
from unfog.serve import outgoing
from unfog.serve.outgoing import address
from unfog.serve.refusals import Refused
from unfog.serve.remote import Remote
from unfog.serve.wire import Wire
from unfog.validation import InputError, shown

KEY = "UNFOG_KEY"  # the environment variable with the key of a service
LINES = 2000  # of a log that are asked for at a time


class Client:
    """Asks the service at an address. Threads may share it.

    >>> import unfog
    >>> client = unfog.serve.Client("http://127.0.0.1:8000")
    >>> walks = client.problem("walks")
    >>> d = walks.decide({"steps": 1648, "sleep": None}, unit="ann")
    >>> walks.reward(d.id, 1.0).outcome
    'learnt'
    >>> client.close()
    """

    def __init__(self, url: str, key: str | None = None, timeout: float = 10, retries: int = 5) -> None:
        """Nothing is asked yet. `timeout` is in seconds, of each attempt; `retries` come after the first.
        What goes through a whole log (replays, copies, logs that come in) may take an hour.

        The service's `key` is that of the environment variable UNFOG_KEY, unless told.
        """
        validation.positive("timeout", timeout)
        validation.count("retries", retries, 0, 100)
        self._wire = Wire(url, _key(os.environ.get(KEY) if key is None else key), float(timeout), retries)

    @property
    def url(self) -> str:
        """The address."""
        return self._wire.url

    def __repr__(self) -> str:
        """Without the key."""
        return f"<client of {self.url}>"

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close connections; the service goes on."""
        self._wire.close()

    def get(self, path: str, **query: Any) -> Any:
        """What an address says; what is None is no part of the query."""
        told = "&".join(f"{name}={quote(str(x), safe='')}" for name, x in query.items() if x is not None)
        return _read(self._wire.ask("GET", f"{path}?{told}" if told else path, again=True))

    def post(self, path: str, told: Any, *, again: bool, long: bool = False) -> Any:
        """What comes of a request; `again` where it may be asked twice, `long` where it may take long."""
        return _read(self._wire.ask("POST", path, told, again=again, long=long))

    def problems(self) -> list[dict[str, Any]]:
        """All problems at a glance, those that the key may read."""
        found: list[dict[str, Any]] = self.get("/v1/problems")["problems"]
        return found

    def names(self) -> list[str]:
        """The problems that there are, and that the key may read."""
        return [one["name"] for one in self.problems()]

    def problem(self, name: str, **terms: Any) -> Remote:
        """The problem of this name; made, where there is none yet and its terms are given.

        The terms are those of `unfog.live.Store.problem`. Of a problem that is there each that is given must
        be as it was.
        """
        name = validation.check_name("name", name)
        if terms:
            told = {"name": name, **outgoing.terms(terms)}
            return Remote(self, name, self.post("/v1/problems", told, again=True)["note"] or "")
        try:
            return Remote(self, name, self.get(address(name))["note"] or "")
        except Unknown as error:
            raise Unknown("name", repr(name), f"{error.allowed}; or the terms of a new problem") from None
        except Refused as error:
            if error.status != 403:
                raise
        return Remote(self, name, "")  # a key that may decide need not be one that may look

    def events(self, name: str, since: int = 0) -> Iterator[dict[str, Any]]:
        """The events of a problem after that of the number `since`, as mappings."""
        return (json.loads(line) for line in self._lines(name, since))

    def _lines(self, name: str, since: int = 0) -> Iterator[str]:
        """The log, so many lines at a time: a connection that breaks costs one such piece."""
        since = validation.count("since", since, 0, LAST)
        while True:
            path = f"{address(name)}/events?since={since}&limit={LINES}"
            found = self._wire.ask("GET", path, again=True).decode().splitlines(keepends=True)
            yield from found
            if len(found) < LINES:
                return
            since = json.loads(found[-1])["seq"]

    def export(self, name: str) -> Iterator[str]:
        """The log of a problem as NDJSON, line by line."""
        return self._lines(name)

    def take_in(self, lines: Iterable[str], name: str | None = None, *, modules: Iterable[str] = ()) -> int:
        """The log of a problem that was exported, under its own name or another: how many events were new."""
        if list(modules):
            allowed = "nothing: whoever runs the service says which are allowed, with --allow-module"
            raise InputError("modules", shown(modules), allowed)
        text = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
        name = validation.check_name("problem", _name_in(text) if name is None else name)
        at = f"{address(name)}/events"
        return int(_read(self._wire.ask("POST", at, again=True, lines=text, long=True))["events"])

    def replay(self, verify: bool = False, problem: str | None = None) -> dict[str, Replayed]:
        """Have the log read from its beginning, and what is remembered held against it."""
        found = {}
        for name in self.names() if problem is None else [problem]:
            told = self.post(f"{address(name)}/replay", {"verify": verify}, again=True, long=True)
            found[name] = Replayed(**{part: told[part] for part in Replayed._fields})
        return found

    def erase(self, *, unit: str, problem: str | None = None) -> dict[str, int]:
        """Erase a unit's contexts, and what was learnt from them; how many decisions of each problem."""
        told = {"unit": validation.check_name("unit", unit), "problem": problem}
        found: dict[str, int] = self.post("/v1/erase", told, again=False, long=True)["decisions"]
        return found

    def backup(self, name: str | None = None) -> dict[str, Any]:
        """Have the store copied into the folder for copies of the service: its name there, and its size."""
        told = {} if name is None else {"name": name}
        found: dict[str, Any] = self.post("/v1/backup", told, again=False, long=True)
        return found


def _read(answer: bytes) -> Any:
    """What an answer says; of who is no service of ours, that."""
    try:
        return json.loads(answer)
    except ValueError:
        raise StoreError("what answers there is no service of unfog: it does not speak JSON") from None


def _key(key: str | None) -> str | None:
    """A key that a header can hold; it is never shown."""
    if key is None or not key.strip():
        return None
    key = key.strip()
    if not key.isascii() or not key.isprintable():
        raise InputError("key", "it has characters that no key has", "a key as it was given")
    return key


def _name_in(text: str) -> object:
    """The name of the problem that an export is of; the service says what is wrong with one that has none."""
    try:
        found = json.loads(text.split("\n", 1)[0])
        return found["problem"]
    except (ValueError, RecursionError, LookupError, TypeError):
        raise InputError(
            "line 1", "no problem", "the export of a problem, whose first event says its terms"
        ) from None
