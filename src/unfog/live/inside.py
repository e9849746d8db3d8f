"""A look inside a live problem: what is believed of the channel and of theta, and what of each arm.

Data sets with names (xarray, of the extra `lab`), in the caller's units.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from unfog.agents.parts import KnowsBias, Weighs
from unfog.live import diagnostics
from unfog.live.asking import Ask
from unfog.live.mind import Mind
from unfog.live.state import State
from unfog.live.watch import ANY
from unfog.maths.arrays import Array
from unfog.maths.logistic import sigmoid
from unfog.maths.streams import generator

if TYPE_CHECKING:
    import xarray as xr

DRAWS = 2000  # of theta and the context, for what is said of an arm
LEVEL = 0.9


def belief(state: State, unit: str) -> "xr.Dataset":
    """The bias of a unit by name, theta, and the weights of hypotheses, where the agent has any."""
    import xarray as xr

    mind, names = state.mind, list(state.terms.context)
    values: dict[str, Any] = {}
    known = bias(state, unit)
    if known is not None:
        values |= {"bias": ("coordinate", known[0]), "bias_sd": ("coordinate", known[1])}
    theta = mind.theta()
    mean, sd = theta.centre.reshape(-1), np.sqrt(_variances(theta))
    coordinates: dict[str, Any] = {"coordinate": names}
    if state.made.per_arm:
        coordinates |= {"arm": list(state.arms.vectors), "term": ["intercept", *names]}
        shape, axes = (len(state.arms.vectors), -1), ("arm", "term")
        values |= {"theta": (axes, mean.reshape(shape)), "theta_sd": (axes, sd.reshape(shape))}
    else:
        values |= {"theta": ("feature", mean), "theta_sd": ("feature", sd)}
    hypotheses = _weights(mind, unit)
    if hypotheses:
        coordinates["hypothesis"] = list(hypotheses)
        values["weight"] = ("hypothesis", list(hypotheses.values()))
    attrs = {
        "unit": unit,
        "units": len(mind.channels),
        "rewards_learnt": mind.learnt,
        "agent": mind.agent.name,
    }
    return xr.Dataset(values, coordinates, attrs)


def _variances(theta: Any) -> Array:
    """The variance of every coordinate of theta, (m,)."""
    root = theta.root
    found: Array = (root * root).sum(-1).reshape(-1)
    return found


def bias(state: State, unit: str) -> tuple[Array, Array] | None:
    """Mean and deviation of a unit's bias, (d,) each, in the caller's units; None: there is none."""
    mind, units = state.mind, state.made.units
    if not isinstance(mind.agent.denoiser, KnowsBias):
        return None
    mean, cov = mind.agent.denoiser.bias(mind.setup.denoiser, mind.memory(unit).denoiser)
    d = len(state.terms.context)
    sd = np.sqrt(np.diagonal(cov, axis1=-2, axis2=-1))
    scaled = (np.broadcast_to(x, (1, d))[0] * units.scale for x in (mean, sd))
    told, spread = scaled
    return units.bias + told, spread


def _weights(mind: Mind, unit: str) -> dict[str, float]:
    """The probability of each hypothesis that an agent weighs, by what it says."""
    denoiser = mind.agent.denoiser
    if not isinstance(denoiser, Weighs):
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
    best = np.bincount(scores.argmax(-1), minlength=len(choice)) / DRAWS
    of_arms = {"mean": paid.mean(0), "low": low, "high": high, "probability_best": best}
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
    unit = next(iter(state.mind.channels), "")
    found = state.watch
    data = diagnostics.dataset(named, found.tallies, found.readings, bias=bias(state, unit), ages=waits)
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
