"""What `unfog.trouble` says where noise grows and a bias begins to walk: docs/images/trouble.png.

python docs/images/trouble.py           # some seconds
"""

from pathlib import Path

import unfog
from unfog.lab.figures import save
from unfog.lab.trouble_figure import figure

PROBLEM = unfog.GaussianProblem(  # that of docs/science/adaptive.md
    dim=3,
    actions=20,
    noise_cov=0.3,
    bias_cov=1.0,
    reward_var=0.1,
    actual_noise_cov=1.5,
    drift_cov=0.05,
    trouble_from=250,
)
TITLE = "In round 250 the noise grows fivefold and the bias begins to walk"


def main() -> None:
    """Draw it beside this file."""
    found = unfog.trouble(PROBLEM, rounds=500, trials=20, seed=3)
    save(figure(found, TITLE), Path(__file__).parent, "trouble", ("png",))


if __name__ == "__main__":
    main()
