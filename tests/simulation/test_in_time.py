"""Agents that know of time, in worlds that have some: what they believe is right, and pays."""

from typing import Any

import numpy as np
import pytest

import unfog
from unfog.agents import round as rounds
from unfog.agents.catalogue import Catalogue
from unfog.simulation import play
from unfog.simulation.player import make_observation, played
from unfog.worlds.temporal import TemporalProblem

WORLD: dict[str, Any] = {
    "dim": 2,
    "actions": 8,
    "context_mean": [1.0, -0.5],
    "fast_cov": [[1.0, 0.6], [0.6, 0.8]],
    "fast_time": 4.0,
    "level_cov": 0.2,
    "level_walk": [0.002, 0.01],
    "bias_cov": 0.5,
    "bias_walk": 0.004,
    "error_cov": [[0.6, -0.2], [-0.2, 0.4]],
    "error_time": 3.0,
    "noise_cov": 0.05,
    "prior_cov": 0.25,
    "features": "product",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields", [{"revealed": 0.05}, {"revealed": 0.3, "reveal_delay": 7, "reveal_share": 0.5}]
)
def test_bands_cover_what_they_say(fields: dict[str, Any]) -> None:
    """95 % bands of contexts, every tenth round of 300 trials: 93 to 97 %, trials being independent."""
    inside = []
    for t, (emission, decision) in enumerate(
        played(TemporalProblem(**WORLD | fields), Catalogue()["temporal"], 200, range(300), 3)
    ):
        if t % 10 == 9:
            spread = np.sqrt(np.diagonal(decision.context.cov, axis1=-2, axis2=-1))
            inside.append(np.abs(emission.context - decision.context.mean) < 1.959964 * spread)
    share = np.stack(inside).mean((0, 2))  # of each trial
    error = share.std(ddof=1) / np.sqrt(len(share))
    assert error < 0.005
    assert 0.93 < share.mean() - 2 * error < share.mean() + 2 * error < 0.97


def test_knowing_of_time_pays_and_so_does_every_true_context() -> None:
    """Paired, 40 trials of 300 rounds; each comparison fails by chance less than once in a thousand runs."""
    regret = {}
    for share in (0.0, 0.05, 1.0):
        told = play(
            TemporalProblem(**WORLD, revealed=share), ["temporal", "late"], rounds=300, trials=40, seed=2
        )
        regret[share] = told.values["regret"][:, :, -1]
    for better, worse in (
        (regret[0.0][0], regret[0.0][1]),
        (regret[0.05][0], regret[0.0][0]),
        (regret[1.0][0], regret[0.05][0]),
    ):
        gain = worse - better
        assert gain.mean() > 3.1 * gain.std(ddof=1) / np.sqrt(len(gain))


def test_a_round_learnt_from_again_says_what_its_context_says_by_now() -> None:
    """Theta is believed to be what a plain sum over the rounds says, each with the term it has by now."""
    agent: Any = Catalogue()["temporal:lag=3"]
    world = TemporalProblem(**WORLD, revealed=0.0)
    rng, known, trials = np.random.default_rng(4), world.knowledge(), 2
    truth = world.truth({name: x.of(rng, trials) for name, x in world.truth_draws().items()})
    setup, memory = rounds.start(agent, known)
    decisions: list[Any] = []
    for t in range(9):
        emission = world.emit(truth, rng.normal(size=(trials, world.round_normals())), np.asarray(t))
        observation, draws = (
            make_observation(emission, np.asarray(t)),
            rng.normal(size=(trials, agent.chooser.normals(known))),
        )
        paid = rng.normal(size=trials)
        told = agent, setup, memory, truth.features
        memory, decision = rounds.play(*told, observation, draws, lambda _, paid=paid: paid)  # type: ignore[misc]
        if t == 5:
            memory, decision = rounds.reveal(agent, setup, memory, decision, emission.context)
        decisions.append(decision)
    before = decisions[4].term
    for t in (4, 7):
        memory, decisions[t] = rounds.revisit(agent, setup, memory, decisions[t])
    assert (decisions[4].term.variance < before.variance).all()  # the next context is known: less is hidden
    smooth = agent.denoiser.smooth(
        setup.denoiser, memory.denoiser, decisions[4].moment, np.full((trials, 2), np.nan)
    )
    row = truth.features.design(smooth).row(decisions[4].arm)
    np.testing.assert_allclose(decisions[4].term.row, row, rtol=0, atol=1e-12)
    precision: Any = np.linalg.inv(known.prior_cov) + sum(
        d.term.row[:, :, None] * d.term.row[:, None, :] / d.term.variance[:, None, None] for d in decisions
    )
    natural: Any = sum(d.term.row * (d.reward / d.term.variance)[:, None] for d in decisions)
    natural = natural + np.linalg.solve(known.prior_cov, known.prior_mean)
    belief = agent.learner.belief(setup.learner, memory.learner)
    np.testing.assert_allclose(belief.mean, np.linalg.solve(precision, natural[..., None])[..., 0], atol=1e-9)


@pytest.mark.slow
def test_both_engines_agree_on_time() -> None:
    pytest.importorskip("jax")
    world = TemporalProblem(**WORLD, revealed=0.3, gaps=0.2, periods=[24.0], cycle_cov=0.1)
    run: Any = {"agents": ["temporal"], "rounds": 12, "trials": 3, "seed": 5, "decompose": False}
    here = play(world, **run)
    there = play(world, engine="jax", draws="numpy", precision="float64", **run)
    for name, value in here.values.items():
        np.testing.assert_allclose(there.values[name], value, rtol=0, atol=1e-9, err_msg=name)


def test_units_have_courses_of_their_own() -> None:
    """Told whose round it is, an agent in time follows each; regret is lower, paired, 30 trials."""
    fields = WORLD | {"units": 4, "revealed": 0.1}
    told, untold = (
        play(TemporalProblem(**fields, observe_units=tell), ["temporal"], rounds=200, trials=30, seed=1)
        for tell in (True, False)
    )
    gain = (untold.values["regret"] - told.values["regret"])[0, :, -1]
    assert gain.mean() > 3.1 * gain.std(ddof=1) / np.sqrt(len(gain))


def test_a_run_names_the_agent() -> None:
    result = unfog.run(TemporalProblem(**WORLD), rounds=5, trials=2, agents=["temporal", "unfog"])
    assert list(result.agent.values) == ["temporal", "unfog"]
