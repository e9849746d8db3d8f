"""What a run says in numbers: means over trials with standard errors, paired differences, and tails."""

import itertools
import json
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from unfog.lab import report_table, until_said
from unfog.lab import sweep as sweeps
from unfog.lab.dataset import Flat, flat
from unfog.maths.arrays import Array, Ints
from unfog.simulation.plan import quarters
from unfog.theory import regret as spread
from unfog.theory.regret import BAYES, PLAIN, REALISED, SPLIT, estimate

MEASURED = (REALISED, BAYES)  # regret by another yardstick
PARTS = (*SPLIT, *PLAIN[1:])


class Curve(NamedTuple):
    """An agent's mean cumulative regret and the half-width of its 95 % interval."""

    label: str
    rounds: Ints
    mean: Array
    half_width: Array


def summary(data: xr.Dataset, seconds: float | None = None) -> dict[str, Any]:
    """Final round, means over trials; every two agents compared on the same trials of the same setting.

    >>> import unfog
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=["unfog", "naive"], rounds=50, trials=20, seed=0)
    >>> found = unfog.summary(result)
    >>> round(found["agents"]["unfog"]["regret"], 1)
    4.4
    """
    return _summary(data, flat(data), seconds)


def _summary(data: xr.Dataset, found: Flat, seconds: float | None) -> dict[str, Any]:
    rows, pairs = dict[str, Any](), dict[str, Any]()
    for place, names in enumerate(_keys(found)):
        losses = {loss: values[place] for loss, values in found.losses.items()}
        rows |= {name: _one({n: x[i] for n, x in losses.items()}, found) for i, name in enumerate(names)}
        final = dict(zip(names, losses["regret"][:, :, -1], strict=True))
        pairs |= {f"{a} - {b}": _gap(final[a] - final[b]) for a, b in itertools.combinations(names, 2)}
    return {
        "experiment": data.attrs["experiment"],
        **({"note": data.attrs["note"]} if "note" in data.attrs else {}),
        "rounds": int(found.rounds[-1]),
        "trials": found.trials,
        **until_said.facts(data.attrs),
        "seed": json.loads(data.attrs["spec"])["run"]["seed"],
        "seconds": None if seconds is None else round(seconds, 3),
        "agents": rows,
        "pairs": pairs,
    }


def _keys(found: Flat) -> list[list[str]]:
    """What the agents are called, setting by setting."""
    return [[name + label for name in found.agents] for label in found.labels]


def _one(losses: dict[str, Array], found: Flat) -> dict[str, float | None]:
    """An agent in a setting, its losses (trials, rounds); one that the setting lacks is not a number."""
    final = {name: x[:, -1] for name, x in losses.items() if not np.isnan(x[0, -1])}
    mean, se = estimate(final["regret"])
    parts = {name: estimate(final[name]).mean for name in PARTS if name in final}
    measured = dict[str, float | None]()
    for name in (name for name in MEASURED if name in final):
        each = estimate(final[name])
        measured |= {name: each.mean, f"{name}_se": _number(each.se)}
    tails = {**spread.quantiles(final["regret"]), **_linear(losses["regret"], found.rounds)}
    return {"regret": mean, "se": _number(se), **parts, **measured, **tails}


def _linear(regret: Array, rounds: Ints) -> dict[str, float | None]:
    """The share of trials that grow linearly; null where a run is too short or, being old, lacks rounds."""
    ends = quarters(int(rounds[-1]))
    if ends is None or not np.isin(ends, rounds).all():
        return {"linear_share": None}
    return {
        "linear_share": spread.linear_share(*(regret[:, place] for place in np.searchsorted(rounds, ends)))
    }


def _gap(differences: Array) -> dict[str, float | None]:
    mean, se = estimate(differences)
    return {"mean": mean, "se": _number(se)}


def _number(value: float) -> float | None:
    """JSON has no NaN: the standard error of one trial is null."""
    return None if np.isnan(value) else value


def curves(data: xr.Dataset) -> list[Curve]:
    """Mean cumulative regret of every agent, in every setting, with its 95 % band; one trial has no band."""
    return drawn(flat(data))


def drawn(found: Flat) -> list[Curve]:
    """Likewise, of a run whose settings are on one axis already."""
    width = report_table.quantile(found.trials)
    lines = []
    for place, names in enumerate(_keys(found)):
        for agent, name in enumerate(names):
            rounds, mean, se = _curve(found, place, agent)
            lines.append(Curve(name, rounds, mean, width * se))
    return lines


def _curve(found: Flat, setting: int, agent: int) -> tuple[Ints, Array, Array]:
    """Rounds, means and standard errors: stored as such where trials are many, else from the trials."""
    if found.moments:
        mean, se = (found.moments[f"regret_{kind}"][setting, agent] for kind in ("mean", "se"))
        return found.curve, mean, se
    values, trials = found.losses["regret"][setting, agent], found.trials
    se = values.std(0, ddof=1) / np.sqrt(trials) if trials > 1 else np.zeros(values.shape[1])
    return found.rounds, values.mean(0), se


def table(data: xr.Dataset, seconds: float | None = None, *, parts: bool = False, tails: bool = False) -> str:
    """The summary for people, in 80 columns: final regret, and its paired difference from one reference.

    The reference is `oracle` where it plays, else the first agent, each time that of the same setting. With
    `parts` also what regret is made of and regret by other yardsticks, with `tails` how trials are spread.

    >>> import unfog
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=["unfog", "naive"], rounds=50, trials=20, seed=0)
    >>> print(unfog.table(result))  # doctest: +ELLIPSIS
    experiment: 20 trials, 50 rounds, seed 0
    agent     regret  minus unfog...
    unfog  4.4 ± 2.2            -...
    naive  8.0 ± 2.6   +3.6 ± 3.3...
    mean ... ± 95 % half-width...
    """
    found, sweep = flat(data), json.loads(data.attrs["spec"]).get("sweep", {})
    facts = _summary(data, found, seconds)
    return report_table.text(found, facts, sweeps.labels(sweep), seconds=seconds, parts=parts, tails=tails)
