"""What is shown of true contexts: shares, distances, coordinates, and what runs with other shares share."""

from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from tests.each import each
from unfog.maths.arrays import Array
from unfog.simulation.job import Nature, emitted, truth_draws
from unfog.simulation.player import to_reveal
from unfog.validation import InputError
from unfog.worlds.problem import Emission
from unfog.worlds.synthetic import GaussianProblem

D, N = 3, 20_000


def problem(**fields: Any) -> GaussianProblem:
    return GaussianProblem(**{"dim": D, "actions": 4, "missing": 0.2} | fields)


def played(world: GaussianProblem, trials: int = 4, rounds: int = 60) -> tuple[Emission, Array]:
    """A block of rounds from the streams of a run, and its normals."""
    truth = world.truth(truth_draws(5, range(trials), world.truth_draws()))
    wide = truth._replace(bias=truth.bias[:, None])
    normals, uniforms = Nature(world, 5, range(trials)).next(rounds)
    return emitted(world, wide, normals, uniforms, np.arange(rounds)), normals


@each("share", [1.0, 0.3])
def test_shares_are_nested_and_all_else_is_shared(share: float) -> None:
    whole, drawn = played(problem())
    assert whole.revealed is None
    before = np.zeros((4, 60, D))
    for revealed in (0.0, 0.1, 0.5, 0.9, 1.0):
        emission, normals = played(problem(revealed=revealed, reveal_share=share))
        assert np.array_equal(normals, drawn)
        assert np.array_equal(emission.context, whole.context)
        assert np.array_equal(emission.noisy, whole.noisy)
        shown = ~np.isnan(to_reveal(emission))
        assert (shown >= before).all()
        before = shown
    assert share < 1 or before.all()


def test_coordinates_are_nested_as_well() -> None:
    shown = [
        ~np.isnan(to_reveal(played(problem(revealed=0.6, reveal_share=share))[0]))
        for share in (0.0, 0.2, 0.7, 1)
    ]
    assert not shown[0].any()
    assert all((more >= less).all() for less, more in pairwise(shown))


def test_coordinates_are_shown_one_by_one(rng: np.random.Generator) -> None:
    world = problem(revealed=0.5, reveal_share=0.3)
    shown = world.reveal_mask(rng.random((N, 1 + D)), np.asarray(0))
    assert shown is not None
    assert shown.shape == (N, D)
    # P(i) = 0.15 and P(i and j) = 0.5 * 0.09; 5 standard errors each: 6 tests, 4e-6.
    for share, found in ((0.15, shown), (0.045, shown[:, [0, 0, 1]] * shown[:, [1, 2, 2]])):
        assert np.abs(found.mean(0) - share).max() < 5 * np.sqrt(share * (1 - share) / N)


@each("share", [0.0, 0.1, 1 / 3, 0.5, 0.7, 0.999, 1.0])
def test_every_so_many_rounds(share: float) -> None:
    numbers = np.arange(3000)
    world = problem(revealed=share, reveal="every")
    shown = world.reveal_mask(np.zeros((2, 3000, 1 + D)), numbers)
    if share == 1:
        assert shown is None
        return
    assert shown is not None
    assert np.array_equal(shown[0], shown[1])
    counts = np.cumsum(shown[0])
    assert (np.abs(counts - share * (numbers + 1)) < 1 + 1e-6).all()
    gaps = np.diff(np.flatnonzero(shown[0]))
    assert share == 0 or set(gaps) <= {int(1 / share), int(1 / share) + 1}
    one = [world.reveal_mask(np.zeros((2, 1 + D)), np.asarray(t)) for t in range(50)]
    assert np.array_equal(np.stack(one, 1), shown[:, :50])  # type: ignore[arg-type]


def test_one_in_ten_is_the_tenth() -> None:
    shown = problem(revealed=0.1, reveal="every").reveal_mask(np.zeros((100, 1 + D)), np.arange(100))
    assert shown is not None
    assert np.flatnonzero(shown).tolist() == list(range(9, 100, 10))


def test_nothing_is_shown_that_was_not_asked_for() -> None:
    world = problem(reveal="on_request")
    assert world.on_request
    assert world.partial
    assert np.isnan(to_reveal(played(world)[0])).all()
    assert not problem().on_request


@pytest.mark.parametrize("fields", [{}, {"reveal": "every"}, {"reveal_share": 0.4}], ids=str)
def test_both_libraries_show_the_same(fields: dict[str, Any], rng: np.random.Generator) -> None:
    world = problem(revealed=0.3, **fields)
    uniforms = rng.random((50, 1 + D))
    for t in range(12):
        right = world.reveal_mask(uniforms, np.asarray(t))
        given: Any = jnp.asarray(uniforms), jnp.asarray(t, jnp.int32)
        found = world.reveal_mask(*given)
        assert np.array_equal(found, right)  # type: ignore[arg-type]


@each(
    "field, value, why",
    [
        ("revealed", 1.5, "1.5; allowed: a number from 0 to 1"),
        ("reveal_share", -0.1, "-0.1; allowed: a number from 0 to 1"),
        ("reveal_share", "all", "'all'; allowed: a number from 0 to 1"),
        ("reveal", "often", "'often'; allowed: random, every, on_request"),
        ("reveal_delay", 10_001, "10001; allowed: a whole number, at least 0 and at most 10000"),
    ],
)
def test_bad_fields_are_refused_by_name(field: str, value: object, why: str) -> None:
    with pytest.raises(InputError, match=f"^{field}: {why}"):
        problem(**{field: value})
