"""The MovieLens world."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from unfog.lab import ratings
from unfog.lab.datasets import MissingError, locate, told
from unfog.maths.arrays import Array
from unfog.validation import count, one_of
from unfog.worlds.movielens import Ratings, RatingsProblem

SOURCES = ("auto", "movielens", "stand-in")
MOST_CLUSTERS = 1000


@dataclass(frozen=True, kw_only=True, eq=False)
class MovieLens(RatingsProblem):
    """The MovieLens world from its file, or from a synthetic stand-in with the same shape where there is
    none.

    `ratings`: "movielens", "stand-in" or "auto", which becomes one of these, MovieLens if it is found.

    >>> from unfog.lab.movielens import MovieLens
    >>> problem = MovieLens(ratings="stand-in", told_contexts=200)
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
        count("factors", self.factors, 2, ratings.MOST_FACTORS)
        path = _file(self.ratings)
        # A stored spec must say which it was, and so must every table and figure.
        object.__setattr__(self, "ratings", "stand-in" if path is None else "movielens")
        object.__setattr__(self, "note", ratings.STAND_IN if path is None else "")
        stamp = 0 if path is None else path.stat().st_mtime_ns
        return _factors(path, stamp, self.factors, self.clusters)


def _file(wanted: str) -> Path | None:
    """MovieLens's file, or None for the stand-in."""
    if wanted == "stand-in":
        return None
    try:
        return locate("movielens")
    except MissingError:
        if wanted == "movielens" or told():
            raise
        return None


@lru_cache(maxsize=8)
def _factors(path: Path | None, _stamp: int, factors: int, clusters: int) -> Ratings:
    """Users and clusters, made once a process: a spec is looked at several times before it runs."""
    matrix: Array = ratings.stand_in() if path is None else ratings.load(path)
    found = ratings.cached(matrix, factors, clusters)
    return Ratings(found.users, found.centroids, found.variances)
