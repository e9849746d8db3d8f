"""The paper's Figure 1, with `unfog` beside its five agents: docs/images/fig1.png.

for name in fig1-gaussian fig1-movielens; do unfog run $name --trials 100 --engine numba; done
unfog run fig1-logistic --trials 8000 --engine jax --precision float32    # on a GPU, two minutes
python docs/images/fig1.py runs         # the folder that holds fig1-gaussian-001, fig1-logistic-001, ...

`unfog reproduce fig1` draws the same from the experiments as they are. That is quick, but the ten trials of
its logistic panel tell few agents apart. Of 8,000 the final regrets, with 95 % intervals, are: unfog 17.2
± 0.4, alg2 18.5 ± 0.7, oracle 34.4 ± 1.3, alg1 34.6 ± 1.4, naive 44.5 ± 1.2, kk 136 ± 4. Without a GPU,
200 trials take about eight minutes on one core. Each panel says how many trials it has.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes

import unfog
from unfog.lab.figures import panels
from unfog.lab.report import Curve, curves
from unfog.plotting import save

FAR = "kk"  # loses so much in the logistic panel that the others would lie on each other
NAMES = ("fig1-gaussian", "fig1-logistic", "fig1-movielens")


def cut(axes: Axes, lines: Sequence[Curve]) -> None:
    """Leave out the top, where `kk` is alone, and say where it ends: the others are told apart below."""
    kept = [line for line in lines if line.label != FAR]
    [far] = [line for line in lines if line.label == FAR]
    axes.set_ylim(0, 1.25 * max(line.mean[-1] + line.half_width[-1] for line in kept))
    words = f"{FAR}: on to {far.mean[-1]:.0f} ± {far.half_width[-1]:.0f}"
    axes.text(0.98, 0.99, words, transform=axes.transAxes, fontsize=7, color="0.35", ha="right", va="top")


def main() -> None:
    """Draw it beside this file."""
    runs = [unfog.open_run(Path(sys.argv[1]) / f"{name}-001") for name in NAMES]
    chart = panels(runs)
    cut(chart.axes[1], curves(runs[1]))
    save(chart, Path(__file__).parent, "fig1", ("png",))


if __name__ == "__main__":
    main()
