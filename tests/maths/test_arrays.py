"""Chosen rows and values, one by one."""

import jax.numpy as jnp
import numpy as np

from unfog.maths.arrays import pick, take

T, N, K, P = 4, 3, 5, 2


def test_rows_that_all_share(rng: np.random.Generator) -> None:
    for shape in [(), (T,), (T, N)]:
        for library in [np, jnp]:
            check_rows_that_all_share(library, shape, rng)


def check_rows_that_all_share(library: object, shape: tuple[int, ...], rng: np.random.Generator) -> None:
    rows, arms = rng.normal(size=(K, P)), rng.integers(0, K, shape)
    found = take(library.asarray(rows), library.asarray(arms))  # type: ignore[attr-defined]
    assert found.shape == (*shape, P)
    for place in np.ndindex(shape):
        assert np.array_equal(found[place], rows[int(arms[place])])


def test_rows_of_ones_own(rng: np.random.Generator) -> None:
    rows, arms = rng.normal(size=(T, K, P)), rng.integers(0, K, T)
    wide = rng.integers(0, K, (T, N))
    for i in range(T):
        assert np.array_equal(take(rows, arms)[i], rows[i, arms[i]])
        assert pick(rows[..., 0], arms)[i] == rows[i, arms[i], 0]
        for t in range(N):
            assert np.array_equal(take(rows[:, None], wide)[i, t], rows[i, wide[i, t]])
