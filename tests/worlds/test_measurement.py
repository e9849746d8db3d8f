"""Every field of a channel against the law it states, and what one who knows the channel believes."""

import tomllib
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kstest, multivariate_t
from scipy.stats import t as student_t

from tests.each import each
from tests.problems import covariance_error, given, spd, within
from unfog.features import Context
from unfog.lab.prepare import prepare
from unfog.lab.spec import describe, parse, to_toml
from unfog.maths.arrays import Array
from unfog.validation import InputError
from unfog.worlds import measurement as channels
from unfog.worlds.problem import Emission, Truth
from unfog.worlds.synthetic import GaussianProblem, LogisticProblem

D, N = 3, 60_000
SOURCE = np.random.default_rng(17)
MEAN = SOURCE.normal(1, 1, D)
CONTEXT, NOISE, ACTUAL, BIAS, DRIFT = (
    spd(SOURCE, D, *edges) for edges in ((0.3, 3), (0.2, 4), (0.5, 2), (0.5, 5), (0.01, 0.2))
)


def problem(**odd: Any) -> GaussianProblem:
    """A world that is correlated, anisotropic and not centred, with an odd channel."""
    laws: Any = {"context_mean": MEAN, "context_cov": CONTEXT, "noise_cov": NOISE, "bias_cov": BIAS}
    return GaussianProblem(dim=D, actions=4, **(laws | odd))


def truth(world: GaussianProblem, rng: np.random.Generator, trials: int) -> Truth:
    draws = {
        name: rng.standard_normal((trials, *wanted.shape)) for name, wanted in world.truth_draws().items()
    }
    return world.truth(draws)


def emitted(world: GaussianProblem, rng: np.random.Generator, n: int = N) -> tuple[Emission, Array]:
    """Measurements of one trial, and its first bias."""
    found = truth(world, rng, 1)
    normals = rng.standard_normal((n, world.round_normals()))
    return world.emit(found, normals, np.asarray(0)), found.bias[0]


def best(emission: Emission) -> Context:
    assert emission.best is not None
    return emission.best


def has_moments(draws: Array, mean: Array, cov: Array) -> bool:
    # At most nine two-sided tests at 5 standard errors: a right law fails 5e-6 of the time.
    n = len(draws)
    fits = within(draws.mean(0), mean, np.sqrt(np.diag(cov) / n))
    return fits and within(np.cov(draws.T), cov, covariance_error(cov, n))


def is_posterior(belief: Context, contexts: Array, noisy: Array) -> None:
    """The belief is right if its error has mean zero, goes with nothing seen, and has the belief's size.

    Conditional laws by regression: E[c - mean | seen] = 0 and Cov = cov, tested against functions of what was
    seen. 24 tests at 5 standard errors: 1e-5.
    """
    error, n = contexts - belief.mean, len(contexts)
    seen = noisy - noisy.mean(0)
    tests = [np.ones((n, 1)), np.tanh(seen / 2), seen**2 < 1]
    for test in tests:
        product = (error[:, :, None] * test[:, None, :]).reshape(n, -1)
        assert within(product.mean(0), np.zeros(product.shape[1]), product.std(0) / np.sqrt(n))
    excess = error[:, :, None] * error[:, None, :] - np.broadcast_to(belief.cov, (n, D, D))
    assert within(excess.mean(0), np.zeros((D, D)), excess.std(0) / np.sqrt(n))


def test_a_plain_channel_adds_nothing_and_asks_for_nothing(rng: np.random.Generator) -> None:
    world = problem()
    emission, bias = emitted(world, rng)
    assert all(more is None for more in emission[2:])
    assert world.round_normals() == 2 * D + 1
    assert world.plain
    assert not world.partial
    assert has_moments(emission.noisy - emission.context, bias, NOISE)


def test_actual_noise_has_its_covariance_and_agents_are_told_another(rng: np.random.Generator) -> None:
    world = problem(noise_cov=ACTUAL, assumed_noise_cov=NOISE)
    emission, bias = emitted(world, rng)
    assert has_moments(emission.noisy - emission.context, bias, ACTUAL)
    assert np.array_equal(world.knowledge().noise_cov, NOISE)
    is_posterior(best(emission), emission.context, emission.noisy)
    joint = np.block([[CONTEXT, CONTEXT], [CONTEXT, CONTEXT + ACTUAL]])
    rows = np.eye(2 * D)[D:]
    mean, cov = given(np.concatenate([MEAN, MEAN + bias]), joint, rows, emission.noisy[0])
    np.testing.assert_allclose(best(emission).mean[0], mean[:D], rtol=1e-10)
    np.testing.assert_allclose(best(emission).cov, cov[:D, :D], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("tails", [3, 5, 30])
def test_tails_are_students(tails: int, rng: np.random.Generator) -> None:
    world = problem(tails=tails)
    emission, bias = emitted(world, rng)
    noise = np.linalg.solve(np.linalg.cholesky(NOISE), (emission.noisy - emission.context - bias).T)
    # Kolmogorov-Smirnov at level 0.001, four times: each coordinate, and the length, whose square is 3 F.
    for one in noise:
        assert kstest(one, student_t(tails).cdf).pvalue > 0.001
    assert kstest((noise**2).mean(0), "f", (D, tails)).pvalue > 0.001
    is_posterior(best(emission), emission.context, emission.noisy)


def test_tails_have_their_kurtosis_and_one_precision_for_all_coordinates(rng: np.random.Generator) -> None:
    emission, bias = emitted(problem(tails=20), rng)
    noise = np.linalg.solve(np.linalg.cholesky(NOISE), (emission.noisy - emission.context - bias).T)
    kurtosis = (noise**4).mean(1) / (noise**2).mean(1) ** 2
    assert np.abs(kurtosis - 3 - 6 / 16).max() < 0.2
    # Squares of two coordinates go together: E[x^2 y^2] = E[w^-2], not E[w^-1]^2.
    right = 20**2 / (18 * 16)
    assert (noise[0] ** 2 * noise[1] ** 2).mean() == pytest.approx(right, abs=0.05)


def test_the_belief_under_tails_is_the_conditional_by_sampling(rng: np.random.Generator) -> None:
    emission, bias = emitted(problem(tails=3), rng, 4)
    c = rng.multivariate_normal(MEAN, CONTEXT, 300_000)
    for noisy, mean in zip(emission.noisy, best(emission).mean, strict=True):
        weights = multivariate_t(np.zeros(D), NOISE, df=3).pdf(noisy - c - bias)
        weights /= weights.sum()
        # Twelve tests at 5 standard errors: 7e-6.
        assert within(mean, weights @ c, np.sqrt(weights**2 @ (c - weights @ c) ** 2))


def test_missing_coordinates_are_lost_one_by_one_and_read_mu_c(rng: np.random.Generator) -> None:
    emission, bias = emitted(problem(missing=0.3), rng)
    mask = emission.mask
    assert mask is not None
    assert set(np.unique(mask)) == {0.0, 1.0}
    assert has_moments(1 - mask, np.full(D, 0.3), 0.21 * np.eye(D))
    assert np.array_equal(emission.noisy[mask == 0], np.broadcast_to(MEAN, (N, D))[mask == 0])
    whole = (mask > 0).all(-1)
    assert has_moments((emission.noisy - emission.context)[whole], bias, NOISE)


def test_the_belief_with_gaps_is_the_conditional_of_what_is_left(rng: np.random.Generator) -> None:
    emission, bias = emitted(problem(missing=0.4), rng)
    mask = emission.mask
    assert mask is not None
    is_posterior(best(emission), emission.context, emission.noisy)
    joint = np.block([[CONTEXT, CONTEXT], [CONTEXT, CONTEXT + NOISE]])
    for i in range(20):
        rows = np.eye(2 * D)[D:][mask[i] > 0]
        values = emission.noisy[i][mask[i] > 0]
        mean, cov = given(np.concatenate([MEAN, MEAN + bias]), joint, rows, values)
        np.testing.assert_allclose(best(emission).mean[i], mean[:D], rtol=1e-10)
        np.testing.assert_allclose(best(emission).cov[i], cov[:D, :D], rtol=1e-10, atol=1e-12)


def test_the_bias_walks_with_the_steps_it_is_given(rng: np.random.Generator) -> None:
    found = truth(problem(drift_cov=DRIFT, drift_rounds=40), rng, 2000)
    path = found.path
    assert path is not None
    assert path.shape == (2000, 40, D)
    assert np.array_equal(path[:, 0], found.bias)
    steps = np.diff(path, axis=1)
    assert has_moments(steps.reshape(-1, D), np.zeros(D), DRIFT)
    assert has_moments(path[:, -1], np.zeros(D), BIAS + 39 * DRIFT)
    # Neighbouring steps are apart: nine correlations at 5 standard errors, 5e-6.
    near = np.corrcoef(steps[:, :-1].reshape(-1, D).T, steps[:, 1:].reshape(-1, D).T)[:D, D:]
    assert np.abs(near).max() < 5 / np.sqrt(2000 * 38)


def test_every_round_is_measured_with_its_own_bias(rng: np.random.Generator) -> None:
    world = problem(drift_cov=DRIFT, drift_rounds=5)
    found = truth(world, rng, 4)
    normals = rng.standard_normal((4, 8, world.round_normals()))
    wide = found._replace(theta=found.theta[:, None], bias=found.bias[:, None])
    emission = world.emit(wide, normals, np.arange(8))
    path = np.asarray(found.path)
    right = np.concatenate([path, np.repeat(path[:, -1:], 3, 1)], 1)  # after the last step it stays
    assert emission.bias is not None
    assert np.array_equal(emission.bias, right)
    noise = normals[..., D : 2 * D] @ np.linalg.cholesky(NOISE).T
    np.testing.assert_allclose(emission.noisy, emission.context + right + noise, rtol=1e-12)
    for t in range(8):
        alone = world.emit(found, normals[:, t], np.asarray(t))
        assert np.array_equal(np.asarray(alone.bias), right[:, t])
        np.testing.assert_allclose(alone.noisy, emission.noisy[:, t], rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(best(alone).mean, best(emission).mean[:, t], rtol=1e-13)


def test_the_belief_under_drift_takes_off_the_bias_of_the_round(rng: np.random.Generator) -> None:
    world = problem(drift_cov=DRIFT, drift_rounds=3, noise_cov=ACTUAL, assumed_noise_cov=NOISE)
    found = truth(world, rng, N)
    emission = world.emit(found, rng.standard_normal((N, world.round_normals())), np.asarray(2))
    is_posterior(best(emission), emission.context, emission.noisy - np.asarray(found.path)[:, 2])


@pytest.mark.parametrize("odd", [{"tails": 4}, {"missing": 0.3}], ids=["tails", "missing"])
def test_the_belief_knows_the_actual_noise_and_the_walk_along_with_the_rest(
    odd: Any, rng: np.random.Generator
) -> None:
    world = problem(noise_cov=ACTUAL, assumed_noise_cov=NOISE, drift_cov=DRIFT, drift_rounds=3, **odd)
    found = truth(world, rng, N)
    emission = world.emit(found, rng.standard_normal((N, world.round_normals())), np.asarray(2))
    is_posterior(best(emission), emission.context, emission.noisy - np.asarray(found.path)[:, 2])


@pytest.mark.parametrize("odd", [{}, {"missing": 0.3}], ids=["whole", "missing"])
def test_trouble_begins_in_its_round(odd: Any, rng: np.random.Generator) -> None:
    """Noise as told before it and another from then on; one who knows the channel knows which it is."""
    world = problem(noise_cov=9 * NOISE, assumed_noise_cov=NOISE, trouble_from=5, **odd)
    for number, size in ((0, 1), (4, 1), (5, 9), (8, 9)):
        found = truth(world, rng, N)
        emission = world.emit(found, rng.standard_normal((N, world.round_normals())), np.asarray(number))
        right = problem(noise_cov=size * NOISE, assumed_noise_cov=2 * NOISE, **odd)._parts.channel
        belief = channels.best(right, emission, found.bias)
        assert belief is not None
        np.testing.assert_allclose(best(emission).mean, belief.mean, rtol=1e-12, atol=1e-12)
        if not odd:
            noise = emission.noisy - emission.context - found.bias
            assert has_moments(noise, np.zeros(D), size * NOISE)
            np.testing.assert_allclose(best(emission).cov, belief.cov, rtol=1e-12)


def test_a_block_of_rounds_has_the_noise_of_each(rng: np.random.Generator) -> None:
    world = problem(
        noise_cov=9 * NOISE, assumed_noise_cov=NOISE, trouble_from=2, drift_cov=DRIFT, drift_rounds=6
    )
    found, normals = truth(world, rng, 3), rng.standard_normal((3, 5, world.round_normals()))
    whole = world.emit(found, normals, np.arange(5))
    for t in range(5):
        alone = world.emit(found, normals[:, t], np.asarray(t))
        np.testing.assert_allclose(whole.noisy[:, t], alone.noisy)
        np.testing.assert_allclose(best(whole).mean[:, t], best(alone).mean)


def test_a_walk_begins_with_the_trouble(rng: np.random.Generator) -> None:
    """And lasts as many rounds as without one."""
    world = problem(drift_cov=DRIFT, drift_rounds=4, trouble_from=3)
    found, normals = truth(world, rng, N), rng.standard_normal((N, world.round_normals()))
    biases = [world.emit(found, normals, np.asarray(t)).bias for t in range(9)]
    assert all((bias == found.bias).all() for bias in biases[:4])  # type: ignore[union-attr]
    for now, then in pairwise(biases[3:7]):
        assert has_moments(np.asarray(then) - np.asarray(now), np.zeros(D), DRIFT)
    assert (np.asarray(biases[6]) == np.asarray(biases[8])).all()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.95])
def test_true_contexts_are_shown_for_their_share_of_rounds(share: float, rng: np.random.Generator) -> None:
    world = problem(revealed=share, missing=0.2)
    shown = world.reveal_mask(rng.random((N, 1 + D)), np.asarray(0))
    assert shown is not None
    assert shown.shape == (N,)
    # 5 standard errors: 6e-7.
    assert abs(shown.mean() - share) <= 5 * np.sqrt(share * (1 - share) / N)
    assert world.round_normals() == problem(missing=0.2).round_normals()
    assert world.partial
    assert not world.plain


def test_late_contexts_make_a_world_partial_but_change_no_measurement(rng: np.random.Generator) -> None:
    late, plain = problem(reveal_delay=7), problem()
    assert late.reveal_delay == 7
    assert late.partial
    assert not late.plain
    assert late.round_normals() == plain.round_normals()
    normals = rng.standard_normal((5, plain.round_normals()))
    found = truth(plain, rng, 5)
    assert np.array_equal(late.emit(found, normals).noisy, plain.emit(found, normals).noisy)


def test_the_rewards_noise_is_apart_from_the_channels(rng: np.random.Generator) -> None:
    for odd in ({"tails": 3}, {"missing": 0.4}):
        world = problem(**odd)
        normals = rng.standard_normal((N, world.round_normals()))
        emission = world.emit(truth(world, rng, 1), normals)
        noise = world.reward(np.zeros(N), normals)
        seen = np.concatenate([emission.context, np.tanh(emission.noisy)], 1)
        assert np.abs(np.corrcoef(noise, seen.T)[0, 1:]).max() < 5 / np.sqrt(N)


@pytest.mark.parametrize(
    "odd",
    [{"tails": 4, "noise_cov": ACTUAL, "assumed_noise_cov": NOISE}, {"missing": 0.4}, {"drift_cov": DRIFT}],
    ids=str,
)
def test_both_engines_measure_the_same(odd: Any, rng: np.random.Generator) -> None:
    world = problem(**odd, drift_rounds=6)
    found = truth(world, rng, 4)
    normals = rng.standard_normal((4, world.round_normals()))
    right = world.emit(found, normals, np.asarray(2))

    def emit(theta: Any, bias: Any, path: Any, normals: Any, number: Any) -> Any:
        return world.emit(found._replace(theta=theta, bias=bias, path=path), normals, number)

    given_ = jax.tree.map(jnp.asarray, (found.theta, found.bias, found.path, normals, np.asarray(2)))
    ours = jax.tree.leaves(jax.jit(emit)(*given_))
    theirs = jax.tree.leaves(right)
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, atol=1e-11)


ANY = "a positive number, 2 positive numbers or a symmetric positive definite 2 x 2 matrix"
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "one degree": ({"tails": 1}, "tails: 1; allowed: 0 for Gaussian noise, or 3 and more degrees of freedom"),
    "half": ({"tails": 3.5}, "tails: 3.5; allowed: a whole number, at least 0 and at most 1000"),
    "tails true": ({"tails": True}, "tails: True; allowed: a whole number"),
    "all missing": ({"missing": 1.0}, "missing: 1.0; allowed: a number from 0 to 0.99"),
    "negative": ({"missing": -0.1}, "missing: -0.1; allowed: a number from 0 to 0.99"),
    "nan": ({"missing": float("nan")}, "missing: nan; allowed: a number"),
    "text": ({"missing": "0.1"}, "missing: '0.1'; allowed: a number"),
    "false": ({"missing": False}, "missing: False; allowed: a number"),
    "over": ({"revealed": 1.1}, "revealed: 1.1; allowed: a number from 0 to 1"),
    "nothing": ({"revealed": None}, "revealed: None; allowed: a number from 0 to 1"),
    "never": (
        {"reveal_delay": -1},
        "reveal_delay: -1; allowed: a whole number, at least 0 and at most 10000",
    ),
    "no steps": ({"drift_rounds": 0}, "drift_rounds: 0; allowed: a whole number, at least 1 and at most"),
    "noise": (
        {"assumed_noise_cov": -1.0},
        f"assumed_noise_cov: -1.0 has the variance -1; allowed: 0 for the truth, or {ANY}",
    ),
    "drift": (
        {"drift_cov": [1.0, 0.0]},
        f"drift_cov: [1.0, 0.0] has the variance 0; allowed: 0 for the bias to stay, or {ANY}",
    ),
    "drift none": ({"drift_cov": None}, "drift_cov: None is not made of numbers; allowed: 0 for"),
    "drift false": ({"drift_cov": False}, "drift_cov: False is not made of numbers; allowed: 0 for"),
    "drift text": ({"drift_cov": "0"}, "drift_cov: '0'; allowed: 0 for"),
    "ragged": (
        {"assumed_noise_cov": [[1.0], [1.0, 2.0]]},
        "assumed_noise_cov: [[1.0], [1.0, 2.0]] is ragged",
    ),
    "zeros": ({"assumed_noise_cov": [0.0, 0.0]}, "assumed_noise_cov: [0.0, 0.0] has the variance 0"),
    "both": ({"tails": 3, "missing": 0.2}, "missing: 0.2; allowed: 0 where noise has heavy tails"),
}


@each("case", REFUSED)
def test_bad_values_are_refused_by_name(case: str) -> None:
    fields, message = REFUSED[case]
    with pytest.raises(InputError) as refused:
        GaussianProblem(dim=2, **fields)
    assert str(refused.value).startswith(message)


ODD = [
    {"tails": 4, "assumed_noise_cov": 0.7},
    {"missing": 0.25, "drift_cov": [0.1, 0.2], "drift_rounds": 30},
    {"revealed": 0.5, "reveal_delay": 3, "assumed_noise_cov": [[1.0, 0.2], [0.2, 2.0]]},
]


@each("kind", ["gaussian", "logistic"])
@each("odd", ODD)
def test_toml_says_everything(kind: str, odd: dict[str, Any]) -> None:
    spec = prepare(
        parse({"problem": {"kind": kind, "dim": 2, "actions": 3, **odd}, "run": {"agents": ["alg1"]}})
    ).spec
    text = to_toml(spec)
    plan = prepare(parse(tomllib.loads(text)))
    again = plan.spec
    assert again == spec
    assert to_toml(again) == text
    for field, value in odd.items():
        assert spec.problem[field] == value
    [world] = plan.problems
    assert isinstance(world, GaussianProblem | LogisticProblem)
    assert describe(world) == spec.problem
    assert not world.plain


def test_a_channel_of_the_spec_is_refused_by_its_table() -> None:
    with pytest.raises(InputError, match=r"^problem\.missing: 2; allowed: a number from 0 to 0\.99"):
        prepare(parse({"problem": {"kind": "gaussian", "missing": 2}}))
    with pytest.raises(InputError, match=r"^sweep\.tails: 2; allowed: 0 for Gaussian noise"):
        prepare(parse({"problem": {"kind": "gaussian"}, "sweep": {"tails": [0, 2]}}))


def test_a_long_walk_does_not_make_a_logistic_world_slow_or_other() -> None:
    still, walking = (LogisticProblem(dim=2, drift_cov=cov, drift_rounds=10**6) for cov in (0.0, 0.1))
    assert still.rewards == walking.rewards


def test_memory_of_a_round_counts_the_grid() -> None:
    plain, heavy = problem(), problem(tails=3)
    grid = heavy._parts.channel.heavy
    assert grid is not None
    assert heavy.cells() - plain.cells() > 3 * len(grid.logs)
    assert plain._parts.channel.cells() == 0
    assert channels.MOST_WALK == 10**6
