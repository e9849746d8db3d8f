"""What every baseline keeps to: its parts' contracts, both kinds of rewards, all maps, engines, names."""

from typing import Any

import numpy as np
import pytest

import unfog
from unfog import testing
from unfog.agents.baselines import BASELINES, ROWS
from unfog.agents.baselines.base import Baseline
from unfog.agents.catalogue import AGENTS, CHOOSERS, LEARNERS, Catalogue, select_rows
from unfog.features.link import KINDS
from unfog.simulation import play
from unfog.testing.common import problem
from unfog.validation import InputError
from unfog.worlds.problem import Problem

LOSSES = ("regret", "regret_true_context", "regret_plug_in")
MATRICES = np.random.default_rng(5).normal(0.3, 1.0, (4, 3, 2))
MAPS: dict[str, dict[str, Any]] = {  # of the problem of the contracts
    "quadratic": {},
    "product": {},
    "per_arm": {"features": "per_arm", "actions": 3},
    "matrix": {"features": "matrix", "actions": MATRICES},
    "own": {"features": "own", "dim": 6, "actions": 3},
}
ROUNDS, TRIALS = 12, 3

every = pytest.mark.parametrize("name", BASELINES)


def kinds(baseline: Baseline) -> list[str]:
    """The kinds of rewards that a row plays."""
    agent = baseline.agent
    return [
        kind
        for kind in KINDS
        if kind in (agent.learner.rewards, agent.binary_learner and agent.binary_learner.rewards)
    ]


def played(name: str, world: Problem, rounds: int = ROUNDS, **how: Any) -> dict[str, Any]:
    """What a few rounds cost, by the name of the loss: (trials, rounds) each."""
    found = play(world, [name], rounds=rounds, trials=TRIALS, seed=2, points=rounds, **how)
    return {loss: values[0] for loss, values in found.values.items()}


def test_each_row_stands_once() -> None:
    names = [row.agent.name for row in ROWS]
    assert len(names) == len(set(names)) == len(BASELINES)
    assert not set(names) & {*AGENTS, *LEARNERS, *CHOOSERS}


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_rows_are_the_same_agent(kind: str) -> None:
    able = [baseline.agent.for_rewards(kind) for baseline in BASELINES.values() if kind in kinds(baseline)]
    assert len(able) > 20
    assert not [(a.name, b.name) for a in able for b in able if a is not b and a.same_as(b)]


@every
def test_a_row_keeps_the_contract(name: str) -> None:
    """Every rule below: what a row says, what its name may change, its parts, and that it plays every map."""
    baseline = BASELINES[name]
    check_what_it_says(name, baseline)
    check_what_is_tuned(name, baseline)
    check_parts(baseline)
    check_that_it_plays(name, baseline)


def check_what_it_says(name: str, baseline: Baseline) -> None:
    agent = baseline.agent
    assert agent.name == name
    assert all([agent.summary, agent.reference, baseline.needs, baseline.sees])
    assert baseline.regret in LOSSES
    assert baseline.sure in ("high", "medium", "low")
    assert not agent.summary.endswith(".")
    one = {"rvr-ts": ["gaussian"], "pgts": ["bernoulli"]}  # the exact posterior, which each has for the other
    assert kinds(baseline) == one.get(name, [*KINDS])


def check_what_is_tuned(name: str, baseline: Baseline) -> None:
    """The name is the row, and may change the setting that is tuned."""
    assert Catalogue(baseline.agent.learner.rewards)[name] == baseline.agent
    assert len(baseline.grid) == (6 if baseline.tuned else 0)
    assert list(baseline.grid) == sorted(set(baseline.grid))
    for kind in kinds(baseline):
        rows = Catalogue(kind)
        for value in baseline.grid:
            tuned = rows[f"{name}:{baseline.tuned}={value}"]
            parts = tuned.denoiser, tuned.learner, tuned.chooser
            found = [vars(part)[baseline.tuned] for part in parts if baseline.tuned in vars(part)]
            assert found, f"no part of {name!r} for {kind} rewards has the setting {baseline.tuned!r}"
            assert set(found) == {value}


def check_parts(baseline: Baseline) -> None:
    agent = baseline.agent
    testing.check_denoiser(agent.denoiser)
    for kind in kinds(baseline):
        testing.check_learner(agent.for_rewards(kind).learner, agent.denoiser, agent.chooser)
    testing.check_chooser(agent.chooser, agent.learner, agent.denoiser)


def check_that_it_plays(name: str, baseline: Baseline) -> None:
    """Every map, two of them with both kinds of rewards; on one, trials alone are those side by side."""
    first, *other = kinds(baseline)
    for kind, maps in [(first, [*MAPS]), *((kind, ["quadratic", "per_arm"]) for kind in other)]:
        for features in maps:
            world = problem(kind, **{"features": features} | MAPS[features])
            whole = played(name, world, decompose=features == "quadratic")
            assert {*whole} >= ({*LOSSES} if features == "quadratic" else {"regret"})
            assert all(np.isfinite(values).all() for values in whole.values()), (features, kind)
            if features == "per_arm":
                alone = played(name, world, decompose=False, chunk=1)["regret"]
                np.testing.assert_allclose(alone, whole["regret"], rtol=1e-9, atol=1e-9, err_msg=kind)


def test_parts_made_for_each_other_are_not_parted() -> None:
    for name, told in [
        ("suplinucb-conjugate", r"chooser: 'stages' beside .* 'conjugate'.* the learner 'staged-ridge'"),
        ("suplinucb-thompson", r"learner: 'staged-ridge' beside the chooser 'thompson'"),
        ("linrel-conjugate", r"chooser: 'two-widths' beside .* 'conjugate'.* the learner 'spectral'"),
        ("linrel-thompson", r"learner: 'spectral' beside the chooser 'thompson'"),
        ("linrel-ucb", r"learner: 'spectral' beside the chooser 'ucb'"),
        ("samplinucb-conjugate", r"chooser: 'reach' beside .* 'conjugate'.* how far off the profile"),
        ("clbbf-conjugate", r"chooser: 'lifting' beside .* 'conjugate'.* the learner 'imputing'"),
    ]:
        check_parts_made_for_each_other_are_not_parted(name, told)


def check_parts_made_for_each_other_are_not_parted(name: str, told: str) -> None:
    with pytest.raises(InputError, match=rf"^agents\.{name}\.{told}"):
        select_rows([name])


MEETING: list[tuple[str, dict[str, Any]]] = [
    # Their denoisers do something else with what was lost.
    ("kk-hidden", {"missing": 0.3}),
    ("kk-sampled", {"missing": 0.3}),
    ("clbbf", {"missing": 0.3}),
    ("clbbf-oful", {**MAPS["own"], "missing": 0.3}),
    ("samplinucb", {"missing": 0.3}),
    ("samplinucb:chosen=true", {**MAPS["own"], "missing": 0.5, "missing_arms": True}),
    # Their learners keep each arm's block apart, or their choosers look at features of arms.
    ("minwd", MAPS["per_arm"]),
    ("polinucb", MAPS["per_arm"]),
    ("laplacets:full=true", MAPS["per_arm"]),
    ("meb:burn=10", MAPS["per_arm"]),
    ("meb:burn=10", {}),  # it corrects itself only after so many rounds
    # Their learners are others for rewards of 0 or 1.
    ("meb-naive:burn=10", {"rewards": "bernoulli"}),
    ("lmcts", {**MAPS["per_arm"], "rewards": "bernoulli"}),
    ("feelgood", {**MAPS["per_arm"], "rewards": "bernoulli"}),
    ("ulmcts", {**MAPS["per_arm"], "rewards": "bernoulli"}),
    ("laplacets", {**MAPS["per_arm"], "rewards": "bernoulli"}),
]
ALIKE = {"meb-naive", "lmcts", "feelgood", "ulmcts"}  # for numbers, too
OTHERS = {name.partition(":")[0] for name, _ in MEETING} - ALIKE
COMPILED = [*((name, dict[str, Any]()) for name in BASELINES if name not in OTHERS), *MEETING]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "told"), COMPILED, ids=[f"{name} {told}" for name, told in COMPILED])
def test_engines_agree(name: str, told: dict[str, Any]) -> None:
    """Each row once, and by hand those whose programs are others elsewhere."""
    pytest.importorskip("jax")
    baseline = BASELINES[name.partition(":")[0]]
    kind = told.get("rewards", kinds(baseline)[0])
    world = problem(kind, **{field: value for field, value in told.items() if field != "rewards"})
    why = baseline.agent.for_rewards(kind).interpreted
    if why:
        with pytest.raises(InputError, match="engine") as refusal:
            played(name, world, engine="jax")
        assert why in str(refusal.value)
        return
    settings: Any = {"rounds": 40, "draws": "numpy", "decompose": False}
    one, other = (played(name, world, engine=engine, **settings) for engine in ("numpy", "jax"))
    np.testing.assert_allclose(other["regret"], one["regret"], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_they_run_by_name(kind: str) -> None:
    names = [name for name, baseline in BASELINES.items() if kind in kinds(baseline)]
    found = unfog.run(problem(kind), agents=names, rounds=5, trials=2, seed=1)
    assert list(found.agent.values) == names
    assert np.isfinite(found.regret.values).all()
