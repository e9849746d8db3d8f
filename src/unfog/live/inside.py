"""A look inside a live problem: what is believed of the channel and of theta, and what of each arm.

Data sets with names (xarray, of the extra `lab`), in the caller's units. Agents have contexts in deviations
from their mean, z = (c - centre) / scale. With features of each arm's own, the arm pays theta_0 + theta'z
there, and to the caller

    (theta_0 - sum_j theta_j centre_j / scale_j) + sum_j (theta_j / scale_j) c_j.

Other features are not linear in c, so that their theta stays that of features of z.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from unfog.agents.choose.greedy import best
from unfog.channel import innovations
from unfog.live import diagnostics
from unfog.live.asking import Ask
from unfog.live.diagnostics import Bias
from unfog.live.mind import Mind
from unfog.live.minds import OBEYED
from unfog.live.state import State
from unfog.live.watch import ANY
from unfog.maths.arrays import Array
from unfog.maths.logistic import sigmoid
from unfog.maths.random import generator

if TYPE_CHECKING:
    import xarray as xr

DRAWS = 2000  # of theta and the context, for what is said of an arm
LEVEL = 0.9
MOST_UNITS = 1000  # of which the mean of biases is taken
OUTSIDE = "the caller's: an intercept, and slopes of contexts as they are"
INSIDE = "those of features of contexts in deviations from their mean"


def about(state: State, name: str, now: float) -> dict[str, Any]:
    """The problem itself, as JSON has it."""
    terms, arms, units = state.terms, state.arms, [unit for unit in state.mind.channels if unit]
    return {
        "name": name,
        "agent": terms.agent,
        "seed": terms.seed,
        "context": list(terms.context),
        "arms": list(arms.available),
        "retired": [arm for arm, active in arms.active.items() if not active],
        "frozen": arms.frozen,
        "shadows": [one for one in state.minds if one != OBEYED],
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


def belief(state: State, unit: str) -> "xr.Dataset":
    """The bias of a unit by name, theta, and the weights of hypotheses, where the agent has any."""
    import xarray as xr

    mind, names = state.mind, list(state.terms.context)
    values: dict[str, Any] = {}
    known = bias(state, unit)
    if known is not None:
        values |= {"bias": ("coordinate", known[0]), "bias_sd": ("coordinate", known[1])}
    coordinates: dict[str, Any] = {"coordinate": names}
    if state.made.per_arm:
        coordinates |= {"arm": list(state.arms.vectors), "term": ["intercept", *names]}
    values |= _theta(state)
    hypotheses = _weights(mind, unit)
    if hypotheses:
        coordinates["hypothesis"] = list(hypotheses)
        values["weight"] = ("hypothesis", list(hypotheses.values()))
    attrs = {
        "unit": unit,
        "units": len(mind.channels),
        "bias_of": whose(state, unit),
        "theta_units": OUTSIDE if state.made.per_arm else INSIDE,
        "rewards_learnt": mind.learnt,
        "agent": mind.agent.name,
    }
    return xr.Dataset(values, coordinates, attrs)


def whose(state: State, unit: str) -> str:
    """A unit in words. Readings without a unit are one unit, the one without a name."""
    if unit:
        return f"unit {unit}"
    known = state.mind.channels
    if not any(known):
        return "the sensor"
    return "readings without a unit" if unit in known else "a new unit"


def _theta(state: State) -> dict[str, Any]:
    """Mean and deviation of theta; of features of each arm's own in both units, by arm and term."""
    theta = state.mind.theta()
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
    units, law = state.made.units, state.mind.bias(unit)
    if law is None:
        return None
    return units.bias + law[0] * units.scale, np.sqrt(law[1]) * units.scale


def _biases(state: State) -> Bias | None:
    """Of the only unit, or the mean of all; None: there is none."""
    known = list(state.mind.channels) or [""]
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


def _weights(mind: Mind, unit: str) -> dict[str, float]:
    """The probability of each hypothesis that an agent weighs, by what it says."""
    denoiser = mind.agent.weighs
    if denoiser is None:
        return {}
    weights = denoiser.weights(mind.setup.denoiser, mind.memory(unit).denoiser).reshape(-1)
    names = [
        ", ".join(f"{name} {value:g}" for name, value in one.items())
        for one in denoiser.labels(mind.setup.denoiser)
    ]
    return dict(zip(names, weights.tolist(), strict=True))


def expected(state: State, ask: Ask) -> "xr.Dataset":
    """Of every arm that might be chosen: its expected reward, an interval of `LEVEL`, and whether it is best.

    Expected over what is not known of the context and of theta, by `DRAWS` draws of both that are the same
    every time; `probability_best` is the share of draws in which an arm is the best.
    """
    import xarray as xr

    mind, features = state.mind, state.arms.features_of(ask.vectors)
    view = mind.consider(ask.unit, state.offer(ask), features).view
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
        {"level": LEVEL, "draws": DRAWS, "agent": mind.agent.name},
    )


def diagnosed(state: State, now: float) -> "xr.Dataset":
    """Whether the thing works: live/diagnostics.py, in the caller's units."""
    scale, arms = state.made.units.scale, list(state.arms.vectors) or [ANY]
    waits = [now - found.time for found in state.open.values() if not found.settled]
    named = diagnostics.Named(state.terms.context, arms)
    found = state.watch
    data = diagnostics.dataset(named, found.tallies, found.readings, bias=_biases(state), ages=waits)
    for name in ("rmse_noisy", "rmse_denoised"):
        data[name] = data[name] * scale
    return data.assign_attrs(notes=notes(state), agent=state.mind.agent.name)


def notes(state: State) -> list[str]:
    """What a user should know."""
    found = [state.made.note] if state.made.note else []
    readings, agent = state.watch.readings, state.mind.agent
    if readings is not None and not agent.takes_gaps and (readings.total[0] < readings.readings).any():
        lost = "Some readings were lost, and this agent takes the mean for them"
        found.append(f"{lost}: agents such as 'gaps', 'late' or 'adaptive' know what a gap is.")
    return found
