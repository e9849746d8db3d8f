"""The recurrence in doubling steps is the recurrence."""

import jax.numpy as jnp
import numpy as np
import pytest

from unfog.maths.linalg import recurrence


@pytest.mark.parametrize("length", [1, 2, 3, 8, 37])
def test_it_is_the_loop(length: int, rng: np.random.Generator) -> None:
    keep, fresh = rng.random((4, length)), rng.standard_normal((4, length, 2))
    right = np.empty_like(fresh)
    right[:, 0] = fresh[:, 0]
    for t in range(1, length):
        right[:, t] = keep[:, t, None] * right[:, t - 1] + fresh[:, t]
    np.testing.assert_allclose(recurrence(keep, fresh), right, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(recurrence(jnp.asarray(keep), jnp.asarray(fresh)), right, rtol=1e-6, atol=1e-6)


def test_what_is_kept_whole_adds_up(rng: np.random.Generator) -> None:
    fresh = rng.standard_normal((3, 500, 2))
    np.testing.assert_allclose(
        recurrence(np.ones((3, 500)), fresh), np.cumsum(fresh, 1), rtol=1e-12, atol=1e-12
    )
