"""What a run says in numbers: means over trials with standard errors, paired differences, and tails."""

import itertools
import json
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy.special import stdtrit

from unfog.lab import sweep_table, until_said
from unfog.lab.dataset import Flat, flat
from unfog.lab.terminal import align
from unfog.maths.arrays import Array, Ints
from unfog.simulate.grid import quarters
from unfog.theory import tails as spread
from unfog.theory.regret import BAYES, PLAIN, REALISED, SPLIT, estimate

MEASURED = (REALISED, BAYES)  # regret by another yardstick
PARTS = (*SPLIT, *PLAIN[1:])
TITLES = {
    REALISED: "realised",
    BAYES: "bayes",
    "regret_true_context": "true-context",
    "regret_plug_in": "plug-in",
    "linear_share": "linear",
}
REFERENCE = "oracle"  # differences are shown against it where it played
SPREAD = {**dict.fromkeys(spread.QUANTILES, 1), "linear_share": 2}  # with so many digits
LEGEND = "mean cumulative regret at the last round ± 95 % half-width; differences: paired"
SPREADS = (
    "q50, q99: quantiles over trials; linear: the share of trials whose regret in the\n"
    f"last quarter of the rounds is at least {spread.LINEAR} of that in the quarter before"
)


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
    width = _quantile(found.trials)
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


def _quantile(trials: int) -> float:
    """How many standard errors make half a 95 % interval: Student's t, since trials may be few."""
    return float(stdtrit(trials - 1, 0.975)) if trials > 1 else 0.0


def table(data: xr.Dataset, seconds: float | None = None, *, parts: bool = False, tails: bool = False) -> str:
    """The summary for people: final regret, by every yardstick, with 95 % intervals; paired differences.

    With `parts` what regret is made of and two further benchmarks, with `tails` how trials are spread.

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
    found = flat(data)
    facts, agents = _summary(data, found, seconds), found.agents
    shown = [loss for loss in (*MEASURED, *(PARTS if parts else ())) if loss in found.losses]
    titles, cells = _cells(found, facts, shown, list(SPREAD) if tails else [])
    took = "" if seconds is None else f", {seconds:.1f} s"
    note = f"{facts['trials']} trials, {facts['rounds']} rounds, seed {facts['seed']}{took}"
    said = [f"note: {facts['note']}"] if "note" in facts else []
    if found.settings[0]:
        lines = sweep_table.lines(found, titles, cells)
    else:
        lines = align([["agent", *titles], *([name, *row] for name, row in zip(agents, cells, strict=True))])
    head = [f"{facts['experiment']}: {note}", *until_said.found(facts), *said]
    below = [*until_said.ratios(facts, _quantile(facts["trials"])), LEGEND, *([SPREADS] * tails)]
    return "\n".join([*head, *lines, *below])


def _cells(
    found: Flat, facts: dict[str, Any], shown: list[str], spreads: list[str]
) -> tuple[list[str], list[list[str]]]:
    """The titles of the columns, and a row of cells for each agent of each setting."""
    width, cells = _quantile(found.trials), []
    against = found.agents.index(REFERENCE) if REFERENCE in found.agents else 0
    alone = bool(found.settings[0]) and len(found.agents) == 1  # there is nobody to be compared with
    titles = ["regret", *([] if alone else [f"minus {found.agents[against]}"])]
    for names in _keys(found):
        for name in names:
            row = facts["agents"][name]
            gap = [] if alone else [_paired(facts["pairs"], name, names[against], width)]
            losses = [_pm(row.get(loss), row.get(f"{loss}_se"), width) for loss in shown]
            tails = [_spread(row[x], SPREAD[x]) for x in spreads]
            cells.append([_pm(row["regret"], row["se"], width), *gap, *losses, *tails])
    return titles + [TITLES.get(name, name) for name in (*shown, *spreads)], cells


def _spread(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:z.{digits}f}"


def _paired(pairs: dict[str, Any], name: str, against: str, width: float) -> str:
    if name == against:
        return "-"
    flip = f"{name} - {against}" not in pairs
    pair = pairs[f"{against} - {name}" if flip else f"{name} - {against}"]
    return _pm(-pair["mean"] if flip else pair["mean"], pair["se"], width, "+")


def _pm(mean: float | None, se: float | None, width: float, sign: str = "") -> str:
    if mean is None:
        return "-"
    spread = "" if se is None else f" ± {width * se:.1f}"
    return f"{mean:{sign}z.1f}{spread}"
