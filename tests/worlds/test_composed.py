"""Every world has every channel: worlds of users and of records with lost, drifting, late and revealed."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.each import each
from tests.lab.datasets.test_movielens_worlds import COVS, MADE
from tests.lab.datasets.test_movielens_worlds import Made as Users
from tests.problems import given, spd, within
from tests.worlds.test_record import CALIBRATION, Made, expected
from unfog.features.per_arm import PerArm
from unfog.features.quadrature import quadrature
from unfog.lab.spec import build_problem, describe
from unfog.maths.arrays import Array
from unfog.maths.gaussian import as_matrix
from unfog.simulation import play
from unfog.simulation.job import truth_draws
from unfog.validation import InputError
from unfog.worlds.composed import Composed
from unfog.worlds.problem import Emission, Truth
from unfog.worlds.synthetic import GaussianProblem, LogisticProblem

N = 40_000
LAWS: dict[str, Any] = dict(COVS)
WORLDS: dict[str, Callable[..., Composed]] = {
    "gaussian": lambda **odd: GaussianProblem(dim=3, actions=4, **LAWS, **odd),
    "logistic": lambda **odd: LogisticProblem(dim=3, actions=4, **LAWS, **odd),
    "users": lambda **odd: Users(**LAWS, **odd),
    "record": lambda **odd: Made(**odd),
}
ODD: list[dict[str, Any]] = [
    {"missing": 0.4},
    {"drift_cov": 0.05, "drift_rounds": 9},
    {"revealed": 0.3, "reveal_delay": 2},
    {"missing": 0.3, "drift_cov": 0.1, "revealed": 0.5},
]


def truth_of(world: Composed, trials: int) -> Truth:
    return world.truth(truth_draws(0, range(trials), world.truth_draws()))


def emitted(world: Composed, n: int = N, number: int = 0) -> tuple[Emission, Truth, Array]:
    """Rounds of one trial, side by side."""
    truth = truth_of(world, 1)
    normals = np.random.default_rng(8).standard_normal((n, world.round_normals()))
    return world.emit(truth, normals, np.asarray(number)), truth, normals


@each("odd", ODD)
@each("name", WORLDS)
def test_a_round_is_laid_out_in_the_same_order_everywhere(name: str, odd: dict[str, Any]) -> None:
    # Contexts first, noise next, then the channel's own, the reward last: what is odd moves only the reward.
    plain, world = WORLDS[name](), WORLDS[name](**odd)
    dim = plain.knowledge().context_mean.shape[0]
    more = world.round_normals() - plain.round_normals()
    assert more == dim * ("missing" in odd)
    _, truth, normals = emitted(world, 50)
    last = 2 if name == "logistic" else 1
    cut = np.delete(normals, np.s_[normals.shape[1] - last - more : normals.shape[1] - last], axis=1)
    number = np.asarray(0)
    ours, theirs = world.emit(truth, normals, number), plain.emit(truth, cut, number)
    assert np.array_equal(ours.context, theirs.context)
    seen = np.ones_like(ours.noisy) if ours.mask is None else ours.mask
    right = np.broadcast_to(theirs.noisy, seen.shape)
    assert np.array_equal(ours.noisy[seen > 0], right[seen > 0])  # a walk starts where the bias is
    assert np.array_equal(world.reward(np.ones(50), normals), plain.reward(np.ones(50), cut))


@pytest.mark.parametrize("contexts", ["users", "gaussian"])
def test_with_users_the_best_belief_is_the_conditional_of_what_is_left(contexts: str) -> None:
    world = Users(**LAWS, contexts=contexts, missing=0.4)
    emission, truth, _ = emitted(world, 60)
    mask, best = emission.mask, emission.best
    assert mask is not None
    assert best is not None
    mean, cov = MADE.users.mean(0), np.cov(MADE.users.T)
    assert np.array_equal(emission.noisy[mask == 0], np.broadcast_to(mean, mask.shape)[mask == 0])
    joint = np.block([[cov, cov], [cov, cov + LAWS["noise_cov"]]])
    assert 0 < (mask.sum(1) == 1).sum() < 60
    for i in range(60):
        rows, values = np.eye(6)[3:][mask[i] > 0], emission.noisy[i][mask[i] > 0]
        right = given(np.concatenate([mean, mean + truth.bias[0]]), joint, rows, values)
        np.testing.assert_allclose(best.mean[i], right[0][:3], rtol=1e-9)
        np.testing.assert_allclose(best.cov[i], right[1][:3, :3], rtol=1e-9, atol=1e-11)


def test_users_seen_with_tails_and_drift() -> None:
    laws = LAWS | {"noise_cov": 0.5, "assumed_noise_cov": LAWS["noise_cov"]}
    world = Users(**laws, contexts="gaussian", tails=5, drift_cov=0.2, drift_rounds=4)
    emission, truth, normals = emitted(world, number=3)
    path = np.asarray(truth.path)
    assert np.array_equal(np.asarray(emission.bias), path[:, 3])
    assert np.array_equal(path[:, 0], truth.bias)
    noise = emission.noisy - emission.context - path[0, 3]
    tail = normals[:, 6:11]
    np.testing.assert_allclose(
        noise, np.sqrt(0.5) * normals[:, 3:6] / np.sqrt((tail**2).mean(1))[:, None], rtol=1e-10
    )
    assert emission.best is not None
    error = emission.context - emission.best.mean
    # The belief's error has mean zero and its covariance: 12 tests at 5 standard errors, 7e-6.
    assert within(error.mean(0), np.zeros(3), error.std(0) / np.sqrt(N))
    excess = error[:, :, None] * error[:, None, :] - emission.best.cov
    assert within(excess.mean(0), np.zeros((3, 3)), excess.std(0) / np.sqrt(N))


@pytest.mark.parametrize("share", [0.0, 0.02, 0.7])
def test_a_record_is_revealed_for_its_share_of_rounds(share: float) -> None:
    world = Made(revealed=share, reveal_delay=3)
    emission, _, _ = emitted(world)
    shown = world.reveal_mask(np.random.default_rng(9).random((N, 5)), np.asarray(0))
    assert shown is not None
    # 5 standard errors: 6e-7.
    assert abs(shown.mean() - share) <= 5 * np.sqrt(share * (1 - share) / N)
    assert (world.reveal_delay, world.partial, world.plain) == (3, True, False)
    assert emission.best is None
    with pytest.raises(InputError, match=r"^agents: 'alg2' needs every true context at once"):
        play(world, ["alg2"], rounds=3, trials=2)


def test_true_contexts_of_a_record_help_the_agent_that_takes_them_late() -> None:
    run: dict[str, Any] = {"rounds": 150, "trials": 40, "seed": 2, "points": 1}
    none, all_ = (
        play(Made(revealed=share, reveal_delay=3), ["late"], **run).values["regret"][0, :, -1]
        for share in (0.0, 1.0)
    )
    gap = none - all_
    # Equal worlds would pass with probability 2e-3, by the normal law.
    assert gap.mean() > 3 * gap.std(ddof=1) / np.sqrt(40)


def test_drift_is_added_to_the_errors_of_a_record() -> None:
    cov = spd(np.random.default_rng(3), 4, 0.01, 0.2)
    world = Made(drift_cov=cov, drift_rounds=30)
    contexts, noisy = expected(world.given)
    truth = truth_of(world, 3000)
    path = np.asarray(truth.path)
    assert not path[:, 0].any()
    steps = np.diff(path, axis=1).reshape(-1, 4)
    # 10 tests of a covariance at 5 standard errors: 6e-6.
    error = np.sqrt((np.outer(np.diag(cov), np.diag(cov)) + cov**2) / len(steps))
    assert within(np.cov(steps.T), cov, error)
    normals = np.zeros((3000, world.round_normals()))
    for number in (0, 7, 29, 40):
        rows = CALIBRATION + (np.asarray(truth.first).astype(int) + number) % (len(contexts) - CALIBRATION)
        found = world.emit(truth, normals, np.asarray(number))
        np.testing.assert_allclose(found.context, contexts[rows], rtol=1e-12, atol=1e-12)
        right = noisy[rows] + path[:, min(number, 29)]
        np.testing.assert_allclose(found.noisy, right, rtol=1e-9, atol=1e-9)
        assert np.array_equal(np.asarray(found.bias), path[:, min(number, 29)])


def test_a_record_with_gaps_reads_the_mean_there_and_regret_is_still_against_the_context() -> None:
    world = Made(missing=0.3)
    emission, truth, _ = emitted(world)
    _, noisy = expected(world.given)
    row = CALIBRATION + int(np.asarray(truth.first)[0])
    mask = np.asarray(emission.mask)
    # Four shares at 5 standard errors: 2e-6.
    assert within(mask.mean(0), np.full(4, 0.7), np.sqrt(0.21 / N))
    np.testing.assert_allclose(emission.noisy[mask == 0], 1, rtol=1e-12)
    right = np.broadcast_to(noisy[row], mask.shape)
    np.testing.assert_allclose(emission.noisy[mask > 0], right[mask > 0], rtol=1e-9, atol=1e-9)
    found = play(world, ["gaps"], rounds=20, trials=3).values
    assert np.array_equal(found["regret"], found["regret_true_context"])


@pytest.mark.parametrize(
    "name", ["logistic", "record"]
)  # of others `tests/simulation/test_channels.py` has it
@pytest.mark.slow
def test_both_engines_play_an_odd_channel_alike(name: str) -> None:
    world = WORLDS[name](missing=0.3, drift_cov=0.05)
    run: dict[str, Any] = {"rounds": 30, "trials": 3, "seed": 3, "points": 3}
    numpy = play(world, ["gaps"], **run)
    jax = play(world, ["gaps"], engine="jax", draws="numpy", precision="float64", **run)
    for loss, values in numpy.values.items():
        np.testing.assert_allclose(jax.values[loss], values, rtol=1e-8, atol=1e-8, err_msg=loss)


@each("name", WORLDS)
def test_worlds_travel(name: str) -> None:
    world = WORLDS[name](missing=0.3, drift_cov=0.05, revealed=0.5)
    emission, truth, normals = emitted(world, 5)
    again: Composed = pickle.loads(pickle.dumps(world))  # noqa: S301
    found = again.emit(truth, normals, np.asarray(0))
    assert np.array_equal(found.noisy, emission.noisy)
    assert again.rewards == world.rewards
    with pytest.raises(AttributeError):
        again.missing = 0.1  # type: ignore[misc]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"tails": 5}, "tails: 5; allowed: 0 where errors come from the data"),
    ({"assumed_noise_cov": 2.0}, r"assumed_noise_cov: 2\.0; allowed: 0 where errors come from the data"),
    ({"tails": 1}, "tails: 1; allowed: 0 for Gaussian noise"),
    ({"missing": 1.5}, r"missing: 1\.5; allowed: a number from 0 to 0\.99"),
    ({"drift_cov": [1.0, 2.0]}, r"drift_cov: \[1\.0, 2\.0\] has shape \(2,\); allowed: 0 for the bias"),
    ({"reveal_delay": 0.5}, r"reveal_delay: 0\.5; allowed: a whole number"),
]


@each("odd, why", REFUSED)
def test_what_makes_no_sense_for_a_record_is_refused_by_name_before_it_is_read(
    odd: dict[str, Any], why: str
) -> None:
    asked: list[int] = []
    with pytest.raises(InputError, match=f"^{why}"):
        Made(reads=asked, **odd)
    assert not asked


def test_where_errors_are_drawn_a_record_may_have_tails_and_other_noise() -> None:
    world, plain = Made(channel="gaussian", tails=4, assumed_noise_cov=3.0), Made(channel="gaussian")
    emission, truth, normals = emitted(world)
    scale = np.sqrt((normals[:, 8:12] ** 2).mean(1))[:, None]
    noise = normals[:, 4:8] @ plain._parts.channel.noise_root.T / scale
    np.testing.assert_allclose(emission.noisy, emission.context + truth.bias + noise, rtol=1e-10, atol=1e-12)
    assert np.array_equal(world.knowledge().noise_cov, 3 * np.eye(4))


# An intercept and slopes for each arm


def with_one(action: Array, context: Array) -> Array:
    """[1, c] at the place that the action, a unit vector, says."""
    one = np.concatenate([np.ones_like(context[..., :1]), context], -1)
    both = action[..., :, None] * one[..., None, :]
    return both.reshape(*both.shape[:-2], -1)


def laws(seed: int = 2) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    covs = {name: spd(rng, 2) for name in ("context_cov", "noise_cov", "bias_cov")}
    return {"dim": 2, "context_mean": [1.0, -0.5], **covs}


def test_a_prior_of_one_arm_stands_for_all() -> None:
    cov, mean = spd(np.random.default_rng(5), 3), [0.5, -1.0, 2.0]
    world = GaussianProblem(**laws(), actions=4, features="per_arm", prior_mean=mean, prior_cov=cov)
    known = world.knowledge()
    assert "actions" not in world.truth_draws()
    assert np.array_equal(known.prior_mean, mean * 4)
    assert np.array_equal(known.prior_cov, [cov] * 4)
    full = spd(np.random.default_rng(6), 12)
    dense = GaussianProblem(**laws(), actions=4, features="per_arm", prior_mean=range(12), prior_cov=full)
    assert np.array_equal(dense.knowledge().prior_cov, full)
    assert dense.knowledge().prior_mean.tolist() == list(range(12))
    for bad in (np.eye(5), [1.0, 2.0], [[1.0], [2.0, 3.0]], -1.0):
        with pytest.raises(InputError, match=r"^prior_cov: "):
            GaussianProblem(**laws(), actions=4, features="per_arm", prior_cov=bad)


@pytest.mark.parametrize("agent", ["alg1", "alg2", "unfog", "alg1-exact-smoothing", "gaps"])
def test_an_arm_of_its_own_is_the_same_bandit_written_out(agent: str) -> None:
    settings: dict[str, Any] = {**laws(), "prior_mean": [0.4, 1.0, -0.5], "reward_var": 0.5}
    cov = spd(np.random.default_rng(5), 3, 0.1, 1.0)
    short = GaussianProblem(**settings, actions=4, features="per_arm", prior_cov=cov)
    long = GaussianProblem(
        **{**settings, "prior_mean": settings["prior_mean"] * 4},
        actions=np.eye(4),
        features=quadrature(with_one, 2),
        prior_cov=as_matrix(short.knowledge().prior_cov),
    )
    if agent == "alg1-exact-smoothing":  # which looks back, and quadrature cannot
        long = GaussianProblem(
            **{**settings, "prior_mean": settings["prior_mean"] * 4},
            actions=4,
            features="per_arm",
            prior_cov=as_matrix(short.knowledge().prior_cov),
        )
    ours, theirs = (play(world, [agent], rounds=80, trials=4, seed=5) for world in (short, long))
    for loss, values in theirs.values.items():
        np.testing.assert_allclose(ours.values[loss], values, rtol=1e-8, atol=1e-9, err_msg=loss)


def test_an_arm_of_its_own_pays_its_intercept_and_slopes() -> None:
    world = LogisticProblem(**laws(), actions=3, features="per_arm", prior_cov=0.5)
    truth, context = truth_of(world, 5), np.random.default_rng(0).normal(size=(5, 2))
    assert truth.features == PerArm(3, 2)
    right = [
        [t[3 * a] + t[3 * a + 1 : 3 * a + 3] @ c for a in range(3)]
        for t, c in zip(truth.theta, context, strict=True)
    ]
    np.testing.assert_allclose(truth.features.at(context).scores(truth.theta), right, rtol=1e-12)
    assert play(world, ["alg1"], rounds=5, trials=2).values["regret"].shape[-1] > 0


def test_matrices_are_actions_by_name() -> None:
    matrices = np.random.default_rng(1).normal(size=(3, 4, 2))
    world = GaussianProblem(**laws(), actions=matrices, features="matrix")
    assert (world.arms(), world.knowledge().prior_mean.shape) == (3, (4,))
    fields = describe(world)
    assert fields is not None
    again = build_problem(fields)
    assert np.array_equal(
        truth_of(world, 2).theta, again.truth(truth_draws(0, [0, 1], again.truth_draws())).theta
    )
    bad: Any
    for bad in (40, np.ones((3, 2)), np.ones((3, 2, 5)), "40"):
        with pytest.raises(InputError, match=r"^actions: .*allowed: K matrices of m rows of 2 numbers"):
            GaussianProblem(**laws(), actions=bad, features="matrix")
    with pytest.raises(InputError, match=r"^actions: .*allowed: a whole number: with per_arm an arm has no"):
        GaussianProblem(**laws(), actions=np.ones((3, 2)), features="per_arm")


@dataclass(frozen=True, kw_only=True, eq=False)
class Rest(GaussianProblem):
    """A world built on another one."""

    missing: float = 0.25


def test_a_world_built_on_another_may_have_a_channel_of_its_own() -> None:
    assert Rest(dim=2).round_normals() == 2 * 2 + 2 + 1
