"""Worlds whose channel loses, drifts and misleads: regret, both engines, and what is refused."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.problems import random_problem, spd
from unfog.agents.agent import Agent
from unfog.agents.catalogue import AGENTS, playable
from unfog.agents.denoise import Drift, Robust
from unfog.simulation import Curves, plan, play
from unfog.simulation.engines import jax as jax_engine
from unfog.theory.regret import PLAIN, SPLIT
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem

D = 3
SOURCE = np.random.default_rng(23)
ACTUAL, DRIFT = spd(SOURCE, D, 0.1, 1), spd(SOURCE, D, 0.01, 0.1)
OTHER_NOISE = {"noise_cov": ACTUAL, "assumed_noise_cov": random_problem(seed=12, dim=D, actions=5).noise_cov}
CHANNELS: dict[str, dict[str, Any]] = {
    "other noise": OTHER_NOISE,
    "tails": {"tails": 3},
    "wide tails": {"tails": 3, **OTHER_NOISE, "drift_cov": DRIFT},
    "missing": {"missing": 0.4},
    "drift": {"drift_cov": DRIFT, "drift_rounds": 50},
    "all but tails": {**OTHER_NOISE, "missing": 0.2, "drift_cov": DRIFT},
}


def own(name: str, denoiser: Any, like: str = "alg1") -> Agent:
    return replace(AGENTS[like], name=name, denoiser=denoiser)


DRIFTER, STURDY = own("drifter", Drift(step=0.01)), own("sturdy", Robust(nu=3))
PAIRS = [own("drift-pairs", Drift(pairs=True), "alg2"), own("robust-pairs", Robust(pairs=True), "alg2")]


def world(**odd: Any) -> GaussianProblem:
    """The same laws with another channel."""
    plain = random_problem(seed=12, dim=D, actions=5)
    laws = ("context_mean", "context_cov", "noise_cov", "bias_cov", "prior_mean", "prior_cov", "reward_var")
    return GaussianProblem(dim=D, actions=5, **{name: getattr(plain, name) for name in laws} | odd)


def run(problem: GaussianProblem, agents: Any, **settings: Any) -> Curves:
    return play(problem, agents, **{"rounds": 80, "trials": 6, "seed": 3} | settings)


@pytest.mark.parametrize("kind", ["wide tails", "all but tails"])
@pytest.mark.slow
def test_regret_is_never_negative_and_the_split_adds_up(kind: str) -> None:
    curves = run(world(**CHANNELS[kind]), [*playable(), DRIFTER, STURDY, *PAIRS], rounds=150, trials=4)
    for name in PLAIN:
        steps = np.diff(curves.values[name], axis=-1, prepend=0)
        assert steps.min() >= 0
        assert steps.max() > 0.1
    total = sum(curves.values[name] for name in SPLIT)
    np.testing.assert_allclose(total, curves.values["regret"], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("kind", "name", "decompose"),
    [
        ("wide tails", "alg1", True),
        ("all but tails", "alg1", False),
        ("drift", "oracle", False),  # it is told the bias of every round
    ],
)
@pytest.mark.slow
def test_both_engines_agree(kind: str, name: str, decompose: bool) -> None:
    problem = world(**CHANNELS[kind])
    numpy, jax = (
        run(problem, [name], decompose=decompose, engine=e, draws="numpy") for e in ("numpy", "jax")
    )
    for loss, values in numpy.values.items():
        np.testing.assert_allclose(jax.values[loss], values, rtol=1e-9, atol=1e-9, err_msg=loss)


@pytest.mark.slow
def test_the_layout_for_gpus_gives_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a bias that walks, and of agents that follow one."""
    problem, settings = world(drift_cov=DRIFT), {"rounds": 40, "decompose": False, "draws": "numpy"}
    straight = run(problem, [DRIFTER, STURDY], **settings).values["regret"]
    monkeypatch.setattr(jax_engine, "platform", lambda: "gpu")
    turned = run(problem, [DRIFTER, STURDY], engine="jax", precision="float64", **settings).values["regret"]
    np.testing.assert_allclose(turned, straight, rtol=1e-9, atol=1e-9)


def test_batches_change_no_bit() -> None:
    for kind, told in CHANNELS.items():
        whole, cut = (run(world(**told), ["alg1", DRIFTER, STURDY], chunk=chunk) for chunk in (6, 4))
        for loss, values in whole.values.items():
            assert np.array_equal(cut.values[loss], values), (kind, loss)


def test_an_oracle_is_told_the_bias_of_every_round() -> None:
    """Its features are then those of the benchmark, and a bias that walks costs it nothing at all."""
    still, walking = (run(world(drift_cov=cov), ["oracle", "alg1"]) for cov in (0.0, DRIFT))
    for loss in ("ee1", "ee2"):
        np.testing.assert_allclose(walking.values[loss][0], 0, atol=1e-9)
    same, other = np.abs(walking.values["regret"] - still.values["regret"]).max((1, 2))
    assert same < 1e-9
    assert other > 0.1


def test_where_an_oracle_is_misled_its_features_are_off() -> None:
    for kind in ["other noise", "missing", "tails"]:
        check_where_an_oracle_is_misled_its_features_are_off(kind)


def check_where_an_oracle_is_misled_its_features_are_off(kind: str) -> None:
    curves = run(world(**CHANNELS[kind]), ["oracle"])
    assert np.abs(curves.values["ee1"][..., -1]).min() > 1e-3


def test_fields_at_their_defaults_change_no_bit() -> None:
    spelled_out = {"assumed_noise_cov": 0.0, "tails": 0, "missing": 0.0, "drift_cov": 0.0, "revealed": 1.0}
    plain, odd = (run(world(**fields), ["alg1", "alg2", "oracle"]) for fields in ({}, spelled_out))
    for loss, values in plain.values.items():
        assert np.array_equal(odd.values[loss], values)


def test_noise_as_told_is_no_other_noise() -> None:
    told, plain = world(assumed_noise_cov=world().noise_cov), world()
    assert told.plain
    first, second = (run(problem, ["alg1", "oracle"]).values["regret"] for problem in (told, plain))
    np.testing.assert_allclose(first, second, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_the_agents_made_for_them_win_in_their_worlds() -> None:
    # Paired over 60 trials: 7.7 and 3.5 standard errors.
    settings: Any = {"rounds": 300, "trials": 60, "points": 1, "decompose": False}
    for odd, agent in (({"drift_cov": 0.1}, own("mine", Drift(step=0.1))), ({"tails": 3}, STURDY)):
        problem = GaussianProblem(noise_cov=0.5, prior_cov=1.0, reward_var=0.5, **odd)
        theirs, ours = run(problem, ["alg1-exact", agent], **settings).values["regret"][:, :, -1]
        gap = theirs - ours
        assert gap.mean() > 3 * gap.std(ddof=1) / np.sqrt(60)


PARTIAL = {"late": {"reveal_delay": 2}, "some": {"revealed": 0.5}}
NOT_COMPILED = {"late": {"reveal_delay": 2}, "where they are asked for": {"reveal": "on_request"}}


def test_engines_that_cannot_show_contexts_so_say_so() -> None:
    for kind in NOT_COMPILED:
        check_engines_that_cannot_show_contexts_so_say_so(kind)


def check_engines_that_cannot_show_contexts_so_say_so(kind: str) -> None:
    problem = GaussianProblem(dim=2, actions=3, **NOT_COMPILED[kind])  # type: ignore[arg-type]
    for engine in ("jax", "cuda"):
        message = rf"^engine: {engine} cannot show true contexts {kind}; allowed: numpy$"
        with pytest.raises(InputError, match=message):
            plan([problem], ["alg1"], rounds=5, trials=2, seed=0, engine=engine)
    work = plan([problem], ["alg1"], rounds=5, trials=2, seed=0, engine="auto")
    assert work.engine.name == "numpy"
    assert f"jax cannot show true contexts {kind}" in work.reason


def test_agents_that_need_every_context_are_refused() -> None:
    for kind in PARTIAL:
        check_agents_that_need_every_context_are_refused(kind)


def check_agents_that_need_every_context_are_refused(kind: str) -> None:
    problem = GaussianProblem(dim=2, actions=3, **PARTIAL[kind])  # type: ignore[arg-type]
    message = (
        r"^agents: 'alg2' needs every true context at once; allowed: agents that take true contexts late"
    )
    with pytest.raises(InputError, match=message):
        run(problem, ["alg1", "alg2"])
    assert run(problem, ["alg1"]).agents == ["alg1"]


def test_the_kernel_refuses_odd_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax_engine, "platform", lambda: "gpu")
    odd: dict[str, Any] = {"tails": 3, "missing": 0.1, "drift_cov": 0.1, "assumed_noise_cov": 1.0}
    for field, value in odd.items():
        problem = GaussianProblem(**{field: value})
        with pytest.raises(
            InputError, match=r"^engine: cuda serves plain channels.*; allowed: numpy, numba, jax, auto"
        ):
            plan([problem], ["alg1"], rounds=5, trials=2, seed=0, engine="cuda")


def test_a_long_walk_is_cut_into_small_batches() -> None:
    long = GaussianProblem(drift_cov=0.1, drift_rounds=10**6)
    for engine in ("numpy", "jax"):
        [parts] = plan([long], ["alg1"], rounds=5, trials=500, seed=0, engine=engine).batches
        assert max(map(len, parts)) * 8 * 3 * 5 * 10**6 <= 2**30
