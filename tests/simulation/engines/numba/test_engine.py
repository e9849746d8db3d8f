"""The compiled CPU engine: NumPy's random numbers, actions and results, on every row of the catalogue."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from unfog.agents.catalogue import AGENTS, Catalogue
from unfog.simulation import plan, play
from unfog.simulation.engines import numpy as numpy_engine
from unfog.simulation.engines.numba import engine, support
from unfog.simulation.engines.numba.kernel import stretch
from unfog.simulation.job import MOMENTS, Job, Part
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem

WITHOUT = {"coupled", "hedged", "late"}
ROUNDS = 140  # more than a block, which has 128


def covariance(seed: int, dim: int, size: float) -> list[list[float]]:
    root = np.random.default_rng(seed).normal(size=(dim, dim))
    found: list[list[float]] = (size * (root @ root.T / dim + 0.3 * np.eye(dim))).tolist()
    return found


def problem(**fields: Any) -> GaussianProblem:
    """Correlated, and far from the centre. All have the same sizes: a program takes seconds to compile."""
    laws: dict[str, Any] = {"context_cov": 1.0, "noise_cov": 0.5, "bias_cov": 0.7}
    given: dict[str, Any] = {
        name: covariance(seed, 2, size) for seed, (name, size) in enumerate(laws.items())
    }
    given |= {"prior_cov": covariance(5, 6, 1.0), "prior_mean": [0.3, -0.2, 0.1, 0.4, 0.0, -0.5]}
    told = {"prior_contexts": 30, "prior_noisy_contexts": 200}
    return GaussianProblem(**{"dim": 2, "actions": 5, "context_mean": [1.0, -2.0], **given, **told, **fields})


def job(names: list[str], world: GaussianProblem, *, decompose: bool = False, rounds: int = ROUNDS) -> Job:
    settings: Any = {"rounds": rounds, "trials": 4, "seed": 3, "points": 20}
    return plan([world], names, decompose=decompose, engine="numba", **settings).jobs[0]


def both(made: Job, trials: range = range(4)) -> tuple[Part, Part]:
    found = engine.ENGINE.run(made, trials, lambda _: None)
    return found, numpy_engine.ENGINE.run(made, trials, lambda _: None)


def agree(made: Job, tolerance: float = 1e-9) -> None:
    found, wanted = both(made)
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        assert np.abs(values).max() > 0
        np.testing.assert_allclose(found[name], values, rtol=tolerance, atol=tolerance * 100)


def rows() -> list[str]:
    """Those that such a world tells enough, but for the slowest of those that have no kernel."""
    slow = {"unknown-noise", "temporal", "adaptive-temporal"}
    return [name for name in Catalogue(knowledge=("sample", "mixture")) if name not in slow]


@pytest.mark.slow
@pytest.mark.parametrize("decompose", [pytest.param(False, marks=pytest.mark.soak), True])
def test_every_row_does_as_with_numpy(decompose: bool) -> None:
    made = job(rows(), problem(), decompose=decompose)
    assert {made.agents[place].name for place in support.split(made)[1]} == WITHOUT
    agree(made)


@pytest.mark.slow
@pytest.mark.parametrize("dim", [12, *(pytest.param(dim, marks=pytest.mark.soak) for dim in (7, 17, 20))])
def test_long_sums_are_taken_in_stretches(dim: int) -> None:
    """Where loops are too long to be unrolled: every way that `stretch` cuts them."""
    laws: dict[str, Any] = {"context_cov": covariance(1, dim, 1.0), "noise_cov": covariance(2, dim, 2.0)}
    world = GaussianProblem(dim=dim, actions=40, prior_cov=covariance(3, 3 * dim, 1.0), **laws)
    agree(job(["unfog"], world))


def test_stretches_fill_a_loop() -> None:
    for times in [1, 2, 3]:
        check_stretches_fill_a_loop(times)


def check_stretches_fill_a_loop(times: int) -> None:
    inlined: Any = stretch
    for dim in range(1, 60):
        assert times * dim % inlined.py_func(times, dim) == 0


CHANNELS: dict[str, dict[str, Any]] = {
    "gaps": {"missing": 0.3},
    "drift": {"drift_cov": 0.01, "drift_rounds": 100},
    "tails": {"tails": 3},
    "units": {"units": 3},
    "absurd rewards": {"reward_outliers": 0.05, "reward_outlier": 1e3},
    "other noise": {"noise_cov": 9.0, "assumed_noise_cov": 0.5, "trouble_from": 50},
    "steady": {"steady": True},
    "given actions": {"actions": [[0.1, 2.0], [-1.0, 0.3], [0.5, 0.5], [1.5, -1.0], [0.0, 0.2]]},
}


@pytest.mark.slow
@pytest.mark.parametrize("channel", CHANNELS)
def test_odd_channels_change_nothing(channel: str) -> None:
    agree(
        job(
            ["alg1", "alg2", "oracle", "unfog", "unfog-delayed", "unfog-oracle", "gaps"],
            problem(**CHANNELS[channel]),
        )
    )


@pytest.mark.slow
def test_what_is_absurd_is_brought_within_reach_as_with_numpy() -> None:
    """A limit of one deviation touches a third of readings, contexts and rewards."""
    made = job(["unfog", "unfog-delayed", "unfog-oracle"], problem())
    agree(made._replace(agents=tuple(replace(agent, clip_sd=1.0) for agent in made.agents)))


@pytest.mark.slow
def test_batches_give_the_same_bits() -> None:
    made = job(["alg1", "unfog", "gaps"], problem())
    whole, parts = (
        [engine.ENGINE.run(made, trials, lambda _: None)["regret"] for trials in cut]
        for cut in ([range(4)], [range(1), range(1, 4)])
    )
    np.testing.assert_array_equal(whole[0], np.concatenate(parts, 1))


def test_agents_without_a_kernel_are_said_why_and_stay_in_their_place() -> None:
    world = problem()
    assert support.why_not(AGENTS["coupled"], world) == "there is no kernel for the learner 'coupled'"
    assert "chooser" in support.why_not(Catalogue()["alg1-ucb"], world)
    assert "late" in support.why_not(AGENTS["alg2"], problem(reveal_delay=3))
    assert "quadratic" in support.why_not(AGENTS["alg1"], GaussianProblem(features="product"))
    made = job(["alg1-ucb", "coupled"], world, rounds=20)
    found, wanted = both(made)
    assert support.split(made) == ([], [0, 1])
    for name, values in wanted.items():
        np.testing.assert_array_equal(found[name], values)


@pytest.mark.slow
def test_the_order_of_agents_is_kept_where_some_have_no_kernel() -> None:
    made = job(["alg1-ucb", "alg1", "coupled", "unfog"], problem())
    assert support.split(made) == ([1, 3], [0, 2])
    agree(made)


@pytest.mark.slow
def test_moments_over_trials_are_kept() -> None:
    made = job(["alg1"], problem())._replace(curve=np.array([1, 50, ROUNDS]))
    assert MOMENTS + "regret" in both(made)[0]
    agree(made)


def test_float32_is_refused() -> None:
    with pytest.raises(InputError, match=r"^precision: float32; allowed: float64 on the numba engine"):
        play(problem(), ["alg1"], rounds=5, trials=2, engine="numba", precision="float32")


def test_the_batch_is_for_the_slowest() -> None:
    able, mixed = job(["alg1"], problem()), job(["alg1", "coupled"], problem())
    assert engine.ENGINE.batch(able, 10**6) == engine.BATCH_TRIALS[1]
    assert engine.ENGINE.batch(mixed, 10**6) == numpy_engine.ENGINE.batch(mixed, 10**6)


def test_a_kernel_is_estimated_to_be_faster_and_what_has_none_is_not() -> None:
    able, lacking = (job([name], GaussianProblem()) for name in ("unfog", "coupled"))
    trials = 10**6
    assert engine.ENGINE.seconds(able, trials) < 0.6 * numpy_engine.ENGINE.seconds(able, trials)
    assert engine.ENGINE.seconds(lacking, trials) == numpy_engine.ENGINE.seconds(lacking, trials)
