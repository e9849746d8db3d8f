"""Every baseline that a live problem accepts waits for rewards that come after the next decisions."""

from pathlib import Path

import numpy as np
import pytest

from tests.live.ground import COORDINATES, Hand, opened, problem
from unfog.agents.baselines import BASELINES
from unfog.live.config import REWARDS

READINGS = np.random.default_rng(4).normal(size=(5, 2)).tolist()
ROWS = [
    (name, rewards)
    for name, baseline in BASELINES.items()
    for rewards, kind in REWARDS.items()
    if kind
    in (
        baseline.agent.learner.rewards,
        baseline.agent.binary_learner and baseline.agent.binary_learner.rewards,
    )
    if baseline.agent.can.see_bias is None and baseline.agent.can.report_choice is None
]


def test_few_are_left_out() -> None:
    left_out = {*BASELINES} - {name for name, _ in ROWS}
    told, reporting = (
        {"kk-hidden", "kk-observed", "kk-sampled", "yang-bundle"},
        {"suplinucb", "meb", "meb-naive"},
    )
    assert left_out == told | reporting


@pytest.mark.parametrize(("name", "rewards"), ROWS)
def test_it_decides_three_times_before_the_first_reward(tmp_path: Path, name: str, rewards: str) -> None:
    with opened(tmp_path, Hand()) as store:
        live = problem(store, agent=name, rewards=rewards)
        made = [live.decide(reading) for reading in READINGS[:3]]
        for one in made[::-1]:
            live.reward(one.id, 1.0)
            if BASELINES[name].agent.sees_context:
                live.reveal(one.id, dict(zip(COORDINATES, [1.0, -1.0], strict=True)))
        for reading in READINGS[3:]:
            probabilities = live.decide(reading).probabilities
            assert sum(probabilities.values()) == pytest.approx(1.0)
        assert store.processor.cache.get("p").runner.learnt == 3
        assert store.replay(verify=True)["p"].same
