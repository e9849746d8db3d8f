"""SupLinUCB against its formulas, written out for one trial."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.agents.baselines.plain import compare, tied, world
from unfog.agents import round as rounds
from unfog.agents.agent import Agent
from unfog.agents.baselines import BASELINES
from unfog.agents.baselines.base import Ridge
from unfog.agents.baselines.linear_ucb import StagedRidge, Stages, stages
from unfog.agents.catalogue import Catalogue, select_rows
from unfog.agents.choose import Thompson
from unfog.maths.arrays import Array, Ints
from unfog.simulation.player import Player
from unfog.testing.common import normals, truth
from unfog.validation import InputError
from unfog.worlds.problem import Emission
from unfog.worlds.synthetic import LogisticProblem

AGENT: Any = BASELINES["suplinucb"].agent


def tuned(horizon: int, scale: float) -> Any:
    """The row with settings of one's own."""
    return replace(
        AGENT,
        learner=replace(AGENT.learner, horizon=horizon),
        binary_learner=replace(AGENT.binary_learner, horizon=horizon),
        chooser=replace(AGENT.chooser, horizon=horizon, scale=scale),
    )


class Plain:
    """The index sets of the paper, and arms that are left as a list."""

    def __init__(self, horizon: int, scale: float, delta: float = 0.05) -> None:
        self.horizon, self.scale, self.delta = horizon, scale, delta
        self.sets: list[list[tuple[Array, float]]] = [[] for _ in range(int(np.ceil(np.log(horizon))))]
        self.stage: int | None = None
        self.ends = Counter[str]()

    def choose(self, rows: Array, normals: Array, seen: Emission) -> list[int]:
        alpha = self.scale * np.sqrt(np.log(2 * self.horizon * len(rows) / self.delta) / 2)
        left, s = list(range(len(rows))), 1
        while True:
            a = np.eye(rows.shape[1]) + sum(np.outer(x, x) for x, _ in self.sets[s - 1])
            b = sum((r * x for x, r in self.sets[s - 1]), np.zeros(rows.shape[1]))
            theta = np.linalg.solve(a, b)
            width = {i: alpha * np.sqrt(rows[i] @ np.linalg.solve(a, rows[i])) for i in left}
            upper = {i: rows[i] @ theta + width[i] for i in left}
            if all(width[i] <= 1 / np.sqrt(self.horizon) for i in left):
                self.stage = None
                self.ends["certain"] += 1
                return [left[i] for i in tied([*upper.values()])]
            if any(width[i] > 2.0**-s for i in left):
                self.stage = s
                self.ends[f"stage {s}"] += 1
                return [left[i] for i in tied([*width.values()])]
            most = max(upper.values())
            kept = [i for i in left if upper[i] >= most - 2.0 ** (1 - s)]
            self.ends["dropped"] += len(left) > len(kept)
            left, s = kept, s + 1

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        if self.stage is not None:
            self.sets[self.stage - 1].append((rows[arm], reward))


def small(**changes: Any) -> Any:
    """Features that are short enough for every stage to be reached in a few rounds."""
    told: dict[str, Any] = {"context_mean": 0.1, "context_cov": 0.05, "noise_cov": 0.05, "bias_cov": 0.01}
    return world(features="product", **told | changes)


def ends(plain: list[Plain]) -> Counter[str]:
    """How rounds ended, in all trials together."""
    return sum((one.ends for one in plain), Counter[str]())


def test_it_chooses_as_the_plain_loop() -> None:
    plain = [Plain(1000, 1.0) for _ in range(3)]
    compare(AGENT, world(), lambda trial: plain[trial], rounds=120)


@pytest.mark.parametrize(("horizon", "scale"), [(20, 0.5), (150, 0.3)])
def test_it_goes_through_all_stages_as_the_plain_loop(horizon: int, scale: float) -> None:
    plain = [Plain(horizon, scale) for _ in range(3)]
    compare(tuned(horizon, scale), small(), lambda trial: plain[trial], rounds=150)
    seen = ends(plain)
    assert min(seen["certain"], seen["dropped"], seen["stage 1"], seen["stage 2"]) > 0, seen


def test_arms_with_features_of_their_own() -> None:
    plain = [Plain(20, 0.3) for _ in range(3)]
    problem = world(features="per_arm", actions=4)
    compare(tuned(20, 0.3), problem, lambda trial: plain[trial], rounds=150)
    assert ends(plain)["dropped"] > 0


def test_rewards_of_zero_or_one() -> None:
    told: dict[str, Any] = {"context_cov": 0.05, "noise_cov": 0.05, "bias_cov": 0.01}
    problem = LogisticProblem(dim=3, actions=10, features="product", context_mean=[0.2, -0.1, 0.1], **told)
    plain = [Plain(20, 0.5) for _ in range(3)]
    compare(tuned(20, 0.5).for_rewards("bernoulli"), problem, lambda trial: plain[trial], rounds=150)
    assert ends(plain)["dropped"] > 0


def paid(problem: Any, drawn: Array, arm: Ints) -> Array:
    """A reward that is the larger the later the arm."""
    found: Array = problem.reward(arm + 0.0, drawn)
    return found


def test_every_round_teaches_one_stage_at_most() -> None:
    """The precisions of all stages add up to that of all rounds, less those that none learns from."""
    problem, agent = small(), tuned(20, 0.5)
    player = Player(agent, problem, truth(problem), 0, (0, 1, 2))
    kept = np.zeros((3, 3, 3))
    for t in range(60):
        drawn = normals(f"round {t}", 3, problem.round_normals())
        emission = problem.emit(truth(problem), drawn, np.asarray(t))
        decision = player.round(emission, np.zeros((3, 0)), partial(paid, problem, drawn))
        row, told = decision.evidence.row(), decision.evidence.choice_report
        assert told is not None
        kept += (row[..., None] * row[..., None, :]) * (told >= 0)[:, None, None]
    each = player.runner.memory().learner.each.root
    precision = np.linalg.inv(each @ each.mT) - np.eye(3)
    np.testing.assert_allclose(precision.sum(1), kept, rtol=1e-6, atol=1e-9)


def test_arms_that_may_not_be_chosen_are_not_left() -> None:
    problem, agent = world(), AGENT
    nature = truth(problem)
    setup, memory = rounds.start(agent, problem.knowledge())
    arms = np.array([[True] * 3 + [False] * 7, [False] * 9 + [True], [True] * 10])
    observation = rounds.Observation(normals("noisy", 3, 3), arms=arms)
    decision = rounds.decide(agent, setup, memory, nature.features, observation, np.zeros((3, 0)))
    assert decision.arm[0] < 3
    assert decision.arm[1] == 9


def test_the_learner_must_be_told_the_stage() -> None:
    allowed = r"allowed: beside it a chooser that reports the stage of each choice \(ReportsChoice\)$"
    with pytest.raises(InputError, match=r"'staged-ridge' beside the chooser 'thompson'; " + allowed):
        Agent("deaf", AGENT.denoiser, AGENT.learner, Thompson())
    with pytest.raises(InputError, match="'clipped_optimism', which reports the probability; " + allowed):
        replace(AGENT, chooser=BASELINES["meb"].agent.chooser)
    with pytest.raises(InputError, match=r"which reports the stage; .* reports the probability"):
        replace(BASELINES["meb"].agent, chooser=AGENT.chooser)


def test_the_learner_must_be_in_stages() -> None:
    with pytest.raises(InputError, match=r"chooser: 'stages' beside the learner 'ridge'.*'staged-ridge'"):
        Agent("mine", AGENT.denoiser, Ridge(), AGENT.chooser)


@dataclass(frozen=True, kw_only=True)
class Wordless(type(AGENT.chooser)):  # type: ignore[misc]
    """It tells, and does not say what."""

    reports = ""


@dataclass(frozen=True, kw_only=True)
class Hears(type(AGENT.learner)):  # type: ignore[misc]
    """It hears, and does not say what."""

    needs_report = True


def test_what_is_told_has_a_word() -> None:
    with pytest.raises(InputError, match=r"chooser\.reports: ''; allowed: a word"):
        replace(AGENT, chooser=Wordless())
    with pytest.raises(InputError, match=r"learner\.needs_report: True; allowed: a word"):
        replace(AGENT, learner=Hears())


def test_settings_are_checked() -> None:
    assert [stages(T) for T in (1, 2, 3, 1000)] == [1, 1, 2, 7]
    for wrong in ({"delta": 0.0}, {"scale": -1.0}, {"horizon": 0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            replace(AGENT.chooser, **wrong)


def test_stages_are_those_of_one_horizon() -> None:
    with pytest.raises(InputError, match=r"'stages' .* the same horizon, 1000, and not 20"):
        Agent("odd", AGENT.denoiser, StagedRidge(horizon=20), Stages(horizon=1000))
    found: Any = select_rows(["suplinucb:horizon=20"])[0]
    assert found.learner.horizon == found.chooser.horizon == 20
    coins: Any = select_rows(["suplinucb:horizon=20"], rows=Catalogue("bernoulli"))[0]
    assert coins.learner.horizon == coins.chooser.horizon == 20
