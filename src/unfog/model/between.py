"""How far groups lie apart, from means that are blurred themselves."""

import numpy as np

from unfog.maths.arrays import Array


def between(means: Array, blur: float, cov: Array, least: float) -> Array:
    """Covariance of what groups' means (G, d) are estimates of, each of covariance blur * cov, by moments.

    In units of cov no eigenvalue is below `least`.
    """
    raw = np.atleast_2d(np.cov(means.T)) - cov * blur
    root = np.linalg.cholesky(cov)
    scaled = np.linalg.solve(root, np.linalg.solve(root, raw).T)
    values, vectors = np.linalg.eigh((scaled + scaled.T) / 2)
    half = root @ vectors * np.sqrt(np.maximum(values, least))
    return half @ half.T
