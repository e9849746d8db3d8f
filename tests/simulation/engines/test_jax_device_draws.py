"""Device random numbers: the published words, the right law, one draw for each trial, purpose and round."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kstest

from unfog.maths.random import PURPOSES
from unfog.simulation.engines import jax

# The known answers that the authors of Threefry ship with their code (20 rounds, two words of 32 bits).
KNOWN = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]


def test_threefry_gives_the_published_words() -> None:
    for key, counter, answer in KNOWN:
        check_threefry_gives_the_published_words(key, counter, answer)


def check_threefry_gives_the_published_words(
    key: tuple[int, int], counter: tuple[int, int], answer: tuple[int, int]
) -> None:
    words = [np.array([word], np.uint32) for word in (*key, *counter)]
    found = jax.threefry((words[0], words[1]), words[2], words[3])
    assert tuple(int(word[0]) for word in found) == answer


def draws(seed: int = 5, trials: int = 2000, counter: int = 9, count: int = 7, purpose: str = "agent") -> Any:
    ids = np.arange(trials, dtype=np.uint32)
    return jax.normals(jax.keys(jax.seed_words(seed), ids, purpose), np.uint32(counter), count, "float64")


def test_normals_are_normal_and_independent() -> None:
    # Three tests at level 1e-4 each.
    found = np.asarray(draws(trials=20_000))
    assert kstest(found.ravel(), "norm").pvalue > 1e-4
    off = np.corrcoef(found)[np.triu_indices(7, 1)]
    assert np.abs(off).max() < 4.6 / np.sqrt(20_000)
    assert np.abs((found**4).mean() - 3) < 3.9 * np.sqrt(96 / found.size)


def test_uniforms_are_uniform_and_never_0_or_1() -> None:
    ids = np.arange(20_000, dtype=np.uint32)
    found = jax.uniforms(jax.keys(jax.seed_words(1), ids, "actions"), np.uint32(0), 5, "float64")
    assert found.shape == (5, 20_000)
    assert kstest(found.ravel(), "uniform").pvalue > 1e-4
    assert 0 < found.min() < found.max() < 1


def test_a_draw_depends_on_seed_trial_purpose_round_and_nothing_else() -> None:
    base = np.asarray(draws())
    assert np.array_equal(np.asarray(draws(trials=10)), base[:, :10])
    others = [draws(seed=6), draws(seed=5 + 2**32), draws(counter=10)]
    others += [draws(purpose=purpose) for purpose in PURPOSES if purpose != "agent"]
    for other in others:
        assert not np.any(np.asarray(other) == base)
    rounds = np.arange(8, 12, dtype=np.uint32)
    ids = np.arange(2000, dtype=np.uint32)
    block = jax.normals(jax.keys(jax.seed_words(5), ids, "agent"), rounds, 7, "float64")
    assert block.shape == (4, 7, 2000)
    assert np.array_equal(block[1], base)


@pytest.mark.parametrize(("dtype", "error"), [("float64", 1e-12), ("float32", 1e-4)])
@pytest.mark.slow
def test_jax_makes_the_same_numbers(dtype: str, error: float) -> None:
    keys = jax.keys(jax.seed_words(5), jnp.arange(2000, dtype=jnp.uint32), "agent")
    found = jax.normals(keys, jnp.uint32(9), 7, dtype)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, draws(), atol=error)
