"""What would other policies have earned on this log? Values with intervals, and what they rest on."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.evaluation import notes
from unfog.evaluation.case import Case, Scores
from unfog.evaluation.checks import fits
from unfog.evaluation.estimators import ESTIMATORS
from unfog.evaluation.intervals import Value, adaptive, value
from unfog.evaluation.policies import Policy, policies
from unfog.evaluation.replay import replayed
from unfog.evaluation.scene import Scene
from unfog.evaluation.taught import Tick, silent
from unfog.maths.arrays import Array
from unfog.validation import InputError

if TYPE_CHECKING:
    import xarray as xr

REPLAY = "replay"
DEFAULT_POLICIES = ("logger", "uniform", "fitted")
DEFAULT_ESTIMATORS = ("dr", "snips", "ips")
INTERVALS = ("adaptive", "plain")
MODELLED = ("dm", "switch")  # these trust their model, so it is to have seen as much as it can


class Found(NamedTuple):
    """One policy, by all estimators."""

    policy: Policy
    values: dict[str, Value]
    plain: dict[str, Value]
    gains: dict[str, Value]  # over what was earned
    rounds: dict[str, int]  # that each estimate rests on
    notes: list[str]
    effective: float
    largest: float
    unsupported: float
    weight: Value  # the mean weight: 1, if all is well


def asked(estimators: Any, learning: bool) -> list[str]:
    """The names of estimators, checked; replay is for agents that learn."""
    if estimators is None:
        return [*DEFAULT_ESTIMATORS, *([REPLAY] if learning else [])]
    given = [name.strip() for name in estimators.split(",")] if isinstance(estimators, str) else estimators
    if not isinstance(given, Sequence) or not given:
        said = "none" if isinstance(given, Sequence) else validation.shown(given)
        raise InputError("estimators", said, ", ".join([*ESTIMATORS, REPLAY]))
    for name in given:
        validation.one_of("estimators", name, [*ESTIMATORS, REPLAY])
    return list(dict.fromkeys(given))


def evaluated(
    scene: Scene,
    policies_: Any = DEFAULT_POLICIES,
    *,
    estimators: Any = None,
    intervals: str = "adaptive",
    level: float = 0.95,
    tick: Tick = silent,
) -> "xr.Dataset":
    """All policies by all estimators, as a dataset."""
    from unfog.evaluation.result import dataset

    validation.one_of("intervals", intervals, INTERVALS)
    validation.share("level", level)
    chosen = policies(policies_, scene)
    names = asked(estimators, any(not policy.fixed for policy in chosen))
    held = fits(scene.log)
    found = [_one(scene, policy, names, intervals, tick) for policy in chosen]
    return dataset(
        scene, found, names, intervals, level, notes.all_of(scene, found, names, intervals, held), held
    )


def _one(scene: Scene, policy: Policy, names: list[str], intervals: str, tick: Tick) -> Found:
    log, table = scene.log, policy.table(tick)
    chance = np.ones(log.rounds) if policy.drawn else log.probability
    # What was drawn needs no model: its surprises cancel, and no round is to be left out for want of one.
    ahead = Case(table, log.arm, log.reward, chance, lambda: scene.across if policy.drawn else scene.forward)
    across = Case(table, log.arm, log.reward, chance, lambda: scene.across)
    time = _time(scene, policy, table) if intervals == "adaptive" else None
    values, plain, gains = dict[str, Value](), dict[str, Value](), dict[str, Value]()
    rounds, said = dict[str, int](), list[str]()
    for name in names:
        if name == REPLAY:
            values[name], rounds[name] = _replay(scene, policy, tick)
            plain[name], gains[name] = values[name], values[name].less(value(Scores(log.reward)))
            continue
        estimator = ESTIMATORS[name]
        by_all = estimator.scores(across)
        ours = by_all if name in MODELLED or intervals == "plain" else estimator.scores(ahead)
        weights = None if name in MODELLED else time
        values[name] = value(ours, weights)
        gains[name] = values[name].less(value(Scores(log.reward), weights))  # in the same rounds
        plain[name], rounds[name] = value(by_all), log.rounds
        said += [f"{policy.name}, {name}: {ours.note}."] if ours.note and not policy.drawn else []
    return Found(policy, values, plain, gains, rounds, said, *_rests(table, ahead.weight, scene))


def _time(scene: Scene, policy: Policy, table: Array) -> Array | None:
    """Weights of time; none for a policy that changes itself, whose value is over the whole log."""
    known = scene.log.probabilities
    return adaptive(table, known) if policy.fixed and not policy.drawn and known is not None else None


def _replay(scene: Scene, policy: Policy, tick: Tick) -> tuple[Value, int]:
    if policy.pupil is None:
        return Value(np.nan, np.nan, np.full(scene.log.rounds, np.nan)), 0
    found = replayed(policy.pupil, tick)
    return found.value(scene.log.reward), len(found.accepted)


def _rests(table: Array, weight: Array, scene: Scene) -> tuple[float, float, float, Value]:
    """Effective rounds, the largest weight, the share of rounds without support, the mean weight."""
    squares = float((weight**2).sum())
    effective = float(weight.sum()) ** 2 / squares if squares else 0.0
    support = scene.log.support
    without = np.nan if support is None else float(((table > 0) & ~support).any(axis=1).mean())
    return effective, float(weight.max()), without, value(Scores(weight))
