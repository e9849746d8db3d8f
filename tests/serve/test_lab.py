"""Over HTTP, too, one trial of a world gives the arms that the simulator gives."""

from pathlib import Path

import pytest

import unfog
from tests.live import test_lab
from tests.live.test_lab import check, driven_in, gaussian
from tests.serve.running import running
from unfog.serve import Client
from unfog.worlds.problem import Problem

_remember_rewards = test_lab._remember_rewards


WORLDS: dict[str, Problem] = {
    "unfog": gaussian(features="per_arm", prior_cov=0.5, units=4),
    "late": gaussian(features="per_arm", prior_cov=0.5, revealed=0.4, reveal_share=0.6, missing=0.2),
    "alg1-pg": unfog.LogisticProblem(dim=3, actions=6, features="per_arm", prior_cov=2.0),
}


@pytest.mark.parametrize("agent", WORLDS)
def test_the_same_seed_gives_the_same_arms(tmp_path: Path, agent: str) -> None:
    with running(tmp_path / "lab.unfog") as found, Client(found.url) as client:
        check(driven_in(client, WORLDS[agent], agent, 60, 3))
        assert client.replay(verify=True)["lab"].same
