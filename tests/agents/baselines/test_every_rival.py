"""What every rival keeps to: the contracts of its parts, both kinds of rewards, all maps, engines, names."""

from typing import Any

import numpy as np
import pytest

import unfog
from unfog import testing
from unfog.agents.baselines import RIVALS, ROWS
from unfog.agents.baselines.base import Rival
from unfog.agents.catalogue import AGENTS, CHOOSERS, LEARNERS, Catalogue, named
from unfog.features.link import KINDS
from unfog.simulation import simulate
from unfog.testing.common import problem
from unfog.validation import InputError

LOSSES = ("regret", "regret_true_context", "regret_plug_in")
MAPS: dict[str, dict[str, Any]] = {  # of the problem of the contracts
    "quadratic": {},
    "per_arm": {"features": "per_arm", "actions": 3},
    "own": {"features": "own", "dim": 6, "actions": 3},
}
ROUNDS, TRIALS = 12, 3

every = pytest.mark.parametrize("name", RIVALS)
on_all = pytest.mark.parametrize("features", MAPS)


def kinds(rival: Rival) -> list[str]:
    """The kinds of rewards that a row plays."""
    agent = rival.agent
    return [kind for kind in KINDS if kind in (agent.learner.rewards, agent.binary and agent.binary.rewards)]


def played(name: str, kind: str, features: str, **how: Any) -> Any:
    """Regret of a few rounds, as names of agents and of losses have it: (trials, rounds) each."""
    world = problem(kind, **MAPS[features])
    found = simulate(world, [name], rounds=ROUNDS, trials=TRIALS, seed=2, points=ROUNDS, **how)
    return {loss: found.values[loss][0] for loss in LOSSES}


def test_each_row_stands_once() -> None:
    names = [row.agent.name for row in ROWS]
    assert len(names) == len(set(names)) == len(RIVALS)
    assert not set(names) & {*AGENTS, *LEARNERS, *CHOOSERS}


@every
def test_a_row_says_all_there_is_to_say(name: str) -> None:
    rival = RIVALS[name]
    agent = rival.agent
    assert agent.name == name
    assert all([agent.summary, agent.reference, rival.told, rival.sees])
    assert rival.regret in LOSSES
    assert rival.sure in ("high", "medium", "low")
    assert not agent.summary.endswith(".")


@every
def test_it_plays_both_kinds_of_rewards(name: str) -> None:
    one = {"rvr-ts": ["gaussian"], "pgts": ["bernoulli"]}  # the exact posterior, which each has for the other
    assert kinds(RIVALS[name]) == one.get(name, [*KINDS])


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_rows_are_the_same_agent(kind: str) -> None:
    able = [rival.agent.for_rewards(kind) for rival in RIVALS.values() if kind in kinds(rival)]
    assert len(able) > 20
    assert not [(a.name, b.name) for a in able for b in able if a is not b and a.same_as(b)]


@every
def test_a_name_is_the_row_and_may_change_what_is_tuned(name: str) -> None:
    rival = RIVALS[name]
    assert Catalogue(rival.agent.learner.rewards)[name] == rival.agent
    assert len(rival.grid) == (6 if rival.tuned else 0)
    assert list(rival.grid) == sorted(set(rival.grid))
    for kind in kinds(rival):
        rows = Catalogue(kind)
        for value in rival.grid:
            tuned = rows[f"{name}:{rival.tuned}={value}"]
            parts = tuned.denoiser, tuned.learner, tuned.chooser
            found = [vars(part)[rival.tuned] for part in parts if rival.tuned in vars(part)]
            assert found, f"no part of {name!r} for {kind} rewards has the setting {rival.tuned!r}"
            assert set(found) == {value}


@every
def test_its_parts_keep_their_contracts(name: str) -> None:
    agent = RIVALS[name].agent
    testing.check_denoiser(agent.denoiser)
    for kind in kinds(RIVALS[name]):
        learner = agent.for_rewards(kind).learner
        testing.check_learner(learner, agent.denoiser, agent.chooser)
    testing.check_chooser(agent.chooser, agent.learner, agent.denoiser)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("suplinucb-conjugate", r"chooser: 'stages' beside .* 'conjugate'.* the learner 'staged-ridge'"),
        ("suplinucb-thompson", r"learner: 'staged-ridge' beside the chooser 'thompson'"),
        ("linrel-conjugate", r"chooser: 'two-widths' beside .* 'conjugate'.* the learner 'spectral'"),
        ("linrel-thompson", r"learner: 'spectral' beside the chooser 'thompson'"),
        ("linrel-ucb", r"learner: 'spectral' beside the chooser 'ucb'"),
        ("samplinucb-conjugate", r"chooser: 'reach' beside .* 'conjugate'.* how far off the profile"),
        ("clbbf-conjugate", r"chooser: 'lifting' beside .* 'conjugate'.* the learner 'imputing'"),
    ],
)
def test_parts_made_for_each_other_are_not_parted(name: str, told: str) -> None:
    with pytest.raises(InputError, match=rf"^agents\.{name}\.{told}"):
        named([name])


@every
@on_all
def test_it_plays_every_map_and_a_trial_by_itself(name: str, features: str) -> None:
    for kind in kinds(RIVALS[name]):
        whole, alone = (played(name, kind, features, chunk=chunk) for chunk in (TRIALS, 1))
        for loss in LOSSES:
            assert np.isfinite(whole[loss]).all(), (kind, loss)
            np.testing.assert_allclose(alone[loss], whole[loss], rtol=1e-9, atol=1e-9, err_msg=kind)


@pytest.mark.slow
@every
@pytest.mark.parametrize(
    ("features", "kind"),
    [
        ("quadratic", "gaussian"),
        ("per_arm", "bernoulli"),
        pytest.param("own", "gaussian", marks=pytest.mark.soak),
    ],
)
def test_engines_agree(name: str, features: str, kind: str) -> None:
    pytest.importorskip("jax")
    kind = kind if kind in kinds(RIVALS[name]) else kinds(RIVALS[name])[0]
    why = RIVALS[name].agent.for_rewards(kind).interpreted
    if why:
        with pytest.raises(InputError, match="engine") as refusal:
            played(name, kind, features, engine="jax")
        assert why in str(refusal.value)
        return
    one, other = (played(name, kind, features, engine=e, draws="numpy") for e in ("numpy", "jax"))
    for loss in LOSSES:
        np.testing.assert_allclose(other[loss], one[loss], rtol=1e-6, atol=1e-6)


@every
def test_it_runs_by_name(name: str) -> None:
    found = unfog.run(problem(kinds(RIVALS[name])[0]), agents=[name], rounds=5, trials=2, seed=1)
    assert list(found.agent.values) == [name]
    assert np.isfinite(found.regret.values).all()
