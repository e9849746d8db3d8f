"""An agent taught by a log says what it says live, as the one obeyed or in the shadow."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.evaluation.logs import World
from tests.live.ground import Hand, opened
from unfog.agents.round import Decision
from unfog.agents.runner import Runner
from unfog.evaluation.context import EvaluationContext
from unfog.evaluation.log import DecisionLog
from unfog.evaluation.policies import log_agent, teach
from unfog.maths.arrays import Array
from unfog.validation import InputError

N, EPSILON = 30, 0.2
WORLD = World(d=2, arms=3)


def lived(path: Path) -> tuple[DecisionLog, dict[str, Array]]:
    """Thirty live rounds of two units with gaps and true contexts, and what everyone would have done.

    Rewards have mean 0 and variance 1, as an agent is taught them.
    """
    rng = np.random.default_rng(7)
    true, noisy = WORLD.contexts(N, rng)
    noisy[5, 0] = noisy[11, 1] = np.nan
    unit, shown = np.arange(N) % 3 // 2, rng.random(N) < 0.4
    reward = rng.normal(size=N)
    reward = (reward - reward.mean()) / reward.std()
    names = ["a", "b", "c"]
    said: dict[str, list[list[float]]] = {"late": [], "gaps": []}
    arm, chance = np.empty(N, np.intp), np.empty((N, 3))
    with opened(path, Hand()) as store:
        terms: dict[str, Any] = {
            "channel": WORLD.channel,
            "agent": "late",
            "epsilon": EPSILON,
            "reward_sd": 1.0,
            "seed": 4,
        }
        live = store.problem("p", context=["steps", "sleep"], arms=names, **terms)
        live.add_shadow("gaps")
        for t in range(N):
            reading = [None if np.isnan(x) else float(x) for x in noisy[t]]
            made = live.decide(reading, unit=str(unit[t]))
            live.reward(made.id, float(reward[t]))
            if shown[t]:
                live.reveal(made.id, true[t].tolist())
            arm[t], chance[t] = names.index(made.arm), [made.probabilities.get(name, 0.0) for name in names]
            said["late"].append(chance[t].tolist())
            said["gaps"].append([made.shadows["gaps"]["probabilities"].get(name, 0.0) for name in names])
    told = np.where(shown[:, None], true, np.nan)
    rows = np.arange(N)
    log = DecisionLog(
        ("steps", "sleep"), ("a", "b", "c"), noisy, arm, reward, chance[rows, arm], chance, told
    )
    return log._replace(unit=unit), {name: np.array(rows) for name, rows in said.items()}


def test_an_agent_taught_by_a_log_says_what_it_said_live(tmp_path: Path) -> None:
    log, said = lived(tmp_path)
    assert len(np.unique(log.arm)) == 3
    assert set(said) == {"late", "gaps"}
    for name, expected in said.items():
        found = teach(log_agent(name, EvaluationContext(log, WORLD.channel)))
        np.testing.assert_allclose((1 - EPSILON) * found + EPSILON / 3, expected, atol=1e-12)


def test_past_rounds_are_learnt_from_again_after_the_agents_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a lag of 3, the third last round of a unit is learnt from again before its next one."""
    log, revisited = WORLD.log(20, 3), list[Array]()
    revisit = Runner.revisit

    def watch(runner: Runner, unit: str, decision: Decision) -> Decision:
        revisited.append(np.asarray(decision.reward)[0])
        return revisit(runner, unit, decision)

    monkeypatch.setattr(Runner, "revisit", watch)
    said = []
    for lag in (0, 3):
        one = log_agent("temporal", EvaluationContext(log, WORLD.channel))
        agent = replace(one.agent, denoiser=replace(one.agent.denoiser, lag=lag))  # type: ignore[type-var]
        said.append(teach(one._replace(agent=agent)))
    np.testing.assert_allclose(revisited, one.reward[:16], rtol=1e-12)
    np.testing.assert_array_equal(said[0][:4], said[1][:4])
    assert np.abs(said[0][4:] - said[1][4:]).max() > 1e-6


def test_what_it_says_hangs_on_the_past_alone() -> None:
    log = WORLD.log(40, 3, shown=0.5)
    evaluation = EvaluationContext(log, WORLD.channel)
    one = log_agent("late-thompson", evaluation)
    before = teach(one)
    reward, noisy = one.reward.copy(), one.noisy.copy()
    reward[20:], noisy[21:] = -reward[20:], 0.0
    after = teach(one._replace(reward=reward, noisy=noisy))
    np.testing.assert_array_equal(before[:21], after[:21])
    assert (before[21:] != after[21:]).any()
    np.testing.assert_allclose(before.sum(axis=1), 1.0)


def test_progress_is_told_round_by_round() -> None:
    told = list[int]()
    teach(log_agent("naive", EvaluationContext(WORLD.log(12, 3))), told.append)
    assert sum(told) == 12


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("oracle", r"^policies: 'oracle' is told the bias; "),
        ("alg2", r"^policies: 'alg2' needs the true context of every round; "),
        ("meb", r"^policies: 'meb' needs a report of how each arm was chosen; "),
    ],
)
def test_agents_that_cannot_be_taught_are_refused(name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        log_agent(name, EvaluationContext(WORLD.log(12, 3), WORLD.channel))


def test_a_setting_that_does_not_fit_is_named() -> None:
    with pytest.raises(InputError, match=r"^policies\.before: 9; allowed: less than "):
        log_agent("polinucb:before=9", EvaluationContext(WORLD.log(12, 3, shown=1.0), WORLD.channel))
