"""Play a rival as the simulator does, and beside it a plain loop that must choose the same arms.

A plain rival is written from the formulas alone, for one trial, with matrices and inverses as they stand.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from unfog.agents.assemble import Agent
from unfog.maths.arrays import Array
from unfog.maths.streams import RoundDraws
from unfog.simulate.draws import truth_draws
from unfog.simulate.player import played
from unfog.worlds.gaussian import GaussianProblem
from unfog.worlds.problem import Emission, Problem


class Shown(Protocol):
    """What a plain rival of one trial is asked."""

    def choose(self, rows: Array, normals: Array, seen: Emission) -> int:
        """The arm, for the features (K, m) of the noisy context, the agent's normals and what was emitted."""

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        """Take in what the arm paid."""


def compare(
    agent: Agent,
    problem: Problem,
    plain: Callable[[int], Shown],
    *,
    rounds: int = 80,
    trials: Sequence[int] = (0, 1, 2),
    seed: int = 3,
) -> list[list[int]]:
    """The arms of every trial, which must be those of the plain loop in every round.

    `plain` makes the rival of one trial. Where two arms are equally good to rounding the test fails, and a
    problem without such ties must be found.
    """
    truth = problem.truth(truth_draws(seed, trials, problem.truth_draws()))
    width = agent.chooser.normals(problem.knowledge())
    normals = RoundDraws(seed, trials, "agent", width).next(rounds)
    rivals = [plain(trial) for trial in trials]
    arms = list[list[int]]()
    for t, (emission, decision) in enumerate(played(problem, agent, rounds, trials, seed)):
        assert decision.reward is not None
        rows = np.stack(
            [truth.features.at(emission.noisy).row(np.full(len(trials), a)) for a in range(problem.arms())], 1
        )
        for i, rival in enumerate(rivals):
            shown = emission._replace(best=None)  # which no agent is shown
            seen = Emission(*(None if x is None else x[i] for x in shown))  # type: ignore[arg-type]
            arm = rival.choose(rows[i], normals[i, t], seen)
            assert arm == decision.arm[i], f"round {t}, trial {i}: {arm} and not {decision.arm[i]}"
            rival.learn(arm, rows[i], float(decision.reward[i]), seen)
        arms.append(decision.arm.tolist())
    assert len({tuple(column) for column in zip(*arms, strict=True)}) == len(trials)
    assert len({arm for row in arms for arm in row}) > 2, "the arms hardly differ: the test could not fail"
    return arms


def world(**changes: Any) -> GaussianProblem:
    """Nothing centred or isotropic, ten arms, a bias."""
    told: dict[str, Any] = {
        "dim": 3,
        "actions": 10,
        "context_mean": [0.8, -0.5, 0.3],
        "context_cov": [[1.0, 0.5, 0.0], [0.5, 1.5, -0.3], [0.0, -0.3, 0.6]],
        "noise_cov": [[1.4, -0.6, 0.2], [-0.6, 0.7, 0.0], [0.2, 0.0, 0.5]],
        "bias_cov": 0.4,
        "prior_mean": 0.1,
        "prior_cov": 0.3,
        "reward_var": 0.5,
    }
    return GaussianProblem(**told | changes)
