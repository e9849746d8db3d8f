"""Shrinkage with the bias known, all of a context measured or only some of it, against plain conditioning."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.each import each
from tests.problems import given, spd
from unfog.channel import knowledge
from unfog.maths.arrays import Array

D = 3
MASKS = np.array(list(product([0.0, 1.0], repeat=D)))


class Case:
    """A context, its noise and its bias: correlated, anisotropic, not centred."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.mean, self.bias = rng.normal(1, 1, D), rng.normal(0, 2, D)
        self.context, self.noise = spd(rng, D), spd(rng, D, 0.2, 4)
        self.noisy = rng.normal(2, 2, D)

    def truth(self, mask: Array) -> tuple[Array, Array]:
        """Moments of c given the measured coordinates of c + gamma + n, from the joint law of c and n."""
        joint = np.block([[self.context, np.zeros((D, D))], [np.zeros((D, D)), self.noise]])
        rows = np.concatenate([np.eye(D), np.eye(D)], 1)[mask > 0]
        mean, cov = given(
            np.concatenate([self.mean, np.zeros(D)]), joint, rows, (self.noisy - self.bias)[mask > 0]
        )
        return mean[:D], cov[:D, :D]


@pytest.fixture
def case(rng: np.random.Generator) -> Case:
    return Case(rng)


def test_all_measured_is_the_conditional(case: Case) -> None:
    found = knowledge.shrinkage(case.mean, case.context, case.noise)
    mean, cov = case.truth(np.ones(D))
    np.testing.assert_allclose(knowledge.posterior_mean(found, case.noisy, case.bias), mean, rtol=1e-12)
    np.testing.assert_allclose(found.cov, cov, rtol=1e-12, atol=1e-13)


@each("mask", MASKS)
def test_some_measured_is_the_conditional_whatever_stands_in_for_the_rest(mask: Array, case: Case) -> None:
    found = knowledge.masked_shrinkage(case.mean, case.context, case.noise, mask)
    mean, cov = case.truth(mask)
    for stand_in in (case.mean, 1e6 * np.ones(D)):
        noisy = np.where(mask > 0, case.noisy, stand_in)
        np.testing.assert_allclose(knowledge.posterior_mean(found, noisy, case.bias), mean, rtol=1e-12)
    np.testing.assert_allclose(found.cov, cov, rtol=1e-12, atol=1e-13)


def test_every_trial_may_miss_others_on_either_engine(case: Case) -> None:
    arguments = case.mean, case.context, case.noise, MASKS
    every = knowledge.masked_shrinkage(*arguments)
    compiled = jax.jit(knowledge.masked_shrinkage)(*map(jnp.asarray, arguments))
    for i, mask in enumerate(MASKS):
        one = knowledge.masked_shrinkage(case.mean, case.context, case.noise, mask)
        np.testing.assert_allclose(every.gain[i], one.gain, atol=1e-14)
        np.testing.assert_allclose(compiled.gain[i], one.gain, atol=1e-13)
        np.testing.assert_allclose(compiled.cov[i], one.cov, atol=1e-13)


def test_the_masked_inverse_is_the_inverse_of_what_is_left(case: Case) -> None:
    for mask in MASKS:
        kept = np.flatnonzero(mask)
        right = np.zeros((D, D))
        right[np.ix_(kept, kept)] = np.linalg.inv(case.context[np.ix_(kept, kept)])
        np.testing.assert_allclose(
            knowledge.masked_inverse(case.context, mask), right, rtol=1e-12, atol=1e-14
        )


def test_units_may_differ_between_coordinates(case: Case) -> None:
    units = np.array([1e-8, 1.0, 1e8])
    scale = units[:, None] * units
    mask = np.array([1.0, 0.0, 1.0])
    plain = knowledge.masked_shrinkage(case.mean, case.context, case.noise, mask)
    found = knowledge.masked_shrinkage(case.mean * units, case.context * scale, case.noise * scale, mask)
    np.testing.assert_allclose(found.cov / scale, plain.cov, rtol=1e-9, atol=1e-12)
