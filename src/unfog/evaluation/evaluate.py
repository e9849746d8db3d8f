"""What would other policies have earned on this log? Values with intervals, and what they rest on.

Every policy is valued by every requested estimator (`evaluate_policies`). The dataset (`dataset`) carries
notes for its reader (`notes_on`): what noise changes, and what not to trust.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.evaluation.checks import Fit, fits
from unfog.evaluation.context import EvaluationContext
from unfog.evaluation.estimators import ESTIMATORS, Case, Scores
from unfog.evaluation.intervals import Value, adaptive, value
from unfog.evaluation.policies import Policy, Tick, policies, replay, silent
from unfog.maths.arrays import Array
from unfog.validation import InputError

if TYPE_CHECKING:
    import xarray as xr
REPLAY = "replay"
DEFAULT_POLICIES = ("logger", "uniform", "fitted")
DEFAULT_ESTIMATORS = ("dr", "snips", "ips")
INTERVALS = ("adaptive", "plain")
MODELLED = ("dm", "switch")  # these rely on their model, so it is fitted on as many rounds as possible
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


class PolicyResult(NamedTuple):
    """The values of one policy by all estimators, and what they rest on."""

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


def evaluate_policies(
    evaluation: EvaluationContext,
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
    selected_policies = policies(policies_, evaluation)
    names = check_estimators(estimators, any(not policy.fixed for policy in selected_policies))
    checks = fits(evaluation.log)
    results = [_evaluate_policy(evaluation, policy, names, intervals, tick) for policy in selected_policies]
    return dataset(
        evaluation,
        results,
        names,
        intervals,
        level,
        notes_on(evaluation, results, names, intervals, checks),
        checks,
    )


def check_estimators(estimators: Any, learning: bool) -> list[str]:
    """The names of estimators, checked; replay is for agents that learn."""
    if estimators is None:
        return [*DEFAULT_ESTIMATORS, *([REPLAY] if learning else [])]
    names = [name.strip() for name in estimators.split(",")] if isinstance(estimators, str) else estimators
    if not isinstance(names, Sequence) or not names:
        actual = "none" if isinstance(names, Sequence) else validation.display(names)
        raise InputError("estimators", actual, ", ".join([*ESTIMATORS, REPLAY]))
    for name in names:
        validation.one_of("estimators", name, [*ESTIMATORS, REPLAY])
    return list(dict.fromkeys(names))


def _evaluate_policy(
    evaluation: EvaluationContext, policy: Policy, names: list[str], intervals: str, tick: Tick
) -> PolicyResult:
    log, table = evaluation.log, policy.table(tick)
    chance = np.ones(log.rounds) if policy.drawn else log.probability
    # The arms that were drawn need no model: residuals cancel, and no round must be left out for lack of one.
    ahead = Case(
        table, log.arm, log.reward, chance, lambda: evaluation.across if policy.drawn else evaluation.forward
    )
    across = Case(table, log.arm, log.reward, chance, lambda: evaluation.across)
    time = _weigh_time(evaluation, policy, table) if intervals == "adaptive" else None
    values, plain, gains = dict[str, Value](), dict[str, Value](), dict[str, Value]()
    rounds, notes = dict[str, int](), list[str]()
    for name in names:
        if name == REPLAY:
            values[name], rounds[name] = _replay_policy(evaluation, policy, tick)
            plain[name], gains[name] = values[name], values[name].less(value(Scores(log.reward)))
            continue
        estimator = ESTIMATORS[name]
        plain_scores = estimator.scores(across)
        scores = plain_scores if name in MODELLED or intervals == "plain" else estimator.scores(ahead)
        weights = None if name in MODELLED else time
        values[name] = value(scores, weights)
        gains[name] = values[name].less(value(Scores(log.reward), weights))  # in the same rounds
        plain[name], rounds[name] = value(plain_scores), log.rounds
        notes += [f"{policy.name}, {name}: {scores.note}."] if scores.note and not policy.drawn else []
    return PolicyResult(
        policy, values, plain, gains, rounds, notes, *_weight_summary(table, ahead.weight, evaluation)
    )


def _weigh_time(evaluation: EvaluationContext, policy: Policy, table: Array) -> Array | None:
    """Weights of time; none for a policy that learns, whose value is over the whole log."""
    probabilities = evaluation.log.probabilities
    return (
        adaptive(table, probabilities)
        if policy.fixed and not policy.drawn and probabilities is not None
        else None
    )


def _replay_policy(evaluation: EvaluationContext, policy: Policy, tick: Tick) -> tuple[Value, int]:
    if policy.learner is None:
        return Value(np.nan, np.nan, np.full(evaluation.log.rounds, np.nan)), 0
    result = replay(policy.learner, tick)
    return result.value(evaluation.log.reward), len(result.accepted)


def _weight_summary(
    table: Array, weight: Array, evaluation: EvaluationContext
) -> tuple[float, float, float, Value]:
    """Effective rounds, the largest weight, the share of rounds without support, the mean weight."""
    squares = float((weight**2).sum())
    effective = float(weight.sum()) ** 2 / squares if squares else 0.0
    support = evaluation.log.support
    without = np.nan if support is None else float(((table > 0) & ~support).any(axis=1).mean())
    return effective, float(weight.max()), without, value(Scores(weight))


def notes_on(
    evaluation: EvaluationContext,
    results: Sequence[PolicyResult],
    names: Sequence[str],
    intervals: str,
    fits: Sequence[Fit],
) -> list[str]:
    """What a reader of the values should know, in the order in which it matters."""
    notes = [f"Careful: {fit.sentence}" for fit in fits if not fit.fits]
    if evaluation.suspicion:
        notes.append(
            f"Careful: {evaluation.suspicion} So models go by readings alone, where truth would mislead."
        )
    notes += [note for result in results for note in _write_warnings(result)]
    notes += [*evaluation.log.notes, NOISE]
    if {"dr", "dm", "switch"} & {*names} or any(
        result.policy.name.startswith("fitted") for result in results
    ):
        notes.append(evaluation.about_channel)
    notes += [DIRECT] if "dm" in names else []
    if intervals == "adaptive" and any(result.policy.fixed for result in results):
        notes.append(ALONE if evaluation.log.probabilities is None else ADAPTIVE)
    notes += [LEARNING] if any(not result.policy.fixed for result in results) else []
    return notes + [note for result in results for note in result.notes]


def _write_warnings(result: PolicyResult) -> list[str]:
    """Warnings if the log hardly contains what a policy does."""
    name, warnings, (low, high) = result.policy.name, list[str](), result.weight.interval(FAR)
    if result.unsupported > 0:
        warnings.append(
            f"Careful: {name} takes arms that could not be drawn, in {result.unsupported:.1%} of rounds."
            " What these would have been paid, no log can say."
        )
    elif result.weight.se > 0 and not low <= 1 <= high:
        warnings.append(
            f"Careful: weights of {name} average {result.weight.mean:.3f} ± {result.weight.se:.3f}, not 1."
            " Either probabilities are wrong, or it takes arms that were never drawn."
        )
    if result.effective < FEW:
        warnings.append(
            f"Careful: {name} rests on {result.effective:.0f} effective rounds; the largest weight is"
            f" {result.largest:.3g}. Its intervals may be too short."
        )
    return warnings


def dataset(
    evaluation: EvaluationContext,
    results: Sequence[PolicyResult],
    names: Sequence[str],
    intervals: str,
    level: float,
    notes: Sequence[str],
    fits: Sequence[Fit],
) -> "xr.Dataset":
    """All results; `gain` is the value less what was earned, paired round by round."""
    import xarray as xr

    log = evaluation.log
    attributes = {
        "source": log.source,
        "rounds": log.rounds,
        "arms": list(log.arms),
        "coordinates": list(log.coordinates),
        "earned": float(log.reward.mean()),
        "intervals": intervals,
        "level": level,
        "seed": evaluation.seed,
        "channel": evaluation.about_channel,
        "fit": {one.check: one.p_value for one in fits},
        "estimators": {name: ESTIMATORS[name].note for name in names if name in ESTIMATORS},
        "notes": list(notes),
    }
    where = {"policy": [one.policy.name for one in results], "estimator": list(names)}
    return xr.Dataset(
        {**_tabulate_estimates(results, names, level), **_tabulate_support(results)}, where, attributes
    )


def _tabulate_estimates(
    results: Sequence[PolicyResult], names: Sequence[str], level: float
) -> dict[str, Part]:
    """Results by policy and estimator: values, gains, and the ends of their intervals."""

    def grid(number: Callable[[PolicyResult, str], float]) -> Part:
        return ["policy", "estimator"], np.array(
            [[number(result, name) for name in names] for result in results]
        )

    def with_ends(
        prefix: str, name: str, values: Callable[[PolicyResult], dict[str, Value]]
    ) -> dict[str, Part]:
        return {
            name: grid(lambda result, name: values(result)[name].mean),
            f"{prefix}low": grid(lambda result, name: values(result)[name].interval(level)[0]),
            f"{prefix}high": grid(lambda result, name: values(result)[name].interval(level)[1]),
        }

    return {
        **with_ends("", "value", lambda result: result.values),
        "se": grid(lambda result, name: result.values[name].se),
        **with_ends("gain_", "gain", lambda result: result.gains),
        **with_ends("plain_", "plain_value", lambda result: result.plain),
        "rounds": grid(lambda result, name: result.rounds[name]),
    }


def _tabulate_support(results: Sequence[PolicyResult]) -> dict[str, Part]:
    """What the estimates of each policy rest on."""
    numbers = {
        "effective": [result.effective for result in results],
        "largest_weight": [result.largest for result in results],
        "unsupported": [result.unsupported for result in results],
        "mean_weight": [result.weight.mean for result in results],
        "mean_weight_se": [result.weight.se for result in results],
    }
    return {name: (["policy"], np.array(values)) for name, values in numbers.items()}
