"""MovieLens: users are contexts, clusters of films arms, ratings rewards (the paper's Fig. 1, right).

The ratings are MovieLens-100K's, or those of a stand-in with the same shape for machines without the data.
With ratings R = W H in f factors, a context is a user's row of W, and an arm one of K clusters of H's
columns: phi(a, c) puts c into the block of arm a, theta is N(centroid_a, diag(variance_a)) there, and r =
theta_a'c + N(0, sigma^2).

Factors are found by scikit-learn's NMF and K-means from fixed seeds and kept in the user's cache under a hash
of all that decides them. NMF's product alone is determined by the ratings; how a factor's scale is shared
between W and H comes from its start, NNDSVD, which is why the start is fixed as well.

Agents take contexts for N(mu_c, Sigma_c) with the moments of W's rows, and so does the paper's oracle; they
are that (`contexts = "gaussian"`) or users drawn at random (`"users"`). Where they are users, agents are told
these as well, or some of them (worlds/measurement.py), and regret has a second yardstick, which knows them
all (worlds/composed.py).
"""

import hashlib
import io
import json
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import metadata
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from unfog.channel.knowledge import Knowledge
from unfog.features.per_arm import per_arm
from unfog.lab.datasets.files import DAMAGED, DatasetNotFoundError, cache, has_folder, locate, put
from unfog.maths.arrays import Array, Ints
from unfog.validation import InputError, Numbers, count, covariance, one_of, positive
from unfog.worlds.composed import Arms, Composed, Noisy, Parts
from unfog.worlds.contexts import Atoms, Contexts, assumed_law
from unfog.worlds.measurement import make_measurement

USERS, ITEMS, RATINGS = 943, 1682, 100_000
STAND_IN = "a stand-in, not MovieLens"  # to be said wherever its results are shown
MOST_FACTORS = 50
MOST_CLUSTERS = 1000
SOURCES = ("auto", "movielens", "stand-in")
CONTEXTS = ("users", "gaussian")
TOLERANCE = 1e-8  # of the projected gradient, against the first step's: W is then good to 1e-7
STEPS = 20_000  # 134 are enough for 3 factors, 13,400 for 20
FLOOR = 1e-3  # least variance in a cluster, as a share of that over all items: a lone item has none
FORMAT = 2  # of cached factors; to be raised with any change of how they are found

LEAST_EACH, ACTIVITY, POPULARITY, SHARPNESS = 20, 1.1, 1.8, 2.2  # of the stand-in; see docs/guide/data.md
LEVEL, USER_SD, ITEM_SD, NOISE_SD = 3.1, 0.42, 0.45, 1.0
FAME_SLOPE, MATCH_SLOPE = 0.3, 0.3


class Factors(NamedTuple):
    """What a bandit needs of the ratings; f factors, K clusters, the largest first."""

    users: Array  # (users, f)  rows of W
    centroids: Array  # (K, f)      of H's columns
    variances: Array  # (K, f)      within a cluster, by coordinate, positive
    sizes: Ints  # (K,)        items of a cluster


class Ratings(NamedTuple):
    """The factors that a world is built from."""

    users: Array  # (n, f)  contexts
    centroids: Array  # (K, f)  prior mean of theta, an arm a row
    variances: Array  # (K, f)  prior variance


@dataclass(frozen=True, kw_only=True, eq=False)
class RatingsProblem(Composed):
    """Contexts and arms from a factorisation of ratings, seen through a biased, noisy channel.

    Where W, the centroids and the variances come from is for the worlds built on it to say.
    """

    contexts: str = "users"
    noise_cov: Numbers = 0.1
    bias_cov: Numbers = 0.6
    reward_var: float = 0.01

    @abstractmethod
    def _ratings(self) -> Ratings:
        """Users and clusters."""

    def __post_init__(self) -> None:
        """Check every field, and take the moments of the users."""
        _ = self._parts

    @property
    def discrete(self) -> bool:
        """Users are a finite sample."""
        return self.contexts == "users" and self.has_bias

    def _compose(self) -> Parts:
        one_of("contexts", self.contexts, CONTEXTS)
        payoff = Noisy(positive("reward_var", self.reward_var))
        users, centroids, variances = self._ratings()
        dim = users.shape[1]
        known = Knowledge(
            context_mean=users.mean(0),
            context_cov=np.cov(users.T).reshape(dim, dim),
            noise_cov=covariance("noise_cov", self.noise_cov, dim),
            bias_cov=covariance("bias_cov", self.bias_cov, dim),
            prior_mean=centroids.reshape(-1),
            prior_cov=variances[..., None] * np.eye(dim),
            reward_var=payoff.variance,
            contexts=users if self.contexts == "users" else None,
            sample=users if self.contexts == "users" else None,
        )
        contexts: Contexts = Atoms(users) if self.contexts == "users" else assumed_law(known)
        features = partial(per_arm, intercept=False)
        clusters = Arms(features, centroids.shape, np.zeros(centroids.shape), "normal")
        return Parts(known, contexts, make_measurement(self, known), clusters, payoff)


@dataclass(frozen=True, kw_only=True, eq=False)
class MovieLens(RatingsProblem):
    """The MovieLens world from its file, or from a synthetic stand-in with the same shape where there is
    none.

    `ratings`: "movielens", "stand-in" or "auto", which becomes one of these, MovieLens if it is found.

    >>> from unfog.lab.datasets.movielens import MovieLens
    >>> problem = MovieLens(ratings="stand-in", prior_contexts=200)
    >>> problem.knowledge().sample.shape, problem.ratings
    ((200, 3), 'stand-in')
    """

    packages: ClassVar[tuple[str, ...]] = ("scikit-learn",)
    ratings: str = "auto"
    clusters: int = 20
    factors: int = 3

    def _ratings(self) -> Ratings:
        one_of("ratings", self.ratings, SOURCES)
        count("clusters", self.clusters, 2, MOST_CLUSTERS)
        count("factors", self.factors, 2, MOST_FACTORS)
        path = _find_file(self.ratings)
        # A stored spec must say which it was, and so must every table and figure.
        object.__setattr__(self, "ratings", "stand-in" if path is None else "movielens")
        object.__setattr__(self, "note", STAND_IN if path is None else "")
        stamp = 0 if path is None else path.stat().st_mtime_ns
        return _factors(path, stamp, self.factors, self.clusters)


def _find_file(ratings: str) -> Path | None:
    """MovieLens's file, or None for the stand-in."""
    if ratings == "stand-in":
        return None
    try:
        return locate("movielens")
    except DatasetNotFoundError:
        if ratings == "movielens" or has_folder():
            raise
        return None


@lru_cache(maxsize=8)
def _factors(path: Path | None, _stamp: int, factors: int, clusters: int) -> Ratings:
    """Users and clusters, computed once per process: a spec is read several times before it runs."""
    matrix: Array = stand_in() if path is None else load(path)
    factorised = cached(matrix, factors, clusters)
    return Ratings(factorised.users, factorised.centroids, factorised.variances)


def load(path: Path) -> Array:
    """The ratings of a file like u.data as a matrix (943, 1682), with 0 where there is none."""
    allowed = f"{RATINGS:,} lines of user, item, rating and time, separated by tabs"
    try:
        content = path.read_bytes()
        if not content.strip():
            raise ValueError("it is empty")
        table = np.loadtxt(io.BytesIO(content), dtype=np.int64, delimiter="\t", comments=None, ndmin=2)
    except (OSError, ValueError) as error:
        raise InputError("data", f"{path.name} cannot be read ({error})", allowed) from None
    if table.shape != (RATINGS, 4):
        raise InputError("data", f"{path.name} has {table.shape[0]:,} lines of {table.shape[1]}", allowed)
    user, item, rating, _ = table.T
    for column, values, most in (("user", user, USERS), ("item", item, ITEMS), ("rating", rating, 5)):
        if values.min() < 1 or values.max() > most:
            problem = f"{path.name} has {column}s from {values.min()} to {values.max()}"
            raise InputError("data", problem, f"1 to {most}")
    matrix = np.zeros((USERS, ITEMS))
    matrix[user - 1, item - 1] = rating
    if np.count_nonzero(matrix) != RATINGS:
        raise InputError("data", f"{path.name} rates an item twice for a user", allowed)
    return matrix


def stand_in() -> Array:
    """Synthetic ratings (943, 1682), always the same: low rank plus noise, with MovieLens's marginals.

    Users have tastes and items have kinds, three non-negative shares each; their product is the match. A user
    rates as many items as the quantile of a skewed law says, drawn by fame times match; every item is rated
    by someone. A rating is a rounded sum of the match, fame, habits of user and item, and noise.
    """
    rng = np.random.Generator(np.random.Philox(0))
    activity = rng.permutation(_activity_counts())
    fame = rng.permutation(_weibull_quantiles(ITEMS, POPULARITY))
    tastes, kinds = (_softmax(rng.standard_normal((n, 3))) for n in (USERS, ITEMS))
    match = 3 * tastes @ kinds.T
    # The largest of log-weights plus Gumbel noise are a draw without replacement.
    keys = np.log(fame) + np.log(match) + rng.gumbel(size=match.shape)
    keys[np.argmax(keys + np.log(activity)[:, None], axis=0), np.arange(ITEMS)] = np.inf
    least = np.take_along_axis(-np.sort(-keys, axis=1), activity[:, None] - 1, axis=1)
    habits = USER_SD * rng.standard_normal((USERS, 1)) + ITEM_SD * rng.standard_normal(ITEMS)
    liking = LEVEL + MATCH_SLOPE * (match - 1) + FAME_SLOPE * np.log(fame) + habits
    noisy = liking + NOISE_SD * rng.standard_normal(match.shape)
    return np.where(keys >= least, np.clip(np.rint(noisy), 1, 5), 0.0)


def _weibull_quantiles(size: int, power: float) -> Array:
    """Quantiles of a Weibull law of shape 1/power."""
    return (-np.log1p(-(np.arange(size) + 0.5) / size)) ** power


def _activity_counts() -> Ints:
    """How many items each user rates: RATINGS in all, no fewer than LEAST_EACH."""
    quantiles = _weibull_quantiles(USERS, ACTIVITY)
    exact = LEAST_EACH + quantiles * ((RATINGS - LEAST_EACH * USERS) / quantiles.sum())
    counts = np.floor(exact).astype(np.intp)
    counts[np.argsort(counts - exact, kind="stable")[: RATINGS - counts.sum()]] += 1
    return counts


def _softmax(normal: Array) -> Array:
    weights = np.exp(SHARPNESS * normal)
    return weights / weights.sum(axis=1, keepdims=True)


def cached(ratings: Array, factors: int = 3, clusters: int = 20, folder: Path | None = None) -> Factors:
    """Factorise the ratings, or read the factors from the cache if that has been done before."""
    key = _key(_check_ratings(ratings, factors, clusters), factors, clusters)
    try:
        path = (cache("factors") if folder is None else folder) / f"{key}.npz"
    except InputError:  # no folder for a cache
        return factorise(ratings, factors, clusters)
    result = _read_cache(path, key)
    if result is None:
        result = factorise(ratings, factors, clusters)
        _write_cache(path, key, result)
    return result


def factorise(ratings: Array, factors: int = 3, clusters: int = 20) -> Factors:
    """W's rows, and K-means of H's columns: the same on every machine, up to rounding."""
    matrix = _check_ratings(ratings, factors, clusters)
    users, items = _nmf(matrix, factors)
    different = len(np.unique(items, axis=0))
    if clusters > different:
        raise InputError("clusters", clusters, f"at most {different}: no more items differ in their factors")
    return _summary(users, items, _labels(items, clusters))


def _check_ratings(ratings: Array, factors: int, clusters: int) -> Array:
    array = np.asarray(ratings)
    is_matrix = array.dtype.kind in "iuf" and array.ndim == 2 and array.size > 0
    if not is_matrix or not np.isfinite(array).all() or array.min() < 0 or not array.any():
        allowed = "a matrix of users and items of finite numbers, none negative, not all zero"
        raise InputError("ratings", f"{array.dtype} of shape {array.shape}", allowed)
    matrix = array.astype(np.float64)
    # NMF measures its progress against the first step, and with one factor that starts at the optimum.
    count("factors", factors, 2, min(MOST_FACTORS, *matrix.shape))
    count("clusters", clusters, 1, matrix.shape[1])
    return matrix


def _nmf(matrix: Array, factors: int) -> tuple[Array, Array]:
    """Rows of W, and columns of H as rows."""
    from scipy.sparse import csr_array
    from sklearn.decomposition import NMF

    model = NMF(factors, init="nndsvda", random_state=0, tol=TOLERANCE, max_iter=STEPS)
    users = model.fit_transform(csr_array(matrix))  # six per cent of the matrix is filled
    return users, model.components_.T


def _labels(items: Array, clusters: int) -> Ints:
    from sklearn.cluster import KMeans

    labels: Ints = KMeans(clusters, n_init=10, random_state=0).fit(items).labels_
    return labels


def _summary(users: Array, items: Array, labels: Ints) -> Factors:
    """The factors with clusters sorted by size and centroid, since K-means numbers them at random."""
    groups = [items[labels == label] for label in range(labels.max() + 1)]
    sizes = np.array([len(group) for group in groups])
    centroids = np.array([group.mean(axis=0) for group in groups])
    overall = items.var(axis=0)
    floor = FLOOR * np.where(overall > 0, overall, 1.0)
    variances = np.maximum([group.var(axis=0) for group in groups], floor)
    order = np.lexsort((*centroids.T[::-1], -sizes))
    return Factors(users, centroids[order], variances[order], sizes[order])


def _key(matrix: Array, factors: int, clusters: int) -> str:
    """A hash of everything that determines the factors."""
    settings = [FORMAT, _version(), matrix.shape, int(factors), int(clusters)]
    return hashlib.sha256(json.dumps(settings).encode() + b"\n" + matrix.tobytes()).hexdigest()


def _version() -> str:
    """The version of scikit-learn, read without importing it, which takes a second."""
    try:
        return metadata.version("scikit-learn")
    except metadata.PackageNotFoundError:
        import sklearn  # raises an error that names it

        return str(sklearn.__version__)


def _read_cache(path: Path, key: str) -> Factors | None:
    """Read factors from the cache; None if there are none, or if they are damaged or have another key."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as saved:
            factors = Factors(*(saved[name] for name in Factors._fields))
            return factors if saved["key"] == key and saved["digest"] == _hash_factors(factors) else None
    except DAMAGED:
        return None


def _hash_factors(factors: Factors) -> str:
    """A hash of the factors, to detect a damaged cache."""
    parts = [np.asarray(part) for part in factors]  # a damaged archive gives bytes where arrays should be
    return hashlib.sha256(
        b"".join(str((part.dtype, part.shape)).encode() + part.tobytes() for part in parts)
    ).hexdigest()


def _write_cache(path: Path, key: str, factors: Factors) -> None:
    content = io.BytesIO()
    marks = {"key": np.array(key), "digest": np.array(_hash_factors(factors))}
    np.savez(content, allow_pickle=False, **marks, **factors._asdict())
    try:
        put(path, content.getvalue())
    except OSError:  # without a cache the next run only takes longer
        return
