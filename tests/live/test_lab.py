"""Live equals lab: one trial of a world, driven event by event, gives the arms that the simulator gives."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unfog
from unfog.agents.catalogue import Catalogue, select_rows
from unfog.live.config import REWARDS
from unfog.live.postgres.ownership import Shared
from unfog.simulation.player import played, to_reveal
from unfog.worlds.problem import Problem

SKEW = [[1.0, 0.3, -0.2], [0.3, 1.0, 0.1], [-0.2, 0.1, 1.0]]
NOISE = [[1.4, -0.6, 0.2], [-0.6, 0.7, 0.0], [0.2, 0.0, 0.5]]
ROWS = [
    name
    for name, row in unfog.AGENTS.items()
    if row.can.see_bias is None and "dynamics" not in row.denoiser.needs_knowledge
]
CHOOSERS = ["unfog-thompson", "unfog-ucb", "unfog-greedy", "unfog-epsilon", "unfog-toptwo", "unfog-ids"]
LEARNERS = ["alg1-exact-hetero", "alg1-exact-smoothing", "alg1-exact-joint", "alg1-exact-revisable"]
BINARY = [
    "alg1",
    "alg2",
    "naive",
    "kk",
    "unfog",
    "unfog-delayed",
    "late",
    "alg1-pg",
    "alg1-laplace",
    "alg1-adf",
]


def gaussian(**more: Any) -> Any:
    told: dict[str, Any] = {
        "dim": 3,
        "actions": 6,
        "context_cov": SKEW,
        "noise_cov": NOISE,
        "bias_cov": [0.4, 1.2, 0.8],
    }
    return unfog.GaussianProblem(**told | more)


def driven(
    path: Path, problem: Problem, agent: str, rounds: int, seed: int, **terms: Any
) -> list[tuple[str, str]]:
    """In a store of its own, which must be the fold of its log in the end."""
    with unfog.live.open(path / "lab.unfog", sync="normal") as store:
        found = driven_in(store, problem, agent, rounds, seed, **terms)
        assert all(one.same for one in store.replay(verify=True).values())
    return found


def driven_in(
    place: Any, problem: Problem, agent: str, rounds: int, seed: int, **terms: Any
) -> list[tuple[str, str]]:
    """The arms of a lab run, and of the same world driven live, which is told what the lab showed."""
    (row,) = select_rows([agent], rows=Catalogue(problem.rewards.kind))
    trial = list(played(problem, row, rounds, [0], seed))
    known = problem.knowledge()
    names = [f"x{i}" for i in range(known.context_mean.shape[0])]
    arms = [f"arm {i}" for i in range(problem.arms())]
    given: dict[str, Any] = {"arms": arms} | terms
    arms_seen = []
    live = place.problem(
        "lab",
        context=names,
        rewards=next(name for name, kind in REWARDS.items() if kind == problem.rewards.kind),
        reward_sd=None if known.reward_var is None else float(known.reward_var) ** 0.5,
        prior_cov=float(np.atleast_3d(known.prior_cov).flat[0]),
        channel=known,
        agent=agent,
        seed=seed,
        epsilon=0,
        **given,
    )
    for emission, decision in trial:
        mask = None if emission.mask is None else emission.mask[0]
        context = [
            None if mask is not None and not mask[i] else float(x) for i, x in enumerate(emission.noisy[0])
        ]
        at = None if emission.at is None else float(emission.at[0])
        unit = None if emission.unit is None else f"unit {int(emission.unit[0])}"
        made = live.decide(context, measured_at=at, unit=unit)
        arms_seen.append((made.arm, arms[int(decision.arm[0])]))
        live.reward(made.id, _paid(problem, decision, emission))
        shown = to_reveal(emission)[0]
        told = {name: float(x) for name, x in zip(names, shown, strict=True) if not np.isnan(x)}
        if told and row.sees_context:
            live.reveal(made.id, told)
    return arms_seen


def _paid(problem: Problem, decision: Any, emission: Any) -> float:
    return float(PAID[id(problem)].pop(0))


PAID: dict[int, list[float]] = {}


@pytest.fixture(autouse=True)
def _remember_rewards(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rewards that the lab paid, in order: with a limit an agent learns from another number."""
    from unfog.worlds.composed import Composed

    pay = Composed.reward

    def reward(self: Any, score: Any, normals: Any) -> Any:
        paid = pay(self, score, normals)
        PAID.setdefault(id(self), []).append(float(paid[0]))
        return paid

    monkeypatch.setattr(Composed, "reward", reward)
    PAID.clear()


def check(found: list[tuple[str, str]]) -> None:
    """The same arms, and not always one."""
    assert len({live for live, _ in found}) > 2
    assert [live for live, _ in found] == [lab for _, lab in found]


@pytest.mark.parametrize("agent", [*ROWS, *CHOOSERS, *LEARNERS])
def test_every_row_decides_as_in_the_lab(tmp_path: Path, agent: str) -> None:
    needs = {*unfog.AGENTS[agent].denoiser.needs_knowledge} if agent in unfog.AGENTS else set()
    told = (
        {"prior_contexts": 200}
        if "sample" in needs
        else {"prior_noisy_contexts": 200}
        if "mixture" in needs
        else {}
    )
    check(driven(tmp_path, gaussian(features="per_arm", prior_cov=0.5, **told), agent, 60, 3))


def test_in_a_database_it_decides_as_in_the_lab(postgres: str) -> None:
    with Shared(postgres) as shared:
        store = shared.place("lab")
        check(driven_in(store, gaussian(features="per_arm", prior_cov=0.5), "unfog", 60, 3))
        assert store.replay(verify=True)["lab"].same


@pytest.mark.parametrize("agent", BINARY)
def test_rewards_of_0_or_1(tmp_path: Path, agent: str) -> None:
    """Langevin steps and Polya-Gamma chains draw the lab's stream as well."""
    told: dict[str, Any] = {
        "dim": 3,
        "actions": 6,
        "context_cov": SKEW,
        "noise_cov": NOISE,
        "features": "per_arm",
    }
    check(driven(tmp_path, unfog.LogisticProblem(**told, prior_cov=2.0), agent, 40, 4))


@pytest.mark.parametrize("features", ["product", "quadratic"])
def test_arms_with_vectors(tmp_path: Path, features: str) -> None:
    vectors = np.random.default_rng(5).normal(size=(6, 3))
    arms = {f"arm {i}": row for i, row in enumerate(vectors)}
    problem = gaussian(actions=vectors, features=features, prior_cov=0.5)
    check(driven(tmp_path, problem, "unfog", 60, 6, arms=arms, features=features))


@pytest.mark.parametrize("agent", ["late", "unknown-noise"])
def test_true_contexts_now_and_then(tmp_path: Path, agent: str) -> None:
    problem = gaussian(features="per_arm", prior_cov=0.5, revealed=0.4, reveal_share=0.6, missing=0.2)
    check(driven(tmp_path, problem, agent, 60, 7))


@pytest.mark.parametrize("agent", ["unfog", "gaps", "late", "robust"])
def test_units_with_biases_of_their_own(tmp_path: Path, agent: str) -> None:
    check(driven(tmp_path, gaussian(features="per_arm", prior_cov=0.5, units=4), agent, 60, 8))


@pytest.mark.parametrize("agent", ["temporal", "temporal:lag=3", "adaptive-temporal", "unfog"])
def test_readings_in_time(tmp_path: Path, agent: str) -> None:
    """The lab keeps no window where nothing comes late: beliefs are equal up to rounding, and so are arms."""
    problem = unfog.TemporalProblem(dim=2, actions=5, features="per_arm", prior_cov=0.5, revealed=0.5)
    check(driven(tmp_path, problem, agent, 40, 9, standardise=False))
