"""What must not change a result and what must, a plain loop to compare with, and the paper's findings."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.linalg import cholesky, inv

from tests.problems import quadratic_phi, random_problem, spd
from unfog.agents.catalogue import AGENTS
from unfog.agents.choose import Thompson
from unfog.agents.learn import Conjugate
from unfog.inputs import InputError
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.streams import PURPOSES, RoundDraws, generator
from unfog.model.knowledge import Knowledge
from unfog.simulate import Curves, plan, simulate
from unfog.simulate.engines.numpy import BLOCK
from unfog.simulate.grid import MOST_CELLS, stored_rounds
from unfog.theory.regret import PLAIN, SPLIT, estimate
from unfog.worlds.gaussian import GaussianProblem

D, K = 3, 5
PROBLEM = random_problem(seed=12, dim=D, actions=K)
EVERY = list(AGENTS)


def run(agents: Any = ("alg1", "alg2", "naive", "oracle", "kk"), **settings: Any) -> Curves:
    return simulate(PROBLEM, agents, **{"rounds": 150, "trials": 9, "seed": 3} | settings)


def same_bits(one: Curves, other: Curves) -> bool:
    return (
        one.agents == other.agents
        and np.array_equal(one.rounds, other.rounds)
        and one.values.keys() == other.values.keys()
        and all(np.array_equal(one.values[name], other.values[name]) for name in one.values)
    )


@pytest.fixture(scope="module")
def curves() -> Curves:
    return run(EVERY)


@pytest.mark.parametrize("chunk", [1, 7, 9, 100])
def test_the_size_of_a_batch_changes_no_bit(chunk: int, curves: Curves) -> None:
    assert same_bits(run(EVERY, chunk=chunk), curves)


def test_two_processes_change_no_bit_and_count_all_rounds(curves: Curves) -> None:
    done: list[int] = []
    assert same_bits(run(EVERY, chunk=4, workers=2, tick=done.append), curves)
    assert sum(done) == 150 * 9 * len(EVERY)


def test_one_process_counts_all_rounds() -> None:
    done: list[int] = []
    run(["alg1", "kk"], chunk=4, tick=done.append)
    assert sum(done) == 150 * 9 * 2


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_equal_seeds_give_equal_runs(seed: int) -> None:
    assert same_bits(run(["alg1"], seed=seed), run(["alg1"], seed=seed))


def test_no_seed_is_a_new_one_that_the_result_names() -> None:
    one, other = run(["alg1"], seed=None), run(["alg1"], seed=None)
    assert one.seed != other.seed
    assert same_bits(one, run(["alg1"], seed=one.seed))


def test_different_seeds_give_different_runs() -> None:
    finals = [run(["alg1"], seed=seed).values["regret"][0, :, -1] for seed in (0, 1, 2, 2**32)]
    assert len(np.unique(np.concatenate(finals))) == 4 * 9


def test_trials_of_a_run_differ(curves: Curves) -> None:
    for values in curves.values["regret"][:, :, -1]:
        assert len(np.unique(values)) == 9


@pytest.mark.parametrize("name", EVERY)
def test_an_agents_result_does_not_depend_on_its_company(name: str, curves: Curves) -> None:
    alone, beside = run([name]), run([name, "kk" if name != "kk" else "naive"][::-1])
    row = curves.agents.index(name)
    for quantity, values in curves.values.items():
        assert np.array_equal(alone.values[quantity][0], values[row])
        assert np.array_equal(beside.values[quantity][1], values[row])


def test_a_row_of_ones_own_is_run_as_it_is(curves: Curves) -> None:
    mine = run([replace(AGENTS["alg2"], name="mine"), "alg1"])
    assert mine.agents == ["mine", "alg1"]
    assert np.array_equal(mine.values["regret"][0], curves.values["regret"][curves.agents.index("alg2")])


def test_a_shorter_run_is_the_beginning_of_a_longer_one() -> None:
    short, long = run(EVERY, rounds=300, trials=3), run(EVERY, rounds=500, trials=3)
    assert np.array_equal(short.rounds, long.rounds[:300])
    for name, values in short.values.items():
        assert np.array_equal(values, long.values[name][:, :, :300]), name


@pytest.mark.parametrize("extra", [0, 1, 2])
def test_so_is_one_that_ends_about_a_block(extra: int) -> None:
    short, long = run(EVERY, rounds=BLOCK + extra, trials=3), run(EVERY, rounds=2 * BLOCK, trials=3)
    for name in PLAIN + SPLIT:
        assert np.array_equal(short.values[name], long.values[name][:, :, : BLOCK + extra]), name


def test_fewer_trials_are_the_first_of_more(curves: Curves) -> None:
    few = run(EVERY, trials=4)
    assert all(np.array_equal(few.values[name], values[:, :4]) for name, values in curves.values.items())


@pytest.mark.parametrize("points", [1, 7, 149])
def test_a_thinned_grid_keeps_the_values_of_its_rounds(points: int, curves: Curves) -> None:
    thin = run(EVERY, points=points)
    assert len(thin.rounds) == points
    for name, values in thin.values.items():
        assert np.array_equal(values, curves.values[name][:, :, thin.rounds - 1])


def test_the_split_adds_up_and_can_be_left_out(curves: Curves) -> None:
    assert tuple(curves.values) == PLAIN + SPLIT
    total = sum(curves.values[name] for name in SPLIT)
    np.testing.assert_allclose(total, curves.values["regret"], rtol=1e-9, atol=1e-9)
    plain = run(EVERY, decompose=False)
    assert list(plain.values) == ["regret"]
    assert all(np.array_equal(values, curves.values[name]) for name, values in plain.values.items())


def test_regret_never_falls(curves: Curves) -> None:
    for name in PLAIN:
        steps = np.diff(curves.values[name], axis=-1, prepend=0)
        assert steps.min() >= 0
        assert steps.max() > 0.1


@given(rounds=st.integers(1, 5000), points=st.integers(1, 6000))
def test_stored_rounds_are_even_and_end_with_the_last(rounds: int, points: int) -> None:
    grid = stored_rounds(rounds, 1, 1, points)
    assert len(grid) == min(points, rounds)
    assert grid[-1] == rounds
    assert grid[0] >= 1
    gaps = np.diff(grid, prepend=0)
    assert gaps.min() >= 1
    assert gaps.max() - gaps.min() <= 1


@given(rounds=st.integers(1, 10**6), trials=st.integers(1, 10**5), agents=st.integers(1, 20))
def test_stored_rounds_fit_in_memory(rounds: int, trials: int, agents: int) -> None:
    points = len(stored_rounds(rounds, trials, agents))
    assert points <= 1000
    assert points <= min(50, rounds) or 6 * points * trials * agents <= MOST_CELLS


def test_every_round_is_stored_where_that_is_affordable() -> None:
    assert np.array_equal(stored_rounds(1000, 400, 5), np.arange(1, 1001))


@given(trials=st.integers(1, 700), workers=st.integers(1, 4), chunk=st.none() | st.integers(1, 800))
def test_batches_hold_every_trial_once(trials: int, workers: int, chunk: int | None) -> None:
    [parts] = plan(
        [PROBLEM], ["alg1"], rounds=10, trials=trials, seed=0, workers=workers, chunk=chunk
    ).batches
    assert [trial for part in parts for trial in part] == list(range(trials))
    assert chunk is None or max(map(len, parts)) <= chunk


def test_draws_depend_on_seed_trial_and_purpose_alone() -> None:
    draws = RoundDraws(5, [0, 3, 8], "agent", 4)
    blocks = np.concatenate([draws.next(10), draws.next(3)], 1)
    for row, trial in zip(blocks, (0, 3, 8), strict=True):
        assert np.array_equal(row, generator(5, trial, "agent").standard_normal((13, 4)))
    keys = [(seed, trial, purpose) for seed in (0, 1) for trial in (0, 1) for purpose in PURPOSES]
    firsts = [generator(*key).standard_normal() for key in keys]
    assert len(set(firsts)) == len(keys)


@pytest.mark.parametrize(
    ("agents", "complaint"),
    [
        ([], "none named"),
        ([AGENTS["alg1"]] * 2, "'alg1' is named twice"),
        ([AGENTS["alg1"], "alg1", "kk"], "'alg1' is named twice"),
        ([3], "a list of names or of rows"),
    ],
)
def test_odd_lists_of_agents_are_refused(agents: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        run(agents)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rounds", 0),
        ("rounds", 2.0),
        ("trials", 0),
        ("trials", True),
        ("seed", -1),
        ("seed", 2**64),
        ("seed", "1"),
        ("points", 0),
        ("chunk", 0),
        ("workers", 0),
        ("agents", "alg1"),
        ("agents", ["alg1", "nobody"]),
        ("agents", ["alg1", "alg1"]),
    ],
)
def test_bad_settings_are_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(InputError, match=f"^{field}: ") as refused:
        run(**{field: value})
    assert refused.value.field == field


# The plain loop: one trial and one round at a time, the posterior of theta in precision form, inverted every
# round. A draw of theta needs a square root of the covariance, which is not unique: the loop takes the one of
# the rank-one formula and checks that it is one.

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
    """The round's regret, that of the two other benchmarks, CB, EE1 and EE2."""
    best = psi(world.actions, *DENOISE["oracle"](KNOWN, world, t)) @ world.theta
    true = phi(world.actions, world.contexts[t]) @ world.theta
    naive = phi(world.actions, world.noisy[t]) @ world.theta
    mine = own @ world.theta
    star, hat = best.argmax(), mine.argmax()
    plain = [best[star] - best[arm], max(true) - true[arm], max(naive) - naive[arm]]
    return [*plain, mine[hat] - mine[arm], best[star] - mine[hat], mine[arm] - best[arm]]


def reference(name: str, trial: int) -> Array:
    """Cumulative losses of one agent in one trial: (6, rounds)."""
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
        follower = gaussian.condition(follower, row, reward, np.asarray(known.reward_var))
        found.append(losses(world, t, rows, arm))
    return np.cumsum(found, 0).T


@pytest.fixture(scope="module")
def followed() -> Curves:
    return simulate(PROBLEM, list(AGENTS), rounds=ROUNDS, trials=TRIALS, seed=SEED)


@pytest.mark.parametrize("name", DENOISE)
def test_the_simulator_is_the_plain_loop(name: str, followed: Curves) -> None:
    row = followed.agents.index(name)
    for trial in range(TRIALS):
        right = dict(zip(PLAIN + SPLIT, reference(name, trial), strict=True))
        for quantity, values in right.items():
            found = followed.values[quantity][row, trial]
            np.testing.assert_allclose(found, values, rtol=1e-9, atol=1e-9, err_msg=quantity)


def test_every_plain_row_of_the_catalogue_is_followed() -> None:
    plain = {name for name, row in AGENTS.items() if row.learner == Conjugate() and row.chooser == Thompson()}
    assert set(DENOISE) == plain


# The paper's findings, in its own setting and in one where denoising is more than a scalar shrink.

REFERENCE = {"naive": 171, "kk": 175, "alg1": 145, "alg2": 123, "oracle": 143}  # standard error 3 each


def final_regrets(problem: GaussianProblem, trials: int) -> dict[str, Array]:
    curves = simulate(problem, rounds=1000, trials=trials, seed=0, points=1, decompose=False, workers=2)
    return dict(zip(curves.agents, curves.values["regret"][:, :, 0], strict=True))


@pytest.fixture(scope="module")
def paper() -> dict[str, Array]:
    """400 trials of the paper's first experiment."""
    return final_regrets(GaussianProblem(), 400)


@pytest.fixture(scope="module")
def correlated() -> dict[str, Array]:
    """400 trials with correlated, anisotropic covariances and contexts that are not centred."""
    rng = np.random.default_rng(2)
    problem = GaussianProblem(
        dim=4,
        actions=20,
        context_mean=rng.normal(0.5, 0.5, 4),
        context_cov=spd(rng, 4, 0.3, 2.0),
        noise_cov=spd(rng, 4, 0.3, 4.0),
        bias_cov=spd(rng, 4, 0.5, 3.0),
        prior_cov=spd(rng, 12, 0.005, 0.05),
    )
    return final_regrets(problem, 400)


def above(regrets: dict[str, Array], one: str, other: str) -> float:
    """By what share of the other's regret the one's is higher; trials are paired."""
    return float((regrets[one] - regrets[other]).mean() / regrets[other].mean())


@pytest.mark.parametrize("name", REFERENCE)
def test_final_regrets_are_those_of_an_independent_run(name: str, paper: dict[str, Array]) -> None:
    found = estimate(paper[name])
    # Three combined standard errors, five agents: a right simulator fails with probability 0.013 at most.
    assert abs(found.mean - REFERENCE[name]) < 3 * np.hypot(found.se, 3)


def test_algorithm_1_is_as_good_as_knowing_the_bias(paper: dict[str, Array]) -> None:
    # The paired standard error is 1.1 %: were the two equal, one seed in 150 would fail.
    assert abs(above(paper, "alg1", "oracle")) < 0.03


def test_ignoring_the_noise_costs_an_eighth(paper: dict[str, Array]) -> None:
    # The mean over seeds is 19 %, five paired standard errors away: wrong less than 1e-6 of the time.
    assert above(paper, "naive", "alg1") >= 0.12


def test_seeing_contexts_late_saves_a_tenth(paper: dict[str, Array]) -> None:
    # The mean over seeds is -14 %, four paired standard errors away: wrong 3e-5 of the time.
    assert above(paper, "alg2", "alg1") <= -0.10


def test_the_same_holds_in_a_correlated_world(correlated: dict[str, Array]) -> None:
    # All three are four paired standard errors or more from what is found: wrong 1e-4 of the time.
    assert above(correlated, "naive", "alg1") > 0.25
    assert above(correlated, "alg2", "alg1") < -0.05
    assert abs(above(correlated, "alg1", "oracle")) < 0.05
