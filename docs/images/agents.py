"""Where each agent pays and where it does not, seven experiments in one picture: docs/images/agents.png.

for name in missing late unknown-noise drift heavy-tails learners choosers; do unfog run $name; done
python docs/images/agents.py runs       # the folder that holds missing-001, late-001, ...
"""

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import unfog
from unfog.lab.figures import cut, draw_panel
from unfog.lab.labels import FIRST, IN_ALL, called
from unfog.lab.spec import Spec
from unfog.plotting import DPI, PAGE, STYLE, save

TITLES = {
    "missing": "readings get lost",
    "late": "true contexts come late",
    "unknown-noise": "noise is not as told",
    "drift": "the bias walks",
    "heavy-tails": "noise has outliers",
    "learners": "ways to learn",
    "choosers": "ways to choose an arm",
}


def panel(axes: Axes, data: xr.Dataset) -> dict[str, Any]:
    """Final regret with its 95 % interval over the values swept; what there is for a legend."""
    spec = Spec.model_validate_json(data.attrs["spec"])
    agents, axis, [only] = cut(data, spec)
    draw_panel(axes, axis, only, agents)
    axes.set_xlabel(axis.label)
    axes.set_ylim(bottom=0)
    axes.set_title(TITLES[spec.name], fontsize=8.5, loc="left", weight="bold")
    return dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))


def figure(runs: Path) -> Figure:
    """A panel for each experiment, and one legend for all."""
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(PAGE, 6.6), dpi=DPI, layout="constrained")
        cells = chart.subplots(3, 3)
        handles = dict[str, Any]()
        for name, axes in zip(TITLES, cells.flat, strict=False):
            for agent, handle in panel(axes, unfog.open_run(runs / f"{name}-001")).items():
                handles.setdefault(agent, handle)
        names = sorted(handles, key=lambda name: (name != called(FIRST), name.count("-") > 1))
        for axes in cells.flat[len(TITLES) :]:
            axes.axis("off")
        where: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (-0.12, 0.5), "ncols": 2}
        text: dict[str, Any] = {"fontsize": 7.5, "handlelength": 2.6, "columnspacing": 1.0}
        cells[2, 1].legend([handles[name] for name in names], names, **where, **text).set_in_layout(False)
        chart.supylabel(f"{IN_ALL}; bars: 95 % intervals", fontsize=8.5)
    return chart


def main() -> None:
    """Draw it."""
    save(figure(Path(sys.argv[1])), Path(__file__).parent, "agents", ("png",))


if __name__ == "__main__":
    main()
