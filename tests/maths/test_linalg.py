"""Small matrices worked on by hand in compiled programs, against LAPACK."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unfog.maths import arrays, linalg
from unfog.maths.arrays import Array

SIZES: dict[Any, float] = {np.float64: 1e-12, np.float32: 1e-5}
DIMS = (1, 2, 5)  # of an even number of rows and of an odd one, rotations go in other rounds


@pytest.fixture(autouse=True)
def _calls_are_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU: all is by hand."""
    monkeypatch.setitem(arrays._FLOWS, jnp, arrays.Flow(jax.lax.cond, jax.lax.while_loop, calls=False))


def symmetric(rng: np.random.Generator, dim: int) -> dict[str, Array]:
    """Of every kind that rotations might fail on."""
    turn = np.linalg.qr(rng.normal(size=(4, 5, dim, dim)))[0]
    wild = rng.normal(size=turn.shape)
    levels = {
        "clustered": 1 + 1e-9 * rng.normal(size=dim),
        "singular": np.arange(dim) % 2,
        "graded": np.geomspace(1e-12, 1.0, dim),
        "tiny": 1e-25 * rng.normal(size=dim),  # whose squares single precision cannot hold
        "huge": 1e25 * rng.normal(size=dim),
        "nothing": np.zeros(dim),
    }
    made = {name: turn * level @ turn.mT for name, level in levels.items()}
    return made | {"random": wild + wild.mT, "diagonal": wild * np.eye(dim)}


def definite(rng: np.random.Generator, dim: int) -> Array:
    half = rng.normal(size=(4, 5, dim, dim + 3))
    return half @ half.mT


@pytest.mark.parametrize("dim", DIMS)
def test_eigenvectors_make_a_matrix_diagonal(dim: int, rng: np.random.Generator) -> None:
    for kind in SIZES:
        check_eigenvectors_make_a_matrix_diagonal(dim, kind, rng)


def check_eigenvectors_make_a_matrix_diagonal(dim: int, kind: Any, rng: np.random.Generator) -> None:
    compiled = jax.jit(linalg.eigh)
    for name, matrix in symmetric(rng, dim).items():
        matrix = (0.5 * (matrix + matrix.mT)).astype(kind)
        values, vectors = (np.asarray(x, float) for x in compiled(jnp.asarray(matrix)))
        size = np.abs(matrix).max(initial=1e-30).astype(float) * SIZES[kind]
        back = vectors * values[..., None, :] @ vectors.mT
        np.testing.assert_allclose(back, matrix, rtol=0, atol=size, err_msg=name)
        right = np.linalg.eigvalsh(matrix.astype(float))
        np.testing.assert_allclose(np.sort(values, -1), right, rtol=0, atol=size, err_msg=name)
        unit = np.broadcast_to(np.eye(dim), matrix.shape)
        np.testing.assert_allclose(vectors.mT @ vectors, unit, rtol=0, atol=SIZES[kind], err_msg=name)


@pytest.mark.parametrize("dim", DIMS)
def test_inverses_and_roots_are_lapacks(dim: int, rng: np.random.Generator) -> None:
    cov, other = definite(rng, dim), rng.normal(size=(4, 5, dim, 2))
    for made in (linalg.inverse, linalg.cholesky, linalg.inverse_root):
        np.testing.assert_allclose(jax.jit(made)(jnp.asarray(cov)), made(cov), rtol=1e-9, atol=1e-9)
    for two in (linalg.solve, linalg.product):
        found = jax.jit(two)(jnp.asarray(cov), jnp.asarray(other))
        np.testing.assert_allclose(found, two(cov, other), rtol=1e-9, atol=1e-9)


def test_numpy_and_large_matrices_stay_with_lapack(rng: np.random.Generator) -> None:
    cov = definite(rng, 3)
    np.testing.assert_array_equal(linalg.inverse(cov), np.linalg.inv(cov))
    np.testing.assert_array_equal(linalg.solve(cov, cov), np.linalg.solve(cov, cov))
    np.testing.assert_array_equal(linalg.cholesky(cov), np.linalg.cholesky(cov))
    np.testing.assert_array_equal(linalg.product(cov, cov), cov @ cov)
    np.testing.assert_array_equal(linalg.inverse_root(cov), np.linalg.inv(np.linalg.cholesky(cov)).mT)
    for one, other in zip(linalg.eigh(cov), np.linalg.eigh(cov), strict=True):
        np.testing.assert_array_equal(one, other)
    larger = jnp.asarray(definite(rng, linalg.ROOTS + 1))
    root = jnp.linalg.inv(jnp.linalg.cholesky(larger)).mT
    np.testing.assert_array_equal(linalg.inverse_root(larger), root)
    assert linalg.by_hand(jnp.zeros((2, linalg.SMALL, linalg.SMALL)))
    assert not linalg.by_hand(jnp.zeros((2, linalg.SMALL + 1, linalg.SMALL + 1)))


def test_where_calls_are_quick_rotations_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(arrays._FLOWS, jnp, arrays.Flow(jax.lax.cond, jax.lax.while_loop, calls=True))
    matrix = jnp.asarray([[2.0, 1.0], [1.0, 3.0]])
    for one, other in zip(linalg.eigh(matrix), jnp.linalg.eigh(matrix), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_not_positive_definite_gives_no_numbers() -> None:
    bad = jnp.asarray([[1.0, 2.0], [2.0, 1.0]])
    assert jnp.isnan(linalg.cholesky(bad)).any()
    assert jnp.isnan(linalg.inverse_root(bad)).any()


def test_every_pair_of_rows_meets_once_in_a_sweep() -> None:
    for dim in range(1, 9):
        check_every_pair_of_rows_meets_once_in_a_sweep(dim)


def check_every_pair_of_rows_meets_once_in_a_sweep(dim: int) -> None:
    rounds = linalg._rounds(dim)
    pairs = [pair for pairs in rounds for pair in pairs]
    assert sorted(pairs) == [(p, q) for p in range(dim) for q in range(p + 1, dim)]
    assert all(len({*sum(pairs, ())}) == 2 * len(pairs) for pairs in rounds)
