"""Context distributions against the formulas, written out for one trial."""

from typing import Any

import numpy as np
import pytest

from tests.agents.rivals.plain import compare, world
from unfog.agents.catalogue import Catalogue, named
from unfog.agents.parts import Privilege
from unfog.agents.rivals.rows import RIVALS
from unfog.agents.rivals.told_law import DIGITS, PLACES, ToldLaw
from unfog.features import Context
from unfog.inputs import InputError
from unfog.maths.arrays import Array
from unfog.maths.streams import generator
from unfog.simulate import simulate
from unfog.simulate.draws import truth_draws
from unfog.worlds.gaussian import GaussianProblem
from unfog.worlds.logistic import LogisticProblem
from unfog.worlds.problem import Emission

SEED = 3


def phi(action: Array, c: Array) -> Array:
    return np.concatenate([action**2, c**2, action * c])


class Law:
    """mu_t of one trial by Bayes' rule with precisions, and what is expected under it."""

    def __init__(self, problem: GaussianProblem | LogisticProblem, trial: int) -> None:
        known = problem.knowledge()
        truth = problem.truth(truth_draws(SEED, [trial], problem.truth_draws()))
        self.known, self.bias = known, truth.bias[0]
        self.noise = np.linalg.inv(known.noise_cov)
        self.cov = np.linalg.inv(np.linalg.inv(known.context_cov) + self.noise)
        self.actions: Any = None
        if problem.features == "quadratic":
            self.actions = truth.features.table[0][:, problem.dim : 2 * problem.dim]  # type: ignore[attr-defined]
        self.arms = problem.arms()

    def mean(self, noisy: Array) -> Array:
        prior = np.linalg.solve(self.known.context_cov, self.known.context_mean)
        found: Array = self.cov @ (prior + self.noise @ (noisy - self.bias))
        return found

    def expected(self, noisy: Array) -> Array:
        """What is expected of every arm's features, (K, m)."""
        mean = self.mean(noisy)
        if self.actions is not None:
            squares = mean**2 + np.diag(self.cov)
            return np.stack([np.concatenate([a**2, squares, a * mean]) for a in self.actions])
        return np.stack([np.kron(np.eye(self.arms)[a], [1.0, *mean]) for a in range(self.arms)])

    def sampled(self, noisy: Array, samples: int) -> Array:
        """The features of every arm averaged over draws, (K, m)."""
        draws = self.drawn(noisy, samples)
        return np.stack([np.mean([phi(a, c) for c in draws], axis=0) for a in self.actions])

    def drawn(self, noisy: Array, samples: int) -> list[Array]:
        """Contexts made of normals that come from a place in a row of them."""
        spread = np.sqrt(np.diag(self.known.context_cov + self.known.noise_cov))
        place = int(PLACES * (DIGITS * (noisy / spread).sum() % 1))
        row = generator(0, 0, "told law").standard_normal(PLACES + samples * len(noisy))
        normals = row[place : place + samples * len(noisy)].reshape(samples, -1)
        root, mean = np.linalg.cholesky(self.cov), self.mean(noisy)
        return [mean + root @ z for z in normals]


class Plain:
    """V and b as they stand, beta_t from the determinant of V."""

    def __init__(
        self, law: Law, rho: float, *, beta: float = 0.0, observed: bool = False, samples: int = 0
    ) -> None:
        self.law, self.rho, self.beta = law, rho, beta
        self.observed, self.samples = observed, samples
        size = law.expected(np.zeros(3)).shape[1]
        self.v, self.b = np.eye(size), np.zeros(size)
        self.psi = np.zeros(())

    def choose(self, rows: Array, normals: Array, seen: Emission) -> int:
        sampled = self.samples > 0
        self.psi = self.law.sampled(seen.noisy, self.samples) if sampled else self.law.expected(seen.noisy)
        theta, inverse = np.linalg.solve(self.v, self.b), np.linalg.inv(self.v)
        beta = self.beta or self.rho * np.sqrt(np.log(np.linalg.det(self.v)) - 2 * np.log(0.05)) + 1
        bounds = [x @ theta + beta * np.sqrt(x @ inverse @ x) for x in self.psi]
        return int(np.argmax(np.round(bounds, 9)))  # arms that nobody has chosen yet are equally good

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        x = phi(self.law.actions[arm], seen.context) if self.observed else self.psi[arm]
        self.v, self.b = self.v + np.outer(x, x), self.b + reward * x


HIDDEN, SEEN = np.sqrt(4 + 0.5), np.sqrt(0.5)


@pytest.mark.parametrize(
    ("name", "rho", "settings"),
    [
        ("kk-hidden", HIDDEN, {}),
        ("kk-hidden:beta=0.7", 0.0, {"beta": 0.7}),
        ("kk-observed", SEEN, {"observed": True}),
        ("kk-sampled", HIDDEN, {"samples": 10}),
        ("kk-observed:samples=7:beta=2", 0.0, {"observed": True, "samples": 7, "beta": 2.0}),
    ],
)
def test_it_chooses_as_the_plain_loop(name: str, rho: float, settings: dict[str, Any]) -> None:
    problem = world()
    compare(Catalogue()[name], problem, lambda trial: Plain(Law(problem, trial), rho, **settings))


def test_arms_with_features_of_their_own() -> None:
    problem = world(features="per_arm")
    agent = RIVALS["kk-hidden"].agent
    compare(agent, problem, lambda trial: Plain(Law(problem, trial), HIDDEN), rounds=120)


def test_rewards_of_zero_or_one_have_bounded_tails() -> None:
    told = {f: getattr(world(), f) for f in ("dim", "context_mean", "context_cov", "noise_cov", "bias_cov")}
    problem = LogisticProblem(**told, actions=10, prior_mean=0.1, prior_cov=0.3)
    agent = Catalogue("bernoulli")["kk-hidden"]
    compare(agent, problem, lambda trial: Plain(Law(problem, trial), 0.5))


def losses(problem: GaussianProblem, *names: str, rounds: int = 100, **more: Any) -> Array:
    found = simulate(problem, list(names), rounds=rounds, trials=4, seed=5, **more).values["regret"]
    return found[:, :, -1]


def test_without_noise_they_are_all_one() -> None:
    """With one width, and the exact one is LinUCB."""
    clear = world(noise_cov=1e-13, bias_cov=1e-13)
    names = ["kk-hidden", "kk-observed", "kk-sampled", "kk-learnt"]
    found = losses(clear, *(f"{name}:beta=2" for name in names), "kk-exact:beta=2", "linucb:alpha=2")
    np.testing.assert_allclose(found, np.broadcast_to(found[-1], found.shape), rtol=1e-4)


def test_who_is_told_no_law_learns_it() -> None:
    """A bias that hardly varies is as good as told."""
    found = losses(world(bias_cov=1e-12), "kk-hidden", "kk-learnt")
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)


def test_once_theta_is_known_it_plays_the_oracle_s_arm() -> None:
    """Rewards without noise, of known contexts: nine of them say all."""
    problem = world(reward_var=1e-12)
    agent = "kk-observed:ridge=1e-8:beta=1e-3"
    [regret] = simulate(problem, [agent], rounds=100, trials=4, seed=5, points=100).values["regret"]
    assert (regret[:, 8] > 1).all()
    assert (regret[:, -1] - regret[:, 20] < 0.01 * regret[:, 8]).all()


def beliefs(samples: int, noisy: Array) -> tuple[Context, Context]:
    known, bias = world().knowledge(), np.array([0.3, -0.2, 0.1])
    found = []
    for told in (ToldLaw(samples=samples), ToldLaw()):
        parameters = told.setup(known, Privilege(bias))
        found.append(told.predict(parameters, (), noisy))
    return found[0], found[1]


def test_many_draws_are_the_law() -> None:
    """Five standard errors: wrong once in some ten thousand seeds."""
    noisy = np.random.default_rng(0).standard_normal((5, 3))
    sampled, law = beliefs(10_000, noisy)
    bound = 5 * np.sqrt(np.diag(law.cov) / 10_000)
    assert (np.abs(sampled.mean - law.mean) < bound).all()
    np.testing.assert_allclose(sampled.cov, np.broadcast_to(law.cov, sampled.cov.shape), atol=0.03)


MAPS = {"quadratic": {}, "product": {}, "per_arm": {}, "own": {"actions": 3, "dim": 3}} | {
    "matrix": {"actions": np.random.default_rng(2).standard_normal((4, 5, 3)).tolist()}
}


@pytest.mark.parametrize("name", MAPS)
def test_expected_features_of_draws_are_their_average(name: str) -> None:
    problem: GaussianProblem = world(features=name, **MAPS[name])
    features = problem.truth(truth_draws(SEED, [0], problem.truth_draws())).features
    draws = np.random.default_rng(3).standard_normal((1, 6, 3)) + 0.7
    away = draws - draws.mean(1, keepdims=True)
    believed = features.design(Context(draws.mean(1), away.mT @ away / 6))
    for arm in range(problem.arms()):
        chosen = np.array([arm])
        average = np.mean([features.at(draws[:, s]).row(chosen) for s in range(6)], axis=0)
        np.testing.assert_allclose(believed.row(chosen), average, atol=1e-12)


@pytest.mark.parametrize("name", MAPS)
def test_it_learns_with_every_map(name: str) -> None:
    """Less is lost than at first, by those who see the context afterwards, and nothing is not a number."""
    problem = world(features=name, prior_cov=1.0, **MAPS[name])
    names = ["kk-observed:samples=10:beta=1", "yang-bundle:alpha=0.1", "kk-hidden"]
    found = simulate(problem, names, rounds=200, trials=20, seed=1, points=200).values["regret"].mean(1)
    assert np.isfinite(found).all()
    assert found[0, -1] - found[0, 149] < 0.6 * found[0, 49]


def test_the_draws_of_rounds_hang_together_with_nothing() -> None:
    """Means of ten draws, over 4000 noisy contexts: unbiased, a tenth of the variance, unlike the noisy."""
    noisy = np.random.default_rng(1).standard_normal((4000, 3))
    sampled, law = beliefs(10, noisy)
    away = np.linalg.solve(np.linalg.cholesky(law.cov), (sampled.mean - law.mean).T).T
    assert (np.abs(away.mean(0)) < 5 * np.sqrt(0.1 / 4000)).all()
    np.testing.assert_allclose(np.cov(away.T), np.eye(3) / 10, atol=0.012)
    for others in (noisy, away[1:, ::-1]):
        linked = np.corrcoef(away[: len(others)].T, others.T)[:3, 3:]
        assert (np.abs(linked) < 5 / np.sqrt(4000)).all()


def test_rows_that_sample_alike_are_one_agent() -> None:
    with pytest.raises(InputError, match="'kk-hidden:samples=10' is 'kk-sampled' by another name"):
        named(["kk-sampled", "kk-hidden:samples=10"])


@pytest.mark.parametrize("setting", ["beta=-1", "delta=1", "delta=0", "samples=20000", "pairs=2"])
def test_settings_are_checked(setting: str) -> None:
    with pytest.raises(InputError, match=setting.partition("=")[0]):
        Catalogue()[f"kk-hidden:{setting}"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in RIVALS if name.startswith(("kk-", "yang-"))])
def test_both_engines_play_it(name: str) -> None:
    pytest.importorskip("jax")
    played = {"rounds": 40, "trials": 3, "seed": 5, "decompose": True}
    mine = simulate(world(), [name], **played)  # type: ignore[arg-type]
    other = simulate(world(), [name], **played, engine="jax", draws="numpy")  # type: ignore[arg-type]
    for loss, values in mine.values.items():
        np.testing.assert_allclose(other.values[loss], values, atol=1e-6)
