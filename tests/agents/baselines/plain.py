"""Play a baseline as the simulator does, and beside it a plain loop that must choose the same arms.

A plain baseline is written from the formulas alone, for one trial, with matrices and inverses as they stand.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from unfog.agents.agent import Agent
from unfog.maths.arrays import Array
from unfog.maths.random import RoundDraws
from unfog.simulation.job import truth_draws
from unfog.simulation.player import played
from unfog.worlds.problem import Emission, Problem
from unfog.worlds.synthetic import GaussianProblem


class Shown(Protocol):
    """What a plain baseline of one trial is asked."""

    def choose(self, rows: Array, normals: Array, seen: Emission) -> int | list[int]:
        """The arm, for the features (K, m) of the noisy context, the agent's normals and what was emitted.

        Or any of several that are equal but for rounding: see `tied`.
        """

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        """Take in what the arm paid."""


def tied(scores: Any) -> list[int]:
    """The arms within 1e-9 of the largest score: which of them a program takes may be up to rounding."""
    values = np.asarray(scores)
    size = np.abs(values[np.isfinite(values)]).max(initial=0.0)
    return np.flatnonzero(values >= values.max() - 1e-9 * size).tolist()


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

    `plain` makes the baseline of one trial. Where it says that several arms are equal, any of them will do,
    and it learns from the one that was taken.
    """
    truth = problem.truth(truth_draws(seed, trials, problem.truth_draws()))
    width = agent.chooser.normals(problem.knowledge())
    normals = RoundDraws(seed, trials, "agent", width).next(rounds)
    baselines = [plain(trial) for trial in trials]
    arms = list[list[int]]()
    for t, (emission, decision) in enumerate(played(problem, agent, rounds, trials, seed)):
        assert decision.reward is not None
        rows = np.stack(
            [truth.features.at(emission.noisy).row(np.full(len(trials), a)) for a in range(problem.arms())], 1
        )
        for i, baseline in enumerate(baselines):
            one = emission._replace(best=None)  # which is not for agents to see
            seen = Emission(*(None if x is None else x[i] for x in one))  # type: ignore[arg-type]
            arm, right = int(decision.arm[i]), baseline.choose(rows[i], normals[i, t], seen)
            right = right if isinstance(right, list) else [right]
            assert arm in right, f"round {t}, trial {i}: {right} and not {arm}"
            baseline.learn(arm, rows[i], float(decision.reward[i]), seen)
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
