"""Inspection of a live problem: beliefs about the channel, theta and arms, and whether it works.

The results are named data sets (xarray, of the extra `lab`), in the caller's units. `plain` and `whole` turn
them into JSON: nested mappings by name, with null instead of NaN.

`belief` returns the beliefs. Agents see standardised contexts, z = (c - centre) / scale. If each arm has
features of its own, the expected reward of an arm is theta_0 + theta'z, which in the caller's units is

    (theta_0 - sum_j theta_j centre_j / scale_j) + sum_j (theta_j / scale_j) c_j.

Other features are not linear in c, so their theta stays that of features of z. `predict_rewards` returns the
expected reward of each arm in a context.

`diagnosed` returns the diagnostics, along these dimensions:

    coordinate   z is a reading less its expectation, in standard deviations: its mean square is 1 if the
                 channel is as described; the believed bias, of the only unit or the mean of all (`bias_label`
                 says which), how uncertain it is for one unit, and how units differ; the errors of noisy and
                 denoised contexts, where the true ones were revealed
    arm          how often it was chosen, and its mean reward
    level        the share of rewards in intervals of this level
    bin          rewards of 0 or 1 by the predicted probability of a 1: `predicted`, the mean prediction, and
                 `observed`, the share of ones, should agree
    age          decisions that wait for their rewards

`attrs` has what holds for the problem as a whole: the counts, the share of decisions whose reward came, and
what is wrong with the channel, in words. `gauges` are a few of these numbers, for monitoring many problems.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unfog.agents.base import View
from unfog.agents.choose.greedy import best
from unfog.agents.hedge import mix_moments
from unfog.agents.runner import Runner
from unfog.channel import innovations
from unfog.channel.innovations import ALARM, Innovations
from unfog.features import Context, FeatureMap
from unfog.features.per_arm import has_intercepts
from unfog.live import learnt, monitoring
from unfog.live.monitoring import ANY, BINS, LEVELS, Tallies
from unfog.live.requests import DecisionRequest
from unfog.live.state import PRIMARY, State
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Belief
from unfog.maths.logistic import sigmoid
from unfog.maths.random import generator

if TYPE_CHECKING:
    import xarray as xr

AGES = {"minute": 60.0, "hour": 3600.0, "day": 86_400.0, "week": 604_800.0, "longer": np.inf}
"""The upper bounds of the bins of ages, in seconds, by the name of the bin."""

DRAWS = 2000  # of theta and the context, for the expected reward of an arm
LEVEL = 0.9
MOST_UNITS = 1000  # that are listed, and that the mean bias is taken of
FEW_UNITS = 100  # that it is taken of in a description
OUTSIDE = "the caller's: an intercept, and slopes of contexts as they are"
INSIDE = "those of features of contexts in deviations from their mean"


class Named(NamedTuple):
    """The names of coordinates and arms."""

    coordinates: Sequence[str]
    arms: Sequence[str]


class Bias(NamedTuple):
    """The belief about the bias of one unit, or of many: (d,) each."""

    mean: Array
    sd: Array  # of the belief about one unit
    units_sd: Array  # between units; NaN if there is one
    context_sd: Array  # of true contexts, according to the channel
    of: str  # whose bias it is, in words


class Gauges(NamedTuple):
    """A few numbers of one problem, now."""

    pending: int  # decisions whose reward may still come
    oldest: float  # seconds that the oldest of them has waited
    innovation: float | None  # recent mean square of z: 1 if the channel is as described


def describe(state: State, name: str, now: float) -> dict[str, Any]:
    """The problem itself, for JSON: its terms, arms, units, counts, and what was learnt (live/learnt.py)."""
    terms, arms, units = state.terms, state.arms, [unit for unit in state.runner.channels if unit]
    bias = None if state.runner.spreads is not None else _summarise_bias(state, FEW_UNITS)
    return {
        "name": name,
        "agent": terms.agent,
        "seed": terms.seed,
        "context": list(terms.coordinates),
        "columns": list(terms.context),
        "arms": list(arms.available),
        "retired": [arm for arm, active in arms.active.items() if not active],
        "pinned": arms.pinned,
        "shadows": [shadow for shadow in state.runners if shadow != PRIMARY],
        "units": units[:MOST_UNITS],
        "units_total": len(units),
        "reward_kind": terms.rewards,
        "channel": terms.channel is not None,
        "epsilon": terms.epsilon,
        "reward_window": terms.reward_window,
        "context_window": terms.context_window,
        "note": state.made.note or None,
        "decisions": state.number,
        "decisions_today": state.watch.decisions_on(now),
        "rewards": state.watch.tallies.counts.rewards,
        "pending": sum(not pending.settled for pending in state.open.values()),
        "alarm": alarm(state),
        "learnt": learnt.describe_learnt(state, None if bias is None else (bias.mean, bias.units_sd)),
    }


def alarm(state: State) -> list[str]:
    """What is wrong with the channel, in words."""
    readings = state.watch.readings
    return [] if readings is None else innovations.sentences(readings, state.terms.context)


def gauges(state: State, now: float) -> Gauges:
    """How many decisions wait, for how long, and whether readings fit the channel."""
    times = [pending.time for pending in state.open.values() if not pending.settled]
    oldest = max(now - min(times), 0.0) if times else 0.0
    return Gauges(len(times), oldest, _recent_innovation(state))


def _recent_innovation(state: State) -> float | None:
    readings = state.watch.readings
    if readings is None:
        return None
    squares = innovations.moments(readings.lately).mean_square
    finite = squares[np.isfinite(squares)]
    return float(finite.mean()) if finite.size else None


def belief(state: State, unit: str) -> "xr.Dataset":
    """The bias of a unit by name, theta, and the weights of hypotheses, where the agent has any."""
    import xarray as xr

    runner, names = state.runner, list(state.terms.context)
    values: dict[str, Any] = {}
    unit_bias = bias(state, unit)
    if unit_bias is not None:
        values |= {"bias": ("coordinate", unit_bias[0]), "bias_sd": ("coordinate", unit_bias[1])}
    coordinates: dict[str, Any] = {"coordinate": names}
    if state.made.per_arm:
        coordinates |= {"arm": list(state.arms.vectors), "term": ["intercept", *names]}
    values |= _describe_theta(state)
    hypotheses = _weigh_hypotheses(runner, unit)
    if hypotheses:
        coordinates["hypothesis"] = list(hypotheses)
        values["weight"] = ("hypothesis", list(hypotheses.values()))
    attrs = {
        "unit": unit,
        "units": len(runner.channels),
        "bias_label": whose(state, unit),
        "theta_units": OUTSIDE if state.made.per_arm else INSIDE,
        "rewards_learnt": runner.learnt,
        "agent": runner.agent.name,
    }
    return xr.Dataset(values, coordinates, attrs)


def whose(state: State, unit: str) -> str:
    """A unit in words. All readings without a unit belong to one unit, which has no name."""
    if unit:
        return f"unit {unit}"
    channels = state.runner.channels
    if not any(channels):
        return "the sensor"
    return "readings without a unit" if unit in channels else "a new unit"


def _describe_theta(state: State) -> dict[str, Any]:
    """Mean and deviation of theta; if each arm has features of its own, in both units by arm and term.

    Nothing for a learner that keeps rewards until it decides, and has no theta between decisions.
    """
    if state.runner.theta().centre.shape[-1] != state.arms.features.size:
        return {}
    inside = np.eye(1 + len(state.terms.context))
    if not state.made.per_arm:
        mean, sd = _find_moments(state, None)
        return {"theta": ("feature", mean), "theta_sd": ("feature", sd)}
    axes = ("arm", "term")
    if state.runner.origin.any():
        inside[0, 1:] = -state.runner.origin
    mean, sd = _find_moments(state, _build_unit_matrix(state) @ inside)
    standard, standard_sd = _find_moments(state, inside)
    return {
        "theta": (axes, mean),
        "theta_sd": (axes, sd),
        "theta_standard": (axes, standard),
        "theta_standard_sd": (axes, standard_sd),
    }


def _find_moments(state: State, matrix: Array | None) -> tuple[Array, Array]:
    """Mean and deviation of theta, or by arm of the matrix times its blocks; over candidates, if any."""
    theta, weights = state.runner.theta(), list(state.runner.candidate_weights.values())
    beliefs = [gaussian.pick_belief(theta, j) for j in range(len(weights))] if weights else [theta]
    means, variances = [], []
    for belief in beliefs:
        mean, root = belief.centre.reshape(-1), belief.root
        if matrix is None:
            means.append(mean)
            variances.append((root * root).sum(-1).reshape(-1))
        else:
            size = len(matrix)
            means.append(mean.reshape(-1, size) @ matrix.T)
            variances.append(np.linalg.norm(matrix @ root.reshape(-1, size, root.shape[-1]), axis=-1) ** 2)
    shares = np.asarray(weights or [1.0]).reshape(-1, *[1] * means[0].ndim)
    centre, variance = mix_moments(shares, np.asarray(means), np.asarray(variances), 0)
    return centre, np.sqrt(variance)


def _build_unit_matrix(state: State) -> Array:
    """The square matrix from intercept and slopes of standardised contexts to those in the caller's units."""
    units = state.made.units
    matrix = np.diag([1.0, *(1 / units.scale)])
    matrix[0, 1:] = -units.centre / units.scale
    return matrix


def bias(state: State, unit: str) -> tuple[Array, Array] | None:
    """Mean and deviation of a unit's bias, (d,) each, in the caller's units; None if the agent has none."""
    units, moments = state.made.units, state.runner.bias(unit)
    if moments is None:
        return None
    return units.bias + moments[0] * units.scale, np.sqrt(moments[1]) * units.scale


def _weigh_hypotheses(runner: Runner, unit: str) -> dict[str, float]:
    """The probability of each hypothesis that an agent weighs, by its label."""
    denoiser = runner.agent.can.weigh_hypotheses
    if denoiser is None:
        return runner.candidate_weights
    weights = denoiser.weights(runner.setup.denoiser, runner.memory(unit).denoiser).reshape(-1)
    names = [
        ", ".join(f"{name} {value:g}" for name, value in label.items())
        for label in denoiser.labels(runner.setup.denoiser)
    ]
    return dict(zip(names, weights.tolist(), strict=True))


def predict_rewards(state: State, ask: DecisionRequest) -> "xr.Dataset":
    """The expected reward of each arm that might be chosen, its interval of `LEVEL`, and whether it is best.

    Expected over what is not known of the context and of theta, by `DRAWS` draws of both that are the same
    every time; `probability_best` is the share of draws in which an arm is the best. While arms are drawn by
    lot nothing is known of rewards, and all arms are as likely to be best.
    """
    import xarray as xr

    runner, features = state.runner, state.arms.features_of(ask.vectors)
    view = runner.consider(ask.unit, state.make_observation(ask), features).view
    scores = _draw_scores(state, features, view)
    order = list(state.arms.place) if ask.vectors is None else list(ask.vectors)
    choice = list(state.arms.choice(ask))
    scores = scores[:, [order.index(name) for name in choice]]
    rewards = scores
    if state.terms.is_binary:
        rewards = np.clip(scores, 0.0, 1.0) if runner.agent.learner.is_linear else sigmoid(scores)
    low, high = np.quantile(rewards, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    chances = np.bincount(best(scores), minlength=len(choice)) / DRAWS
    columns = {"mean": rewards.mean(0), "low": low, "high": high, "probability_best": chances}
    if view.by_lot is not None and view.by_lot.all():  # nothing is known yet: arms are drawn by lot
        columns = {name: np.full(len(choice), np.nan) for name in columns}
        columns["probability_best"] = np.full(len(choice), 1 / len(choice))
    return xr.Dataset(
        {name: ("arm", value) for name, value in columns.items()},
        {"arm": choice},
        {"level": LEVEL, "draws": DRAWS, "agent": runner.agent.name},
    )


def _draw_scores(state: State, features: FeatureMap, view: View) -> Array:
    """Draws of the scores of all arms, (DRAWS, K); of candidates, as many of each as it has weight."""
    d, m = len(state.terms.context), view.belief.centre.shape[-1]
    normals = generator(state.terms.seed, 0, "expected").standard_normal((DRAWS, d + m))
    if view.weights is None:
        return _draw_of_belief(features, view.context, view.belief, normals)
    origin = state.runner.origin if has_intercepts(features) else np.zeros(d)
    ends = np.round(np.cumsum(view.weights.reshape(-1)) * DRAWS).astype(int).tolist()
    parts = []
    for j, (first, last) in enumerate(zip([0, *ends], ends, strict=False)):
        context = Context(view.context.mean[:, j] - origin, view.context.cov[:, j])
        if last > first:
            theta = gaussian.pick_belief(view.belief, j)
            parts.append(_draw_of_belief(features, context, theta, normals[first:last]))
    return np.concat(parts)


def _draw_of_belief(features: FeatureMap, context: Context, belief: Belief, normals: Array) -> Array:
    """Scores of all arms, (n, K), for draws of the context and of theta."""
    d = context.mean.shape[-1]
    values, vectors = np.linalg.eigh(np.broadcast_to(context.cov, (1, d, d))[0])
    contexts = context.mean + normals[:, :d] @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    theta = np.concat([belief.sample(draw[None]) for draw in normals[:, d:]])
    return features.at(contexts).scores(theta)


def diagnosed(state: State, now: float) -> "xr.Dataset":
    """Whether the problem works, in the caller's units."""
    scale, arms = state.made.units.scale, list(state.arms.vectors) or [ANY]
    ages = [now - pending.time for pending in state.open.values() if not pending.settled]
    named = Named(state.terms.context, arms)
    watch = state.watch
    data = dataset(named, watch.tallies, watch.readings, bias=_summarise_bias(state), ages=ages)
    for name in ("rmse_noisy", "rmse_denoised"):
        data[name] = data[name] * scale
    return data.assign_attrs(notes=notes(state), agent=state.runner.agent.name)


def notes(state: State) -> list[str]:
    """Notes for the user."""
    lines = [state.made.note] if state.made.note else []
    readings, agent = state.watch.readings, state.runner.agent
    if readings is not None and not agent.takes_gaps and (readings.total[0] < readings.readings).any():
        warning = "Some readings were lost, and this agent takes the mean for them"
        lines.append(f"{warning}: agents such as 'gaps', 'late' or 'adaptive' know what a gap is.")
    return lines


def _summarise_bias(state: State, most: int = MOST_UNITS) -> Bias | None:
    """The bias of the only unit, or the mean over units; None if the agent has none."""
    units = list(state.runner.channels) or [""]
    chosen = units[:most]
    biases = [moments for moments in (bias(state, unit) for unit in chosen) if moments is not None]
    if not biases:
        return None
    scale = learnt.find_context_sd(state)
    if len(units) == 1:
        return Bias(*biases[0], np.full_like(scale, np.nan), scale, whose(state, units[0]))
    means, sds = (np.array(values) for values in zip(*biases, strict=True))
    part = f"{len(chosen):,} of " if len(chosen) < len(units) else ""
    whose_mean = f"the mean of {part}{len(units):,} units"
    return Bias(means.mean(0), np.sqrt((sds**2).mean(0)), means.std(0, ddof=1), scale, whose_mean)


def dataset(
    named: Named,
    tallies: Tallies,
    readings: Innovations | None,
    *,
    bias: Bias | None = None,
    ages: Sequence[float] = (),
) -> "xr.Dataset":
    """The diagnostics, with errors of contexts in the agent's units; `readings` and `bias` if it has any.

    `ages` are those of pending decisions, in seconds.
    """
    import xarray as xr

    coordinates = {
        "coordinate": list(named.coordinates),
        "arm": list(named.arms),
        "level": list(LEVELS),
        "bin": [(i + 0.5) / BINS for i in range(BINS)],
        "age": list(AGES),
    }
    values = {
        **{name: ("coordinate", x) for name, x in _describe_channel(tallies, readings, bias).items()},
        **{name: ("arm", x) for name, x in _describe_arms(tallies, len(named.arms)).items()},
        "coverage": ("level", monitoring.coverage(tallies)),
        **{name: ("bin", x) for name, x in _describe_bins(tallies).items()},
        "waiting": ("age", waiting(ages)),
    }
    attrs = _describe_problem(named, tallies, readings, len(ages))
    attrs |= {"bias_label": "" if bias is None else bias.of}
    return xr.Dataset(values, coordinates, attrs)


def _describe_channel(tallies: Tallies, readings: Innovations | None, bias: Bias | None) -> dict[str, Array]:
    """The variables of every coordinate; NaN where there is no value."""
    missing = np.full(tallies.contexts.shape[1], np.nan)
    bias = bias or Bias(missing, missing, missing, missing, "")
    overall, recent, e_values = innovations.Moments(missing * 0, missing, missing), missing, missing
    if readings is not None:
        overall = innovations.moments(readings.total)
        recent = innovations.moments(readings.lately).mean_square
        e_values = innovations.e_values(readings)[0]
    worth = monitoring.denoising(tallies)
    return {
        "readings": overall.seen,
        "z_mean": overall.mean,
        "z_mean_square": overall.mean_square,
        "z_mean_square_lately": recent,
        "e_value": e_values,
        "bias": bias.mean,
        "bias_sd": bias.sd,
        "bias_units_sd": bias.units_sd,
        "context_sd": bias.context_sd,
        "true_contexts": worth.revealed,
        "rmse_noisy": worth.rmse_noisy,
        "rmse_denoised": worth.rmse_denoised,
        "context_coverage": worth.coverage,
    }


def _describe_arms(tallies: Tallies, number: int) -> dict[str, Array]:
    """The variables of every arm, also of arms that came later and were never chosen."""
    unchosen = np.zeros((max(number - len(tallies.arms), 0), 4))
    arms = monitoring.by_arm(tallies._replace(arms=np.concatenate((tallies.arms, unchosen))))
    counts = {"chosen": arms.chosen, "share": arms.share, "rewarded": arms.rewards}
    return {**counts, "reward_mean": arms.mean, "reward_error": arms.error}


def _describe_bins(tallies: Tallies) -> dict[str, Array]:
    """The mean prediction and the share of ones in each bin; NaN in an empty one."""
    count, predicted, observed = tallies.bins.T
    with np.errstate(invalid="ignore"):  # 0 / 0 in empty bins
        return {"in_bin": count, "predicted": predicted / count, "observed": observed / count}


def waiting(ages: Sequence[float]) -> Array:
    """The number of decisions in each bin of `AGES`."""
    edges = np.array([0.0, *AGES.values()])
    indices = np.searchsorted(edges[1:-1], np.maximum(np.asarray(ages, dtype=np.float64), 0.0), side="right")
    return np.bincount(indices, minlength=len(AGES)).astype(np.float64)


def join_rate(tallies: Tallies) -> float:
    """The share of settled decisions whose reward came in time; NaN if none is settled."""
    answered = tallies.counts.answered
    settled = answered + tallies.counts.expired
    return answered / settled if settled else float("nan")


def _describe_problem(
    named: Named, tallies: Tallies, readings: Innovations | None, pending: int
) -> dict[str, Any]:
    """The attributes, which hold for the problem as a whole."""
    alarm: dict[str, Any] = {"alarm": [], "alarmed": 0, "e_value_of_all": float("nan"), "alarm_at": ALARM}
    if readings is not None:
        alarm["alarm"] = innovations.sentences(readings, named.coordinates)
        alarm["alarmed"] = int(readings.alarmed)
        alarm["e_value_of_all"] = float(innovations.e_values(readings)[1])
    rates = {"pending": pending, "join_rate": join_rate(tallies)}
    return {**tallies.counts._asdict(), **rates, **alarm, "judged": tallies.judged}


def plain(data: "xr.Dataset") -> dict[str, Any]:
    """Attributes and variables by name; a variable is a mapping by the labels along its dimensions."""
    values = {
        str(name): _map_by_name(data, data[name].dims, data[name].values.tolist()) for name in data.data_vars
    }
    return {**{str(name): _to_json(value) for name, value in data.attrs.items()}, **values}


def whole(data: "xr.Dataset") -> dict[str, Any]:
    """As `plain`, with what is needed to rebuild the data set: its dimensions and coordinates."""
    dims = {str(name): [str(dim) for dim in data[name].dims] for name in data.data_vars}
    return {
        **plain(data),
        "dims": dims,
        "coordinates": {str(name): _to_json(data[name].values.tolist()) for name in data.coords},
    }


def dataset_from_json(data: dict[str, Any]) -> "xr.Dataset":
    """The data set that `whole` has written."""
    import xarray as xr

    dims: dict[str, list[str]] = data["dims"]
    values = {
        name: (names, np.array(_drop_names(data[name], len(names)), dtype=np.float64))
        for name, names in dims.items()
    }
    attrs = {
        name: float("nan") if x is None else x
        for name, x in data.items()
        if name not in (*dims, "dims", "coordinates")
    }
    return xr.Dataset(values, data["coordinates"], attrs)


def _drop_names(value: Any, depth: int) -> Any:
    """A nested mapping as nested lists, with NaN for null."""
    if depth:
        return [_drop_names(one, depth - 1) for one in value.values()]
    return float("nan") if value is None else value


def _map_by_name(data: "xr.Dataset", dims: Any, values: Any) -> Any:
    if not dims:
        return _to_json(values)
    first = dims[0]
    keys = data[first].values.tolist() if first in data.coords else range(len(values))
    return {str(key): _map_by_name(data, dims[1:], value) for key, value in zip(keys, values, strict=True)}


def _to_json(value: Any) -> Any:
    """A value for JSON: lists for tuples, and None for NaN and the infinities."""
    if isinstance(value, list | tuple):
        return [_to_json(one) for one in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value
