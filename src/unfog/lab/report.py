"""A run in numbers and as a table: means over trials with standard errors, paired differences, and tails.

    agent       regret  minus oracle
    alg1    24.4 ± 6.0    +0.1 ± 1.4
    oracle  24.3 ± 6.4             -

The reference is `oracle` where it plays, else the first agent, and always that of the same setting: a row of
a sweep is never compared with a row of another setting. The rows of a sweep are grouped by setting, and a
value is written where it changes:

    actions  noise_cov  agent         regret  minus oracle
    10       0.5        alg1    140.1 ± 10.2    -5.1 ± 2.2
                        oracle  145.2 ± 11.0             -
             1.0        alg1    ...

Tables fit in 80 columns. Below them stands what their columns mean.
"""

import itertools
import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unfog.evaluation import intervals
from unfog.lab import labels, search
from unfog.lab import sweep as sweeps
from unfog.lab.results import Flat, flat
from unfog.lab.tables import align, columns, counted, wrap
from unfog.maths.arrays import Array, Ints
from unfog.maths.statistics import estimate, standard_error
from unfog.simulation.plan import quarters
from unfog.theory import regret as spread
from unfog.theory.regret import BAYES, LINEAR, PLAIN, REALISED, SPLIT
from unfog.validation import check_keywords

if TYPE_CHECKING:
    import xarray as xr

LEGEND = "mean total regret ± 95 % half-width; differences: same trials, same setting"
REGRET = "mean total regret ± 95 % half-width"  # the legend without comparisons
SPREADS = (
    "q50, q99: quantiles over trials; linear: the share of trials whose regret in the\n"
    f"last quarter of the rounds is at least {LINEAR} of that in the quarter before"
)
# The three add up to regret.
PARTS_NOTE = "cb: cost of not knowing theta; ee1, ee2: of wrong contexts, < 0 where these help"
NO_PARTS = "the parts of regret were not kept: this run has decompose = false"
OTHERS = {
    REALISED: "realised: at the contexts drawn",
    BAYES: "bayes: against the best rule for this sample of contexts",
    PLAIN[1]: "true-context: against who sees it",
    PLAIN[2]: "plug-in: against who trusts the noisy one",
}

TITLES = {
    REALISED: "realised",
    BAYES: "bayes",
    PLAIN[1]: "true-context",
    PLAIN[2]: "plug-in",
    "linear_share": "linear",
}
LOSSES = (*SPLIT, REALISED, BAYES, *PLAIN[1:])  # in this order
SPREAD = {**dict.fromkeys(spread.QUANTILES, 1), "linear_share": 2}  # with so many digits
MEASURED = (REALISED, BAYES)  # regret by another yardstick
PARTS = (*SPLIT, *PLAIN[1:])
REFERENCE = "oracle"
UNNAMED = "minus reference"  # for a name that is too long to stand above a column
LONGEST = 28  # letters above a column
WIDEST = 40  # letters of fields and agent beside the numbers; where they are more, settings are numbered


class Curve(NamedTuple):
    """An agent's mean cumulative regret and the half-width of its 95 % interval."""

    label: str
    rounds: Ints
    mean: Array
    half_width: Array


class Rows(NamedTuple):
    """The agent of each row and the one it is compared with, both by their keys in the summary."""

    names: list[str]
    compared_with: list[str]
    reference: str  # what it is called in every setting; empty where it differs

    @property
    def compared(self) -> bool:
        """Whether any agent is compared with another."""
        return self.names != self.compared_with

    @property
    def title(self) -> str:
        """The title of the column of differences."""
        title = f"minus {self.reference}"
        return title if self.reference and len(title) <= LONGEST else UNNAMED


@check_keywords
def summary(data: "xr.Dataset", seconds: float | None = None) -> dict[str, Any]:
    """Final round, means over trials; every two agents compared on the same trials of the same setting.

    >>> import unfog
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=["unfog", "naive"], rounds=50, trials=20, seed=0)
    >>> found = unfog.summary(result)
    >>> round(found["agents"]["unfog"]["regret"], 1)
    4.4
    """
    return _summarise(data, flat(data), seconds)


def _summarise(data: "xr.Dataset", flat_run: Flat, seconds: float | None) -> dict[str, Any]:
    rows, pairs = dict[str, Any](), dict[str, Any]()
    for setting, names in enumerate(_agent_keys(flat_run)):
        losses = {loss: values[setting] for loss, values in flat_run.losses.items()}
        rows |= {
            name: _summarise_agent({n: x[i] for n, x in losses.items()}, flat_run)
            for i, name in enumerate(names)
        }
        final = dict(zip(names, losses["regret"][:, :, -1], strict=True))
        pairs |= {
            f"{a} - {b}": _estimate_gap(final[a] - final[b]) for a, b in itertools.combinations(names, 2)
        }
    return {
        "experiment": data.attrs["experiment"],
        **({"note": data.attrs["note"]} if "note" in data.attrs else {}),
        "rounds": int(flat_run.rounds[-1]),
        "trials": flat_run.trials,
        **search.facts(data.attrs),
        "seed": json.loads(data.attrs["spec"])["run"]["seed"],
        "seconds": None if seconds is None else round(seconds, 3),
        "agents": rows,
        "pairs": pairs,
    }


def _agent_keys(flat_run: Flat) -> list[list[str]]:
    """The keys of the agents in the summary, setting by setting."""
    return [[name + label for name in flat_run.agents] for label in flat_run.labels]


def _summarise_agent(losses: dict[str, Array], flat_run: Flat) -> dict[str, float | None]:
    """The summary of an agent in a setting; its losses are (trials, rounds), NaN where there is none."""
    final = {name: x[:, -1] for name, x in losses.items() if not np.isnan(x[0, -1])}
    mean, se = estimate(final["regret"])
    parts = {name: estimate(final[name]).mean for name in PARTS if name in final}
    yardsticks = dict[str, float | None]()
    for name in (name for name in MEASURED if name in final):
        estimated = estimate(final[name])
        yardsticks |= {name: estimated.mean, f"{name}_se": _null_if_nan(estimated.se)}
    tails = {**spread.quantiles(final["regret"]), **_linear_share(losses["regret"], flat_run.rounds)}
    return {"regret": mean, "se": _null_if_nan(se), **parts, **yardsticks, **tails}


def _linear_share(regret: Array, rounds: Ints) -> dict[str, float | None]:
    """The share of trials with linear growth; null if the run is too short or stores too few rounds."""
    ends = quarters(int(rounds[-1]))
    if ends is None or not np.isin(ends, rounds).all():
        return {"linear_share": None}
    return {"linear_share": spread.linear_share(*(regret[:, i] for i in np.searchsorted(rounds, ends)))}


def _estimate_gap(differences: Array) -> dict[str, float | None]:
    mean, se = estimate(differences)
    return {"mean": mean, "se": _null_if_nan(se)}


def _null_if_nan(value: float) -> float | None:
    """A number for JSON, which has no NaN: the standard error of one trial becomes null."""
    return None if np.isnan(value) else value


def curves(data: "xr.Dataset") -> list[Curve]:
    """Mean cumulative regret of every agent, in every setting, with its 95 % band; one trial has no band."""
    return drawn(flat(data))


def drawn(flat_run: Flat) -> list[Curve]:
    """The curves of a run whose settings are on one axis already."""
    width = student_reach(flat_run.trials)
    lines = []
    for setting, names in enumerate(_agent_keys(flat_run)):
        for agent, name in enumerate(names):
            rounds, mean, se = _read_curve(flat_run, setting, agent)
            lines.append(Curve(name, rounds, mean, width * se))
    return lines


def _read_curve(flat_run: Flat, setting: int, agent: int) -> tuple[Ints, Array, Array]:
    """Rounds, means and standard errors: stored as such where trials are many, else from the trials."""
    if flat_run.moments:
        mean, se = (flat_run.moments[f"regret_{kind}"][setting, agent] for kind in ("mean", "se"))
        return flat_run.curve, mean, se
    values = flat_run.losses["regret"][setting, agent]
    se = standard_error(values) if flat_run.trials > 1 else np.zeros(values.shape[1])
    return flat_run.rounds, values.mean(0), se


def student_reach(trials: int) -> float:
    """Standard errors in half a 95 % interval, by Student's t since trials may be few; 0 for one trial."""
    return intervals.student_reach(trials - 1) if trials > 1 else 0.0


@check_keywords
def table(
    data: "xr.Dataset", seconds: float | None = None, *, parts: bool = False, tails: bool = False
) -> str:
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
    flat_run = flat(data)
    return text(flat_run, _summarise(data, flat_run, seconds), seconds=seconds, parts=parts, tails=tails)


def text(flat_run: Flat, facts: dict[str, Any], *, seconds: float | None, parts: bool, tails: bool) -> str:
    """The table of a run, from its summary."""
    swept = bool(flat_run.settings[0])
    rows = _pair_rows(flat_run)
    losses = [loss for loss in LOSSES if parts and loss in flat_run.losses]
    spreads = [*SPREAD] if tails else []
    cells = _format_cells(facts, rows, losses, spreads, student_reach(flat_run.trials))
    titles = ["regret", *([rows.title] if rows.compared else [])]
    titles += [TITLES.get(name, name) for name in (*losses, *spreads)]
    body = (
        sweep_lines(flat_run, titles, cells) if swept else [columns("agent", flat_run.agents, titles, cells)]
    )
    ratios = search.ratios(facts, student_reach(flat_run.trials))
    reference = rows.reference if rows.compared and rows.title == UNNAMED else ""
    footnotes = notes_below(rows.compared, reference, losses if parts else None, tails)
    return "\n".join([*_header_lines(facts, seconds), *body, *ratios, *footnotes])


def _header_lines(facts: dict[str, Any], seconds: float | None) -> list[str]:
    """The lines above a table."""
    duration = "" if seconds is None else f", {seconds:.1f} s"
    size = f"{facts['trials']} trials, {facts['rounds']} rounds, seed {facts['seed']}{duration}"
    note = wrap(f"note: {facts['note']}", hyphens=True) if "note" in facts else []
    return [*wrap(f"{facts['experiment']}: {size}", hyphens=True), *search.describe_search(facts), *note]


def _pair_rows(flat_run: Flat) -> Rows:
    """The rows of all settings; each is compared with the oracle of its setting, or its first agent."""
    pairs = [(name, label) for label in flat_run.labels for name in flat_run.agents]
    first = {label: name for name, label in reversed(pairs)}
    reference_of = {
        label: REFERENCE if (REFERENCE, label) in pairs else name for label, name in first.items()
    }
    references = {*reference_of.values()}
    names = [name + label for name, label in pairs]
    return Rows(
        names,
        [reference_of[label] + label for _, label in pairs],
        references.pop() if len(references) == 1 else "",
    )


def _format_cells(
    facts: dict[str, Any], rows: Rows, losses: Sequence[str], spreads: Sequence[str], width: float
) -> list[list[str]]:
    """The numbers of each row."""
    cells = []
    for name, other in zip(rows.names, rows.compared_with, strict=True):
        row = facts["agents"][name]
        gap = [_paired_cell(facts["pairs"], name, other, width)] if rows.compared else []
        further = [_pm_cell(row.get(loss), row.get(f"{loss}_se"), width) for loss in losses]
        tails = [_spread_cell(row[x], SPREAD[x]) for x in spreads]
        cells.append([_pm_cell(row["regret"], row["se"], width), *gap, *further, *tails])
    return cells


def _spread_cell(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:z.{digits}f}"


def _paired_cell(pairs: dict[str, Any], name: str, other: str, width: float) -> str:
    if name == other:
        return "-"
    flip = f"{name} - {other}" not in pairs
    pair = pairs[f"{other} - {name}" if flip else f"{name} - {other}"]
    return _pm_cell(-pair["mean"] if flip else pair["mean"], pair["se"], width, "+")


def _pm_cell(mean: float | None, se: float | None, width: float, sign: str = "") -> str:
    if mean is None:
        return "-"
    half = "" if se is None else f" ± {width * se:.1f}"
    return f"{mean:{sign}z.1f}{half}"


def sweep_lines(flat_run: Flat, titles: Sequence[str], cells: Sequence[Sequence[str]]) -> list[str]:
    """The table of a sweep, with a row of cells for each agent of each setting."""
    settings, agents = [labels.values(fields) for fields in flat_run.settings], flat_run.agents
    size = f"{counted(len(settings), 'setting')} x {counted(len(agents), 'agent')}"
    named: Sequence[Mapping[str, str]] = settings
    key_lines = list[str]()
    if len(_name_column(settings, agents)[0]) > WIDEST:
        named = [{"setting": str(number)} for number in range(1, len(settings) + 1)]
        for number, setting in enumerate(settings, 1):
            key_lines += wrap(f"setting {number}:{sweeps.label(setting)}", "  ", hyphens=True)
    head, *names = _name_column(named, agents)
    return [f"{size} x {counted(flat_run.trials, 'trial')}", *key_lines, columns(head, names, titles, cells)]


def _name_column(settings: Sequence[Mapping[str, str]], agents: Sequence[str]) -> list[str]:
    """The columns left of the numbers, each line as one text; the first is their head."""
    rows, before = [[*settings[0], "agent"]], list[str]()
    for setting in settings:
        values = list(setting.values())
        new = next((i for i, (a, b) in enumerate(zip(values, before, strict=False)) if a != b), 0)
        rows.append(["" if i < new else value for i, value in enumerate(values)] + [agents[0]])
        rows += [["" for _ in values] + [agent] for agent in agents[1:]]
        before = values
    return align(rows, left=len(rows[0]))


def notes_below(compared: bool, reference: str, parts: Collection[str] | None, tails: bool) -> list[str]:
    """The lines below a table.

    `reference` is a name that did not fit above its column, `parts` are the further losses in the table, or
    None if they were not requested.
    """
    lines = [LEGEND if compared else REGRET]
    if reference:
        lines += wrap(f"reference: {reference}", "  ", hyphens=True)
    if parts is not None:
        others = "; ".join(note for loss, note in OTHERS.items() if loss in parts)
        split = PARTS_NOTE if SPLIT[0] in parts else NO_PARTS
        lines += [line for note in (split, others) for line in wrap(note, hyphens=True)]
    return lines + [SPREADS] * tails
