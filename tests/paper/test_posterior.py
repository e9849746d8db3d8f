"""The posterior check: NUTS against an integral, numbers against numbers by hand, learners against NUTS."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.linalg import block_diag

from tests.each import each
from tests.problems import covariance_error, evidence, spd, within
from unfog.agents.base import Evidence, Learner, RunsChain
from unfog.agents.catalogue import AGENTS, Catalogue
from unfog.agents.learn import Adf
from unfog.maths.arrays import Array
from unfog.maths.gaussian import covariance
from unfog.paper import nuts, posterior
from unfog.paper.nuts import Comparison, Moments, Reference, Target
from unfog.paper.posterior import Check, Data, check, learner_named, play, walks
from unfog.simulation import plan
from unfog.simulation.engines import numpy as numpy_engine
from unfog.simulation.player import played
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem, LogisticProblem

SMALL = LogisticProblem(dim=2, actions=8, prior_mean=0.2, prior_cov=np.linspace(0.5, 1.5, 6))


def by_hand(target: Target, theta: Array) -> float:
    """The logarithm of the posterior's density, one round after the other, up to a constant."""
    away = theta - target.prior_mean
    total = -0.5 * away @ np.linalg.inv(target.prior_cov) @ away
    for i, (row, reward) in enumerate(zip(target.rows, target.rewards, strict=True)):
        score = row @ theta
        if target.spreads is not None:
            score = score / np.sqrt(1 + np.pi * (theta @ target.spreads[i] @ theta) / 8)
        chance = 1 / (1 + np.exp(-score))
        total += np.log(chance if reward == 1 else 1 - chance)
    return float(total)


def random_target(rng: np.random.Generator, size: int, rounds: int) -> Target:
    rows = rng.normal(0.3, 1.0, (rounds, size))
    rewards = (rng.random(rounds) < 0.7).astype(float)
    return Target(rows, rewards, rng.normal(0.2, 0.5, size), spd(rng, size))


@pytest.mark.parametrize("marginal", [False, True])
def test_the_density_is_the_one_written_out(marginal: bool, rng: np.random.Generator) -> None:
    target = random_target(rng, 4, 15)
    if marginal:
        target = target._replace(spreads=np.stack([spd(rng, 4) for _ in range(15)]))
    thetas = rng.standard_normal((5, 4))
    found = np.array([float(nuts.log_density(target, theta)) for theta in thetas])
    truth = np.array([by_hand(target, theta) for theta in thetas])
    np.testing.assert_allclose(found - found[0], truth - truth[0], rtol=1e-10, atol=1e-10)


def grid_moments(target: Target, points: int = 90, reach: float = 6.5) -> tuple[Array, Array]:
    """Mean and covariance of a posterior of three coordinates, by a sum over a grid."""
    scale = np.sqrt(np.diag(target.prior_cov))
    lines = [
        mean + reach * sd * np.linspace(-1, 1, points)
        for mean, sd in zip(target.prior_mean, scale, strict=True)
    ]
    grid = np.stack(np.meshgrid(*lines, indexing="ij"), -1).reshape(-1, 3)
    away = grid - target.prior_mean
    logs = -0.5 * np.einsum("ni,ij,nj->n", away, np.linalg.inv(target.prior_cov), away)
    for row, reward in zip(target.rows, target.rewards, strict=True):
        logs -= np.logaddexp(0, -(2 * reward - 1) * (grid @ row))
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = weights @ grid
    return mean, (grid - mean).T @ (weights[:, None] * (grid - mean))


@pytest.mark.slow
def test_nuts_is_the_integral() -> None:
    """54 entries within 4.5 standard errors: a right sampler fails in about 1 of 2000 seeds.

    Two targets of three coordinates that have nothing to do with each other are one of six, which has the
    shape of `SMALL`: the sampler is compiled once for both. Each is integrated by itself.
    """
    rng = np.random.default_rng(3)
    pair = [random_target(rng, 3, 20) for _ in range(2)]
    target = Target(
        block_diag(*(one.rows for one in pair)),
        np.concat([one.rewards for one in pair]),
        np.concat([one.prior_mean for one in pair]),
        block_diag(*(one.prior_cov for one in pair)),
    )
    found = nuts.reference(target, rng, chains=posterior.NUTS_CHAINS, draws=1000)
    means, covs = zip(*(grid_moments(one) for one in pair), strict=True)
    mean, cov = np.concat(means), block_diag(*covs)
    upper = np.triu_indices(6)
    turned = found.axes.T @ cov @ found.axes
    truth = np.concat([mean, mean @ found.axes, cov[upper], turned[upper]])
    assert within(found.moments.entries, truth, found.moments.errors, 4.5)
    assert np.all(found.moments.errors < 0.02)
    assert found.draws.shape == (posterior.NUTS_CHAINS, 1000, 6)
    assert (found.rhat < 1.01, found.ess > 4000, found.divergences) == (True, True, 0)
    np.testing.assert_allclose(found.moments.mean, found.draws.mean((0, 1)), rtol=1e-9)


def test_errors_are_those_of_independent_draws(rng: np.random.Generator) -> None:
    """Errors of 4000 draws are themselves known to about 2 %, those of products to about 5 %."""
    cov, axes = spd(rng, 3), np.linalg.qr(rng.standard_normal((3, 3)))[0]
    draws = rng.standard_normal((4000, 1, 3)) @ np.linalg.cholesky(cov).T
    upper, turned = np.triu_indices(3), axes.T @ cov @ axes
    wanted = [
        np.sqrt(np.diag(cov) / 4000),
        np.sqrt(np.diag(turned) / 4000),
        covariance_error(cov, 4000)[upper],
        covariance_error(turned, 4000)[upper],
    ]
    found = nuts.moments(draws, axes)
    np.testing.assert_allclose(found.errors, np.concat(wanted), rtol=0.2)
    repeated = nuts.moments(np.repeat(draws, 7, 1), axes)  # the same seven times over says nothing new
    np.testing.assert_allclose(repeated.errors, found.errors, rtol=1e-9)


def test_a_comparison_by_hand() -> None:
    """NUTS: N((1, 2), diag(4, 1)). The learner: mean (2, 2), variances 1 and 0.25, correlation zero."""
    axes = np.array([[0.0, 1.0], [1.0, 0.0]])
    entries = np.array([1.0, 2.0, 2.0, 1.0, 4.0, 0.0, 1.0, 1.0, 0.0, 4.0])
    truth = Moments(np.array([1.0, 2.0]), np.diag([4.0, 1.0]), entries, np.full(10, 0.1))
    against = Reference(np.zeros((1, 1, 2)), axes, truth, 1.0, 1.0, 0)
    draws = np.array([[3.0, 2.5], [3.0, 1.5], [1.0, 2.5], [1.0, 1.5]])
    found = nuts.compare("made up", against, draws, np.tile(draws[:, None], (1, 3, 1)))
    np.testing.assert_allclose(found.shifts, [0.5, 0.0])
    np.testing.assert_allclose(found.spreads, [0.5, 0.5])
    np.testing.assert_allclose(found.along, [0.5, 0.5])
    assert found.volume == pytest.approx(0.5)
    # A variance of 1 where NUTS has 4, and all four draws agree on it, is 3 / 0.1 errors away.
    assert found.z == pytest.approx(30.0)
    assert found.z_long == pytest.approx(30.0)
    numbers = found.numbers()
    assert numbers["mean_rms"] == pytest.approx(np.sqrt(0.125))
    assert (numbers["mean_max"], numbers["spread"]) == pytest.approx((0.5, 0.5))


@dataclass(frozen=True, kw_only=True)
class Recorder(Adf):
    """The learner `adf`, told to write down what it is shown."""

    shown: ClassVar[list[tuple[Array, Array, Array]]] = []

    def update(self, parameters: Any, state: Any, evidence: Evidence, reward: Array) -> Any:
        self.shown.append((evidence.row()[0], evidence.covariance()[0], reward[0]))
        return super().update(parameters, state, evidence, reward)


def check_data(problem: LogisticProblem, name: str, rounds: int, seed: int) -> Data:
    """What the lab plays is what the engine's learner is shown, row by row."""
    Recorder.shown.clear()
    row = replace(AGENTS[name], name="recorded", learner=Recorder(), binary_learner=None)
    [job] = plan([problem], [row], rounds=rounds, trials=1, seed=seed).jobs
    numpy_engine.ENGINE.run(job, range(1), lambda _: None)
    data = play(problem, Catalogue("bernoulli")[f"{name}-adf"], rounds, seed)
    assert len(data.rounds_evidence) == len(Recorder.shown) == rounds
    for kept, shown in zip(
        (data.rows, data.spreads, data.rewards), zip(*Recorder.shown, strict=True), strict=True
    ):
        np.testing.assert_allclose(kept, np.stack(shown), rtol=1e-9, atol=1e-12)
    return data


@pytest.mark.parametrize("name", ["alg1", "alg2", "oracle", "naive"])
def test_the_data_are_what_the_engine_shows(name: str) -> None:
    data = check_data(SMALL, name, 150, 11)
    assert set(data.rewards) == {0.0, 1.0}


def with_channel(**channel: Any) -> LogisticProblem:
    return LogisticProblem(dim=2, actions=8, prior_mean=0.2, prior_cov=np.linspace(0.5, 1.5, 6), **channel)


def test_what_was_lost_is_not_forgotten() -> None:
    """Coordinates of noisy contexts get lost, and the agent knows which."""
    problem = with_channel(missing=0.5)
    data, known, blind = check_data(problem, "gaps", 150, 11), problem.knowledge(), 0
    agent = Catalogue("bernoulli")["gaps-adf"]
    for row, (emission, decision) in zip(data.rows, played(problem, agent, 150, [0], 11), strict=True):
        assert emission.mask is not None
        if not emission.mask.any():  # nothing was measured: all that is left is the context's law
            blind += 1
            squares = known.context_mean**2 + np.diag(known.context_cov)
            np.testing.assert_allclose(row[2:4], squares, rtol=1e-12)
            np.testing.assert_allclose(decision.context.cov[0], known.context_cov, rtol=1e-12)
    assert blind > 20


def test_contexts_that_come_late_are_refused_to_those_that_await_them() -> None:
    """As in a run; and who takes them late has one decision a round, its own."""
    late = with_channel(reveal_delay=2)
    for name in ("alg2", "late"):
        with pytest.raises(InputError, match="needs every true context at once"):
            play(late, Catalogue("bernoulli")[f"{name}-adf"], 8, 0)
    problem = GaussianProblem(dim=2, actions=8, reveal_delay=2)
    for emission, decision in played(problem, AGENTS["late"], 12, [0, 1], 3):
        np.testing.assert_array_equal(decision.noisy, emission.noisy)
        assert decision.known is None


def test_the_bias_of_every_round_is_told_to_the_oracle() -> None:
    """The bias drifts, which is all the same to one that is told today's: it takes it off."""
    data = check_data(with_channel(drift_cov=0.5), "oracle", 150, 11)
    still = check_data(SMALL, "oracle", 150, 11)
    np.testing.assert_allclose(data.rows, still.rows, rtol=1e-9, atol=1e-9)
    other = check_data(with_channel(drift_cov=0.5), "alg1", 150, 11)
    assert np.abs(other.rows - check_data(SMALL, "alg1", 150, 11).rows).max() > 1


@pytest.fixture(scope="module")
def data() -> Data:
    return play(SMALL, Catalogue("bernoulli")["alg1-adf"], 40, 4)


def test_a_chain_steps_before_every_decision(data: Data) -> None:
    """Without noise Langevin's walk is plain descent: here with the rounds of each decision, by loops."""
    few = Data(data.known, data.rounds_evidence[:4], data.rows[:4], data.spreads[:4], data.rewards[:4])
    found, _ = walks(learner_named("alg1", "lmc:temperature=0:steps=3:rate=0.1"), few, 0, 50)
    theta, precision = data.known.prior_mean, np.linalg.inv(data.known.prior_cov)
    for t in range(5):
        for _ in range(3):
            slope = precision @ (theta - data.known.prior_mean)
            for row, reward in zip(few.rows[:t], few.rewards[:t], strict=True):
                slope = slope + (1 / (1 + np.exp(-row @ theta)) - reward) * row
            theta = theta - 0.1 / (t + 1) * slope
    np.testing.assert_allclose(found, np.broadcast_to(theta, (50, 6)), rtol=1e-9, atol=1e-12)


def test_a_gaussian_belief_is_drawn_from(data: Data) -> None:
    """27 entries within 5 standard errors: chance 2e-5."""
    learner = Adf()
    state = learner.start(data.known, None)
    for row, reward in zip(data.rows[:, None], data.rewards[:, None], strict=True):
        state = learner.update((), state, evidence(row), reward)
    draws, long = walks(learner, data, 0, 4000)
    assert long is None
    cov = covariance(state)[0]
    assert within(draws.mean(0), state.mean[0], np.sqrt(np.diag(cov) / 4000))
    assert within(np.cov(draws.T), cov, covariance_error(cov, 4000))


@pytest.mark.slow
def test_numbers_hang_on_the_seed_alone(data: Data) -> None:
    learner = learner_named("alg1", "lmc")
    first, long = walks(learner, data, 0, 130)
    again, _ = walks(learner, data, 0, 130)
    other, _ = walks(learner, data, 1, 130)
    fewer, _ = walks(learner, data, 0, 50)
    assert np.array_equal(first, again)
    assert np.array_equal(first[:50], fewer)
    assert not np.any(np.all(first == other, 1))
    assert len(np.unique(first, axis=0)) == 130
    assert long is not None
    assert long.shape == (posterior.PIECE, posterior.LONG_ROUNDS * posterior.LONG_KEPT, 6)


@pytest.fixture(scope="module")
def found() -> Check:
    return check(SMALL, learners=["lmc", "lmc:temperature=1", "pg"], rounds=40, seed=4, chains=500)


def of(found: Check, name: str) -> Comparison:
    return next(one for one in found.comparisons if one.learner == name)


@pytest.mark.slow
def test_the_papers_temperature_is_all_but_greedy(found: Check) -> None:
    """sqrt(1/beta) = 0.032 of the posterior's spread; with 1/beta = 1 the spread itself."""
    papers, hot = of(found, "lmc"), of(found, "lmc:temperature=1")
    assert np.all(papers.spreads < 0.1)
    assert 0.01 < papers.volume < 0.06
    assert np.all((hot.spreads > 0.7) & (hot.spreads < 1.3))


@pytest.mark.slow
def test_pg_cannot_be_told_from_nuts(found: Check) -> None:
    """54 entries, as used and in a long run, within 4 standard errors: chance 1 % if right.

    (Errors are themselves estimated, from 500 and 125 replicas: Student's t.)
    """
    pg = of(found, "pg")
    assert pg.z_long is not None
    assert pg.z <= 4
    assert pg.z_long <= 4
    assert np.all(np.abs(pg.shifts) < 0.2)
    assert np.all(np.abs(np.log(pg.spreads)) < 0.15)


@pytest.mark.slow
def test_a_posterior_a_little_too_wide_is_told_from_nuts(found: Check, data: Data) -> None:
    _, long = walks(learner_named("alg1", "pg"), data, 4, 50)
    assert long is not None
    [reference] = found.references
    centre = long.mean((0, 1))
    assert (
        nuts.largest_z(nuts.moments(centre + 1.08 * (long - centre), reference.axes), reference.moments) > 4
    )
    shifted = long + 0.15 * np.sqrt(np.diag(reference.moments.cov))
    assert nuts.largest_z(nuts.moments(shifted, reference.axes), reference.moments) > 4


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "unknown learner": ({"learners": ["nuts"]}, "learners: 'nuts'"),
    "a row for a learner": ({"learners": ["exact"]}, "learners: 'exact'"),
    "bad setting": ({"learners": ["lmc:rate=0"]}, "rate: 0.0"),
    "twice": ({"learners": ["pg", "pg"]}, "learners: pg, pg"),
    "none": ({"learners": []}, "learners: none"),
    "agent": ({"agent": "alg1-pg"}, "agent: 'alg1-pg'"),
    "rounds": ({"rounds": 0}, "rounds: 0"),
    "chains": ({"chains": 5}, "chains: 5"),
    "draws": ({"draws": 10}, "draws: 10"),
    "seed": ({"seed": -1}, "seed: -1"),
}


@each("case", BAD)
def test_what_makes_no_sense_is_refused(case: str) -> None:
    fields, said = BAD[case]
    with pytest.raises(InputError) as refused:
        check(SMALL, **fields)
    assert said in str(refused.value)


def test_other_rewards_are_refused() -> None:
    with pytest.raises(InputError, match="gaussian rewards"):
        check(GaussianProblem())  # type: ignore[arg-type, unused-ignore]


def test_a_chain_that_runs_away_is_named() -> None:
    for draws, long in ((np.array([[np.nan]]), None), (np.zeros((2, 1)), np.array([[[np.inf]]]))):
        with pytest.raises(InputError, match="'lmc:rate=1' runs off"):
            posterior._finite("lmc:rate=1", draws, long)
    with pytest.raises(InputError, match=r"^rate: 1000 is too long a step for a prior precision of"):
        walks(
            learner_named("alg1", "lmc:rate=1000"),
            play(SMALL, Catalogue("bernoulli")["alg1-adf"], 5, 0),
            0,
            50,
        )


def test_a_learner_is_looked_up_with_its_settings() -> None:
    learner: Learner = learner_named("kk", "pg:sweeps=2")
    assert isinstance(learner, RunsChain)
    assert learner.steps == 2
