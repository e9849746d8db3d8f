"""A study of the bounds in numbers, for programs and for people, and as a figure.

The figure has a panel for each way to look at regret and its bounds (paper/bounds.py), on log-log axes.
"""

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from unfog.lab.labels import SO_FAR, called, looks
from unfog.lab.report import student_reach
from unfog.lab.tables import align, counted, files, percent
from unfog.maths.arrays import Array
from unfog.paper.bounds import AT_RANDOM, BOUNDED, Growth, Measured, Panel, Study
from unfog.plotting import COLUMN, DASHES, PAGE, add_note, add_title, new_figure, title_panel
from unfog.theory.bounds import LIMIT, Bound
from unfog.theory.information import VERSIONS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = ("fixed", "tied", "swept")
LEGEND = """\
regret at the last round, means ± 95 % half-widths; CB: learning theta; EE1, EE2: misjudged features
at random: what choosing at random cannot exceed; growth: the exponent of a power law, ± 95 % half-width"""

THEORY = {
    1: "Theorem 1 says O(d √T), for a prior that narrows like 1/T: λ/σ² ≤ d/T",
    2: "Theorem 2 is said to be O(√(m T log T)), for λ/σ² ≤ 1; its estimation part grows like √T log T",
}
SYMBOLS = {"round": "t", "horizon": "T", "dim": "d", "actions": "K"}
AXES = {
    "round": "round t",
    "horizon": "rounds played: horizon T",
    "dim": "context dimension d",
    "actions": "number of arms K",
}
TITLES = {
    "round": "over rounds, one prior;\nfits: t ≥ T/10",
    "horizon": "over horizons,\nprior variance ∝ 1/T",
}
_BOUND_COLOURS = {"corrected": {1: "#009E73", 2: "#CC79A7"}, "printed": {1: "#003D2C", 2: "#5A2443"}}
_GREY = "0.45"
_FAINT = 0.3  # a bound where its conditions do not hold


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
        "half_width": np.multiply(student_reach(told.trials), told.found.total_se).tolist(),
        "ess": told.found.ess.tolist(),
        "limits": {version: limit.tolist() for version, limit in told.limits.items()},
        "lemma_1": _bound(told.lemma),
    }


def table(facts: dict[str, Any]) -> str:
    """The numbers, for people."""
    size = f"{counted(facts['trials'], 'trial')}, {counted(facts['rounds'], 'round')}"
    head = f"{size}, seed {facts['seed']}, {facts['seconds']:.1f} s"
    agents = facts["fixed"]["agents"]
    lines = [f"{facts['experiment']}: {head}", *align(_regrets(agents)), ""]
    for names in _by_theorem(agents):
        lines += [*align(_bounds({name: agents[name] for name in names})), ""]
    lines += [*_conditions(facts), *_caveat(facts), "", *align(_exponents(facts)), ""]
    if facts["mismatch"] is not None:
        lines += [*_mismatch_lines(facts["mismatch"], agents["alg1"]), ""]
    return "\n".join([*lines, LEGEND, files("figure", facts["figures"])])


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
            share = f"{largest} {percent(parts[largest] / total)}"
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


def figure(found: Study) -> "Figure":
    """The panels that there are, side by side, each with its legend below."""
    panels = [panel for panel in (found.fixed, found.tied, found.swept) if panel is not None]
    height = 4.3 + 0.3 * len(found.fixed.agents)  # legends are below
    with new_figure(max(PAGE / 3 * len(panels), COLUMN), height) as chart:
        row = chart.subplots(1, len(panels), squeeze=False)[0]
        for axes, panel in zip(row, panels, strict=True):
            _draw(axes, panel)
            title = f"over {AXES.get(panel.axis, panel.axis)},\nafter {found.spec.run.rounds:,} rounds"
            title_panel(axes, TITLES.get(panel.axis, title), 8)
        row[0].set_ylabel(SO_FAR)
        chart.get_layout_engine().set(wspace=0.04, w_pad=0.06)  # type: ignore[union-attr, call-arg]
        width = max(42 * len(panels), 60)  # letters
        add_title(chart, textwrap.fill(found.spec.title or found.spec.name, width))
        add_note(chart, "\n".join(textwrap.fill(line, width) for line in _notes(found, panels)))
    return chart


def _notes(found: Study, panels: list[Panel]) -> list[str]:
    """What the theory says, and what was averaged."""
    r = found.spec.run
    bounds = [bound for panel in panels for growth in panel.agents for bound in growth.bounds.values()]
    faint = [] if all(bound.holds.all() for bound in bounds) else ["faint: a bound's conditions do not hold"]
    bands = ["bands and ±: 95 % intervals; EE where it is beyond them"] if r.trials > 1 else []
    averaged = f"mean of {counted(r.trials, 'trial')}, seed {r.seed}"
    theorems = sorted({BOUNDED[growth.agent].theorem for growth in found.fixed.agents})
    return [*(THEORY[number] for number in theorems), "; ".join([averaged, *bands, *faint])]


def _draw(axes: "Axes", panel: Panel) -> None:
    """Bounds from the top down, then regret, then what it splits into."""
    axes.set(xscale="log", yscale="log", xlabel=AXES.get(panel.axis, panel.axis))
    symbol = SYMBOLS.get(panel.axis, "x")
    firsts = {BOUNDED[growth.agent].theorem: growth for growth in reversed(panel.agents)}
    for number, growth in sorted(firsts.items()):
        for version, dash, width in (("corrected", "-", 2.2), ("printed", DASHES[1], 1.0)):
            name = f"Theorem {number}, {version}: {_power(symbol, growth.slopes[version])}"
            look = {"color": _BOUND_COLOURS[version][number], "linestyle": dash, "linewidth": width}
            _draw_bound(axes, growth.points, growth.bounds[version], name, look)
    first = panel.agents[0]
    name = f"at random, at most: {_power(symbol, first.slopes[AT_RANDOM])}"
    look = {"color": _GREY, "linestyle": (0, (1, 1.5)), "linewidth": 1.3}
    _draw_bound(axes, first.points, first.bounds[AT_RANDOM], name, look)
    for index, growth in enumerate(panel.agents):
        _regret(axes, growth, symbol, 1.2 if index else 2.6)
    if "ee" in first.losses:
        _estimation(axes, first)
    _ticks(axes, panel)
    below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.45, -0.17)}
    axes.legend(fontsize=7, handlelength=2.4, handletextpad=0.5, labelspacing=0.35, **below)


def _draw_bound(axes: "Axes", points: Array, bound: Bound, name: str, look: dict[str, Any]) -> None:
    """Full where its conditions hold, faint all along."""
    holds = np.asarray(bound.holds, bool)
    shown = holds.any()
    axes.plot(points, bound.total, alpha=_FAINT, label=None if shown else f"{name} (faint)", **look)
    if shown:
        axes.plot(points, np.where(holds, bound.total, np.nan), label=name, **look)


def _regret(axes: "Axes", growth: Growth, symbol: str, width: float) -> None:
    """Mean and band; agents often do alike, so that the first line is broad and shows under the others."""
    look, (mean, half) = looks([growth.agent])[growth.agent], growth.band()
    power = _power(symbol, *(growth.interval() or (None,)))
    line = look.line() | {"linewidth": width, "marker": look.mark, "markersize": 1.5 + width}
    axes.plot(growth.points, mean, label=f"{called(growth.agent)}: {power}", **line)
    if half is not None:
        low = np.maximum(mean - half, mean / 10)  # a logarithm has no place for less than nothing
        axes.fill_between(growth.points, low, mean + half, color=look.colour, alpha=0.18, linewidth=0)


def _estimation(axes: "Axes", growth: Growth) -> None:
    """What misjudged features cost in all, where it is more than chance; CB is the rest of regret."""
    mean, half = growth.band("ee")
    size = np.where(np.abs(mean) > (0 if half is None else half), np.abs(mean), np.nan)
    if not np.isnan(size).all():
        shown = mean[~np.isnan(size)]
        name = "EE1 + EE2" if (shown > 0).all() else "−(EE1 + EE2)" if (shown < 0).all() else "|EE1 + EE2|"
        look: dict[str, Any] = {"color": "0.25", "linestyle": DASHES[4], "linewidth": 0.9}
        axes.plot(growth.points, size, label=f"{name}, {called(growth.agent)}", **look)


def _power(symbol: str, value: float | None, half: float | None = None) -> str:
    """A power in a legend, with as many digits as its interval has."""
    if value is None:
        return "no fit"
    digits = 3 if half is not None and half < 0.0095 else 2
    spread = "" if half is None else f" ± {half:.{digits}f}"
    return f"${symbol}^{{{value:z.{digits}f}}}${spread}"


def _ticks(axes: "Axes", panel: Panel) -> None:
    """Values of a field, and horizons, are few: each has its tick. Rounds and regret have decades."""
    from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator

    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_minor_formatter(NullFormatter())
    if panel.axis == "round":
        axes.xaxis.set_major_locator(LogLocator())
        return
    points = panel.agents[0].points
    axes.xaxis.set_major_locator(FixedLocator(points.tolist()))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:g}")
