"""The GPU kernel, run without a GPU by Pallas's interpreter, against the NumPy engine on the same draws."""

from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from tests.problems import random_problem, spd
from unfog.agents.assemble import Agent
from unfog.agents.catalogue import AGENTS, playable
from unfog.agents.denoise.bias import Tally
from unfog.agents.denoise.plugin import PlugIn
from unfog.agents.learn import Conjugate
from unfog.agents.parts import Privilege
from unfog.inputs import InputError
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Gaussian
from unfog.simulate import grid, simulate
from unfog.simulate.engines import pallas as pallas_engine
from unfog.simulate.engines import pallas_kernel
from unfog.worlds.gaussian import GaussianProblem

PROBLEM = random_problem(seed=4, dim=2, actions=5)
SERVED = ["alg1", "alg2", "naive", "oracle", "kk", "alg1-exact", "alg2-exact"]


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pallas_engine, "interpreted", lambda: True)


def test_carlsons_update_is_the_posterior_with_a_triangular_root() -> None:
    rng = np.random.default_rng(1)
    m = 5
    belief = gaussian.from_moments(rng.normal(size=m), spd(rng, m))
    for _ in range(4):
        row, value, variance = rng.normal(size=m), rng.normal(), 0.7
        lines = [[jnp.asarray([belief.root[i, j]]) for j in range(i + 1)] for i in range(m)]
        root, mean = pallas_kernel.condition(
            lines,
            [jnp.asarray([x]) for x in belief.mean],
            [jnp.asarray([x]) for x in row],
            jnp.asarray([value]),
            variance,
        )
        right = belief.condition(row, np.asarray(value), np.asarray(variance))
        found = np.array([[float(root[i][j][0]) if j <= i else 0.0 for j in range(m)] for i in range(m)])
        np.testing.assert_allclose([float(x[0]) for x in mean], right.mean, rtol=1e-11)
        np.testing.assert_allclose(
            found, np.linalg.cholesky(gaussian.covariance(right)), rtol=1e-10, atol=1e-12
        )
        belief = Gaussian(right.mean, found)


@pytest.mark.parametrize("name", SERVED)
def test_gains_are_what_the_denoiser_does(name: str) -> None:
    agent, known, rng = AGENTS[name], PROBLEM.knowledge(), np.random.default_rng(2)
    gains = pallas_engine.gains(PROBLEM, agent, 9)
    noisy, bias, total = rng.normal(size=(3, 2))
    setup = agent.denoiser.setup(known, Privilege(bias) if agent.privileged else None)
    start = agent.denoiser.start(setup)
    for t in (0, 1, 8):
        state = Tally(np.asarray(float(t)), total) if isinstance(start, Tally) else start
        belief = agent.denoiser.predict(setup, state, noisy)
        seen = noisy - bias if agent.privileged else noisy
        mean = gains.offset[t] + gains.on_noisy[t] @ seen + gains.on_total[t] @ total
        np.testing.assert_allclose(mean, belief.mean, rtol=1e-12)
        np.testing.assert_allclose(gains.variance[t], np.diagonal(belief.cov), rtol=1e-12, atol=1e-15)


@dataclass(frozen=True, kw_only=True)
class Triangular(Conjugate):
    """The conjugate learner with its root made triangular anew every round, as the kernel keeps it."""

    name = "triangular"

    def update(self, parameters: Any, state: Any, evidence: Any, reward: Array) -> Any:
        new: Any = super().update(parameters, state, evidence, reward)
        return gaussian.from_moments(new.mean, gaussian.covariance(new))


@pytest.mark.parametrize("name", SERVED)
@pytest.mark.slow
def test_the_kernel_agrees_with_the_numpy_engine_on_its_draws(name: str) -> None:
    settings: dict[str, Any] = {"rounds": 25, "trials": 100, "seed": 8}
    triangular: Agent = replace(AGENTS[name], learner=Triangular())
    numpy = simulate(PROBLEM, [triangular], **settings)
    kernel = simulate(PROBLEM, [name], engine="pallas", draws="numpy", chunk=100, **settings)
    for loss, values in numpy.values.items():
        # float32 may turn a near tie the other way, after which a trial goes its own way.
        same = np.abs(kernel.values[loss] - values).max(-1) < 2e-3 * (1 + np.abs(values).max(-1))
        assert same.mean() > 0.95, loss


@pytest.mark.slow
def test_its_own_draws_strides_and_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {
        "rounds": 30,
        "trials": 200,
        "chunk": 128,
        "engine": "pallas",
        "decompose": False,
    }
    whole = simulate(PROBLEM, ["alg1"], **settings)
    monkeypatch.setattr(pallas_engine, "STRIDE_BYTES", 4 * 11 * 128 * 7)
    short = simulate(PROBLEM, ["alg1"], **settings)
    np.testing.assert_allclose(short.values["regret"], whole.values["regret"], rtol=1e-5)
    monkeypatch.setattr(grid, "MOST_CELLS", grid.CURVES * 200 * 2)
    coarse = simulate(PROBLEM, ["alg1"], **settings)
    assert (list(coarse.rounds), len(coarse.curve)) == ([16, 23, 30], 30)
    np.testing.assert_allclose(coarse.mean["regret"], short.values["regret"].mean(1), rtol=1e-6)
    se = short.values["regret"].std(1, ddof=1) / np.sqrt(200)
    np.testing.assert_allclose(coarse.se["regret"], se, rtol=1e-6)
    # A z test at level 1e-4 of the mean final regret against the NumPy engine's.
    numpy = simulate(PROBLEM, ["alg1"], rounds=30, trials=400).values["regret"][0, :, -1]
    final = whole.values["regret"][0, :, -1]
    assert abs(final.mean() - numpy.mean()) < 3.9 * np.sqrt(final.var() / 200 + numpy.var() / 400)


def test_what_it_cannot_run_is_refused_by_name() -> None:
    product = GaussianProblem(dim=2, actions=3, features="product")
    with pytest.raises(InputError, match="quadratic features"):
        simulate(product, ["alg1"], engine="pallas", rounds=3, trials=2)
    with pytest.raises(InputError, match=r"^precision: float64; allowed: float32"):
        simulate(PROBLEM, ["alg1"], engine="pallas", precision="float64", rounds=3, trials=2)
    odd = replace(AGENTS["alg1"], name="odd", learner=Triangular())
    with pytest.raises(InputError, match=r"^engine: pallas cannot run odd; allowed: numpy, jax, auto"):
        simulate(PROBLEM, [odd], engine="pallas", rounds=3, trials=2)


@pytest.mark.slow
def test_a_row_of_ones_own_made_of_parts_it_knows_is_run_and_one_of_others_is_not() -> None:
    twin = replace(AGENTS["alg1"], name="twin")
    settings: Any = {"engine": "pallas", "rounds": 3, "trials": 2, "chunk": 2}
    one, other = (simulate(PROBLEM, [agent], **settings).values["regret"] for agent in ("alg1", twin))
    assert np.array_equal(one, other)
    own = replace(twin, name="own", denoiser=Own())
    with pytest.raises(InputError, match=r"^engine: pallas cannot run own; allowed: numpy, jax, auto"):
        simulate(PROBLEM, [own], **settings)


@dataclass(frozen=True, kw_only=True)
class Own(PlugIn):
    """A denoiser that looks right."""


@pytest.mark.parametrize(
    "name",
    [
        *(row for row in playable() if row not in SERVED),
        "alg1-hetero",
        "alg1-exact-joint",
        "alg1-ucb",
    ],
)
def test_rows_with_other_parts_are_refused_by_name(name: str) -> None:
    with pytest.raises(InputError, match=rf"^engine: pallas cannot run {name}; allowed: numpy, jax, auto$"):
        simulate(PROBLEM, [name], engine="pallas", rounds=3, trials=2)


def test_several_devices_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jax.devices", lambda: [0, 1])
    with pytest.raises(
        InputError, match=r"^engine: pallas runs on one device, not 2; allowed: numpy, jax, auto"
    ):
        simulate(PROBLEM, ["alg1"], engine="pallas", rounds=3, trials=2)
