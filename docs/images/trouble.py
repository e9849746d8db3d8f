"""What `unfog.hypotheses` says where noise grows and a bias begins to walk: docs/images/trouble.png.

python docs/images/trouble.py           # some seconds
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import unfog
from unfog.plotting import COLOURS, DPI, PAGE, STYLE, save

PROBLEM = unfog.GaussianProblem(  # that of docs/science/adaptive.md
    dim=3,
    actions=20,
    noise_cov=1.5,
    bias_cov=1.0,
    reward_var=0.1,
    assumed_noise_cov=0.3,
    drift_cov=0.05,
    trouble_from=250,
)
TITLE = "In round 250 the noise grows fivefold and the bias begins to walk"


def figure(found: xr.DataArray, title: str = "") -> Figure:
    """Three panels over the rounds, of means over the trials of `unfog.hypotheses`."""
    mean = found.mean("trial")
    heavy = found["tails"].notnull()
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(PAGE, 2.7), dpi=DPI, layout="constrained")
        noise, bias, tails = chart.subplots(1, 3, sharey=True)
        _areas(noise, mean.where(~heavy, drop=True), "size", "size of the noise,\ntimes that told")
        _areas(bias, mean, "step", "step of the bias,\na share of its prior")
        tails.plot(found["round"], mean.where(heavy, 0.0).sum("hypothesis"), color=COLOURS[2])
        tails.set_title("heavy tails,\nmeaning outliers", fontsize=8, loc="left")
        tails.set_xlabel("round")
        noise.set_ylabel("probability")
        noise.set(ylim=(0, 1))
        chart.suptitle(title, fontsize=8.5, x=0.01, ha="left", parse_math=False)
        settings = (
            f"{found.attrs['agent']}: means over {found.sizes['trial']} trials, seed {found.attrs['seed']}"
        )
        chart.supxlabel(settings, fontsize=7, color="0.35", x=0.99, ha="right")
    return chart


def _areas(axes: Axes, mean: xr.DataArray, field: str, title: str) -> None:
    """One area for each value of a coordinate, the smallest at the bottom."""
    grouped = mean.groupby(field).sum("hypothesis")
    values = grouped[field].values
    shades = mpl.colormaps["viridis"](np.linspace(0.05, 0.95, len(values)))
    names = [f"{value:.2g}" for value in values]
    axes.stackplot(mean["round"], grouped.transpose(field, "round"), labels=names, colors=shades, linewidth=0)
    axes.legend(fontsize=6, loc="center right", reverse=True, frameon=True, facecolor="white", framealpha=0.9)
    axes.set_title(title, fontsize=8, loc="left")
    axes.set_xlabel("round")


def main() -> None:
    """Draw it beside this file."""
    found = unfog.hypotheses(PROBLEM, rounds=500, trials=20, seed=3)
    save(figure(found, TITLE), Path(__file__).parent, "trouble", ("png",))


if __name__ == "__main__":
    main()
