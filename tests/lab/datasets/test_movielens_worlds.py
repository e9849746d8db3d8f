"""The world of users and clusters against its stated laws, and against the Gaussian bandit that it is."""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2

from tests.each import each
from tests.problems import covariance_error, given, spd, within
from unfog.agents.catalogue import AGENTS, playable
from unfog.channel.knowledge import known_shrinkage
from unfog.features.linear import matrix
from unfog.features.per_arm import PerArm
from unfog.lab.datasets.movielens import CONTEXTS, Ratings, RatingsProblem
from unfog.maths.arrays import Array
from unfog.simulation import Curves, play
from unfog.theory.regret import best_context, names
from unfog.validation import InputError
from unfog.worlds.problem import Emission, Truth
from unfog.worlds.synthetic import GaussianProblem

USERS, K, D = 37, 5, 3
M, N = K * D, 100_000
EVERY = playable()


def some_ratings() -> Ratings:
    """Skewed, correlated users; clusters that differ in place and spread."""
    rng = np.random.default_rng(3)
    users = np.exp(rng.normal(size=(USERS, D)) @ np.linalg.cholesky(spd(rng, D, 0.1, 0.9)).T)
    return Ratings(users, rng.normal(0.4, 0.7, (K, D)), rng.uniform(0.05, 0.8, (K, D)))


MADE = some_ratings()
COVS = {"noise_cov": spd(np.random.default_rng(4), D, 0.1, 1.5), "bias_cov": spd(np.random.default_rng(5), D)}


class Made(RatingsProblem):
    """A world of ratings made up here."""

    def _ratings(self) -> Ratings:
        return MADE


class Unbiased(Made):
    """The same, where no one knows a bias."""

    has_bias = False


def world(kind: type[RatingsProblem] = Made, **changes: Any) -> RatingsProblem:
    fields: Any = {**COVS, "reward_var": 0.3, "contexts": "gaussian", **changes}
    return kind(**fields)


def draw_truth(problem: RatingsProblem, rng: np.random.Generator, trials: int) -> Truth:
    wanted = problem.truth_draws()
    assert {draws.law for draws in wanted.values()} == {"normal"}
    return problem.truth({name: rng.standard_normal((trials, *d.shape)) for name, d in wanted.items()})


def has_moments(draws: Array, mean: Array, cov: Array) -> bool:
    # At most 15 + 120 two-sided tests at 5 standard errors, 6e-7 each: a right law fails 8e-5 of the time.
    n = len(draws)
    return within(draws.mean(0), mean, np.sqrt(np.diag(cov) / n)) and within(
        np.cov(draws.T), cov, covariance_error(cov, n)
    )


# What agents are told


def test_agents_are_told_the_moments_of_the_users() -> None:
    known = world().knowledge()
    mean = [sum(user[i] for user in MADE.users) / USERS for i in range(D)]
    cov = [
        [sum((u[i] - mean[i]) * (u[j] - mean[j]) for u in MADE.users) / (USERS - 1) for j in range(D)]
        for i in range(D)
    ]
    np.testing.assert_allclose(known.context_mean, mean, rtol=1e-13)
    np.testing.assert_allclose(known.context_cov, cov, rtol=1e-12)
    assert abs(cov[0][1]) > 0.1 * np.sqrt(cov[0][0] * cov[1][1])  # users on which formulas can fail


def test_agents_are_told_the_clusters_in_blocks() -> None:
    known = world().knowledge()
    assert known.prior_mean.shape == (M,)
    assert known.prior_cov.shape == (K, D, D)
    for a, i in np.ndindex(K, D):
        assert known.prior_mean[a * D + i] == MADE.centroids[a, i]
        for j in range(D):
            assert known.prior_cov[a, i, j] == (MADE.variances[a, i] if i == j else 0)
    assert np.array_equal(known.noise_cov, COVS["noise_cov"])
    assert np.array_equal(known.bias_cov, COVS["bias_cov"])
    assert known.reward_var == 0.3
    assert (world().arms(), world().cells()) == (K, 0)


def test_the_defaults_are_the_papers() -> None:
    problem = Made()
    known = problem.knowledge()
    assert np.array_equal(known.noise_cov, 0.1 * np.eye(D))
    assert np.array_equal(known.bias_cov, 0.6 * np.eye(D))
    assert known.reward_var == 0.01
    assert (problem.contexts, problem.note, problem.has_bias) == ("users", "", True)
    assert problem.rewards.kind == "gaussian"


# What nature does


def test_theta_and_bias_have_their_priors_moments(rng: np.random.Generator) -> None:
    truth = draw_truth(world(), rng, N)
    assert has_moments(truth.theta, MADE.centroids.ravel(), np.diag(MADE.variances.ravel()))
    assert has_moments(truth.bias, np.zeros(D), COVS["bias_cov"])
    assert truth.features == PerArm(K, D, intercept=False)


def test_a_user_is_one_of_the_table_each_as_likely(rng: np.random.Generator) -> None:
    problem = world(contexts="users")
    assert problem.round_normals() == 2 + D + 1
    emission = problem.emit(draw_truth(problem, rng, 1), rng.standard_normal((N, problem.round_normals())))
    places = {user.tobytes(): number for number, user in enumerate(MADE.users)}
    assert len(places) == USERS
    drawn = [places[context.tobytes()] for context in emission.context]  # KeyError for anyone else
    counts = np.bincount(drawn, minlength=USERS)
    # Pearson's chi-square: a right law fails with probability 0.001.
    assert ((counts - N / USERS) ** 2 / (N / USERS)).sum() < chi2.ppf(0.999, USERS - 1)


@each("size", [0.0, 1e-9, 40.0])
def test_extreme_normals_still_name_a_user(size: float) -> None:
    problem = world(contexts="users")
    truth = draw_truth(problem, np.random.default_rng(0), 1)
    for sign in (-1, 1):
        normals = np.full((1, problem.round_normals()), sign * size)
        [context] = problem.emit(truth, normals).context
        assert (context == MADE.users).all(1).sum() == 1


@pytest.mark.slow
def test_users_in_single_precision_are_the_same(rng: np.random.Generator) -> None:
    problem = world(contexts="users")
    truth, normals = draw_truth(problem, rng, 1), rng.standard_normal((20_000, 6))
    right = problem.emit(truth, normals).context
    found = problem.emit(truth, jnp.asarray(normals, jnp.float32)).context
    assert found.dtype == jnp.float32
    same = (np.asarray(found) == right.astype(np.float32)).all(1)
    # A uniform number of 24 bits falls on another side of one of 37 bounds about 37 times in 2^24.
    assert same.mean() > 0.999
    table = {user.tobytes() for user in MADE.users.astype(np.float32)}
    assert all(context.tobytes() in table for context in np.asarray(found))


def test_gaussian_contexts_have_the_users_moments(rng: np.random.Generator) -> None:
    problem = world()
    assert problem.round_normals() == 2 * D + 1
    truth = draw_truth(problem, rng, 1)
    emission = problem.emit(truth, rng.standard_normal((N, 2 * D + 1)))
    mean, cov = MADE.users.mean(0), np.cov(MADE.users.T)
    assert has_moments(emission.context, mean, cov)
    both = np.concatenate([emission.context, emission.noisy], 1)
    joint = np.block([[cov, cov], [cov, cov + COVS["noise_cov"]]])
    assert has_moments(both, np.concatenate([mean, mean + truth.bias[0]]), joint)


@pytest.mark.parametrize("contexts", CONTEXTS)
def test_a_measurement_is_context_plus_bias_plus_noise(contexts: str, rng: np.random.Generator) -> None:
    problem = world(contexts=contexts)
    truth, width = draw_truth(problem, rng, N), problem.round_normals()
    normals = rng.standard_normal((N, width))
    context, noisy, *_ = problem.emit(truth, normals)
    noise = noisy - context - truth.bias
    assert has_moments(noise, np.zeros(D), COVS["noise_cov"])
    # 18 correlations within 5 standard errors: 1e-5.
    others = np.concatenate([context, truth.bias], 1)
    assert np.abs(np.corrcoef(noise.T, others.T)[:D, D:]).max() < 5 / np.sqrt(N)
    # And exactly: the noise is linear in the d normals before the last, whose squares make its covariance.
    silent = normals.copy()
    silent[:, -1 - D :] = 0
    quiet = problem.emit(truth, silent)
    assert np.array_equal(quiet.context, context)
    np.testing.assert_allclose(quiet.noisy, context + truth.bias, rtol=1e-13, atol=1e-13)
    axes = np.tile(silent[:1], (D, 1))
    axes[:, -1 - D : -1] = np.eye(D)
    first = Truth(truth.theta[:1], truth.bias[:1], truth.features)
    columns = problem.emit(first, axes).noisy - quiet.noisy[:1]
    np.testing.assert_allclose(columns.T @ columns, COVS["noise_cov"], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("contexts", CONTEXTS)
def test_rewards(contexts: str, rng: np.random.Generator) -> None:
    problem = world(contexts=contexts)
    normals, score = rng.standard_normal((N, problem.round_normals())), rng.normal(3.0, 2.0, N)
    noise = problem.reward(score, normals) - score
    emission = problem.emit(draw_truth(problem, rng, 1), normals)
    # Eight tests at 5 standard errors: 5e-6.
    assert within(noise.mean(), np.asarray(0.0), np.sqrt(0.3 / N))
    assert within(noise.var(), np.asarray(0.3), 0.3 * np.sqrt(2 / N))
    for seen in (*emission.context.T, *emission.noisy.T):
        assert abs(np.corrcoef(seen, noise)[0, 1]) < 5 / np.sqrt(N)


def test_a_cluster_pays_its_own_taste(rng: np.random.Generator) -> None:
    truth, context = draw_truth(world(), rng, 4), rng.normal(1.0, 1.0, (4, D))
    scores = truth.features.at(context).scores(truth.theta)
    for trial, arm in np.ndindex(4, K):
        right = sum(truth.theta[trial, arm * D + i] * context[trial, i] for i in range(D))
        assert scores[trial, arm] == pytest.approx(right, rel=1e-12)


# What is refused


@each("value", ["x", "", "Users", None, 3])
def test_unknown_contexts_are_refused_by_name(value: str) -> None:
    with pytest.raises(InputError, match=r"^contexts: .*; allowed: users, gaussian"):
        Made(contexts=value)


@each(
    "field, value, allowed",
    [
        ("noise_cov", np.ones((3, 3)), "a positive number, 3 positive numbers"),
        ("bias_cov", np.eye(2), "a positive number, 3 positive numbers"),
        ("reward_var", 0, "a positive number"),
    ],
)
def test_bad_fields_are_refused_by_name(field: str, value: Any, allowed: str) -> None:
    with pytest.raises(InputError, match=rf"^{field}: .*; allowed: {allowed}"):
        Made(**{field: value})


def test_fields_go_by_name_only_and_ratings_must_come_from_somewhere() -> None:
    with pytest.raises(TypeError):
        Made("users")  # type: ignore[call-arg, arg-type]
    with pytest.raises(TypeError, match="abstract"):
        RatingsProblem()  # type: ignore[abstract]


# The simulation


def run(problem: Any, agents: Any = EVERY, **settings: Any) -> Curves:
    return play(problem, agents, **{"rounds": 60, "trials": 5, "seed": 3} | settings)


def dense_twin(problem: RatingsProblem) -> GaussianProblem:
    """The Gaussian bandit with G(a) c in place of phi(a, c), and one matrix in place of blocks."""
    known = problem.knowledge()
    places = np.array([[[p == a * D + i for i in range(D)] for p in range(M)] for a in range(K)], float)
    return GaussianProblem(
        dim=D,
        actions=places,
        features=matrix,
        context_mean=MADE.users.mean(0),
        context_cov=np.cov(MADE.users.T),
        noise_cov=known.noise_cov,
        bias_cov=known.bias_cov,
        prior_mean=MADE.centroids.ravel(),
        prior_cov=np.diag(MADE.variances.ravel()),
        reward_var=0.3,
    )


@pytest.mark.slow
@each("name", EVERY)
def test_it_is_the_gaussian_bandit_with_linear_features(name: str) -> None:
    # Roots of the posterior are the same in blocks and in one matrix, so even Thompson's draws agree.
    blocks, dense = run(world(), [name], rounds=200), run(dense_twin(world()), [name], rounds=200)
    assert tuple(blocks.values) == tuple(dense.values) == names(True)
    for loss, values in dense.values.items():
        np.testing.assert_allclose(blocks.values[loss], values, rtol=1e-9, atol=1e-9, err_msg=loss)
    assert np.all(dense.values["regret"][:, :, -1] > 0)


EACH_KIND = ["alg2", "kk", "unfog", "empirical", "late"]  # of learner, and of denoiser
COMPILED = ["alg2", "kk", "empirical"]


@pytest.mark.parametrize(
    ("contexts", "agents"),
    [
        pytest.param("users", list(AGENTS), marks=pytest.mark.soak),
        ("users", COMPILED),
        ("gaussian", ["alg1-exact"]),
    ],
)
@pytest.mark.slow
def test_both_engines_agree_for_every_row_of_the_catalogue(contexts: str, agents: list[str]) -> None:
    problem = world(contexts=contexts, prior_contexts=4, prior_noisy_contexts=60)
    numpy, compiled = run(problem, agents), run(problem, agents, engine="jax", draws="numpy")
    assert compiled.agents == agents
    for loss, values in numpy.values.items():
        np.testing.assert_allclose(compiled.values[loss], values, rtol=1e-9, atol=1e-9, err_msg=loss)


@pytest.mark.slow
def test_in_single_precision_regret_changes_by_less_than_its_error() -> None:
    # Paired on the same draws: the mean difference stays within 4 of its standard errors, and below 1 %.
    problem, settings = world(contexts="users"), {"trials": 200, "decompose": False}
    double = run(problem, ["alg1"], **settings).values["regret"][0, :, -1]
    compiled = run(problem, ["alg1"], engine="jax", precision="float32", draws="numpy", **settings)
    gap = compiled.values["regret"][0, :, -1] - double
    assert np.abs(gap).max() > 0
    assert abs(gap.mean()) < max(4 * gap.std(ddof=1) / np.sqrt(200), 1e-5 * double.mean())
    assert abs(gap.mean()) < 0.01 * double.mean()


@pytest.mark.parametrize("contexts", CONTEXTS)
@pytest.mark.slow
def test_batches_company_and_horizon_do_not_change_a_bit(contexts: str) -> None:
    problem, every = world(contexts=contexts, prior_contexts=4, prior_noisy_contexts=60), EACH_KIND
    whole, cut = run(problem, every, trials=7), run(problem, every, trials=7, chunk=2)
    alone, short = run(problem, ["alg2"], trials=3), run(problem, every, rounds=23, trials=7)
    for loss, values in whole.values.items():
        assert np.array_equal(cut.values[loss], values)
        assert np.array_equal(alone.values[loss][0], values[every.index("alg2"), :3])
        assert np.array_equal(short.values[loss], values[:, :, :23])


def test_the_decomposition_adds_up_and_regret_is_never_negative() -> None:
    values = run(world(contexts="users"), trials=20).values
    total = values["cb"] + values["ee1"] + values["ee2"]
    np.testing.assert_allclose(total, values["regret"], rtol=1e-9, atol=1e-9)
    for loss in ("regret", "cb", "regret_true_context", "regret_plug_in"):
        assert np.diff(values[loss], axis=-1).min() >= -1e-12


@pytest.mark.parametrize(("engine", "rest"), [("numpy", ["alg1", "alg2", "naive", "kk"]), ("jax", ["alg2"])])
@pytest.mark.slow
def test_without_a_bias_regret_is_against_the_true_context(engine: str, rest: list[str]) -> None:
    found = run(world(Unbiased), rest, engine=engine, draws="numpy").values
    np.testing.assert_allclose(found["regret"], found["regret_true_context"], rtol=1e-9, atol=1e-9)
    usual = run(world(), rest).values  # the agents play on as they did
    for loss in ("regret_true_context", "regret_plug_in", "cb"):
        np.testing.assert_allclose(found[loss], usual[loss], rtol=1e-9, atol=1e-9)
    assert np.all(np.abs(found["regret"] - usual["regret"])[:, :, -1] > 0.01)


def test_what_regret_is_measured_against(rng: np.random.Generator) -> None:
    known = world().knowledge()
    mean, cov, noise = known.context_mean, known.context_cov, known.noise_cov
    context, noisy, bias = rng.normal(1.0, 1.0, (3, 4, D))
    shrinkage = known_shrinkage(known)
    found = best_context(shrinkage, Emission(context, noisy), bias, has_bias=True)
    joint, both = np.block([[cov, cov], [cov, cov + noise]]), np.eye(2 * D)[D:]
    for i in range(4):  # c given chat, with the bias taken off
        right = given(np.concatenate([mean, mean]), joint, both, noisy[i] - bias[i])
        np.testing.assert_allclose(found.mean[i], right[0][:D], rtol=1e-10)
        np.testing.assert_allclose(found.cov, right[1][:D, :D], rtol=1e-10)
    found = best_context(shrinkage, Emission(context, noisy), bias, has_bias=False)
    assert np.array_equal(found.mean, context)
    assert found.cov.shape == (D, D)
    assert not found.cov.any()


def test_an_agent_told_the_bias_is_refused_where_there_is_none() -> None:
    with pytest.raises(InputError, match=r"^agents: 'oracle' is told the bias; allowed: .*this world has no"):
        run(world(Unbiased), ["alg1", "oracle"])
    mine = replace(AGENTS["oracle"], name="mine")
    with pytest.raises(InputError, match=r"^agents: 'mine' is told the bias"):
        run(world(Unbiased), [mine])


def test_the_kernel_is_refused() -> None:
    with pytest.raises(InputError, match=r"^engine: cuda"):
        run(world(), ["alg1"], engine="cuda")
