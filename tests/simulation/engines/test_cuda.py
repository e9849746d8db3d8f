"""The GPU kernel, compiled for the processor, against the NumPy engine on the same draws."""

from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from tests.problems import random_problem
from tests.simulation.engines import on_host
from unfog.agents.agent import Agent
from unfog.agents.base import Privilege
from unfog.agents.catalogue import AGENTS, playable, select_rows
from unfog.agents.denoise.bias import Tally
from unfog.agents.denoise.exact import PlugIn
from unfog.agents.learn import Conjugate, Scaled
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.simulation import play
from unfog.simulation.engines import cuda
from unfog.simulation.engines import cuda as cuda_engine
from unfog.simulation.engines import jax as jax_engine
from unfog.simulation.plan import CURVES
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem

PROBLEM = random_problem(seed=4, dim=2, actions=5)
PAPER = ["alg1", "alg2", "naive", "oracle", "kk", "alg1-exact", "alg2-exact"]
OURS = ["unfog", "unfog-delayed", "unfog-oracle"]
ALIKE = [*OURS, "alg1-randucb", "alg2-randucb", "alg1-exact-randucb:growth=0.0"]

pytestmark = pytest.mark.skipif(on_host.COMPILER is None, reason="no C++ compiler on this machine")


@pytest.fixture(autouse=True)
def _on_host(monkeypatch: pytest.MonkeyPatch) -> None:
    on_host.instead_of_a_gpu(monkeypatch)


def test_gains_are_what_the_denoiser_does() -> None:
    for name in [*PAPER, *OURS]:
        check_gains_are_what_the_denoiser_does(name)


def check_gains_are_what_the_denoiser_does(name: str) -> None:
    agent, known, rng = AGENTS[name], PROBLEM.knowledge(), np.random.default_rng(2)
    gains = cuda.gains(PROBLEM, agent, 9)
    noisy, bias, total = rng.normal(size=(3, 2))
    setup = agent.denoiser.setup(known, Privilege(bias) if agent.can.see_bias else None)
    start = agent.denoiser.start(setup)
    for t in (0, 1, 8):
        state = Tally(np.asarray(float(t)), total) if isinstance(start, Tally) else start
        belief = agent.denoiser.predict(setup, state, noisy)
        seen = noisy - bias if agent.can.see_bias else noisy
        mean = gains.offset[t] + gains.on_noisy[t] @ seen + gains.on_total[t] @ total
        np.testing.assert_allclose(mean, belief.mean, rtol=1e-12)
        np.testing.assert_allclose(gains.cov[t], belief.cov, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.slow
def test_the_kernel_is_the_numpy_engine_on_its_draws(name: str) -> None:
    settings: dict[str, Any] = {"rounds": 40, "trials": 60, "seed": 8}
    numpy = play(PROBLEM, [name], **settings)
    kernel = play(PROBLEM, [name], engine="cuda", precision="float64", draws="numpy", **settings)
    assert numpy.values["regret"][0, :, -1].mean() > 1
    for loss, values in numpy.values.items():
        np.testing.assert_allclose(kernel.values[loss], values, rtol=1e-9, atol=1e-9)


@dataclass(frozen=True, kw_only=True)
class Triangular(Conjugate):
    """The conjugate learner with its root made triangular anew every round, as the kernel keeps it."""

    name = "triangular"

    def update(self, parameters: Any, state: Any, evidence: Any, reward: Array) -> Any:
        new: Any = super().update(parameters, state, evidence, reward)
        return gaussian.from_moments(new.mean, gaussian.covariance(new))


@dataclass(frozen=True, kw_only=True)
class TriangularScaled(Scaled):
    """Likewise at every scale."""

    name = "triangular-scaled"

    def update(self, parameters: Any, state: Any, evidence: Any, reward: Array) -> Any:
        new: Any = super().update(parameters, state, evidence, reward)
        square = gaussian.from_moments(new.beliefs.mean, gaussian.covariance(new.beliefs))
        return new._replace(beliefs=square)


@pytest.mark.slow
def test_draws_of_theta_are_those_of_a_triangular_root() -> None:
    for name in [*PAPER, "unfog-thompson"]:
        check_draws_of_theta_are_those_of_a_triangular_root(name)


def check_draws_of_theta_are_those_of_a_triangular_root(name: str) -> None:
    settings: dict[str, Any] = {"rounds": 25, "trials": 40, "seed": 8}
    [row] = select_rows([name])
    learner = TriangularScaled() if isinstance(row.learner, Scaled) else Triangular()
    triangular: Agent = replace(row, learner=learner)
    numpy = play(PROBLEM, [triangular], **settings)
    kernel = play(PROBLEM, [name], engine="cuda", precision="float64", draws="numpy", **settings)
    for loss, values in numpy.values.items():
        np.testing.assert_allclose(kernel.values[loss], values, rtol=1e-8, atol=1e-8)


@pytest.mark.slow
def test_its_own_draws_are_those_of_jax() -> None:
    settings: dict[str, Any] = {"rounds": 40, "trials": 50, "seed": 3, "precision": "float64"}
    jax, kernel = (play(PROBLEM, ["unfog"], engine=e, **settings).values for e in ("jax", "cuda"))
    for loss, values in jax.items():
        np.testing.assert_allclose(kernel[loss], values, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_in_single_precision_few_trials_go_their_own_way() -> None:
    settings: dict[str, Any] = {"rounds": 40, "trials": 200, "seed": 3, "decompose": False}
    double, single = (
        play(PROBLEM, ["unfog"], engine="cuda", precision=p, **settings).values["regret"][0, :, -1]
        for p in ("float64", None)
    )
    assert (np.abs(single - double) < 2e-3 * (1 + double)).mean() > 0.9


@pytest.mark.slow
def test_strides_and_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {"rounds": 30, "trials": 200, "chunk": 128, "engine": "cuda", "seed": 1}
    whole = play(PROBLEM, ["alg1"], **settings)
    monkeypatch.setattr(jax_engine, "STRIDE", 7)
    short = play(PROBLEM, ["alg1"], **settings)
    np.testing.assert_allclose(short.values["regret"], whole.values["regret"], rtol=1e-5)
    monkeypatch.setattr(import_module("unfog.simulation.plan"), "MOST_CELLS", CURVES * 200 * 2)
    coarse = play(PROBLEM, ["alg1"], **settings)
    assert (list(coarse.rounds), len(coarse.curve)) == ([16, 23, 30], 30)
    np.testing.assert_allclose(coarse.mean["regret"], short.values["regret"].mean(1), rtol=1e-6)
    se = short.values["regret"].std(1, ddof=1) / np.sqrt(200)
    np.testing.assert_allclose(coarse.se["regret"], se, rtol=1e-6)


def test_what_it_cannot_run_is_refused_by_name() -> None:
    product = GaussianProblem(dim=2, actions=3, features="product")
    with pytest.raises(InputError, match="quadratic features"):
        play(product, ["alg1"], engine="cuda", rounds=3, trials=2)
    odd = replace(AGENTS["alg1"], name="odd", learner=Triangular())
    with pytest.raises(InputError, match=r"^engine: cuda cannot run odd; allowed: numpy, numba, jax, auto"):
        play(PROBLEM, [odd], engine="cuda", rounds=3, trials=2)


@pytest.mark.slow
def test_a_row_of_ones_own_made_of_parts_it_knows_is_run_and_one_of_others_is_not() -> None:
    twin = replace(AGENTS["alg1"], name="twin")
    settings: Any = {"engine": "cuda", "rounds": 3, "trials": 2}
    one, other = (play(PROBLEM, [agent], **settings).values["regret"] for agent in ("alg1", twin))
    assert np.array_equal(one, other)
    own = replace(twin, name="own", denoiser=Own())
    with pytest.raises(InputError, match=r"^engine: cuda cannot run own; allowed"):
        play(PROBLEM, [own], **settings)


@dataclass(frozen=True, kw_only=True)
class Own(PlugIn):
    """A denoiser that looks right."""


def test_rows_with_other_parts_are_refused_by_name() -> None:
    for name in [
        *(row for row in playable() if row not in (*PAPER, *OURS, "hedged")),
        "alg1-hetero",
        "alg1-exact-joint",
        "alg1-ucb",
        "unfog-scaled:mixed=true",
    ]:
        check_rows_with_other_parts_are_refused_by_name(name)
    with pytest.raises(InputError, match=r"^engine: cuda cannot play 'hedged': .*; allowed: numpy$"):
        play(PROBLEM, ["hedged"], engine="cuda", rounds=3, trials=2)


def check_rows_with_other_parts_are_refused_by_name(name: str) -> None:
    with pytest.raises(
        InputError, match=rf"^engine: cuda cannot run {name}; allowed: numpy, numba, jax, auto$"
    ):
        play(PROBLEM, [name], engine="cuda", rounds=3, trials=2)


def test_several_devices_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jax.devices", lambda: [0, 1])
    with pytest.raises(InputError, match=r"^engine: cuda runs on one device, not 2; allowed"):
        play(PROBLEM, ["alg1"], engine="cuda", rounds=3, trials=2)


def test_actions_that_are_too_many_stay_in_the_memory_of_the_device() -> None:
    paper, many = GaussianProblem(), GaussianProblem(actions=400)
    assert cuda.block_size(paper, "float32", 232_448) == (256, 256 * 40 * 5 * 4)
    assert cuda.block_size(paper, "float64", 232_448) == (128, 128 * 40 * 5 * 8)
    assert cuda.block_size(paper, "float32", 101_376) == (128, 0)
    assert cuda.block_size(many, "float32", 232_448) == (128, 0)
    assert cuda_engine.ENGINE.batch(None, 300_000) == 100_000  # type: ignore[arg-type]
