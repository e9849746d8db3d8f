"""Context distributions against the formulas, written out for one trial."""

from typing import Any

import numpy as np
import pytest

from tests.agents.baselines.plain import compare, tied, world
from unfog.agents.base import Privilege
from unfog.agents.baselines import BASELINES
from unfog.agents.baselines.context_distributions import DIGITS, PLACES, KnownLaw
from unfog.agents.catalogue import Catalogue, select_rows
from unfog.features import Context
from unfog.maths.arrays import Array
from unfog.maths.random import generator
from unfog.simulation import play
from unfog.simulation.job import truth_draws
from unfog.validation import InputError
from unfog.worlds.problem import Emission
from unfog.worlds.synthetic import GaussianProblem, LogisticProblem

SEED = 3


def phi(action: Array, c: Array) -> Array:
    return np.concatenate([action**2, c**2, action * c])


class Law:
    """mu_t of one trial by Bayes' rule with precisions, and what is expected under it."""

    def __init__(self, problem: GaussianProblem | LogisticProblem, trial: int) -> None:
        known = problem.knowledge()
        truth = problem.truth(truth_draws(SEED, [trial], problem.truth_draws()))
        self.known, self.bias = known, truth.bias[0]
        self.actions: Any = None
        if problem.features == "quadratic":
            self.actions = truth.features.table[0][:, problem.dim : 2 * problem.dim]  # type: ignore[attr-defined]
        self.arms = problem.arms()

    def moments(self, noisy: Array) -> tuple[Array, Array]:
        """From what was measured alone: what was lost is not a number."""
        there = np.flatnonzero(~np.isnan(noisy))
        prior, square = np.linalg.inv(self.known.context_cov), np.ix_(there, there)
        noise = np.zeros_like(prior)
        noise[square] = np.linalg.inv(self.known.noise_cov[square])
        cov = np.linalg.inv(prior + noise)
        told = np.where(np.isnan(noisy), 0.0, noisy - self.bias)
        return cov @ (prior @ self.known.context_mean + noise @ told), cov

    def expected(self, noisy: Array) -> Array:
        """What is expected of every arm's features, (K, m)."""
        mean, cov = self.moments(noisy)
        if self.actions is not None:
            squares = mean**2 + np.diag(cov)
            return np.stack([np.concatenate([a**2, squares, a * mean]) for a in self.actions])
        return np.stack([np.kron(np.eye(self.arms)[a], [1.0, *mean]) for a in range(self.arms)])

    def sampled(self, noisy: Array, samples: int) -> Array:
        """The features of every arm averaged over draws, (K, m)."""
        if np.isnan(noisy).all():
            return self.expected(noisy)
        draws = self.drawn(noisy, samples)
        return np.stack([np.mean([phi(a, c) for c in draws], axis=0) for a in self.actions])

    def drawn(self, noisy: Array, samples: int) -> list[Array]:
        """Contexts made of normals that come from a place in a row of them; where there is one."""
        spread = np.sqrt(np.diag(self.known.context_cov + self.known.noise_cov))
        filled = np.where(np.isnan(noisy), self.known.context_mean, noisy)
        place = int(PLACES * (DIGITS * (filled / spread).sum() % 1))
        row = generator(0, 0, "told law").standard_normal(PLACES + samples * len(noisy))
        normals = row[place : place + samples * len(noisy)].reshape(samples, -1)
        mean, cov = self.moments(noisy)
        return [mean + np.linalg.cholesky(cov) @ z for z in normals]


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

    def choose(self, rows: Array, normals: Array, seen: Emission) -> list[int]:
        noisy = seen.noisy if seen.mask is None else np.where(seen.mask > 0, seen.noisy, np.nan)
        self.psi = self.law.sampled(noisy, self.samples) if self.samples else self.law.expected(noisy)
        theta, inverse = np.linalg.solve(self.v, self.b), np.linalg.inv(self.v)
        beta = self.beta or self.rho * np.sqrt(np.log(np.linalg.det(self.v)) - 2 * np.log(0.05)) + 1
        bounds = [x @ theta + beta * np.sqrt(x @ inverse @ x) for x in self.psi]
        return tied(bounds)  # arms that nobody has chosen yet are equally good

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


@pytest.mark.parametrize(("name", "settings"), [("kk-hidden", {}), ("kk-sampled", {"samples": 10})])
def test_what_was_lost_is_left_out_of_the_law(name: str, settings: dict[str, Any]) -> None:
    problem = world(missing=0.3)
    compare(Catalogue()[name], problem, lambda trial: Plain(Law(problem, trial), HIDDEN, **settings))


def test_the_law_with_gaps_is_the_conditional_gaussian() -> None:
    """By rows and columns of the joint covariance of context and measurement."""
    known, bias = world().knowledge(), np.array([0.3, -0.2, 0.1])
    told, mean, prior = KnownLaw(), known.context_mean, known.context_cov
    noisy = np.random.default_rng(4).standard_normal((8, 3))
    lost = (np.arange(8)[:, None] & [1, 2, 4]) > 0
    found = told.predict(told.setup(known, Privilege(bias)), (), np.where(lost, np.nan, noisy))
    for i, there in enumerate(~lost):
        gain = prior[:, there] @ np.linalg.inv((prior + known.noise_cov)[np.ix_(there, there)])
        right = mean + gain @ (noisy[i] - mean - bias)[there]
        np.testing.assert_allclose(found.mean[i], right, atol=1e-12)
        np.testing.assert_allclose(found.cov[i], prior - gain @ prior[there], atol=1e-12)


@pytest.mark.parametrize("samples", [0, 5])
def test_who_lost_nothing_is_told_the_same(samples: int) -> None:
    noisy = np.random.default_rng(5).standard_normal((4, 3))
    gaps = np.where(np.arange(4)[:, None] == 2, [np.nan, 1.0, 1.0], noisy)
    whole, beside = (beliefs(samples, x)[0] for x in (noisy, gaps))
    for one, other in zip(whole, beside, strict=True):
        one = np.broadcast_to(one, other.shape)
        np.testing.assert_allclose(other[[0, 1, 3]], one[[0, 1, 3]], rtol=1e-14)


def test_one_covariance_serves_all_where_nothing_was_lost() -> None:
    assert beliefs(5, np.zeros((4, 3)))[1].cov.shape == (3, 3)


def test_many_draws_of_a_law_with_gaps_are_that_law() -> None:
    """Five standard errors, as below."""
    sampled, law = beliefs(10_000, np.array([[np.nan, 0.4, -0.3], [0.2, np.nan, np.nan]]))
    bound = 5 * np.sqrt(np.linalg.diagonal(law.cov) / 10_000)
    assert (np.abs(sampled.mean - law.mean) < bound).all()
    np.testing.assert_allclose(sampled.cov, law.cov, atol=0.05)


def test_draws_need_no_noise() -> None:
    regret = losses(world(noise_cov=1e-13, bias_cov=1e-13, missing=0.3), "kk-sampled")
    assert np.isfinite(regret).all()


def test_arms_with_features_of_their_own() -> None:
    problem = world(features="per_arm")
    agent = BASELINES["kk-hidden"].agent
    compare(agent, problem, lambda trial: Plain(Law(problem, trial), HIDDEN), rounds=120)


def test_rewards_of_zero_or_one_have_bounded_tails() -> None:
    told = {f: getattr(world(), f) for f in ("dim", "context_mean", "context_cov", "noise_cov", "bias_cov")}
    problem = LogisticProblem(**told, actions=10, prior_mean=0.1, prior_cov=0.3)
    agent = Catalogue("bernoulli")["kk-hidden"]
    compare(agent, problem, lambda trial: Plain(Law(problem, trial), 0.5))


def losses(problem: GaussianProblem, *names: str, rounds: int = 100, **more: Any) -> Array:
    found = play(problem, list(names), rounds=rounds, trials=4, seed=5, **more).values["regret"]
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
    [regret] = play(problem, [agent], rounds=100, trials=4, seed=5, points=100).values["regret"]
    assert (regret[:, 8] > 1).all()
    assert (regret[:, -1] - regret[:, 20] < 0.01 * regret[:, 8]).all()


def beliefs(samples: int, noisy: Array) -> tuple[Context, Context]:
    known, bias = world().knowledge(), np.array([0.3, -0.2, 0.1])
    found = []
    for told in (KnownLaw(samples=samples), KnownLaw()):
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


def test_expected_features_of_draws_are_their_average() -> None:
    for name in MAPS:
        check_expected_features_of_draws_are_their_average(name)


def check_expected_features_of_draws_are_their_average(name: str) -> None:
    problem: GaussianProblem = world(features=name, **MAPS[name])
    features = problem.truth(truth_draws(SEED, [0], problem.truth_draws())).features
    draws = np.random.default_rng(3).standard_normal((1, 6, 3)) + 0.7
    away = draws - draws.mean(1, keepdims=True)
    believed = features.design(Context(draws.mean(1), away.mT @ away / 6))
    for arm in range(problem.arms()):
        chosen = np.array([arm])
        average = np.mean([features.at(draws[:, s]).row(chosen) for s in range(6)], axis=0)
        np.testing.assert_allclose(believed.row(chosen), average, atol=1e-12)


def test_it_learns_with_every_map() -> None:
    """Less is lost than at first, by those who see the context afterwards, and nothing is not a number."""
    for name in MAPS:
        check_it_learns_with_every_map(name)


def check_it_learns_with_every_map(name: str) -> None:
    problem = world(features=name, prior_cov=1.0, **MAPS[name])
    names = ["kk-observed:samples=10:beta=1", "yang-bundle:alpha=0.1", "kk-hidden"]
    found = play(problem, names, rounds=200, trials=20, seed=1, points=200).values["regret"].mean(1)
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
        select_rows(["kk-sampled", "kk-hidden:samples=10"])


def test_settings_are_checked() -> None:
    for setting in ("beta=-1", "delta=1", "samples=20000", "pairs=2"):
        with pytest.raises(InputError, match=setting.partition("=")[0]):
            Catalogue()[f"kk-hidden:{setting}"]
