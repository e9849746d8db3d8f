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


def summary(study: Study, measured: Measured | None, seconds: float) -> dict[str, Any]:
    """The results of a study as plain data, for programs."""
    r = study.spec.run
    panels = {name: getattr(study, name) for name in PANELS}
    return {
        "experiment": study.spec.name,
        "rounds": r.rounds,
        "trials": r.trials,
        "seed": r.seed,
        "seconds": round(seconds, 3),
        **{name: None if panel is None else _panel_facts(panel) for name, panel in panels.items()},
        "mismatch": None if measured is None else _mismatch_facts(measured),
    }


def _panel_facts(panel: Panel) -> dict[str, Any]:
    return {"axis": panel.axis, "agents": {growth.agent: _growth_facts(growth) for growth in panel.agents}}


def _growth_facts(growth: Growth) -> dict[str, Any]:
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
            kind: {**_bound_facts(bound), "exponent": growth.slopes[kind]}
            for kind, bound in growth.bounds.items()
        },
    }


def _bound_facts(bound: Bound) -> dict[str, Any]:
    return {
        "name": bound.name,
        "total": bound.total.tolist(),
        "parts": {part: values.tolist() for part, values in bound.parts.items()},
        "holds": bound.holds.tolist(),
        "broken": [{"asks": c.asks, "found": c.actual} for c in bound.broken],
        "escape": bound.escape,
    }


def _mismatch_facts(measured: Measured) -> dict[str, Any]:
    return {
        "trials": measured.trials,
        "rounds": measured.mismatch.rounds.tolist(),
        "sum": measured.mismatch.total.tolist(),
        "se": measured.mismatch.total_se.tolist(),
        "half_width": np.multiply(student_reach(measured.trials), measured.mismatch.total_se).tolist(),
        "ess": measured.mismatch.ess.tolist(),
        "limits": {version: limit.tolist() for version, limit in measured.limits.items()},
        "lemma_1": _bound_facts(measured.lemma),
    }


def table(facts: dict[str, Any]) -> str:
    """The results of a study as text, for people."""
    size = f"{counted(facts['trials'], 'trial')}, {counted(facts['rounds'], 'round')}"
    head = f"{size}, seed {facts['seed']}, {facts['seconds']:.1f} s"
    agents = facts["fixed"]["agents"]
    lines = [f"{facts['experiment']}: {head}", *align(_regret_rows(agents)), ""]
    for names in _group_by_theorem(agents):
        lines += [*align(_bound_rows({name: agents[name] for name in names})), ""]
    lines += [*_condition_lines(facts), *_caveat_lines(facts), "", *align(_exponent_rows(facts)), ""]
    if facts["mismatch"] is not None:
        lines += [*_mismatch_lines(facts["mismatch"], agents["alg1"]), ""]
    return "\n".join([*lines, LEGEND, files("figure", facts["figures"])])


def _regret_rows(agents: dict[str, Any]) -> list[list[str]]:
    rows = [["agent", "regret", "CB", "EE1", "EE2", "at random"]]
    for name, agent in agents.items():
        losses = [_plus_minus(*_last_point(agent["losses"][loss])) for loss in ("regret", "cb", "ee1", "ee2")]
        rows.append([name, *losses, f"<= {_mark_bound(agent['bounds'][AT_RANDOM])}"])
    return rows


def _last_point(loss: dict[str, Any]) -> tuple[float, float | None]:
    return loss["mean"][-1], None if loss["half_width"] is None else loss["half_width"][-1]


def _mark_bound(bound: dict[str, Any]) -> str:
    """A bound at the end, with a mark where its conditions do not hold."""
    return _format_short(bound["total"][-1]) + ("" if bound["holds"][-1] else " *")


def _group_by_theorem(agents: dict[str, Any]) -> list[list[str]]:
    """The names of agents in groups, one for each theorem: its parts are the columns of a table."""
    groups: dict[str, list[str]] = {}
    for name, agent in agents.items():
        groups.setdefault(agent["bounds"]["printed"]["name"], []).append(name)
    return list(groups.values())


def _bound_rows(agents: dict[str, Any]) -> list[list[str]]:
    """Each version of a theorem, with its parts and which of them is the largest."""
    rows = []
    for name, agent in agents.items():
        regret = agent["losses"]["regret"]["mean"][-1]
        for version in VERSIONS:
            bound = agent["bounds"][version]
            parts, total = {part: values[-1] for part, values in bound["parts"].items()}, bound["total"][-1]
            largest = max(parts, key=lambda part: parts[part])
            ratio_text = f"{total / regret:.3g} x" if regret > 0 else "-"
            share = f"{largest} {percent(parts[largest] / total)}"
            title = f"{name}: {bound['name']}, {version}"
            rows.append([title, _mark_bound(bound), ratio_text, *map(_format_short, parts.values()), share])
    return [["bound", "at the end", "over regret", *parts, "largest"], *rows]


def _condition_lines(facts: dict[str, Any]) -> list[str]:
    """A line for each condition that does not hold everywhere: the values found, the bounds affected."""
    broken: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for panel in PANELS:
        for agent in (facts[panel] or {"agents": {}})["agents"].values():
            for version, bound in agent["bounds"].items():
                who = version if version == bound["name"] else f"{bound['name']}, {version}"
                for condition in bound["broken"]:
                    details, names = broken.setdefault(condition["asks"], ({}, {}))
                    details[condition["found"]], names[who] = None, None
    if not broken:
        return ["every condition of every bound holds, at every point"]
    lines = [f"  {asks} (found: {'; '.join(f)}): {'; '.join(names)}" for asks, (f, names) in broken.items()]
    return ["conditions that do not hold (*):", *lines]


def _caveat_lines(facts: dict[str, Any]) -> list[str]:
    """How likely a round is to violate the one step of the proofs that needs bounded features."""
    worst: dict[tuple[str, str], float] = {}
    for panel in (facts[name] for name in PANELS if facts[name] is not None):
        for bound in (bound for agent in panel["agents"].values() for bound in agent["bounds"].values()):
            key = bound["name"], panel["axis"]
            worst[key] = max(bound["escape"], worst.get(key, 0.0))
    chances = [f"{name} over {axis}: {chance:.1g}" for (name, axis), chance in worst.items() if chance > 0]
    step = f"the elliptical potential is proved where |phi|^2 lambda/sigma^2 <= {LIMIT}"
    lines = [f"caveat: {step}; a round is beyond", f"  with probability at most: {'; '.join(chances)}"]
    return lines if chances else []


def _exponent_rows(facts: dict[str, Any]) -> list[list[str]]:
    rows = [["growth", "agent", "regret", "printed", "corrected", "at random", "conditions"]]
    for panel in PANELS:
        for name, agent in (facts[panel] or {"agents": {}})["agents"].items():
            fit, ends = agent["exponent"], agent["fitted"]
            span = f"{ends[0]:g} to {ends[-1]:g}" if ends else "nothing"
            prior = ", prior variance ~ 1/horizon" if panel == "tied" else ""
            growth = f"{facts[panel]['axis']}, {span}{prior}"
            exponent = "-" if fit is None else _plus_minus(fit["value"], fit["half_width"], 2)
            slopes = [agent["bounds"][kind]["exponent"] for kind in (*VERSIONS, AT_RANDOM)]
            by_version = (agent["bounds"][version]["holds"] for version in VERSIONS)
            holds = [all(flags) for flags in zip(*by_version, strict=True)]
            met_text = "hold" if all(holds) else f"at {sum(holds)} of {len(holds)}"
            rows.append(
                [growth, name, exponent, *("-" if s is None else f"{s:z.2f}" for s in slopes), met_text]
            )
    return rows


def _mismatch_lines(mismatch: dict[str, Any], agent: dict[str, Any]) -> list[str]:
    t, value, half = mismatch["rounds"][-1], mismatch["sum"][-1], mismatch["half_width"][-1]
    limits = "; ".join(
        f"{version} bound {_format_short(limit[-1])}" for version, limit in mismatch["limits"].items()
    )
    cb, lemma = agent["losses"]["cb"]["mean"][-1], mismatch["lemma_1"]["total"][-1]
    return [
        f"sum of D_t to round {t}: {_plus_minus(value, half, 2)}; {limits}",
        f"Lemma 1 with it: CB <= {_format_short(lemma)}, {lemma / cb:.3g} x the CB of alg1",
    ]


def _plus_minus(mean: float, half: float | None, least: int = 1) -> str:
    """A mean with as many digits as its interval allows."""
    if half is None:
        return _format_short(mean)
    digits = max(least, 3 if half < 0.0095 else 2 if half < 0.095 else 1)
    return f"{mean:z.{digits}f} ± {half:.{digits}f}"


def _format_short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:z.3g}"


def figure(study: Study) -> "Figure":
    """Draw the panels of a study side by side, each with its legend below."""
    panels = [panel for panel in (study.fixed, study.tied, study.swept) if panel is not None]
    height = 4.3 + 0.3 * len(study.fixed.agents)  # legends are below
    with new_figure(max(PAGE / 3 * len(panels), COLUMN), height) as chart:
        row = chart.subplots(1, len(panels), squeeze=False)[0]
        for axes, panel in zip(row, panels, strict=True):
            _draw_panel(axes, panel)
            title = f"over {AXES.get(panel.axis, panel.axis)},\nafter {study.spec.run.rounds:,} rounds"
            title_panel(axes, TITLES.get(panel.axis, title), 8)
        row[0].set_ylabel(SO_FAR)
        chart.get_layout_engine().set(wspace=0.04, w_pad=0.06)  # type: ignore[union-attr, call-arg]
        width = max(42 * len(panels), 60)  # letters
        add_title(chart, textwrap.fill(study.spec.title or study.spec.name, width))
        add_note(chart, "\n".join(textwrap.fill(line, width) for line in _note_lines(study, panels)))
    return chart


def _note_lines(study: Study, panels: list[Panel]) -> list[str]:
    """What the theory says, and what was averaged."""
    r = study.spec.run
    bounds = [bound for panel in panels for growth in panel.agents for bound in growth.bounds.values()]
    faint = [] if all(bound.holds.all() for bound in bounds) else ["faint: a bound's conditions do not hold"]
    bands = ["bands and ±: 95 % intervals; EE where it is beyond them"] if r.trials > 1 else []
    averaged = f"mean of {counted(r.trials, 'trial')}, seed {r.seed}"
    theorems = sorted({BOUNDED[growth.agent].theorem for growth in study.fixed.agents})
    return [*(THEORY[number] for number in theorems), "; ".join([averaged, *bands, *faint])]


def _draw_panel(axes: "Axes", panel: Panel) -> None:
    """Draw the bounds, then regret, then its estimation part."""
    axes.set(xscale="log", yscale="log", xlabel=AXES.get(panel.axis, panel.axis))
    symbol = SYMBOLS.get(panel.axis, "x")
    firsts = {BOUNDED[growth.agent].theorem: growth for growth in reversed(panel.agents)}
    for number, growth in sorted(firsts.items()):
        for version, dash, width in (("corrected", "-", 2.2), ("printed", DASHES[1], 1.0)):
            name = f"Theorem {number}, {version}: {_power_text(symbol, growth.slopes[version])}"
            look = {"color": _BOUND_COLOURS[version][number], "linestyle": dash, "linewidth": width}
            _draw_bound(axes, growth.points, growth.bounds[version], name, look)
    first = panel.agents[0]
    name = f"at random, at most: {_power_text(symbol, first.slopes[AT_RANDOM])}"
    look = {"color": _GREY, "linestyle": (0, (1, 1.5)), "linewidth": 1.3}
    _draw_bound(axes, first.points, first.bounds[AT_RANDOM], name, look)
    for index, growth in enumerate(panel.agents):
        _draw_regret(axes, growth, symbol, 1.2 if index else 2.6)
    if "ee" in first.losses:
        _draw_estimation(axes, first)
    _set_ticks(axes, panel)
    placement: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.45, -0.17)}
    axes.legend(fontsize=7, handlelength=2.4, handletextpad=0.5, labelspacing=0.35, **placement)


def _draw_bound(axes: "Axes", points: Array, bound: Bound, name: str, look: dict[str, Any]) -> None:
    """Draw a bound, faint where its conditions do not hold."""
    holds = np.asarray(bound.holds, bool)
    holds_somewhere = holds.any()
    axes.plot(points, bound.total, alpha=_FAINT, label=None if holds_somewhere else f"{name} (faint)", **look)
    if holds_somewhere:
        axes.plot(points, np.where(holds, bound.total, np.nan), label=name, **look)


def _draw_regret(axes: "Axes", growth: Growth, symbol: str, width: float) -> None:
    """Draw mean and band; the first line is broad, so that it shows under others that nearly coincide."""
    look, (mean, half) = looks([growth.agent])[growth.agent], growth.band()
    power = _power_text(symbol, *(growth.interval() or (None,)))
    line = look.line() | {"linewidth": width, "marker": look.mark, "markersize": 1.5 + width}
    axes.plot(growth.points, mean, label=f"{called(growth.agent)}: {power}", **line)
    if half is not None:
        low = np.maximum(mean - half, mean / 10)  # a logarithmic axis has no room for 0 or less
        axes.fill_between(growth.points, low, mean + half, color=look.colour, alpha=0.18, linewidth=0)


def _draw_estimation(axes: "Axes", growth: Growth) -> None:
    """Draw the cost of misjudged features where it is more than chance; CB is the rest of regret."""
    mean, half = growth.band("ee")
    size = np.where(np.abs(mean) > (0 if half is None else half), np.abs(mean), np.nan)
    if not np.isnan(size).all():
        visible_mean = mean[~np.isnan(size)]
        name = (
            "EE1 + EE2"
            if (visible_mean > 0).all()
            else "−(EE1 + EE2)"
            if (visible_mean < 0).all()
            else "|EE1 + EE2|"
        )
        look: dict[str, Any] = {"color": "0.25", "linestyle": DASHES[4], "linewidth": 0.9}
        axes.plot(growth.points, size, label=f"{name}, {called(growth.agent)}", **look)


def _power_text(symbol: str, value: float | None, half: float | None = None) -> str:
    """A power in a legend, with as many digits as its interval has."""
    if value is None:
        return "no fit"
    digits = 3 if half is not None and half < 0.0095 else 2
    spread = "" if half is None else f" ± {half:.{digits}f}"
    return f"${symbol}^{{{value:z.{digits}f}}}${spread}"


def _set_ticks(axes: "Axes", panel: Panel) -> None:
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
