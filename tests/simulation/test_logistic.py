"""Logistic runs: what must not change a bit, two engines on the same draws, a plain loop beside."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.linalg import cholesky
from scipy.special import expit

import unfog
from tests.problems import inverse, random_knowledge
from unfog.agents import round as rounds
from unfog.agents.catalogue import Catalogue
from unfog.agents.learn.logistic import Refit, State
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array
from unfog.maths.random import generator
from unfog.simulation import Curves, plan, play
from unfog.simulation.engines import jax as jax_engine
from unfog.simulation.engines.jax import Program
from unfog.theory.regret import names
from unfog.validation import InputError
from unfog.worlds.synthetic import LogisticProblem

D, K = 2, 6
ROUNDS, TRIALS, SEED = 24, 4, 3


def random_logistic(seed: int, **changes: Any) -> LogisticProblem:
    fields = random_knowledge(seed, D, 3 * D)._asdict()
    fields = {name: value for name, value in fields.items() if name != "reward_var" and value is not None}
    # A wide prior about scores of both signs, so that what is learnt decides what is chosen.
    fields |= {"prior_mean": fields["prior_mean"] - 0.4, "prior_cov": 3 * fields["prior_cov"]}
    return LogisticProblem(dim=D, actions=K, **fields | changes)


PROBLEM = random_logistic(14)
AGENTS = [
    "alg1:steps=10",
    "alg2-lmc:temperature=1:steps=5",
    "oracle-lmc:marginal=true:steps=5",
    "naive-pg:sweeps=2",
    "alg1-exact-pg:sweeps=2",
    "kk-laplace",
    "alg1-laplace:marginal=true",
    "alg2-adf",
    "alg2-exact-adf:marginal=true",
    "alg1-adf:marginal=true",
]
COMPILED = [AGENTS[i] for i in (0, 2, 4, 6, 7)]  # a program takes seconds to compile: one a learner
LOSSES = names(True)


def run(agents: Any = AGENTS, problem: LogisticProblem = PROBLEM, **settings: Any) -> Curves:
    return play(problem, agents, **{"rounds": ROUNDS, "trials": TRIALS, "seed": SEED} | settings)


def same_bits(one: Curves, other: Curves) -> bool:
    return (
        one.agents == other.agents
        and tuple(one.values) == tuple(other.values) == LOSSES
        and all(np.array_equal(one.values[name], other.values[name]) for name in one.values)
    )


@pytest.fixture(scope="module")
def curves() -> Curves:
    return run()


@pytest.mark.soak
def test_the_size_of_a_batch_changes_no_bit(curves: Curves) -> None:
    assert same_bits(run(chunk=3), curves)


@pytest.mark.slow
def test_two_processes_change_no_bit_and_count_all_rounds(curves: Curves) -> None:
    done: list[int] = []
    assert same_bits(run(chunk=3, workers=2, tick=done.append), curves)
    assert sum(done) == ROUNDS * TRIALS * len(AGENTS)


def test_a_shorter_run_is_the_beginning_of_a_longer_one(curves: Curves) -> None:
    for number in (1, 9):
        for name, values in run(rounds=number).values.items():
            assert np.array_equal(values, curves.values[name][:, :, :number]), (name, number)


@pytest.mark.slow
def test_so_is_one_that_ends_about_a_block() -> None:
    agents = ["alg1:steps=2", "alg1-pg:sweeps=1", "alg1-adf"]
    short, long = (run(agents, rounds=rounds, trials=2) for rounds in (128, 131))
    for name, values in short.values.items():
        assert np.array_equal(values, long.values[name][:, :, :128]), name


def test_an_agents_result_does_not_depend_on_its_company(curves: Curves) -> None:
    for row, name in enumerate(AGENTS):
        alone = run([name])
        for quantity, values in curves.values.items():
            assert np.array_equal(alone.values[quantity][0], values[row]), (name, quantity)


def test_fewer_trials_are_the_first_of_more_and_seeds_decide(curves: Curves) -> None:
    few, other = run(trials=2), run(seed=SEED + 1)
    assert all(np.array_equal(few.values[name], values[:, :2]) for name, values in curves.values.items())
    # Contexts and truths are continuous: no two trials of any seed have the same measurements to regret by.
    finals = [part.values["regret_plug_in"][AGENTS.index("alg2-adf"), :, -1] for part in (curves, other)]
    assert len(np.unique(finals)) == 2 * TRIALS


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.slow
def test_both_engines_agree_on_the_same_draws(name: str, curves: Curves) -> None:
    found = run([name], engine="jax", draws="numpy", decompose=name == AGENTS[0])
    for loss, values in found.values.items():
        right = curves.values[loss][AGENTS.index(name)]
        np.testing.assert_allclose(values[0], right, rtol=1e-9, atol=1e-9, err_msg=loss)


@pytest.mark.slow
def test_other_features_agree_on_both_engines() -> None:
    actions = np.random.default_rng(0).normal(size=(3, 4, 2))
    problem = LogisticProblem(dim=2, actions=actions, features=unfog.features.matrix)
    numpy, jax = (
        run(["alg1-pg:sweeps=1"], problem, engine=engine, draws="numpy").values for engine in ("numpy", "jax")
    )
    for loss, values in numpy.items():
        np.testing.assert_allclose(jax[loss], values, rtol=1e-9, atol=1e-9, err_msg=loss)


@pytest.mark.slow
def test_on_its_own_draws_the_compiled_engine_has_the_same_law() -> None:
    settings: Any = {"rounds": 12, "trials": 600, "decompose": False}
    one, other = (
        run(["alg1-pg:sweeps=1"], engine=engine, **settings).values["regret"][0, :, -1]
        for engine in ("numpy", "jax")
    )
    # A z test of the mean regret at level 1e-3.
    assert abs(one.mean() - other.mean()) < 3.3 * np.sqrt((one.var() + other.var()) / 600)


@dataclass(frozen=True, kw_only=True)
class Sum(Refit):
    """A chain that adds its draws up."""

    steps: int = 4

    name = "sum"
    note = "for this test"

    def normals(self, known: Knowledge, seen: int) -> int:
        return known.prior_mean.shape[-1]

    def step(self, parameters: Any, state: State, normals: Array) -> State:
        return state._replace(theta=state.theta + normals)

    def work(self, known: Knowledge) -> int:
        return 1


@pytest.mark.slow
def test_a_compiled_chain_gets_new_draws_at_every_step() -> None:
    """No step, round or purpose sees the draws of another: sums of four are of variance four, and apart."""
    trials, agent = 500, replace(Catalogue("bernoulli")["alg1"], name="sum", learner=Sum())
    [job] = plan([PROBLEM], [agent], rounds=6, trials=trials, seed=1, engine="jax", draws="device").jobs
    with jax.enable_x64(True):
        draws = jax_engine.Randomness(job, range(trials), trials)
        program = Program(PROBLEM, agent, True, False, "float64", False, 6)
        setup, memory = rounds.start(agent, PROBLEM.knowledge(), None, 6)
        inputs: Any = SimpleNamespace(setup=setup, steps=draws.steps(agent))
        start = memory.learner.theta
        moved = jax.jit(lambda t: program._advance_chain(inputs, memory, t).learner.theta - start)
        sums = [np.asarray(moved(t)) for t in range(3)]
        choices = program._normals(draws.rounds("agent", 3 * D), jnp.asarray(0), 3 * D)
    seen = np.stack([part.ravel() for part in (*sums, np.asarray(choices))])
    # Three variances and six correlations at 5 standard errors: right draws fail with probability 5e-6.
    assert np.all(np.abs(seen[:3].var(1) - 4) < 5 * 4 * np.sqrt(2 / seen.shape[1]))
    apart = np.corrcoef(seen) - np.eye(4)
    assert np.abs(apart).max() < 5 / np.sqrt(seen.shape[1])


@pytest.mark.parametrize("learner", ["adf", "laplace", "lmc:steps=5"])
def test_a_context_that_is_shown_leaves_nothing_to_average(learner: str) -> None:
    """Algorithm 2 learns from phi(a, c) itself, of covariance zero: averaging changes nothing."""
    averaged = f"{learner}:marginal=true"
    plain, marginal = (run([name]) for name in (f"alg2-{learner}", f"alg2-{averaged}"))
    for loss, values in plain.values.items():
        np.testing.assert_allclose(marginal.values[loss], values, rtol=0, atol=1e-9)
    believed = run([f"alg1-{learner}", f"alg1-{averaged}"]).values["regret"]
    assert np.abs(believed[0] - believed[1]).max() > 1e-3


@pytest.mark.slow
def test_single_precision_is_finite_and_near() -> None:
    agents = ["alg1-adf:marginal=true"]
    settings: Any = {"trials": 100, "rounds": 12, "decompose": False}
    double = run(agents, **settings).values["regret"][:, :, -1]
    single = run(agents, engine="jax", draws="numpy", precision="float32", **settings).values["regret"][
        :, :, -1
    ]
    assert np.isfinite(single).all()
    # Rounding turns a close decision or a close reward now and then; nine trials in ten see none of it.
    assert np.mean(np.abs(single - double) < 1e-3) > 0.9
    assert np.abs(single - double).max() > 0


def test_the_split_adds_up_and_can_be_left_out(curves: Curves) -> None:
    assert tuple(curves.values) == LOSSES
    total = curves.values["cb"] + curves.values["ee1"] + curves.values["ee2"]
    np.testing.assert_allclose(total, curves.values["regret"], rtol=0, atol=1e-12 * ROUNDS)
    plain = run(decompose=False)
    assert list(plain.values) == ["regret"]
    assert np.array_equal(plain.values["regret"], curves.values["regret"])


def test_losses_are_gaps_between_probabilities(curves: Curves) -> None:
    for name, values in curves.values.items():
        steps = np.diff(values, axis=-1, prepend=0)
        assert np.abs(steps).max() <= 1 + 1e-5, name
    for name in ("regret_true_context", "regret_plug_in"):
        assert np.diff(curves.values[name], axis=-1, prepend=0).min() >= 0


# The plain loop: one trial and one round at a time, every posterior by explicit inverses.


class World:
    """All that nature draws in one trial."""

    def __init__(self, known: Knowledge, trial: int) -> None:
        def draw(purpose: str, *shape: int) -> Array:
            return generator(SEED, trial, purpose).standard_normal(shape)

        rounds = draw("rounds", ROUNDS, 2 * D + 2)
        self.theta = known.prior_mean + cholesky(known.prior_cov) @ draw("theta", 3 * D)
        self.bias = cholesky(known.bias_cov) @ draw("bias", D)
        self.actions = draw("actions", K, D)
        self.contexts = known.context_mean + rounds[:, :D] @ cholesky(known.context_cov).T
        self.noisy = self.contexts + self.bias + rounds[:, D : 2 * D] @ cholesky(known.noise_cov).T
        self.uniforms = np.exp(-(rounds[:, -2] ** 2 + rounds[:, -1] ** 2) / 2)


def psi(actions: Array, mean: Array, cov: Array) -> Array:
    squares = mean**2 + np.diag(cov)
    return np.array([[*(a**2), *squares, *(a * mean)] for a in actions])


def realised_regret(trial: int, steps: int) -> Array:
    """The paper's Algorithm 1 for logistic bandits, and what it lost at the contexts that were drawn."""
    known = PROBLEM.knowledge()
    world, source = World(known, trial), generator(SEED, trial, "learner")
    c, n, prior = (inverse(cov) for cov in (known.context_cov, known.noise_cov, known.prior_cov))
    spread, seen = inverse(c + n), inverse(known.context_cov + known.noise_cov)
    theta, rows, rewards = known.prior_mean, np.empty((0, 3 * D)), np.empty(0)
    lost = []
    for t in range(ROUNDS):
        for normals in source.standard_normal((steps, 3 * D)):
            slope = prior @ (theta - known.prior_mean) + rows.T @ (expit(rows @ theta) - rewards)
            rate = 0.2 / (t + 1)
            theta = theta - rate * slope + np.sqrt(2 * rate * 0.001) * normals
        bias_cov = inverse(inverse(known.bias_cov) + t * seen)
        bias = bias_cov @ seen @ (world.noisy[:t] - known.context_mean).sum(0)
        mean = spread @ (c @ known.context_mean + n @ (world.noisy[t] - bias))
        cov = spread + spread @ n @ bias_cov @ n @ spread
        features = psi(world.actions, mean, cov)
        arm = int((features @ theta).argmax())
        chances = expit(psi(world.actions, world.contexts[t], np.zeros((D, D))) @ world.theta)
        rows = np.concatenate([rows, features[[arm]]])
        rewards = np.append(rewards, float(world.uniforms[t] < chances[arm]))
        oracle = spread @ (c @ known.context_mean + n @ (world.noisy[t] - world.bias))
        best = int((psi(world.actions, oracle, spread) @ world.theta).argmax())
        lost.append(chances[best] - chances[arm])
    return np.cumsum(lost)


def test_the_simulator_is_the_plain_loop() -> None:
    found = run(["alg1:steps=10"]).values["regret_realised"][0]
    for trial in range(TRIALS):
        np.testing.assert_allclose(found[trial], realised_regret(trial, steps=10), rtol=0, atol=1e-9)


def test_the_kernel_refuses_rewards_of_0_or_1() -> None:
    with pytest.raises(InputError, match=r"^engine: cuda"):
        run(["alg1-adf"], engine="cuda")
