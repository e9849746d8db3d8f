"""What would other policies have earned on this log? Values with intervals, and what they rest on.

Every policy is valued by every estimator that is asked for (`evaluated`). The dataset (`dataset`) carries
notes for its reader (`notes_on`): what noise changes, and what not to trust.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.evaluation.checks import Fit, fits
from unfog.evaluation.context import Scene
from unfog.evaluation.estimators import ESTIMATORS, Case, Scores
from unfog.evaluation.intervals import Value, adaptive, value
from unfog.evaluation.policies import Policy, Tick, policies, replayed, silent
from unfog.maths.arrays import Array
from unfog.validation import InputError

if TYPE_CHECKING:
    import xarray as xr
REPLAY = "replay"
DEFAULT_POLICIES = ("logger", "uniform", "fitted")
DEFAULT_ESTIMATORS = ("dr", "snips", "ips")
INTERVALS = ("adaptive", "plain")
MODELLED = ("dm", "switch")  # these trust their model, so it is to have seen as much as it can
NOISE = (
    "The logger drew its arms from the noisy context, so ips, snips and dr stand for any policy that sees the"
    " same noisy context; they need no model of the noise. A policy that would see another sensor needs the"
    " channel: --sensor."
)
DIRECT = (
    "dm is its model's word, and its interval does not know whether the model is right. Asked through the"
    " denoiser it speaks of noisy contexts; fitted on true contexts and fed with noisy ones it would say too"
    " much."
)
ADAPTIVE = (
    "Intervals are for loggers that may have learnt: rounds are weighed so that all stretches of time vary"
    " alike, and models know only what came before. The value is a mean over time with these weights."
)
LEARNING = (
    "Agents are valued as the log teaches them, from all of its rounds, over the whole of it, all rounds"
    " weighed alike; replay lets each live from its own choices, in as many rounds as come out like them."
)
ALONE = (
    "Intervals are for loggers that may have learnt: models know only what came before. All rounds weigh"
    " alike, since the log has the probability of the drawn arm alone; those of all arms would allow better."
)
FEW = 100  # effective rounds
FAR = 1 - 1 / 15_000  # the level at which the mean weight is not 1
Part = tuple[list[str], Array]


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
    validation.one_of("intervals", intervals, INTERVALS)
    validation.share("level", level)
    chosen = policies(policies_, scene)
    names = asked(estimators, any(not policy.fixed for policy in chosen))
    held = fits(scene.log)
    found = [_one(scene, policy, names, intervals, tick) for policy in chosen]
    return dataset(
        scene, found, names, intervals, level, notes_on(scene, found, names, intervals, held), held
    )


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
    return Found(policy, values, plain, gains, rounds, said, *_weight_summary(table, ahead.weight, scene))


def _time(scene: Scene, policy: Policy, table: Array) -> Array | None:
    """Weights of time; none for a policy that changes itself, whose value is over the whole log."""
    known = scene.log.probabilities
    return adaptive(table, known) if policy.fixed and not policy.drawn and known is not None else None


def _replay(scene: Scene, policy: Policy, tick: Tick) -> tuple[Value, int]:
    if policy.learner is None:
        return Value(np.nan, np.nan, np.full(scene.log.rounds, np.nan)), 0
    found = replayed(policy.learner, tick)
    return found.value(scene.log.reward), len(found.accepted)


def _weight_summary(table: Array, weight: Array, scene: Scene) -> tuple[float, float, float, Value]:
    """Effective rounds, the largest weight, the share of rounds without support, the mean weight."""
    squares = float((weight**2).sum())
    effective = float(weight.sum()) ** 2 / squares if squares else 0.0
    support = scene.log.support
    without = np.nan if support is None else float(((table > 0) & ~support).any(axis=1).mean())
    return effective, float(weight.max()), without, value(Scores(weight))


def notes_on(
    scene: Scene, found: Sequence[Found], names: Sequence[str], intervals: str, fits: Sequence[Fit]
) -> list[str]:
    """What a reader of the values should know, in the order in which it matters."""
    said = [f"Careful: {fit.sentence}" for fit in fits if not fit.fits]
    if scene.suspicion:
        said.append(f"Careful: {scene.suspicion} So models go by readings alone, where truth would mislead.")
    said += [note for one in found for note in _careful(one)]
    said += [*scene.log.notes, NOISE]
    if {"dr", "dm", "switch"} & {*names} or any(one.policy.name.startswith("fitted") for one in found):
        said.append(scene.about_channel)
    said += [DIRECT] if "dm" in names else []
    if intervals == "adaptive" and any(one.policy.fixed for one in found):
        said.append(ALONE if scene.log.probabilities is None else ADAPTIVE)
    said += [LEARNING] if any(not one.policy.fixed for one in found) else []
    return said + [note for one in found for note in one.notes]


def _careful(one: Found) -> list[str]:
    """Where a policy is hardly seen in the log."""
    name, said, (low, high) = one.policy.name, list[str](), one.weight.interval(FAR)
    if one.unsupported > 0:
        said.append(
            f"Careful: {name} takes arms that could not be drawn, in {one.unsupported:.1%} of rounds."
            " What these would have been paid, no log can say."
        )
    elif one.weight.se > 0 and not low <= 1 <= high:
        said.append(
            f"Careful: weights of {name} average {one.weight.mean:.3f} ± {one.weight.se:.3f}, not 1. Either"
            " probabilities are wrong, or it takes arms that were never drawn."
        )
    if one.effective < FEW:
        said.append(
            f"Careful: {name} rests on {one.effective:.0f} effective rounds; the largest weight is"
            f" {one.largest:.3g}. Its intervals may be too short."
        )
    return said


def dataset(
    scene: Scene,
    found: Sequence[Found],
    names: Sequence[str],
    intervals: str,
    level: float,
    notes: Sequence[str],
    fits: Sequence[Fit],
) -> "xr.Dataset":
    """Everything that was found; `gain` is over what was earned, paired round by round."""
    import xarray as xr

    log = scene.log
    attributes = {
        "source": log.source,
        "rounds": log.rounds,
        "arms": list(log.arms),
        "coordinates": list(log.coordinates),
        "earned": float(log.reward.mean()),
        "intervals": intervals,
        "level": level,
        "seed": scene.seed,
        "channel": scene.about_channel,
        "fit": {one.check: one.p_value for one in fits},
        "estimators": {name: ESTIMATORS[name].note for name in names if name in ESTIMATORS},
        "notes": list(notes),
    }
    where = {"policy": [one.policy.name for one in found], "estimator": list(names)}
    return xr.Dataset({**_estimates(found, names, level), **_rests(found)}, where, attributes)


def _estimates(found: Sequence[Found], names: Sequence[str], level: float) -> dict[str, Part]:
    """What was found by policy and estimator: values, gains and their ends."""

    def grid(number: Callable[[Found, str], float]) -> Part:
        return ["policy", "estimator"], np.array([[number(one, name) for name in names] for one in found])

    def with_ends(prefix: str, name: str, values: Callable[[Found], dict[str, Value]]) -> dict[str, Part]:
        return {
            name: grid(lambda one, name: values(one)[name].mean),
            f"{prefix}low": grid(lambda one, name: values(one)[name].interval(level)[0]),
            f"{prefix}high": grid(lambda one, name: values(one)[name].interval(level)[1]),
        }

    return {
        **with_ends("", "value", lambda one: one.values),
        "se": grid(lambda one, name: one.values[name].se),
        **with_ends("gain_", "gain", lambda one: one.gains),
        **with_ends("plain_", "plain_value", lambda one: one.plain),
        "rounds": grid(lambda one, name: one.rounds[name]),
    }


def _rests(found: Sequence[Found]) -> dict[str, Part]:
    """What the estimates of each policy rest on."""
    numbers = {
        "effective": [one.effective for one in found],
        "largest_weight": [one.largest for one in found],
        "unsupported": [one.unsupported for one in found],
        "mean_weight": [one.weight.mean for one in found],
        "mean_weight_se": [one.weight.se for one in found],
    }
    return {name: (["policy"], np.array(values)) for name, values in numbers.items()}
