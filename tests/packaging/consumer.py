"""What a user writes, checked by two type checkers: nothing here may be of an unknown type."""

from pathlib import Path

import numpy as np

import unfog
from unfog.live import Decision, Problem, Store


def in_the_lab() -> str:
    """A run and its table."""
    problem = unfog.GaussianProblem(dim=2, actions=3, context_mean=[0.5, 0.0], noise_cov=[1.0, 0.5])
    result = unfog.run(problem, agents=["naive", "unfog"], rounds=20, trials=4, seed=0)
    table: str = unfog.table(result)
    return table


def for_real(folder: Path) -> tuple[str, float | None]:
    """A decision, its reward, and the true context a day later."""
    rng = np.random.default_rng(0)
    true = rng.normal([7000, 7], [2000, 1], (50, 2))
    found = unfog.calibrate(true + rng.normal(-800, 500, (50, 2)), true)
    store: Store = unfog.live.open(folder / "steps.unfog")
    walks: Problem = store.problem(
        "walks", context=["steps", "sleep"], arms=["send", "wait"], channel=found.channel, agent="late"
    )
    decision: Decision = walks.decide({"steps": 1648.0, "sleep": None}, unit="ann")
    walks.reward(decision.id, 1.0)
    walks.reveal(decision.id, {"steps": 7065.0})
    store.close()
    arm: str = decision.arm
    probability: float | None = decision.probability
    return arm, probability


def of_ones_own() -> unfog.Agent:
    """An agent of parts."""
    return unfog.Agent(
        name="mine", denoiser=unfog.denoise.Exact(), learner=unfog.learn.Hetero(), chooser=unfog.choose.Ucb()
    )
