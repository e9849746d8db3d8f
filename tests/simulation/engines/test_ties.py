"""Arms that are equal but for the last bit: every engine in double precision takes the same."""

from typing import Any

import numpy as np
import pytest

from tests.simulation.engines import on_host
from unfog.simulation import play
from unfog.worlds.synthetic import GaussianProblem

ACTIONS = np.array([[0.3, 0.7], [0.7, 0.3], [-0.7, 0.3], [-0.3, 0.7], [0.5, -0.5], [0.7, -0.3]])
# Readings say next to nothing, as far as limits of noise allow, so that the context is believed to be (1, 1)
# but for the last bits, and the same numbers in another order make an arm as good as another before the first
# reward. Later it is not.
FAINT: dict[str, Any] = {"context_mean": 1.0, "context_cov": 1e-20, "noise_cov": 1e-10, "bias_cov": 1e-11}
TIED = GaussianProblem(dim=2, actions=ACTIONS, **FAINT, prior_mean=0.2, prior_cov=0.5)
HAVE_KERNEL = ["unfog", "alg1-randucb"]


def played(names: list[str], engine: str, precision: str = "float64", **settings: Any) -> Any:
    """The regret of every trial after one round, by which the arm is known."""
    told = {} if engine == "numpy" else {"engine": engine, "precision": precision, **settings}
    return play(TIED, names, rounds=1, trials=40, decompose=False, **told).values["regret"][..., -1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "told", "names"),
    [
        ("numba", {}, ["unfog"]),
        ("jax", {"draws": "numpy"}, ["unfog", "alg1-greedy", "alg1-ids", "linucb", "minwd"]),
    ],
)
def test_compiled_engines_take_the_arm_that_numpy_takes(
    engine: str, told: dict[str, Any], names: list[str]
) -> None:
    right = played(names, "numpy")
    assert (right[0] > 0.1).sum() > 20
    np.testing.assert_allclose(played(names, engine, **told), right, atol=1e-9)


@pytest.mark.slow
@pytest.mark.skipif(on_host.COMPILER is None, reason="no C++ compiler on this machine")
def test_so_does_the_kernel_for_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    on_host.instead_of_a_gpu(monkeypatch)
    found = played(HAVE_KERNEL, "cuda", draws="numpy")
    np.testing.assert_allclose(found, played(HAVE_KERNEL, "numpy"), atol=1e-9)
