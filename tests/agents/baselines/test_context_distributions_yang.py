"""UCB on bundles of contexts against kernel ridge regression with the bundle kernel, written out."""

import numpy as np
import pytest

from tests.agents.baselines.plain import compare, tied, world
from tests.agents.baselines.test_context_distributions_kirschner_krause import Law, phi
from unfog.agents.catalogue import Catalogue
from unfog.maths.arrays import Array
from unfog.simulation import play
from unfog.worlds.problem import Emission
from unfog.worlds.synthetic import GaussianProblem

SAMPLES = 4
Bundle = tuple[Array, list[Array]]  # an action, and contexts of equal probability


def kernel(one: Bundle, other: Bundle) -> float:
    """Summed over all pairs of contexts."""
    (a, some), (b, others) = one, other
    return float(np.mean([phi(a, c) @ phi(b, e) for c in some for e in others]))


class Plain:
    """Kernel ridge regression: it knows bundles by their kernel alone."""

    def __init__(self, law: Law, ridge: float, norm: float) -> None:
        self.law, self.ridge, self.norm = law, ridge, norm
        self.bundles, self.rewards = list[Bundle](), list[float]()
        self.make_observation = list[Bundle]()
        self.gram = np.zeros((0, 0))

    def choose(self, rows: Array, normals: Array, seen: Emission) -> list[int]:
        contexts = self.law.drawn(seen.noisy, SAMPLES)
        self.make_observation = [(action, contexts) for action in self.law.actions]
        inverse = np.linalg.inv(self.gram + self.ridge * np.eye(len(self.bundles)))
        volume = np.linalg.slogdet(np.eye(len(self.bundles)) + self.gram / self.ridge)[1]
        beta = np.sqrt(0.5) * np.sqrt(volume + 2 * np.log(20)) + np.sqrt(self.ridge) * self.norm
        bounds = []
        for bundle in self.make_observation:
            k = np.array([kernel(bundle, past) for past in self.bundles])
            spread = (kernel(bundle, bundle) - k @ inverse @ k) / self.ridge
            bounds.append(k @ inverse @ np.array(self.rewards) + beta * np.sqrt(spread))
        return tied(bounds)

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        self.bundles.append(self.make_observation[arm])
        self.rewards.append(reward)
        k = np.array([kernel(self.bundles[-1], past) for past in self.bundles])
        self.gram = np.block([[self.gram, k[:-1, None]], [k[None]]])


@pytest.mark.parametrize("ridge", [1.0, 0.3])
def test_it_chooses_as_kernel_ridge_regression_on_bundles(ridge: float) -> None:
    problem = world()
    norm = float(np.sqrt(9 * 0.1**2 + 9 * 0.3))
    agent = Catalogue()[f"yang-bundle:samples={SAMPLES}:ridge={ridge}"]
    compare(agent, problem, lambda trial: Plain(Law(problem, trial), ridge, norm), rounds=15)


def last(problem: GaussianProblem, *names: str) -> Array:
    return play(problem, list(names), rounds=100, trials=4, seed=5).values["regret"][:, :, -1]


def test_with_hardly_any_width_it_is_kk_hidden() -> None:
    """The two differ in beta_t alone; without any all arms of the first round would be equally good."""
    found = last(world(), "yang-bundle:alpha=1e-9", "kk-hidden:beta=1e-9")
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
