"""What trusting a noisy context costs, the first picture of README.md: docs/images/cost-of-noise.png.

python docs/images/cost_of_noise.py     # 1000 trials: about a minute; needs the extras lab and numba
"""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import xarray as xr
from matplotlib.figure import Figure

import unfog
from unfog.lab.figures import draw
from unfog.lab.labels import SO_FAR, called, ordered
from unfog.lab.report import curves
from unfog.plotting import DPI, PAGE, STYLE, save

SEED, TRIALS = 577215, 1000  # nothing was chosen on this seed
SAID = {
    "naive": "trusts the noisy context",
    "alg1": "denoises the context",
    "oracle": "denoises the context, is told the bias",
    "alg2": "denoises it, is shown true contexts later",
    "unfog": "our default: denoises the context,\nand tries arms less often than the others",
}


def figure(data: xr.Dataset) -> Figure:
    """The curves, with what each agent does in the legend."""
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(PAGE, 2.9), dpi=DPI, layout="constrained")
        axes = chart.subplots()
        lines = curves(data)
        draw(axes, lines)
        found = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        names = ordered(line.label for line in sorted(lines, key=lambda line: -line.mean[-1]))
        words = [f"{called(name)}\n{SAID[name]}" for name in names]
        where: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        axes.legend(
            [found[called(name)] for name in names], words, handlelength=3.0, labelspacing=0.8, **where
        )
        axes.set(xlabel="decisions made", ylabel=SO_FAR)
        note = f"mean of {data.sizes['trial']:,} trials of fig1-gaussian, seed {SEED}; bars: 95 % intervals"
        chart.supxlabel(note, fontsize=7, color="0.35", x=0.99, ha="right")
    return chart


def main() -> None:
    """Play, and draw beside this file."""
    data = unfog.run("fig1-gaussian", agents=list(SAID), trials=TRIALS, seed=SEED, engine="numba")
    print(unfog.table(data))
    save(figure(data), Path(__file__).parent, "cost-of-noise", ("png",))


if __name__ == "__main__":
    main()
