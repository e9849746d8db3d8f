"""Final regrets of the first fifteen rows, as they were before parts, plans and worlds were rebuilt.

Two trials of 30 rounds, seed 3; our own rows with the learner and the chooser that they had. A change that
moves one of these numbers changes results, and must say so. A new row needs none here.
"""

from typing import Any

import numpy as np
import pytest

from unfog.agents.catalogue import AGENTS
from unfog.lab.datasets.movielens import MovieLens
from unfog.simulation import play
from unfog.worlds.problem import Problem
from unfog.worlds.synthetic import GaussianProblem, LogisticProblem

SHARED: dict[str, Any] = {
    "dim": 3,
    "actions": 6,
    "context_mean": [0.8, -0.5, 0.3],
    "context_cov": [[1.5, 0.6, 0.0], [0.6, 0.7, -0.2], [0.0, -0.2, 2.0]],
    "noise_cov": [[2.0, -0.5, 0.3], [-0.5, 0.4, 0.0], [0.3, 0.0, 1.2]],
    "bias_cov": [[1.0, 0.4, 0.0], [0.4, 2.5, 0.5], [0.0, 0.5, 0.6]],
    "prior_cov": 0.5,
}
NOISY: dict[str, Any] = {"prior_mean": 0.2, "reward_var": 0.7}
WORLDS: dict[str, Problem] = {
    "gaussian": GaussianProblem(**SHARED, **NOISY),
    "logistic": LogisticProblem(**SHARED),
    "gaps": GaussianProblem(**SHARED, **NOISY, missing=0.4),
    "movielens": MovieLens(ratings="stand-in", contexts="gaussian"),
}

FROZEN: dict[str, dict[str, tuple[float, float]]] = {
    "gaussian": {
        "alg1": (13.6663852156, 31.4187728174),
        "alg2": (11.012148861, 19.5777003948),
        "naive": (13.3727281785, 30.1714269249),
        "oracle": (13.7108373434, 40.5066986461),
        "kk": (26.1639544114, 28.4708190762),
        "alg1-exact": (13.0549991015, 38.7254214053),
        "alg2-exact": (10.2501285782, 18.9355706685),
        "unfog-hetero-ucb": (6.36736348266, 24.3134431297),
        "unfog-delayed-hetero-ucb": (1.67229420105, 16.7461085221),
        "unfog-oracle-hetero-ucb": (6.30626294809, 33.2111068808),
        "gaps-hetero-ucb": (6.36736348266, 24.3134431297),
        "late-ucb": (1.67229420105, 16.7461085221),
        "unknown-noise-ucb": (4.83892584434, 14.7612535738),
        "drift-hetero-ucb": (6.36736348266, 24.3134431297),
        "robust-hetero-ucb": (7.00978025531, 23.5372339496),
    },
    "logistic": {
        "alg1": (1.48012904173, 2.09778523101),
        "alg2": (1.02208239652, 2.76485482971),
        "naive": (2.60857966635, 3.70762544416),
        "oracle": (1.46458253154, 2.94183925335),
        "kk": (4.47940882487, 2.21762803517),
        "alg1-exact": (1.423461571, 2.10470870167),
        "alg2-exact": (1.21610744772, 2.76485482971),
        "unfog-hetero-ucb": (0.374966712522, 4.3845965227),
        "unfog-delayed-hetero-ucb": (0.519140778385, 7.20552700894),
        "unfog-oracle-hetero-ucb": (0.497229164621, 4.52190369053),
        "gaps-hetero-ucb": (0.374966712522, 4.3845965227),
        "late-ucb": (0.519140778385, 7.20552700894),
        "unknown-noise-ucb": (0.475824406717, 5.57766891806),
        "drift-hetero-ucb": (0.374966712522, 4.49669864093),
        "robust-hetero-ucb": (0.374966712522, 4.49669864093),
    },
    "gaps": {
        "alg1": (24.4922496203, 19.9582231669),
        "alg2": (11.2691418341, 23.7769676428),
        "naive": (25.0423230832, 23.8881693218),
        "oracle": (18.6061068323, 17.1785464349),
        "kk": (27.2977885358, 24.1944868075),
        "alg1-exact": (27.8600272143, 18.7360486834),
        "alg2-exact": (13.3987070657, 23.7769676428),
        "unfog-hetero-ucb": (23.6543874122, 38.4161521989),
        "unfog-delayed-hetero-ucb": (5.88054589343, 14.2886022256),
        "unfog-oracle-hetero-ucb": (23.159525456, 40.518259878),
        "gaps-hetero-ucb": (16.208669823, 25.9377718866),
        "late-ucb": (3.63079223711, 21.7155085061),
        "unknown-noise-ucb": (5.899058759, 13.9874828004),
        "drift-hetero-ucb": (23.6543874122, 38.4161521989),
        "robust-hetero-ucb": (22.2540989914, 35.1491106339),
    },
    "movielens": {
        "alg1": (10.3055734598, 8.02903443807),
        "alg2": (5.51317411669, 1.90319932172),
        "naive": (25.149808876, 10.1918516855),
        "oracle": (13.4037086799, 10.6434091859),
        "kk": (19.6601852951, 10.6915072147),
        "alg1-exact": (10.5087482978, 8.57975748185),
        "alg2-exact": (3.29654046145, 0.59157574988),
        "unfog-hetero-ucb": (12.614998893, 2.27485642265),
        "unfog-delayed-hetero-ucb": (3.6013481608, 1.57448066516),
        "unfog-oracle-hetero-ucb": (8.51987186203, 0.975544487295),
        "gaps-hetero-ucb": (12.614998893, 2.27485642265),
        "late-ucb": (3.6013481608, 1.57448066516),
        "unknown-noise-ucb": (3.30040985252, 2.02442756082),
        "drift-hetero-ucb": (11.4578444824, 2.27485642265),
        "robust-hetero-ucb": (12.8455530992, 2.37533901988),
    },
}


@pytest.mark.parametrize("world", WORLDS)
def test_final_regrets_are_those_of_before(world: str) -> None:
    kept = FROZEN[world]
    assert {name.removesuffix("-ucb").removesuffix("-hetero") for name in kept} <= set(AGENTS)
    assert len(kept) == 15
    names = (
        [name.replace("-hetero", "") for name in kept] if world == "logistic" else [*kept]
    )  # other learners
    found = play(WORLDS[world], names, rounds=30, trials=2, seed=3).values["regret"][..., -1]
    for name, regret, right in zip(names, found, kept.values(), strict=True):
        np.testing.assert_allclose(regret, right, rtol=1e-9, err_msg=name)
