"""The paper's Figure 1 from enough trials to see the order of the agents: docs/images/fig1.png.

    unfog run fig1-gaussian --trials 1000 --engine numba --out runs/fig1-gaussian
    unfog run fig1-logistic --trials 100 --engine numba --out runs/fig1-logistic     # the slow one
    unfog run fig1-movielens --trials 1000 --engine numba --out runs/fig1-movielens
    python docs/images/fig1.py runs

`unfog reproduce fig1` draws the same from the experiments as they are. That is quick, but the ten trials of
its logistic panel are too few to tell agents apart.
"""

import sys
from pathlib import Path

import unfog
from unfog.lab.figures import panels, save

NAMES = ("fig1-gaussian", "fig1-logistic", "fig1-movielens")


def main() -> None:
    """Draw it beside this file."""
    runs = [unfog.open_run(Path(sys.argv[1]) / name) for name in NAMES]
    save(panels(runs), Path(__file__).parent, "fig1", ("png",))


if __name__ == "__main__":
    main()
