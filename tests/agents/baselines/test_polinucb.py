"""poLinUCB against its formulas, written out for one trial; its regression and its search by themselves."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.agents.baselines.plain import compare, tied, world
from unfog.agents.base import View
from unfog.agents.baselines import BASELINES
from unfog.agents.baselines.base import Optimism
from unfog.agents.baselines.polinucb import JointOptimism, Regressed, Served, toward
from unfog.agents.catalogue import select_rows
from unfog.agents.denoise import Exact
from unfog.features import Context
from unfog.features.linear import Own, product
from unfog.features.per_arm import PerArm
from unfog.features.quadrature import quadrature
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Blocks, Gaussian
from unfog.simulation import play
from unfog.validation import InputError
from unfog.worlds.problem import Emission

ACTIONS = np.random.default_rng(8).normal(0.3, 1.0, (10, 3))
AGENT = BASELINES["polinucb"].agent


def quadratic(arm: int, z: Array, cov: Array) -> tuple[Array, Array]:
    """Expected features, and their derivatives (m, d)."""
    a = ACTIONS[arm]
    slopes = np.concat([np.zeros((3, 3)), np.diag(2 * z), np.diag(a)])
    return np.concat([a * a, z * z + np.diag(cov), a * z]), slopes


def linear(arm: int, z: Array, cov: Array) -> tuple[Array, Array]:
    return ACTIONS[arm] * z, np.diag(ACTIONS[arm])


def per_arm(arm: int, z: Array, cov: Array) -> tuple[Array, Array]:
    row, slopes = np.zeros((10, 4)), np.zeros((10, 4, 3))
    row[arm], slopes[arm, 1:] = [1, *z], np.eye(3)
    return row.ravel(), slopes.reshape(40, 3)


class Plain:
    """All pairs and all rows are kept, and everything is solved anew in every round."""

    def __init__(self, features: Any, known: Any, arms: bool, alpha: float = 0.1) -> None:
        self.features, self.alpha, self.arms = features, alpha, arms
        self.x, self.z = list[Array](), list[Array]()
        self.rows, self.paid, self.played = list[Array](), list[float](), list[int]()
        self.size = len(known.prior_mean)
        cov = known.prior_cov
        trace = np.trace(cov[0]) if arms else np.trace(cov)
        mean = known.prior_mean[: self.size // 10] if arms else known.prior_mean
        self.norm, self.noise = np.sqrt(trace + mean @ mean), np.sqrt(known.reward_var)

    def context(self, noisy: Array) -> tuple[Array, Array, float]:
        row = np.array([1, *noisy])
        x, z = np.array(self.x).reshape(-1, 4), np.array(self.z).reshape(-1, 3)
        gram = np.eye(4) + x.T @ x
        weights = np.linalg.solve(gram, x.T @ z)
        left = (z - x @ weights).T @ (z - x @ weights) + weights.T @ weights  # with its penalty
        radius = np.sqrt(row @ np.linalg.solve(gram, row)) * np.log((len(x) + 1) / 0.05)
        return weights.T @ row, (np.eye(3) + left) / (len(x) + 1), radius

    def ellipsoid(self, arm: int) -> tuple[Array, Array]:
        rows, paid = np.array(self.rows).reshape(-1, self.size), np.array(self.paid)
        gram = np.eye(self.size) + rows.T @ rows
        longest = max((row @ row for row in self.rows), default=0.0)
        number = self.played.count(arm) if self.arms else len(self.played)
        dim = self.size // 10 if self.arms else self.size
        width = self.norm + self.noise * np.sqrt(dim * np.log((1 + number * longest) / 0.05))
        return np.linalg.solve(gram, rows.T @ paid), width**2 * np.linalg.inv(gram)

    def choose(self, rows: Array, normals: Array, seen: Emission) -> list[int]:
        centre, cov, radius = self.context(seen.noisy)
        bounds = []
        for arm in range(10):
            theta, spread = self.ellipsoid(arm)
            tops = []
            for ways in ((1, 1, 1), (-1, 1, 1)):
                z = centre
                for way in ways:
                    row, slopes = self.features(arm, z, cov)
                    hope = theta + self.alpha * spread @ row / (np.sqrt(row @ spread @ row) or 1.0)
                    push = slopes.T @ hope
                    z = centre + way * self.alpha * radius * push / (np.linalg.norm(push) or 1.0)
                row, _ = self.features(arm, z, cov)
                tops.append(row @ theta + self.alpha * np.sqrt(row @ spread @ row))
            bounds.append(max(tops))
        return tied(bounds)

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        self.x.append(np.array([1, *seen.noisy]))
        self.z.append(seen.context)
        self.rows.append(self.features(arm, seen.context, np.zeros((3, 3)))[0])
        self.paid.append(reward)
        self.played.append(arm)


@pytest.mark.parametrize("alpha", [1.0, 0.1])
def test_it_chooses_as_the_plain_loop(alpha: float) -> None:
    problem = world(actions=ACTIONS)
    [agent] = select_rows([f"polinucb:alpha={alpha}"])
    compare(agent, problem, lambda _: Plain(quadratic, problem.knowledge(), False, alpha), rounds=40)


def test_it_chooses_as_the_plain_loop_with_a_linear_map() -> None:
    problem = world(actions=ACTIONS, features="product")
    compare(AGENT, problem, lambda _: Plain(linear, problem.knowledge(), False), rounds=40)


def test_each_arm_has_its_own_ellipsoid_where_the_prior_has_blocks() -> None:
    problem = world(features="per_arm")
    [agent] = select_rows(["polinucb:alpha=1"])  # with less, arms that were never played tie to rounding
    compare(agent, problem, lambda _: Plain(per_arm, problem.knowledge(), True, 1.0), rounds=40)


@pytest.mark.parametrize("powers", [1, 2])
def test_the_regression_is_that_of_all_pairs_at_once(powers: int) -> None:
    rng, part = np.random.default_rng(3), Regressed(before=2, powers=powers, ridge=0.7, constant=1.5)
    x, z = rng.normal(0.4, 2.0, (30, 2)), rng.normal(-1.0, 1.0, (30, 3))
    state = part.start(parameters := np.zeros(5))
    for one, other in zip(x, z, strict=True):
        state = part.update(parameters, state, np.array([*one, 0, 0, 0]), np.array([*one, *other]))
    rows = np.concat([np.ones((30, 1)), *[x**n for n in range(1, powers + 1)]], 1)
    gram = 0.7 * np.eye(rows.shape[1]) + rows.T @ rows
    weights = np.linalg.solve(gram, rows.T @ z)
    new = np.array([0.6, -1.1, 9, 9, 9])
    row = np.array([1, *[n for power in range(1, powers + 1) for n in new[:2] ** power]])
    found = part.predict(parameters, state, new)
    np.testing.assert_allclose(found.mean, [*new[:2], *(row @ weights)])
    off = z - rows @ weights
    np.testing.assert_allclose(
        found.cov[2:, 2:], (off.T @ off + 0.7 * (weights.T @ weights + np.eye(3))) / 31
    )
    assert not found.cov[:2].any()
    assert not found.cov[:, :2].any()
    radius = 1.5 * np.sqrt(row @ np.linalg.solve(gram, row)) * np.log(31 / 0.05)
    np.testing.assert_allclose(part.reach(parameters, state, new), [0, 0, radius, radius, radius])


def test_without_noise_it_comes_to_believe_the_reading_and_to_be_its_noiseless_parent() -> None:
    rng, part, parameters = np.random.default_rng(4), Regressed(ridge=1e-9, constant=0.0), np.zeros(3)
    state = part.start(parameters)
    for x in rng.normal(1.0, 2.0, (20, 3)):
        state = part.update(parameters, state, x, x)
    noisy = rng.normal(size=(5, 3))
    context = part.predict(parameters, state, noisy)
    np.testing.assert_allclose(context.mean, noisy, atol=1e-6)
    np.testing.assert_allclose(context.cov, 0, atol=1e-6)
    features, belief = product(ACTIONS), Gaussian(rng.normal(size=(5, 3)), rng.normal(size=(5, 3, 3)))
    reach = part.reach(parameters, state, noisy)
    view = View(context, features.design(context), belief, features=features, reach=reach)
    np.testing.assert_allclose(JointOptimism(alpha=0.4).bounds(view), Optimism(alpha=0.4).bounds(view))


@pytest.mark.parametrize("kind", ["product", "per_arm", "own"])
def test_the_search_finds_the_best_of_the_ball(kind: str) -> None:
    rng = np.random.default_rng(11)
    maps: dict[str, Any] = {"product": product(ACTIONS), "per_arm": PerArm(10, 3), "own": Own(3, 1)}
    features = maps[kind]
    size, cov = features.size, np.zeros((3, 3))
    mean, reach = rng.normal(size=(4, 3)), np.array([0.0, 0.4, 0.7])
    belief: Any = Gaussian(rng.normal(size=(4, size)), rng.normal(size=(4, size, size)))
    if kind == "per_arm":
        belief = Blocks(rng.normal(size=(4, 10, 4)), rng.normal(size=(4, 10, 4, 4)))
    view = View(Context(mean, cov), features.at(mean), belief, features=features, reach=reach)
    found = JointOptimism(alpha=1.0, steps=20).bounds(view)
    ways = rng.normal(size=(4000, 1, 3))
    points = mean + reach * ways / np.linalg.norm(ways[..., 1:], axis=-1, keepdims=True)
    best = Optimism(alpha=1.0).bounds(View(Context(points, cov), features.at(points), belief)).max(0)
    np.testing.assert_allclose(found, best, rtol=1e-3)
    few = JointOptimism(alpha=1.0).bounds(view)  # turns suffice for nearly all arms
    assert (np.abs(few - best) < 0.02 * np.abs(best)).mean() > 0.95
    assert (found > Optimism(alpha=1.0).bounds(view)).any()


def test_blocks_are_one_gaussian() -> None:
    rng = np.random.default_rng(2)
    blocks = Blocks(rng.normal(size=(5, 10, 4)), rng.normal(size=(5, 10, 4, 4)))
    whole = np.zeros((5, 40, 40))
    for arm in range(10):
        whole[:, 4 * arm : 4 * arm + 4, 4 * arm : 4 * arm + 4] = blocks.root[:, arm]
    rows = np.stack([np.kron(np.eye(10)[arm], rng.normal(size=4)) for arm in range(10)])
    one = np.broadcast_to(rows, (5, 10, 40))
    for found, right in zip(toward(blocks, one), toward(Gaussian(blocks.centre, whole), one), strict=True):
        np.testing.assert_allclose(found, right, atol=1e-12)


def test_what_it_cannot_do_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="slope"):
        play(world(features=quadrature(lambda a, c: a * c, 3)), ["polinucb"], rounds=2, trials=1)
    with pytest.raises(InputError, match="every true context at once"):
        play(world(revealed=0.5), ["polinucb"], rounds=2, trials=1)
    with pytest.raises(InputError, match="before"):
        play(world(), ["polinucb:before=3"], rounds=2, trials=1)
    with pytest.raises(InputError, match="how far off"):
        replace(AGENT, denoiser=Exact(pairs=True))
    with pytest.raises(InputError, match="delta"):
        Served(delta=1.0)
    with pytest.raises(InputError, match="powers"):
        Regressed(powers=0)
