"""A store: the logs of many problems in a file, or of one in a database. The log is the truth."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from unfog import validation
from unfog.agents.agent import Agent
from unfog.channel.channel import Channel
from unfog.channel.knowledge import Knowledge
from unfog.features import MapBuilder
from unfog.live import erase, terms, transfer
from unfog.live.acting import Acting
from unfog.live.durations import Span
from unfog.live.errors import StoreError, Unknown
from unfog.live.log import Log, Row
from unfog.live.made import Made, needed
from unfog.live.problem import Problem
from unfog.live.schema import LAST
from unfog.validation import count, shown


class Unset:
    """Not given: as it was when the problem was made, or else as it is unless told."""

    def __repr__(self) -> str:
        """As help shows it."""
        return "as it was, or unless told"


UNSET = Unset()


class Store(Acting):
    """Open it with `unfog.live.open`. Threads may share it; other processes are kept out.

    >>> import unfog
    >>> store = unfog.live.open("walks.unfog")
    >>> channel = {"context_mean": [7000], "context_cov": 4e6, "noise_cov": 1e6, "bias_cov": 4e6}
    >>> walks = store.problem("walks", context=["steps"], arms=["send", "wait"], channel=channel, seed=1)
    >>> [one["kind"] for one in store.events("walks")]
    ['problem']
    >>> store.close()
    """

    def __init__(self, log: Log, clock: Callable[[], float] | None = None) -> None:
        """Of a log that is open."""
        super().__init__(log, clock)

    @property
    def path(self) -> Path:
        """The file; a store in a database has none."""
        if self.log.path is None:
            raise StoreError(f"{self.log.place.label} is no file")
        return self.log.path

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def problem(
        self,
        name: str,
        *,
        context: Sequence[str] | Unset = UNSET,
        arms: Sequence[str] | Mapping[str, Any] | Unset | None = UNSET,
        arm_size: int | Unset | None = UNSET,
        features: str | MapBuilder | Unset = UNSET,
        rewards: str | Unset = UNSET,
        reward_var: float | Unset | None = UNSET,
        reward_range: tuple[float, float] | Unset | None = UNSET,
        prior_mean: Any | Unset = UNSET,
        prior_cov: Any | Unset = UNSET,
        channel: Channel | Knowledge | Mapping[str, Any] | Unset | None = UNSET,
        standardise: bool | Unset = UNSET,
        agent: str | Agent | Unset = UNSET,
        seed: int | Unset | None = UNSET,
        floor: float | Unset = UNSET,
        wait: Span | Unset = UNSET,
        default_reward: float | Unset | None = UNSET,
        learn: str | Unset | None = UNSET,
        combine: str | Unset = UNSET,
        reveal_within: Span | Unset = UNSET,
        **others: Any,
    ) -> Problem:
        """The problem of this name; made, where there is none yet and its terms are given.

        `context` names the coordinates and `arms` what can be done, with vectors where `features` need them
        ("per_arm", the default, "product", "quadratic", "matrix", or one's own module:name); with `arm_size`
        arms come with each decision. `rewards` are "gaussian", of the variance `reward_var` and within
        `reward_range` if told, or "bernoulli". The priors are theta's. `channel` says how contexts are
        measured: `found.channel` of `unfog.calibrate`, or a mapping; None: nothing is known of noise. Unless
        `standardise` is off contexts are taken in deviations from their mean. In a share `floor` of decisions
        any arm is taken. `wait` and `reveal_within` are how long a reward and a true context may take, such
        as "30m"; without a reward the `default_reward` is learnt; `learn` is "at_once" or "after_wait", and
        several rewards of one decision `combine` to their last, first, sum, mean, max or min.

        Of a problem that is there each term that is given must be as it was.
        """
        terms.refuse_unknown(others)
        told = locals()
        given = {term: told[term] for term in terms.FIELDS if told[term] is not UNSET}
        name = validation.check_name("name", name)
        with self.lock:
            if name not in self.log.names():
                self.refuse_reserved(name)
                if not given:
                    raise Unknown("name", repr(name), f"{self._known()}; or the terms of a new problem")
                self._make(name, terms.written(given))
            else:
                terms.refuse_other(self._body(name), given)
        return self.handle(name)

    def handle(self, name: str) -> Problem:
        """The problem of this name, which must be there."""
        made = self.made(name)
        return Problem(self, name, made.terms, made.note)

    def _make(self, name: str, body: dict[str, Any]) -> None:
        body = json.loads(json.dumps(body))
        made = Made(terms.Terms.read(body))
        body = json.loads(json.dumps({**body, "channel": needed(body["channel"], made.agent)}))
        made = Made(terms.Terms.read(body))
        row = Row(self.log.last + 1, name, "problem", None, None, self.now(name), json.dumps(body))
        ticket, epoch = self.log.add([row]), self.log.epoch
        self.log.commit(ticket, epoch)
        self._made[name] = made
        self._counted.add(ticket, epoch, (name, "problem", "done"))

    def events(self, name: str, since: int = 0) -> Iterator[dict[str, Any]]:
        """The events of a problem after that of the number `since`, as mappings."""
        if name not in self.log.names():
            raise Unknown("name", shown(name), self._known())
        return self._events(name, count("since", since, 0, LAST))

    def _events(self, name: str, since: int) -> Iterator[dict[str, Any]]:
        self.log.commit(self.log.last, self.log.epoch)
        for row in self.log.read(name, since):
            yield {
                "seq": row.seq,
                "problem": row.problem,
                "kind": row.kind,
                "decision": row.decision,
                "key": row.key,
                "time": row.time,
                **json.loads(row.body),
            }

    def append(self, name: str, events: list[dict[str, Any]]) -> None:
        """Write events that were applied elsewhere; what is remembered is made anew from the log."""
        with self.lock:
            first = self.log.last + 1
            rows = [_row(first + i, name, one) for i, one in enumerate(events)]
            epoch = self.log.epoch
            ticket = self.log.add(rows)
            for row in rows:
                self._counted.add(row.seq, epoch, (name, row.kind, "taken in"))
            self._states.pop(name, None)
        self.log.commit(ticket, epoch)

    def export(self, name: str) -> Iterator[str]:
        """The log of a problem as NDJSON, line by line."""
        return transfer.as_lines(self.events(name))

    def take_in(self, lines: Iterable[str], name: str | None = None, *, modules: Iterable[str] = ()) -> int:
        """The log of a problem that was exported, under its own name or another: how many events were new.

        A log may name features and agents of one's own, `module:name`. To take it in imports these modules,
        which runs them: so that is refused unless they are among `modules`.
        """
        allowed = validation.as_list("modules", modules, "a list of names of modules")
        return transfer.taken_in(self, transfer.read_lines(lines), name, allowed)

    def erase(self, *, unit: str, problem: str | None = None) -> dict[str, int]:
        """Erase a unit's contexts, and what was learnt from them, in all problems or in one: how many
        decisions of each.

        The file is written anew, so that the old bytes are gone: live/erase.py. Copies and exports are not
        the store's to erase.
        """
        with self._keeping, self.lock:  # a snapshot that is on its way must not come after
            self.log.commit(self.log.last, self.log.epoch)
            self._states.clear()
            try:
                return erase.erased(self, unit, problem)
            finally:
                self._states.clear()

    def backup(self, path: str | Path) -> None:
        """Copy the store to a file that is not there yet; others go on deciding meanwhile."""
        self.log.backup(path)

    def close(self) -> None:
        """Write what is left, and give the file back."""
        try:
            self.snapshot()
        finally:
            self.log.close()


def _row(seq: int, name: str, event: Mapping[str, Any]) -> Row:
    """An event as it is written."""
    body = json.dumps(transfer.body_of(event), allow_nan=False)
    return Row(seq, name, event["kind"], event.get("decision"), event.get("key"), event["time"], body)
