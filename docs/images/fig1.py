"""The paper's Figure 1, with `unfog` beside its five agents: docs/images/fig1.png.

for name in fig1-gaussian fig1-movielens; do unfog run $name --trials 100 --engine numba; done
unfog run fig1-logistic --trials 200 --engine jax       # about eight minutes on one core
python docs/images/fig1.py runs         # the folder that holds fig1-gaussian-001, fig1-logistic-001, ...

`unfog reproduce fig1` draws the same from the experiments as they are. That is quick, but the ten trials of
its logistic panel tell few agents apart. Two hundred tell `unfog`, `alg2` and `kk` from the others. `alg1`,
`naive` and `oracle` need thousands: `--engine jax --precision float32`, on a GPU. Each panel says how many
trials it has.
"""

import sys
from pathlib import Path

import unfog
from unfog.lab.figures import panels, save

NAMES = ("fig1-gaussian", "fig1-logistic", "fig1-movielens")


def main() -> None:
    """Draw it beside this file."""
    runs = [unfog.open_run(Path(sys.argv[1]) / f"{name}-001") for name in NAMES]
    save(panels(runs), Path(__file__).parent, "fig1", ("png",))


if __name__ == "__main__":
    main()
