"""The NumPy engine against a plain loop: one trial and one round at a time.

The posterior of theta is kept in precision form, inverted every round. A draw of theta needs a square root of
the covariance, which is not unique: the loop takes the one of the rank-one formula and checks that it is one.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from numpy.linalg import cholesky, inv

from tests.problems import quadratic_phi, random_problem
from unfog.agents.catalogue import AGENTS, playable
from unfog.agents.choose import Thompson
from unfog.agents.learn import Conjugate
from unfog.channel.knowledge import Knowledge
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.random import generator
from unfog.simulation import Curves, play
from unfog.theory.regret import names

D, K = 3, 5
PROBLEM = random_problem(seed=12, dim=D, actions=K)
ROUNDS, TRIALS, SEED = 150, 3, 11
KNOWN = PROBLEM.knowledge()


class World(NamedTuple):
    """All that nature draws in one trial."""

    theta: Array
    bias: Array
    actions: Array
    contexts: Array
    noisy: Array
    reward_noise: Array


def make_world(known: Knowledge, trial: int) -> World:
    def normals(purpose: str, *shape: int) -> Array:
        return generator(SEED, trial, purpose).standard_normal(shape)

    rounds = normals("rounds", ROUNDS, 2 * D + 1)
    bias = cholesky(known.bias_cov) @ normals("bias", D)
    contexts = known.context_mean + rounds[:, :D] @ cholesky(known.context_cov).T
    return World(
        theta=known.prior_mean + cholesky(known.prior_cov) @ normals("theta", 3 * D),
        bias=bias,
        actions=normals("actions", K, D),
        contexts=contexts,
        noisy=contexts + bias + rounds[:, D : 2 * D] @ cholesky(known.noise_cov).T,
        reward_noise=np.sqrt(np.asarray(known.reward_var)) * rounds[:, 2 * D],
    )


Moments = tuple[Array, Array]


def with_bias(known: Knowledge, noisy: Array, mean: Array, cov: Array) -> Moments:
    """The mixture of N(A(gamma), M^-1) over gamma ~ N(mean, cov)."""
    c, n = inv(known.context_cov), inv(known.noise_cov)
    spread = inv(c + n)
    moved = spread @ n @ cov @ n @ spread
    return spread @ (c @ known.context_mean + n @ (noisy - mean)), spread + moved


def jointly(known: Knowledge, noisy: Array, mean: Array, cov: Array) -> Moments:
    """The context's marginal in the joint posterior of (c, gamma) given chat, in precision form."""
    c, n, g = inv(known.context_cov), inv(known.noise_cov), inv(cov)
    joint = inv(np.block([[c + n, n], [n, g + n]]))
    pull = np.concatenate([c @ known.context_mean + n @ noisy, g @ mean + n @ noisy])
    return (joint @ pull)[:D], joint[:D, :D]


def bias_from_noisy(known: Knowledge, world: World, t: int) -> Moments:
    seen = inv(known.context_cov + known.noise_cov)
    cov = inv(inv(known.bias_cov) + t * seen)
    return cov @ seen @ (world.noisy[:t] - known.context_mean).sum(0), cov


def bias_from_pairs(known: Knowledge, world: World, t: int) -> Moments:
    seen = inv(known.noise_cov)
    cov = inv(inv(known.bias_cov) + t * seen)
    return cov @ seen @ (world.noisy[:t] - world.contexts[:t]).sum(0), cov


DENOISE: dict[str, Callable[[Knowledge, World, int], Moments]] = {
    "alg1": lambda known, world, t: with_bias(known, world.noisy[t], *bias_from_noisy(known, world, t)),
    "alg2": lambda known, world, t: with_bias(known, world.noisy[t], *bias_from_pairs(known, world, t)),
    "naive": lambda _, world, t: (world.noisy[t], np.zeros((D, D))),
    "oracle": lambda known, world, t: with_bias(known, world.noisy[t], world.bias, np.zeros((D, D))),
    "kk": lambda known, *_: (known.context_mean, known.context_cov),
    "alg1-exact": lambda known, world, t: jointly(known, world.noisy[t], *bias_from_noisy(known, world, t)),
    "alg2-exact": lambda known, world, t: jointly(known, world.noisy[t], *bias_from_pairs(known, world, t)),
}


def psi(actions: Array, mean: Array, cov: Array) -> Array:
    """E[phi(a, c)] of every arm under N(mean, cov)."""
    squares = [mean[i] ** 2 + cov[i, i] for i in range(D)]
    return np.array([[*(a**2), *squares, *(a * mean)] for a in actions])


def phi(actions: Array, context: Array) -> Array:
    return np.array([quadratic_phi(action, context) for action in actions])


def losses(world: World, t: int, own: Array, arm: int) -> list[float]:
    """The round's regret, that of the two other benchmarks, the realised one, CB, EE1 and EE2."""
    best = psi(world.actions, *DENOISE["oracle"](KNOWN, world, t)) @ world.theta
    true = phi(world.actions, world.contexts[t]) @ world.theta
    naive = phi(world.actions, world.noisy[t]) @ world.theta
    mine = own @ world.theta
    star, hat = best.argmax(), mine.argmax()
    plain = [best[star] - best[arm], max(true) - true[arm], max(naive) - naive[arm]]
    plain.append(true[star] - true[arm])
    return [*plain, mine[hat] - mine[arm], best[star] - mine[hat], mine[arm] - best[arm]]


def reference(name: str, trial: int) -> Array:
    """Cumulative losses of one agent in one trial: (7, rounds)."""
    known, world = KNOWN, make_world(KNOWN, trial)
    draws = generator(SEED, trial, "agent").standard_normal((ROUNDS, 3 * D))
    precision = inv(known.prior_cov)
    pull = precision @ known.prior_mean
    follower = gaussian.from_moments(known.prior_mean, known.prior_cov)
    found = []
    for t in range(ROUNDS):
        rows = psi(world.actions, *DENOISE[name](known, world, t))
        np.testing.assert_allclose(follower.root @ follower.root.T @ precision, np.eye(3 * D), atol=1e-9)
        theta = inv(precision) @ pull + follower.root @ draws[t]
        arm = int((rows @ theta).argmax())
        truly = phi(world.actions, world.contexts[t])[arm]
        reward = truly @ world.theta + world.reward_noise[t]
        row = truly if name.startswith("alg2") else rows[arm]
        precision = precision + np.outer(row, row) / known.reward_var
        pull = pull + row * reward / known.reward_var
        follower = follower.condition(row, reward, np.asarray(known.reward_var))
        found.append(losses(world, t, rows, arm))
    return np.cumsum(found, 0).T


@pytest.fixture(scope="module")
def followed() -> Curves:
    return play(PROBLEM, playable(), rounds=ROUNDS, trials=TRIALS, seed=SEED)


def test_the_simulator_is_the_plain_loop(followed: Curves) -> None:
    for name in DENOISE:
        check_the_simulator_is_the_plain_loop(name, followed)


def check_the_simulator_is_the_plain_loop(name: str, followed: Curves) -> None:
    row = followed.agents.index(name)
    for trial in range(TRIALS):
        right = dict(zip(names(True), reference(name, trial), strict=True))
        for quantity, values in right.items():
            found = followed.values[quantity][row, trial]
            np.testing.assert_allclose(found, values, rtol=1e-9, atol=1e-9, err_msg=quantity)


def test_every_plain_row_of_the_catalogue_is_followed() -> None:
    plain = {name for name, row in AGENTS.items() if row.learner == Conjugate() and row.chooser == Thompson()}
    assert set(DENOISE) == plain
