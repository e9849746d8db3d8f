"""A store: the logs of many problems in a file, or of one problem in a database. The log is authoritative.

This is the interface for users. Commands are carried out by live/processor.py.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack

from unfog import validation
from unfog.live import config, erasure, snapshot, transfer
from unfog.live.config import ProblemOptions, show_options
from unfog.live.errors import NotFoundError, StoreError
from unfog.live.log import EventLog
from unfog.live.problem import Problem
from unfog.live.processor import Processor
from unfog.live.snapshot import Replayed
from unfog.validation import Identifier, check_keywords


@check_keywords
class Store:
    """Open it with `unfog.live.open`. Threads may share it; other processes are kept out.

    >>> import unfog
    >>> store = unfog.live.open("walks.unfog")
    >>> channel = {"context_mean": [7000], "context_cov": 4e6, "noise_cov": 1e6, "bias_cov": 4e6}
    >>> walks = store.problem("walks", context=["steps"], arms=["send", "wait"], channel=channel, seed=1)
    >>> [one["kind"] for one in store.events("walks")]
    ['problem']
    >>> store.close()
    """

    def __init__(self, log: EventLog, clock: Callable[[], float] | None = None) -> None:
        """`log` must be open; `clock` replaces the machine's."""
        self.processor = Processor(log, clock)

    @property
    def path(self) -> Path:
        """The file; a store in a database has none."""
        log = self.processor.log
        if log.path is None:
            raise StoreError(f"{log.backend.label} is no file")
        return log.path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Write snapshots, and close the file."""
        self.processor.close()

    def names(self) -> list[str]:
        """The names of all problems."""
        return self.processor.log.names()

    @show_options
    def problem(self, name: str, **terms: Unpack[ProblemOptions]) -> Problem:
        """The problem of this name; it is created if there is none yet and its terms are given.

        `context` names the coordinates, and `arms` the arms, with vectors where `features` need them
        ("per_arm", the default, "product", "quadratic", "matrix", or your own module:name); with `arm_size`
        arms come with each decision. `rewards` are "numeric", with the standard deviation `reward_sd` and
        within `reward_range` if you give one, or "binary": 0 or 1. `prior_mean` and `prior_cov` are the prior
        of theta, the reward coefficients. `channel` describes how contexts are measured: the `channel` of a
        result of `unfog.calibrate`, or a mapping; None: nothing is known of the noise. Contexts are
        standardised, unless `standardise` is off. A share `epsilon` of arms is drawn uniformly.
        `reward_window` and `context_window` are how long a reward and a true context may take, such as "30m";
        without a reward the `default_reward` is learnt; `update` is "immediate" or "at_close" (when
        the reward window is over); and `reward_aggregation` says what several rewards of one decision are
        combined to: their last, first, sum, mean, max or min.

        If the problem exists, any term that you pass must match what it was created with.
        """
        name, processor = validation.check_name("name", name), self.processor
        with processor.lock:
            if name in self.names():
                config.check_unchanged(processor.body(name), terms)
            else:
                processor.cache.check_not_reserved(name)
                if not terms:
                    allowed = f"{processor.known_names()}; or the terms of a new problem"
                    raise NotFoundError("name", repr(name), allowed)
                processor.create(name, config.written(terms))
        return Problem(processor, name)

    def events(self, name: str, since: int = 0) -> Iterator[dict[str, Any]]:
        """The events of a problem after event number `since`, as mappings."""
        return self.processor.events(name, since)

    def export(self, name: str) -> Iterator[str]:
        """The log of a problem as NDJSON, line by line."""
        return transfer.as_lines(self.events(name))

    def import_events(
        self, lines: Iterable[str], name: str | None = None, *, allow_modules: Iterable[str] = ()
    ) -> int:
        """Import the exported log of a problem, under its own name or another; the number of new events.

        A log may name features and agents of your own, `module:name`. Importing the log imports these
        modules, which runs their code: that is refused unless they are among `allow_modules`.
        """
        allowed = validation.as_list("allow_modules", allow_modules, "a list of names of modules")
        return transfer.import_events(self.processor, transfer.read_lines(lines), name, allowed)

    def erase(self, *, unit: Identifier, problem: str | None = None) -> dict[str, int]:
        """Erase a unit's contexts, and what was learnt from them, in all problems or in one; the number of
        its decisions in each.

        The file is rewritten, so that the old bytes are gone. Copies and exports must be erased
        separately.
        """
        return erasure.erase_unit(self.processor, unit, problem)

    def backup(self, path: str | Path) -> None:
        """Copy the store to a file that does not exist yet; other threads go on deciding meanwhile."""
        self.processor.log.backup(path)

    def replay(self, verify: bool = False, problem: str | None = None) -> dict[str, Replayed]:
        """Read the log from its beginning and compare the state in memory with it; other threads go on.

        With `verify` every decision is recomputed, too, and must be as in the log but for rounding. Decisions
        from before an erasure cannot be recomputed.
        """
        chosen = self.names() if problem is None else [problem]
        return {name: snapshot.replay(self.processor, name, verify) for name in chosen}

    def batch(self) -> AbstractContextManager[None]:
        """Make the calls of this thread share one commit, at the end; other threads wait meanwhile."""
        return self.processor.batch()
