"""The HTTP client of a service, with the methods, answers and errors of a store and its problems.

Every decision and report carries an idempotency key, a random one if the caller gives none. So a request
whose answer was lost can be retried, and nothing is decided or counted twice. Arrays, times, channels and
agents of the catalogue are converted to JSON.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from math import isfinite
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack, overload
from urllib.parse import quote
from uuid import uuid4

import numpy as np

from unfog import validation
from unfog._frames import is_frame, read_cells
from unfog.channel.channel import Channel
from unfog.channel.context import ContextSpec
from unfog.channel.knowledge import Knowledge
from unfog.live.backend import LAST
from unfog.live.config import (
    FIELDS,
    ProblemConfig,
    ProblemOptions,
    check_fields_known,
    check_not_missing,
    may_use_sample,
    show_options,
)
from unfog.live.decision_table import to_csv_text
from unfog.live.errors import NotFoundError, StoreError
from unfog.live.frames import Events, check_no_columns, decide_rows, reward_rows
from unfog.live.inspection import dataset_from_json
from unfog.live.requests import ARGUMENTS, Decision, Receipt, check_requests, read_arms
from unfog.live.snapshot import Replayed
from unfog.live.words import in_words
from unfog.serve import errors
from unfog.serve.errors import ServiceError
from unfog.serve.http_client import Wire
from unfog.validation import Identifier, InputError, check_keywords, display, is_missing

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

READERS: dict[str, Callable[[str, Any], Any]] = {  # of arguments of a decision
    "unit": validation.check_identifier,
    "logged_arm": validation.check_identifier,
    "measured_at": validation.check_time,
    "arms": read_arms,
}
NOISE = ("noise_sd", "noise_cov")  # for which NaN is a mistake, as it is in process
KEY = "UNFOG_KEY"  # the environment variable with the key of a service
LINES = 2000  # of a log that are requested at a time


@check_keywords
class Client:
    """The store of a service at an address, used like a local one. Threads may share it.

    >>> import unfog
    >>> client = unfog.serve.Client("http://127.0.0.1:8000")
    >>> walks = client.problem("walks")
    >>> d = walks.decide({"steps": 1648, "sleep": None}, unit="ann")
    >>> walks.reward(d.id, 1.0).outcome
    'learnt'
    >>> client.close()
    """

    def __init__(self, url: str, key: str | None = None, timeout: float = 10, retries: int = 5) -> None:
        """No request is sent yet. `timeout` is in seconds, of each attempt; `retries` come after the first.
        Requests that go through a whole log (replays, backups, imports) may take an hour.

        By default the `key` is that of the environment variable UNFOG_KEY.
        """
        validation.positive("timeout", timeout)
        validation.count("retries", retries, 0, 100)
        self._wire = Wire(
            url, _check_key(os.environ.get(KEY) if key is None else key), float(timeout), retries
        )

    @property
    def url(self) -> str:
        """The address of the service."""
        return self._wire.url

    def __repr__(self) -> str:
        """The address, without the key."""
        return f"<client of {self.url}>"

    def __enter__(self) -> Self:
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
        """Send a GET request and return the parsed answer; None is left out of the query."""
        query_string = "&".join(
            f"{name}={quote(str(x), safe='')}" for name, x in query.items() if x is not None
        )
        return _parse(self._wire.ask("GET", f"{path}?{query_string}" if query_string else path, again=True))

    def post(self, path: str, body: Any, *, again: bool, long: bool = False) -> Any:
        """Send a POST request; `again`: whether it may be retried, `long`: whether it may take long."""
        return _parse(self._wire.ask("POST", path, body, again=again, long=long))

    def problems(self) -> list[dict[str, Any]]:
        """A summary of each problem that the key may read."""
        problems: list[dict[str, Any]] = self.get("/v1/problems")["problems"]
        return problems

    def names(self) -> list[str]:
        """The names of the problems that the key may read."""
        return [one["name"] for one in self.problems()]

    @show_options
    def problem(self, name: str, **terms: Unpack[ProblemOptions]) -> "RemoteProblem":
        """The problem of this name; it is created if it does not exist and you pass its terms.

        The terms are those of `unfog.live.Store.problem`. If the problem exists, any
        term that you pass must match what it was made with.
        """
        name = validation.check_name("name", name)
        if terms:
            body = {"name": name, **terms_to_json(terms)}
            return RemoteProblem(self, name, self.post("/v1/problems", body, again=True)["note"] or "")
        try:
            return RemoteProblem(self, name, self.get(address(name))["note"] or "")
        except NotFoundError as error:
            raise NotFoundError(
                "name", repr(name), f"{error.allowed}; or the terms of a new problem"
            ) from None
        except ServiceError as error:
            if error.status != 403:
                raise
        return RemoteProblem(self, name, "")  # a key may be for deciding but not for reading

    def events(self, name: str, since: int = 0) -> Iterator[dict[str, Any]]:
        """The events of a problem after number `since`, as mappings."""
        return (json.loads(line) for line in self._read_lines(name, since))

    def _read_lines(self, name: str, since: int = 0) -> Iterator[str]:
        """Read the log in chunks, so that a broken connection costs no more than one chunk."""
        since = validation.count("since", since, 0, LAST)
        while True:
            path = f"{address(name)}/events?since={since}&limit={LINES}"
            lines = self._wire.ask("GET", path, again=True).decode().splitlines(keepends=True)
            yield from lines
            if len(lines) < LINES:
                return
            since = json.loads(lines[-1])["seq"]

    def export(self, name: str) -> Iterator[str]:
        """The log of a problem as NDJSON, line by line."""
        return self._read_lines(name)

    def import_events(
        self, lines: Iterable[str], name: str | None = None, *, allow_modules: Iterable[str] = ()
    ) -> int:
        """Import an exported log, under its own name or another; returns how many events were new."""
        if list(allow_modules):
            allowed = "nothing: whoever runs the service says which are allowed, with --allow-modules"
            raise InputError("allow_modules", display(allow_modules), allowed)
        text = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
        name = validation.check_name("problem", _read_problem_name(text) if name is None else name)
        path = f"{address(name)}/events"
        return int(_parse(self._wire.ask("POST", path, again=True, lines=text, long=True))["events"])

    def replay(self, verify: bool = False, problem: str | None = None) -> dict[str, Replayed]:
        """Replay the log and compare the result with the state; `verify` repeats each decision, too."""
        results = {}
        for name in self.names() if problem is None else [problem]:
            reply = self.post(f"{address(name)}/replay", {"verify": verify}, again=True, long=True)
            results[name] = Replayed(**{part: reply[part] for part in Replayed._fields})
        return results

    def erase(self, *, unit: Identifier, problem: str | None = None) -> dict[str, int]:
        """Erase a unit's contexts and what was learnt from them; returns the decisions of each problem."""
        body = {"unit": validation.check_identifier("unit", unit), "problem": problem}
        counts: dict[str, int] = self.post("/v1/erase", body, again=False, long=True)["decisions"]
        return counts

    def backup(self, name: str | None = None) -> dict[str, Any]:
        """Copy the store into the service's backup folder; returns the copy's name and size."""
        body = {} if name is None else {"name": name}
        copy: dict[str, Any] = self.post("/v1/backup", body, again=False, long=True)
        return copy


@check_keywords
class RemoteProblem:
    """One problem of a service, with the methods of `unfog.live.Problem`. Threads may share it."""

    def __init__(self, client: Client, name: str, note: str) -> None:
        """A problem that the service has."""
        self.client, self.name, self.note = client, name, note
        self._path = address(name)

    def __repr__(self) -> str:
        """The name and the address of the service."""
        return f"<live problem {self.name!r} of {self.client.url}>"

    def __str__(self) -> str:
        """What was learnt, in words."""
        return in_words(self.describe())

    @property
    def terms(self) -> ProblemConfig:
        """The terms with which it was created: the first event of its log."""
        return ProblemConfig.read(self.client.get(f"{self._path}/events", limit=1))

    def decide(
        self,
        context: Any,
        *,
        unit: Identifier | None = None,
        arms: Any = None,
        key: str | None = None,
        measured_at: Any = None,
        noise_sd: Any = None,
        noise_cov: Any = None,
        logged_arm: Identifier | None = None,
        probability: float | None = None,
    ) -> Decision:
        """Choose an arm for a noisy context, as `unfog.live.Problem.decide` does."""
        args = {
            "context": context,
            "unit": unit,
            "arms": arms,
            "key": _ensure_key(key),
            "measured_at": measured_at,
            "noise_sd": noise_sd,
            "noise_cov": noise_cov,
        }
        body = self._arguments_to_json({**args, "logged_arm": logged_arm, "probability": probability})
        return Decision(**self.client.post(f"{self._path}/decide", body, again=True))

    @overload
    def decide_many(self, requests: Iterable[Mapping[str, Any]]) -> list[Decision]: ...

    @overload
    def decide_many(
        self,
        requests: Any,
        *,
        unit: str | None = None,
        key: str | None = None,
        measured_at: str | None = None,
    ) -> Any: ...

    def decide_many(
        self,
        requests: Any,
        *,
        unit: str | None = None,
        key: str | None = None,
        measured_at: str | None = None,
    ) -> Any:
        """Make several decisions with one commit; if one is refused, all are.

        Of a data frame `unit`, `key` and `measured_at` name columns, and the answer is one of the same kind.
        """
        columns = {"unit": unit, "key": key, "measured_at": measured_at}
        if is_frame(requests):
            return decide_rows(requests, self.terms.coordinates, columns, self.decide_many)
        check_no_columns(columns)
        decisions = check_requests("requests", requests)
        bodies = [
            self._arguments_to_json({**one, "key": _ensure_key(one.get("key"))}, f"requests[{i}].")
            for i, one in enumerate(decisions)
        ]
        if not bodies:
            return []
        reply = self.client.post(f"{self._path}/decide", {"requests": bodies}, again=True)
        return [Decision(**one) for one in reply["decisions"]]

    def reward(self, decision: str, value: float, *, key: str | None = None) -> Receipt:
        """Report the reward of a decision."""
        check_not_missing("value", value)
        return self._report(decision, "reward", {"value": plain("value", value)}, key)

    @overload
    def reward_many(
        self, rewards: Mapping[str, float], *, keys: Mapping[str, str] | None = None
    ) -> dict[str, Receipt]: ...

    @overload
    def reward_many(self, rewards: Any) -> Any: ...

    def reward_many(self, rewards: Any, *, keys: Mapping[str, str] | None = None) -> Any:
        """Report the rewards of several decisions with one commit; if one is refused, all are."""
        if is_frame(rewards):
            return reward_rows(rewards, lambda values, keys: self.reward_many(values, keys=keys))
        if not isinstance(rewards, Mapping):
            raise InputError("rewards", display(rewards), "a mapping from decisions to rewards")
        if not rewards:
            return {}
        values = {validation.check_decision(one): plain("value", value) for one, value in rewards.items()}
        if keys is not None and not isinstance(keys, Mapping):
            raise InputError("keys", display(keys), "a mapping from decisions to keys")
        for decision in keys or {}:
            if decision not in values:
                raise InputError("keys", display(decision), "decisions that are rewarded")
        own_keys = {one: _ensure_key((keys or {}).get(one)) for one in values}
        reply = self.client.post(f"{self._path}/rewards", {"rewards": values, "keys": own_keys}, again=True)
        return {one: Receipt(**receipt) for one, receipt in reply["receipts"].items()}

    def reveal(self, decision: str, context: Any, *, key: str | None = None) -> Receipt:
        """Report the true context of a decision, complete or in part, when it becomes known."""
        return self._report(decision, "reveal", {"context": self._context_to_json("context", context)}, key)

    def cancel(self, decision: str, *, key: str | None = None) -> Receipt:
        """Report that the decision was never carried out, so that nothing is learnt from it."""
        return self._report(decision, "cancel", {}, key)

    def _arguments_to_json(self, args: Mapping[str, Any], field: str = "") -> dict[str, Any]:
        """The arguments of a decision as JSON values; what is missing is left out."""
        for name in args:
            if name not in ARGUMENTS:
                raise InputError(f"{field}{name}", "no such field", ", ".join(ARGUMENTS))
        body = {"context": self._context_to_json(f"{field}context", args.get("context"))}
        for name, value in args.items():
            if name != "context" and ((name in NOISE and value is not None) or not is_missing(value)):
                body[name] = READERS.get(name, plain)(f"{field}{name}", value)
        return body

    def _context_to_json(self, field: str, context: Any) -> Any:
        """A context by name or in order, with null for what is missing."""
        cells = read_cells(field, context)
        if cells is None:
            return plain(field, context)
        if not isinstance(cells, Mapping):
            return [_cell_to_json(f"{field}[{i}]", cell) for i, cell in enumerate(cells)]
        if not isinstance(context, Mapping):  # a row of a frame may have other columns
            cells = {name: cells[name] for name in self.terms.coordinates if name in cells}
        return {
            _check_name(field, name): _cell_to_json(f"{field}.{name}", cell) for name, cell in cells.items()
        }

    def _report(self, decision: str, verb: str, fields: dict[str, Any], key: str | None) -> Receipt:
        path = f"{self._path}/decisions/{quote(validation.check_decision(decision), safe='')}/{verb}"
        return Receipt(**self.client.post(path, {**fields, "key": _ensure_key(key)}, again=True))

    def add_arm(self, arm: Identifier, vector: Any = None) -> Receipt:
        """Add an arm; with its vector, if arms have any."""
        return self.update_arms(add={validation.check_identifier("arm", arm): vector})

    def retire_arm(self, arm: Identifier) -> Receipt:
        """Stop choosing an arm; what was learnt of it is kept."""
        return self.update_arms(retire=[arm])

    def restore_arm(self, arm: Identifier) -> Receipt:
        """Let a retired arm be chosen again."""
        return self.update_arms(restore=[arm])

    def update_arms(
        self,
        *,
        add: Mapping[Any, Any] | None = None,
        retire: Iterable[Identifier] = (),
        restore: Iterable[Identifier] = (),
    ) -> Receipt:
        """Add, retire and restore arms in one change: all of it or nothing."""
        body: dict[str, Any] = {"add": validation.check_arms("add", add)} if add else {}
        for change, arms in (("retire", retire), ("restore", restore)):
            body[change] = [
                validation.check_identifier(f"{change}[{i}]", arm)
                for i, arm in enumerate(validation.as_list(change, arms, "a list of names"))
            ]
        return self._change("arms", body)

    def pin_arm(self, arm: Identifier) -> Receipt:
        """Choose this arm whatever the context, until `unpin_arm`."""
        return self._change("pin", {"arm": validation.check_identifier("arm", arm)})

    def unpin_arm(self) -> Receipt:
        """End `pin_arm`: the agent decides again."""
        return self._change("pin", {"arm": None})

    def add_shadow(self, agent: str) -> Receipt:
        """Add an agent that decides on the same readings from now on; its choices are not carried out."""
        return self._change("shadow", {"agent": validation.check_name("agent", agent)})

    def remove_shadow(self, agent: str) -> Receipt:
        """Remove a shadow."""
        return self._change("shadow", {"agent": validation.check_name("agent", agent), "remove": True})

    def _change(self, verb: str, body: dict[str, Any]) -> Receipt:
        return Receipt(**self.client.post(f"{self._path}/{verb}", body, again=False))

    def import_decisions(self, table: Any) -> int:
        """Import decisions made elsewhere from CSV or a data frame, all or none; returns how many."""
        body = {"table": to_csv_text(table)}
        reply = self.client.post(f"{self._path}/decisions/import", body, again=False, long=True)
        return int(reply["decisions"])

    def events(self, since: int = 0) -> Events:
        """The log after the event `since`: mappings with seq, kind, decision, time and more."""
        return Events(self.client.events(self.name, since))

    def pending(self) -> list[str]:
        """Decisions whose reward may still come, oldest first."""
        ids: list[str] = self.client.get(f"{self._path}/pending")["pending"]
        return ids

    def describe(self) -> dict[str, Any]:
        """The problem itself: its arms, units, shadows and counts, and what was learnt."""
        about: dict[str, Any] = self.client.get(self._path)
        return about

    def belief(self, unit: Identifier | None = None) -> "xr.Dataset":
        """The belief: a unit's bias by coordinate with its standard deviation, theta, weights."""
        return dataset_from_json(self.client.get(f"{self._path}/belief", unit=_check_unit(unit)))

    def predict_rewards(
        self,
        context: Any,
        *,
        unit: Identifier | None = None,
        arms: Any = None,
        measured_at: Any = None,
        noise_sd: Any = None,
        noise_cov: Any = None,
    ) -> "xr.Dataset":
        """The expected reward of each arm in this context; nothing is decided or learnt."""
        noise = {"noise_sd": noise_sd, "noise_cov": noise_cov}
        args = self._arguments_to_json(
            {"context": context, "arms": arms, "measured_at": measured_at, **noise}
        )
        query = {name: json.dumps(value) for name, value in args.items()}
        path = f"{self._path}/predict_rewards"
        return dataset_from_json(self.client.get(path, unit=_check_unit(unit), **query))

    def diagnostics(self) -> "xr.Dataset":
        """Diagnostics: readings against the channel, rewards against predictions, arms, pending decisions."""
        return dataset_from_json(self.client.get(f"{self._path}/diagnostics"))

    def history(self, unit: Identifier | None = None, points: int = 2000) -> dict[str, Any]:
        """The history of all units or of one as JSON values, as the service's page shows it."""
        path = f"{self._path}/history"
        history: dict[str, Any] = self.client.get(path, unit=_check_unit(unit), points=points)
        return history

    def figure(self) -> "Figure":
        """The diagnostics as a figure."""
        from unfog.live.figure import figure

        return figure(self.diagnostics(), self.name)

    def state_hash(self) -> str:
        """A hash of the whole state: beliefs, pending decisions, random streams."""
        return str(self.client.get(f"{self._path}/state_hash")["state_hash"])


def address(name: str) -> str:
    """The path of a problem's address."""
    name = validation.check_name("name", name)
    if not errors.is_addressable(name):
        raise NotFoundError("name", repr(name), errors.NAMED)
    return f"/v1/problems/{quote(name, safe='')}"


def _ensure_key(key: str | None) -> str:
    """The caller's key, or a new random one."""
    return uuid4().hex if key is None else validation.check_name("key", key)


def _check_key(key: str | None) -> str | None:
    """Return the key without surrounding space, or raise, without showing it, if no header can hold it."""
    if key is None or not key.strip():
        return None
    key = key.strip()
    if not key.isascii() or not key.isprintable():
        raise InputError("key", "it has characters that no key has", "a key as it was given")
    return key


def _parse(answer: bytes) -> Any:
    """Parse the answer; raise if it is not JSON, and so not from a service of unfog."""
    try:
        return json.loads(answer)
    except ValueError:
        raise StoreError("what answers there is no service of unfog: it does not speak JSON") from None


def _read_problem_name(text: str) -> object:
    """Read the problem's name from the first line of an export."""
    try:
        event = json.loads(text.split("\n", 1)[0])
        return event["problem"]
    except (ValueError, LookupError, TypeError):
        raise InputError(
            "line 1", "no problem", "the export of a problem, whose first event says its terms"
        ) from None


def terms_to_json(terms: Mapping[str, Any]) -> dict[str, Any]:
    """The terms of a problem as JSON values."""
    check_fields_known(terms)
    return {name: plain(name, _term_to_json(name, value, terms)) for name, value in terms.items()}


def _term_to_json(name: str, value: Any, terms: Mapping[str, Any]) -> Any:
    """Convert a context, a channel or a reference into JSON values, as a log has them."""
    field = FIELDS[name]
    if field.json == "context" and isinstance(value, Mapping | ContextSpec):
        return field.check(name, value)
    if field.json == "channel" and isinstance(value, Channel):
        return value.to_json(sample=may_use_sample(terms.get("agent")))
    if field.json == "channel" and isinstance(value, Knowledge):
        return field.check(name, value, terms.get("context") or ())
    if field.json.startswith("reference") and not (value is None or isinstance(value, str)):
        return field.check(name, value, *(terms.get(other) for other in field.needs))
    return value


def _check_unit(unit: Identifier | None) -> str | None:
    return None if unit is None else validation.check_identifier("unit", unit)


def _cell_to_json(field: str, cell: Any) -> Any:
    return None if is_missing(cell) else plain(field, cell)


def plain(field: str, value: Any) -> Any:
    """Convert to numbers, text, lists and mappings; anything that JSON cannot hold is refused."""
    value = validation.unbox(value)
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    if isinstance(value, str):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating | Decimal):
        return _check_finite(field, float(value))
    if isinstance(value, datetime | timedelta):
        return _to_seconds(field, value)
    if isinstance(value, Mapping):
        return {_check_name(field, name): plain(f"{field}.{name}", one) for name, one in value.items()}
    return [plain(f"{field}[{i}]", one) for i, one in enumerate(_as_list(field, value))]


def _check_finite(field: str, value: float) -> float:
    if not isfinite(value):
        raise InputError(field, value, "a finite number")
    return value


def _to_seconds(field: str, value: datetime | timedelta) -> float:
    return value.total_seconds() if isinstance(value, timedelta) else validation.check_time(field, value)


def _check_name(field: str, name: object) -> str:
    if not isinstance(name, str):
        raise InputError(field, f"the name {display(name)}", "names that are text")
    return name


def _as_list(field: str, value: Any) -> list[Any]:
    allowed = "numbers, text, lists and mappings of them"
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return validation.as_list(field, value, allowed)
