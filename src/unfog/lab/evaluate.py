"""`unfog.evaluate`: what would another policy have earned on this log?"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unfog import live
from unfog.evaluation.context import Scene
from unfog.evaluation.evaluate import DEFAULT_POLICIES, evaluated
from unfog.evaluation.log import Log
from unfog.evaluation.policies import Tick, silent
from unfog.evaluation.readers import Columns, read
from unfog.live.errors import Held
from unfog.simulation.plan import MOST_SEED
from unfog.validation import InputError, count

if TYPE_CHECKING:
    import xarray as xr

EXPORT = (
    "or evaluate what its holder has: in Python the open store itself, else a file .ndjson with what"
    " store.export(name) gives, or `unfog live export` with the --url of a service"
)


def evaluate(
    log: Any,
    policies: Any = DEFAULT_POLICIES,
    *,
    estimators: str | Sequence[str] | None = None,
    intervals: str = "adaptive",
    level: float = 0.95,
    channel: Any = None,
    features: Any = "per_arm",
    actions: Any = None,
    seed: int = 0,
    columns: Columns | Mapping[str, Any] | str | PathLike[str] | None = None,
    problem: str | None = None,
    arms: Sequence[str] | None = None,
    coordinates: Sequence[str] | None = None,
    probability: float | None = None,
    tick: Tick = silent,
) -> "xr.Dataset":
    """Values of policies on a log of decisions, with intervals and what they rest on.

    `log`: a live store or problem, a path (.unfog, .ndjson, .json, .csv), a data frame, obp's feedback.
    `policies`: names (logger, uniform, always:ARM, fitted, fitted-noisy, agents of the catalogue), or a
    mapping from names to these, to functions of noisy contexts (n, d), or to tables of probabilities (n, K).
    `estimators`: dr, snips, ips, clipped, switch, dm; replay for agents that learn.
    `intervals`: "adaptive" for loggers that may have learnt, "plain" for those that have not.
    `channel`: what is known of the noise, as `unfog.calibrate(...).channel` says it; without it, pairs in the
    log are used. `features` and `actions` are those of arms: an intercept and slopes for each, unless told.
    `columns`, `problem`, `arms`, `coordinates`, `probability`: how to read the log (evaluation/read).

    >>> import numpy as np
    >>> import unfog
    >>> rng = np.random.default_rng(0)
    >>> steps, sent = rng.normal(7000, 2000, 1000), rng.integers(0, 2, 1000)
    >>> log = {
    ...     "steps": steps + rng.normal(-800, 1200, 1000),  # what was read
    ...     "arm": np.where(sent, "send", "wait"),
    ...     "reward": sent * np.where(steps < 6500, 0.5, -0.4) + rng.normal(0, 1, 1000),
    ... }
    >>> found = unfog.evaluate(
    ...     log, ["always:send", "fitted"], columns={"context": ["steps"]}, probability=0.5
    ... )
    >>> found.value.sel(estimator="dr").round(2).values.tolist()  # mean reward of each policy
    [-0.02, 0.13]
    """
    whole = read_log(
        log, columns=columns, problem=problem, arms=arms, coordinates=coordinates, probability=probability
    )
    scene = set_scene(whole, channel, features, actions, seed)
    return evaluated(scene, policies, estimators=estimators, intervals=intervals, level=level, tick=tick)


def set_scene(log: Log, channel: Any, features: Any, actions: Any, seed: int) -> Scene:
    """The log with what is told besides, checked."""
    return Scene(log, channel, features, actions, count("seed", seed, 0, MOST_SEED))


def read_log(log: Any, **told: Any) -> Log:
    """The log, whatever it is in; the file of a live store, too."""
    return read(log, opener=_opened, **told)


@contextmanager
def _opened(path: Path) -> Iterator[live.Store]:
    """A store that is there: to open an empty file would make a store of it.

    Nothing but SQLite may open the file, not even to look: this process could lose its lock
    (live/sqlite_file.py).
    """
    if not path.stat().st_size and not path.with_name(f"{path.name}-wal").exists():
        raise InputError("log", f"{path.name} is empty", "a live store, as unfog.live.open makes it")
    try:
        store = live.open(path)
    except Held as error:
        raise Held(f"{error}; {EXPORT}") from None
    with store:
        yield store
