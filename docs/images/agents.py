"""Where each agent pays and where it does not, seven experiments in one picture: docs/images/agents.png.

for name in choosers learners missing late unknown-noise drift heavy-tails; do unfog run $name; done
python docs/images/agents.py runs       # the folder that holds choosers-001, learners-001, ...
"""

import sys
from pathlib import Path

import matplotlib as mpl
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import unfog
from unfog.lab import sweep
from unfog.lab.report import curves
from unfog.lab.spec import Spec
from unfog.look import COLOURS, STYLE

NAMES = ("missing", "late", "unknown-noise", "drift", "heavy-tails", "learners", "choosers")
MARKS = "osD^vPX"
SAME = {"unfog": 1, "oracle": 2, "alg1-exact": 3, "alg1": 3}  # these look alike in all panels


def panel(axes: Axes, data: xr.Dataset) -> None:
    """Final regret with its 95 % interval over the values swept, an agent a line."""
    spec = Spec.model_validate_json(data.attrs["spec"])
    [(field, values)] = sweep.values(spec.sweep).items()
    found = {line.label: line for line in curves(data)}
    own = iter((0, 4, 5, 6, 1, 3))
    for agent in spec.run.agents:
        place = SAME[agent] if agent in SAME else next(own)
        lines = [found[f"{agent} {field}={value}"] for value in values]
        axes.errorbar(
            range(len(values)),
            [line.mean[-1] for line in lines],
            [line.half_width[-1] for line in lines],
            color=COLOURS[place],
            marker=MARKS[place],
            markersize=4,
            linewidth=1.2,
            capsize=2,
            label=agent.replace("alg1-exact", "…") if len(agent) > 14 else agent,
        )
    axes.set_xticks(range(len(values)), [str(value) for value in values])
    axes.set(xlabel=field, ylim=(0, None), xlim=(-0.3, len(values) - 0.7))
    axes.set_title(spec.name, fontsize=9, loc="left")
    axes.legend(fontsize=6.5, handlelength=1.6)


def figure(runs: Path) -> Figure:
    """A panel for each experiment."""
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(10.5, 5.6), layout="constrained")
        panels = chart.subplots(2, 4).flat
        for name, axes in zip(NAMES, panels, strict=False):
            panel(axes, unfog.open_run(runs / f"{name}-001"))
        for axes in panels:  # the one that is left has the last one's legend
            axes.axis("off")
            last = chart.axes[len(NAMES) - 1]
            axes.legend(*last.get_legend_handles_labels(), loc="center left", fontsize=7)
            last.get_legend().remove()
        chart.supylabel("final regret, 95 % intervals", fontsize=9)
    return chart


def main() -> None:
    """Draw it."""
    chart = figure(Path(sys.argv[1]))
    with mpl.rc_context(STYLE):
        chart.savefig(Path(__file__).parent / "agents.png", dpi=150)


if __name__ == "__main__":
    main()
