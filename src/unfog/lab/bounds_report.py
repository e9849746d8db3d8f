"""What a study of the bounds says in numbers, for programs and for people."""

from typing import Any

import numpy as np

from unfog.lab.bounds import Growth, Panel, Study, quantile
from unfog.lab.bounds_case import AT_RANDOM, Measured
from unfog.lab.terminal import align, files
from unfog.theory.bounds import LIMIT, Bound
from unfog.theory.information import VERSIONS

PANELS = ("fixed", "tied", "swept")
LEGEND = """\
regret at the last round, means ± 95 % half-widths; CB: learning theta; EE1, EE2: misjudged features
at random: what choosing at random cannot exceed; growth: the exponent of a power law, ± 95 % half-width"""


def summary(found: Study, told: Measured | None, seconds: float) -> dict[str, Any]:
    """The numbers, for programs."""
    r = found.spec.run
    panels = {name: getattr(found, name) for name in PANELS}
    return {
        "experiment": found.spec.name,
        "rounds": r.rounds,
        "trials": r.trials,
        "seed": r.seed,
        "seconds": round(seconds, 3),
        **{name: None if panel is None else _panel(panel) for name, panel in panels.items()},
        "mismatch": None if told is None else _mismatch(told),
    }


def _panel(panel: Panel) -> dict[str, Any]:
    return {"axis": panel.axis, "agents": {growth.agent: _growth(growth) for growth in panel.agents}}


def _growth(growth: Growth) -> dict[str, Any]:
    bands = {loss: growth.band(loss) for loss in growth.losses}
    fit, half = growth.interval() or (None, None)
    return {
        "points": growth.points.tolist(),
        "fitted": growth.points[growth.fitted].tolist(),
        "losses": {
            loss: {"mean": mean.tolist(), "half_width": None if wide is None else wide.tolist()}
            for loss, (mean, wide) in bands.items()
        },
        "exponent": None if fit is None else {"value": fit, "half_width": half},
        "bounds": {
            kind: {**_bound(bound), "exponent": growth.slopes[kind]} for kind, bound in growth.bounds.items()
        },
    }


def _bound(bound: Bound) -> dict[str, Any]:
    return {
        "name": bound.name,
        "total": bound.total.tolist(),
        "parts": {part: values.tolist() for part, values in bound.parts.items()},
        "holds": bound.holds.tolist(),
        "broken": [{"asks": c.asks, "found": c.found} for c in bound.broken],
        "escape": bound.escape,
    }


def _mismatch(told: Measured) -> dict[str, Any]:
    return {
        "trials": told.trials,
        "rounds": told.found.rounds.tolist(),
        "sum": told.found.total.tolist(),
        "se": told.found.total_se.tolist(),
        "half_width": np.multiply(quantile(told.trials), told.found.total_se).tolist(),
        "ess": told.found.ess.tolist(),
        "limits": {version: limit.tolist() for version, limit in told.limits.items()},
        "lemma_1": _bound(told.lemma),
    }


def table(facts: dict[str, Any]) -> str:
    """The numbers, for people."""
    size = f"{_counted(facts['trials'], 'trial')}, {_counted(facts['rounds'], 'round')}"
    head = f"{size}, seed {facts['seed']}, {facts['seconds']:.1f} s"
    agents = facts["fixed"]["agents"]
    lines = [f"{facts['experiment']}: {head}", *align(_regrets(agents)), ""]
    for names in _by_theorem(agents):
        lines += [*align(_bounds({name: agents[name] for name in names})), ""]
    lines += [*_conditions(facts), *_caveat(facts), "", *align(_exponents(facts)), ""]
    if facts["mismatch"] is not None:
        lines += [*_mismatch_lines(facts["mismatch"], agents["alg1"]), ""]
    return "\n".join([*lines, LEGEND, files("figure", facts["figures"])])


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s'[: number != 1]}"


def _regrets(agents: dict[str, Any]) -> list[list[str]]:
    rows = [["agent", "regret", "CB", "EE1", "EE2", "at random"]]
    for name, one in agents.items():
        losses = [_pm(*_last(one["losses"][loss])) for loss in ("regret", "cb", "ee1", "ee2")]
        rows.append([name, *losses, f"<= {_marked(one['bounds'][AT_RANDOM])}"])
    return rows


def _last(loss: dict[str, Any]) -> tuple[float, float | None]:
    return loss["mean"][-1], None if loss["half_width"] is None else loss["half_width"][-1]


def _marked(bound: dict[str, Any]) -> str:
    """A bound at the end, with a mark where its conditions do not hold."""
    return _short(bound["total"][-1]) + ("" if bound["holds"][-1] else " *")


def _by_theorem(agents: dict[str, Any]) -> list[list[str]]:
    """The agents, those of one theorem together: its parts are the columns of one table."""
    groups: dict[str, list[str]] = {}
    for name, one in agents.items():
        groups.setdefault(one["bounds"]["printed"]["name"], []).append(name)
    return list(groups.values())


def _bounds(agents: dict[str, Any]) -> list[list[str]]:
    """Each version of a theorem, with its parts and which of them is the largest."""
    rows = []
    for name, one in agents.items():
        regret = one["losses"]["regret"]["mean"][-1]
        for version in VERSIONS:
            bound = one["bounds"][version]
            parts, total = {part: values[-1] for part, values in bound["parts"].items()}, bound["total"][-1]
            largest = max(parts, key=lambda part: parts[part])
            times = f"{total / regret:.3g} x" if regret > 0 else "-"
            share = f"{largest} {parts[largest] / total:.0%}".replace("%", " %")
            called = f"{name}: {bound['name']}, {version}"
            rows.append([called, _marked(bound), times, *map(_short, parts.values()), share])
    return [["bound", "at the end", "over regret", *parts, "largest"], *rows]


def _conditions(facts: dict[str, Any]) -> list[str]:
    """Every condition that does not hold somewhere, once, with what was found and for whom."""
    said: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for panel in PANELS:
        for one in (facts[panel] or {"agents": {}})["agents"].values():
            for kind, bound in one["bounds"].items():
                who = kind if kind == bound["name"] else f"{bound['name']}, {kind}"
                for condition in bound["broken"]:
                    found, names = said.setdefault(condition["asks"], ({}, {}))
                    found[condition["found"]], names[who] = None, None
    if not said:
        return ["every condition of every bound holds, at every point"]
    lines = [f"  {asks} (found: {'; '.join(f)}): {'; '.join(names)}" for asks, (f, names) in said.items()]
    return ["conditions that do not hold (*):", *lines]


def _caveat(facts: dict[str, Any]) -> list[str]:
    """How likely a round is to be beyond the one step of the proofs that asks for bounded features."""
    worst: dict[tuple[str, str], float] = {}
    for panel in (facts[name] for name in PANELS if facts[name] is not None):
        for bound in (bound for one in panel["agents"].values() for bound in one["bounds"].values()):
            key = bound["name"], panel["axis"]
            worst[key] = max(bound["escape"], worst.get(key, 0.0))
    told = [f"{name} over {axis}: {chance:.1g}" for (name, axis), chance in worst.items() if chance > 0]
    step = f"the elliptical potential is proved where |phi|^2 lambda/sigma^2 <= {LIMIT}"
    said = [f"caveat: {step}; a round is beyond", f"  with probability at most: {'; '.join(told)}"]
    return said if told else []


def _exponents(facts: dict[str, Any]) -> list[list[str]]:
    rows = [["growth", "agent", "regret", "printed", "corrected", "at random", "conditions"]]
    for panel in PANELS:
        for name, one in (facts[panel] or {"agents": {}})["agents"].items():
            fit, ends = one["exponent"], one["fitted"]
            span = f"{ends[0]:g} to {ends[-1]:g}" if ends else "nothing"
            prior = ", prior variance ~ 1/horizon" if panel == "tied" else ""
            what = f"{facts[panel]['axis']}, {span}{prior}"
            own = "-" if fit is None else _pm(fit["value"], fit["half_width"], 2)
            slopes = [one["bounds"][kind]["exponent"] for kind in (*VERSIONS, AT_RANDOM)]
            each = (one["bounds"][version]["holds"] for version in VERSIONS)
            holds = [all(both) for both in zip(*each, strict=True)]
            met = "hold" if all(holds) else f"at {sum(holds)} of {len(holds)}"
            rows.append([what, name, own, *("-" if s is None else f"{s:z.2f}" for s in slopes), met])
    return rows


def _mismatch_lines(told: dict[str, Any], one: dict[str, Any]) -> list[str]:
    t, value, half = told["rounds"][-1], told["sum"][-1], told["half_width"][-1]
    limits = "; ".join(f"{version} bound {_short(limit[-1])}" for version, limit in told["limits"].items())
    cb, lemma = one["losses"]["cb"]["mean"][-1], told["lemma_1"]["total"][-1]
    return [
        f"sum of D_t to round {t}: {_pm(value, half, 2)}; {limits}",
        f"Lemma 1 with it: CB <= {_short(lemma)}, {lemma / cb:.3g} x the CB of alg1",
    ]


def _pm(mean: float, half: float | None, least: int = 1) -> str:
    """A mean with the digits that its interval leaves it."""
    if half is None:
        return _short(mean)
    digits = max(least, 3 if half < 0.0095 else 2 if half < 0.095 else 1)
    return f"{mean:z.{digits}f} ± {half:.{digits}f}"


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:z.3g}"
