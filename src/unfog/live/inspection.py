"""A look inside a live problem: beliefs about the channel, theta and arms, and whether it works.

The results are data sets with names (xarray, of the extra `lab`), in the caller's units. `plain` and `whole`
turn them into JSON: nested mappings by names, with null for what is not a number.

`belief` says what is believed. Agents have contexts in deviations from their mean, z = (c - centre) / scale.
With features of its own for each arm, an arm pays theta_0 + theta'z there, which in the caller's units is

    (theta_0 - sum_j theta_j centre_j / scale_j) + sum_j (theta_j / scale_j) c_j.

Other features are not linear in c, so their theta stays that of features of z. `expected` says what each arm
would earn in a context.

`diagnosed` says whether the problem works:

    coordinate   z is a reading less its expectation, in deviations: its mean square is 1 if the channel is as
                 told; the believed bias, of the only unit or the mean of all (`bias_of` says whose), how
                 uncertain it is for one unit, and how units differ; noisy and denoised contexts against true
                 ones, where these came
    arm          how often it was chosen, and what it paid
    level        the share of rewards in intervals of this level
    bin          rewards of 0 or 1 by the predicted probability of a 1: `said` and `came` should be alike
    age          decisions that wait for their rewards

`attrs` has what holds for the problem as a whole: the counts, the share of decisions whose reward came, and
what is wrong with the channel, in words. `vitals` are a few of these numbers for those who watch many
problems.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unfog.agents.choose.greedy import best
from unfog.agents.runner import Runner
from unfog.channel import innovations
from unfog.channel.innovations import ALARM, Innovations
from unfog.live import monitoring
from unfog.live.monitoring import ANY, BINS, LEVELS, Tallies
from unfog.live.requests import Ask
from unfog.live.state import OBEYED, State
from unfog.maths.arrays import Array
from unfog.maths.logistic import sigmoid
from unfog.maths.random import generator

if TYPE_CHECKING:
    import xarray as xr

AGES = {"minute": 60.0, "hour": 3600.0, "day": 86_400.0, "week": 604_800.0, "longer": np.inf}
"""Seconds that what is waited for is old at most, and what that is called."""

DRAWS = 2000  # of theta and the context, for what is said of an arm
LEVEL = 0.9
MOST_UNITS = 1000  # of which the mean of biases is taken
OUTSIDE = "the caller's: an intercept, and slopes of contexts as they are"
INSIDE = "those of features of contexts in deviations from their mean"


class Named(NamedTuple):
    """What coordinates and arms are called."""

    coordinates: Sequence[str]
    arms: Sequence[str]


class Bias(NamedTuple):
    """What is believed of the bias of one unit, or of many: (d,) each."""

    mean: Array
    sd: Array  # of what is believed of a unit
    units_sd: Array  # between units; not a number of one
    context_sd: Array  # of true contexts, as the channel has it
    of: str  # whose it is


class Vitals(NamedTuple):
    """A few numbers of one problem, now."""

    pending: int  # decisions whose reward may still come
    oldest: float  # how long the oldest of them waits: seconds
    innovation: float | None  # mean square of readings in deviations, of late: 1 if the channel is as told


def about(state: State, name: str, now: float) -> dict[str, Any]:
    """The problem itself, as JSON has it."""
    terms, arms, units = state.terms, state.arms, [unit for unit in state.runner.channels if unit]
    return {
        "name": name,
        "agent": terms.agent,
        "seed": terms.seed,
        "context": list(terms.context),
        "arms": list(arms.available),
        "retired": [arm for arm, active in arms.active.items() if not active],
        "frozen": arms.frozen,
        "shadows": [one for one in state.runners if one != OBEYED],
        "units": units[:MOST_UNITS],
        "units_total": len(units),
        "reward_kind": terms.rewards,
        "channel": terms.channel is not None,
        "floor": terms.floor,
        "wait": terms.wait,
        "reveal_within": terms.reveal_within,
        "note": state.made.note or None,
        "decisions": state.number,
        "decisions_today": state.watch.decisions_on(now),
        "rewards": state.watch.tallies.counts.rewards,
        "pending": sum(not found.settled for found in state.open.values()),
        "alarm": alarm(state),
    }


def alarm(state: State) -> list[str]:
    """What is wrong with the channel, in words."""
    readings = state.watch.readings
    return [] if readings is None else innovations.sentences(readings, state.terms.context)


def vitals(state: State, now: float) -> Vitals:
    """What waits, for how long, and whether readings fit."""
    times = [found.time for found in state.open.values() if not found.settled]
    oldest = max(now - min(times), 0.0) if times else 0.0
    return Vitals(len(times), oldest, _innovation(state))


def _innovation(state: State) -> float | None:
    found = state.watch.readings
    if found is None:
        return None
    squares = innovations.moments(found.lately).mean_square
    seen = squares[np.isfinite(squares)]
    return float(seen.mean()) if seen.size else None


def belief(state: State, unit: str) -> "xr.Dataset":
    """The bias of a unit by name, theta, and the weights of hypotheses, where the agent has any."""
    import xarray as xr

    runner, names = state.runner, list(state.terms.context)
    values: dict[str, Any] = {}
    known = bias(state, unit)
    if known is not None:
        values |= {"bias": ("coordinate", known[0]), "bias_sd": ("coordinate", known[1])}
    coordinates: dict[str, Any] = {"coordinate": names}
    if state.made.per_arm:
        coordinates |= {"arm": list(state.arms.vectors), "term": ["intercept", *names]}
    values |= _theta(state)
    hypotheses = _weights(runner, unit)
    if hypotheses:
        coordinates["hypothesis"] = list(hypotheses)
        values["weight"] = ("hypothesis", list(hypotheses.values()))
    attrs = {
        "unit": unit,
        "units": len(runner.channels),
        "bias_of": whose(state, unit),
        "theta_units": OUTSIDE if state.made.per_arm else INSIDE,
        "rewards_learnt": runner.learnt,
        "agent": runner.agent.name,
    }
    return xr.Dataset(values, coordinates, attrs)


def whose(state: State, unit: str) -> str:
    """A unit in words. Readings without a unit are one unit, the one without a name."""
    if unit:
        return f"unit {unit}"
    known = state.runner.channels
    if not any(known):
        return "the sensor"
    return "readings without a unit" if unit in known else "a new unit"


def _theta(state: State) -> dict[str, Any]:
    """Mean and deviation of theta; of features of each arm's own in both units, by arm and term."""
    theta = state.runner.theta()
    mean, root = theta.centre.reshape(-1), theta.root
    if not state.made.per_arm:
        sd = np.sqrt((root * root).sum(-1)).reshape(-1)
        return {"theta": ("feature", mean), "theta_sd": ("feature", sd)}
    axes, k = ("arm", "term"), 1 + len(state.terms.context)
    blocks, roots, outside = mean.reshape(-1, k), root.reshape(-1, k, root.shape[-1]), _outside(state)
    return {
        "theta": (axes, blocks @ outside.T),
        "theta_sd": (axes, np.linalg.norm(outside @ roots, axis=-1)),
        "theta_standard": (axes, blocks),
        "theta_standard_sd": (axes, np.linalg.norm(roots, axis=-1)),
    }


def _outside(state: State) -> Array:
    """From intercept and slopes of contexts in deviations to those of contexts as they are: square."""
    units = state.made.units
    found = np.diag([1.0, *(1 / units.scale)])
    found[0, 1:] = -units.centre / units.scale
    return found


def bias(state: State, unit: str) -> tuple[Array, Array] | None:
    """Mean and deviation of a unit's bias, (d,) each, in the caller's units; None: there is none."""
    units, law = state.made.units, state.runner.bias(unit)
    if law is None:
        return None
    return units.bias + law[0] * units.scale, np.sqrt(law[1]) * units.scale


def _weights(runner: Runner, unit: str) -> dict[str, float]:
    """The probability of each hypothesis that an agent weighs, by what it says."""
    denoiser = runner.agent.can.weigh_hypotheses
    if denoiser is None:
        return {}
    weights = denoiser.weights(runner.setup.denoiser, runner.memory(unit).denoiser).reshape(-1)
    names = [
        ", ".join(f"{name} {value:g}" for name, value in one.items())
        for one in denoiser.labels(runner.setup.denoiser)
    ]
    return dict(zip(names, weights.tolist(), strict=True))


def expected(state: State, ask: Ask) -> "xr.Dataset":
    """The expected reward of each arm that might be chosen, its interval of `LEVEL`, and whether it is best.

    Expected over what is not known of the context and of theta, by `DRAWS` draws of both that are the same
    every time; `probability_best` is the share of draws in which an arm is the best.
    """
    import xarray as xr

    runner, features = state.runner, state.arms.features_of(ask.vectors)
    view = runner.consider(ask.unit, state.offer(ask), features).view
    d, m = len(state.terms.context), view.belief.centre.shape[-1]
    normals = generator(state.terms.seed, 0, "expected").standard_normal((DRAWS, d + m))
    cov = np.broadcast_to(view.context.cov, (1, d, d))[0]
    values, vectors = np.linalg.eigh(cov)
    contexts = view.context.mean + normals[:, :d] @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    theta = np.concat([view.belief.sample(one[None]) for one in normals[:, d:]])
    scores = features.at(contexts).scores(theta)
    order = list(state.arms.place) if ask.vectors is None else list(ask.vectors)
    choice = list(state.arms.choice(ask))
    scores = scores[:, [order.index(name) for name in choice]]
    paid = sigmoid(scores) if state.terms.rewards == "bernoulli" else scores
    low, high = np.quantile(paid, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    chances = np.bincount(best(scores), minlength=len(choice)) / DRAWS
    of_arms = {"mean": paid.mean(0), "low": low, "high": high, "probability_best": chances}
    return xr.Dataset(
        {name: ("arm", value) for name, value in of_arms.items()},
        {"arm": choice},
        {"level": LEVEL, "draws": DRAWS, "agent": runner.agent.name},
    )


def diagnosed(state: State, now: float) -> "xr.Dataset":
    """Whether the thing works, in the caller's units."""
    scale, arms = state.made.units.scale, list(state.arms.vectors) or [ANY]
    waits = [now - found.time for found in state.open.values() if not found.settled]
    named = Named(state.terms.context, arms)
    found = state.watch
    data = dataset(named, found.tallies, found.readings, bias=_biases(state), ages=waits)
    for name in ("rmse_noisy", "rmse_denoised"):
        data[name] = data[name] * scale
    return data.assign_attrs(notes=notes(state), agent=state.runner.agent.name)


def notes(state: State) -> list[str]:
    """What a user should know."""
    found = [state.made.note] if state.made.note else []
    readings, agent = state.watch.readings, state.runner.agent
    if readings is not None and not agent.takes_gaps and (readings.total[0] < readings.readings).any():
        lost = "Some readings were lost, and this agent takes the mean for them"
        found.append(f"{lost}: agents such as 'gaps', 'late' or 'adaptive' know what a gap is.")
    return found


def _biases(state: State) -> Bias | None:
    """The bias of the only unit, or the mean of all; None if the agent has none."""
    known = list(state.runner.channels) or [""]
    chosen = known[:MOST_UNITS]
    found = [one for one in (bias(state, unit) for unit in chosen) if one is not None]
    if not found:
        return None
    scale = np.sqrt(np.diag(state.made.channel.context_cov))
    if len(known) == 1:
        return Bias(*found[0], np.full_like(scale, np.nan), scale, whose(state, known[0]))
    means, sds = (np.array(part) for part in zip(*found, strict=True))
    part = f"{len(chosen):,} of " if len(chosen) < len(known) else ""
    words = f"the mean of {part}{len(known):,} units"
    return Bias(means.mean(0), np.sqrt((sds**2).mean(0)), means.std(0, ddof=1), scale, words)


def dataset(
    named: Named,
    found: Tallies,
    readings: Innovations | None,
    *,
    bias: Bias | None = None,
    ages: Sequence[float] = (),
) -> "xr.Dataset":
    """The diagnostics, errors of contexts in the agent's units; `readings` and `bias` where it has any.

    `ages` are those of decisions that wait, in seconds.
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
        **{name: ("coordinate", x) for name, x in _channel(found, readings, bias).items()},
        **{name: ("arm", x) for name, x in _arms(found, len(named.arms)).items()},
        "coverage": ("level", monitoring.coverage(found)),
        **{name: ("bin", x) for name, x in _bins(found).items()},
        "waiting": ("age", waiting(ages)),
    }
    attrs = _whole(named, found, readings, len(ages)) | {"bias_of": "" if bias is None else bias.of}
    return xr.Dataset(values, coordinates, attrs)


def _channel(found: Tallies, readings: Innovations | None, bias: Bias | None) -> dict[str, Array]:
    """What there is of every coordinate; not a number is what there is not."""
    nothing = np.full(found.contexts.shape[1], np.nan)
    bias = bias or Bias(nothing, nothing, nothing, nothing, "")
    seen, lately, values = innovations.Moments(nothing * 0, nothing, nothing), nothing, nothing
    if readings is not None:
        seen, lately = innovations.moments(readings.total), innovations.moments(readings.lately).mean_square
        values = innovations.e_values(readings)[0]
    worth = monitoring.denoising(found)
    return {
        "readings": seen.seen,
        "z_mean": seen.mean,
        "z_mean_square": seen.mean_square,
        "z_mean_square_lately": lately,
        "e_value": values,
        "bias": bias.mean,
        "bias_sd": bias.sd,
        "bias_units_sd": bias.units_sd,
        "context_sd": bias.context_sd,
        "true_contexts": worth.revealed,
        "rmse_noisy": worth.rmse_noisy,
        "rmse_denoised": worth.rmse_denoised,
        "context_coverage": worth.coverage,
    }


def _arms(found: Tallies, number: int) -> dict[str, Array]:
    """What there is of every arm; those that came later and were never chosen have places of their own."""
    more = np.zeros((max(number - len(found.arms), 0), 4))
    arms = monitoring.by_arm(found._replace(arms=np.concatenate((found.arms, more))))
    said = {"chosen": arms.chosen, "share": arms.share, "rewarded": arms.rewards}
    return {**said, "reward_mean": arms.mean, "reward_error": arms.error}


def _bins(found: Tallies) -> dict[str, Array]:
    """Means of what was said and of what came; not a number in an empty bin."""
    number, said, came = found.bins.T
    with np.errstate(invalid="ignore"):  # nothing by nothing
        return {"in_bin": number, "said": said / number, "came": came / number}


def waiting(ages: Sequence[float]) -> Array:
    """How many are of every age in `AGES`."""
    edges = np.array([0.0, *AGES.values()])
    places = np.searchsorted(edges[1:-1], np.maximum(np.asarray(ages, dtype=np.float64), 0.0), side="right")
    return np.bincount(places, minlength=len(AGES)).astype(np.float64)


def join_rate(found: Tallies) -> float:
    """The share of decisions whose reward came in time, of those that are settled; not a number: none is."""
    came = found.counts.answered
    settled = came + found.counts.expired
    return came / settled if settled else float("nan")


def _whole(named: Named, found: Tallies, readings: Innovations | None, pending: int) -> dict[str, Any]:
    """What holds for the problem as a whole."""
    said: dict[str, Any] = {"alarm": [], "alarmed": 0, "e_value_of_all": float("nan"), "alarm_at": ALARM}
    if readings is not None:
        said["alarm"] = innovations.sentences(readings, named.coordinates)
        said["alarmed"] = int(readings.alarmed)
        said["e_value_of_all"] = float(innovations.e_values(readings)[1])
    rates = {"pending": pending, "join_rate": join_rate(found)}
    return {**found.counts._asdict(), **rates, **said, "judged": found.judged}


def plain(data: "xr.Dataset") -> dict[str, Any]:
    """Attributes and variables by name; a variable is a mapping by the names along its dimensions."""
    values = {
        str(name): _by_name(data, data[name].dims, data[name].values.tolist()) for name in data.data_vars
    }
    return {**{str(name): _value(value) for name, value in data.attrs.items()}, **values}


def whole(data: "xr.Dataset") -> dict[str, Any]:
    """As `plain`, with what it takes to make the data set again: dimensions, and what stands along them."""
    dims = {str(name): [str(dim) for dim in data[name].dims] for name in data.data_vars}
    return {
        **plain(data),
        "dims": dims,
        "coordinates": {str(name): _value(data[name].values.tolist()) for name in data.coords},
    }


def dataset_from_json(told: dict[str, Any]) -> "xr.Dataset":
    """The data set that `whole` has written."""
    import xarray as xr

    dims: dict[str, list[str]] = told["dims"]
    values = {
        name: (along, np.array(_listed(told[name], len(along)), dtype=np.float64))
        for name, along in dims.items()
    }
    rest = {
        name: float("nan") if x is None else x
        for name, x in told.items()
        if name not in (*dims, "dims", "coordinates")
    }
    return xr.Dataset(values, told["coordinates"], rest)


def _listed(value: Any, depth: int) -> Any:
    """Without names; not a number for null."""
    if depth:
        return [_listed(one, depth - 1) for one in value.values()]
    return float("nan") if value is None else value


def _by_name(data: "xr.Dataset", dims: Any, values: Any) -> Any:
    if not dims:
        return _value(values)
    first = dims[0]
    keys = data[first].values.tolist() if first in data.coords else range(len(values))
    return {str(key): _by_name(data, dims[1:], value) for key, value in zip(keys, values, strict=True)}


def _value(value: Any) -> Any:
    """Plain, and null where it is not a number or has no end."""
    if isinstance(value, list | tuple):
        return [_value(one) for one in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value
