"""The inverse by sweeps against LAPACK's, of small matrices and large ones."""

import jax.numpy as jnp
import numpy as np

from unfog.maths.gaussian import invert_covariance
from unfog.maths.linalg import SMALL


def test_it_is_lapacks(rng: np.random.Generator) -> None:
    for size in [1e-9, 1.0, 1e9]:
        for dim in [1, 2, 5, SMALL, SMALL + 1]:
            check_it_is_lapacks(dim, size, rng)


def check_it_is_lapacks(dim: int, size: float, rng: np.random.Generator) -> None:
    half = rng.normal(size=(4, 3, dim, dim + 2)) * np.geomspace(1.0, 30.0, dim)[:, None]
    cov = size * half @ half.mT
    for library in (np, jnp):
        inverse, logs = invert_covariance(library.asarray(cov))
        np.testing.assert_allclose(inverse @ cov, np.broadcast_to(np.eye(dim), cov.shape), atol=1e-8)
        np.testing.assert_allclose(logs, np.linalg.slogdet(cov)[1], rtol=1e-10, atol=1e-8)
        np.testing.assert_allclose(inverse, np.asarray(inverse).mT, rtol=1e-9)
