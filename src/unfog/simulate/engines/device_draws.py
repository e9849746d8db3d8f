"""Random numbers made on the device: Threefry-2x32 words turned into normals by Box and Muller.

J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, *Parallel random numbers: as easy as 1, 2, 3*. The key
is made of seed, trial and purpose and the counter of round and position, so that a draw depends on nothing
else: not on the batch, nor on the device that makes it. Both words of a pair are used.
"""

from typing import Any, TypeAlias

import numpy as np

from unfog.maths.arrays import Array
from unfog.maths.random import purpose_number

Words: TypeAlias = Any
"""An array of unsigned 32-bit numbers."""

_TURNS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry(key: tuple[Words, Words], first: Words, second: Words) -> tuple[Words, Words]:
    """Two random words from a key and a counter, all unsigned 32-bit, broadcast against each other."""
    keys = (*key, key[0] ^ key[1] ^ np.uint32(0x1BD11BDA))
    a, b = first + keys[0], second + keys[1]
    for block in range(5):
        for turn in _TURNS[block % 2]:
            a = a + b
            b = ((b << np.uint32(turn)) | (b >> np.uint32(32 - turn))) ^ a
        a, b = a + keys[(block + 1) % 3], b + (keys[(block + 2) % 3] + np.uint32(block + 1))
    return a, b


def seed_words(seed: int) -> tuple[Words, Words]:
    """A seed as two words."""
    return np.uint32(seed >> 32), np.uint32(seed & 0xFFFFFFFF)


def keys(seed: tuple[Words, Words], trials: Words, purpose: str) -> tuple[Words, Words]:
    """A key per trial for one purpose: trials (n,) unsigned -> two words (n,) each."""
    return threefry(seed, trials, np.uint32(purpose_number(purpose)) + 0 * trials)


def _pairs(key: tuple[Words, Words], counter: Words, count: int, dtype: str) -> tuple[Array, Array]:
    """Two numbers strictly between 0 and 1 for each of `count` positions: (..., count, n) each."""
    xp = key[0].__array_namespace__()
    positions = xp.arange(count, dtype=xp.uint32)[:, None]
    words = threefry(key, xp.asarray(counter, dtype=xp.uint32)[..., None, None] + 0 * positions, positions)
    half, scale = xp.asarray(0.5, dtype=dtype), xp.asarray(2.0**-32, dtype=dtype)
    first, second = ((word.astype(dtype) + half) * scale for word in words)
    return first, second


def uniforms(key: tuple[Words, Words], counter: Words, count: int, dtype: str) -> Array:
    """Numbers strictly between 0 and 1: keys (n,) and counters (...,) -> (..., count, n)."""
    xp = key[0].__array_namespace__()
    drawn: Array = xp.concat(_pairs(key, counter, (count + 1) // 2, dtype), axis=-2)
    return drawn[..., :count, :]


def normals(key: tuple[Words, Words], counter: Words, count: int, dtype: str) -> Array:
    """Standard normals: keys (n,) and counters (...,) -> (..., count, n)."""
    xp = key[0].__array_namespace__()
    near, far = _pairs(key, counter, (count + 1) // 2, dtype)
    radius, angle = xp.sqrt(-2 * xp.log(near)), xp.asarray(2 * np.pi, dtype=dtype) * far
    drawn: Array = xp.concat([radius * xp.cos(angle), radius * xp.sin(angle)], axis=-2)
    return drawn[..., :count, :]
