"""Simulation and extrapolation: values at more noise, read off at less (J. R. Cook and L. A. Stefanski,
*Simulation-Extrapolation Estimation in Parametric Measurement Error Models*).

Values V(l) are known at l = 0, the noise that there is, and at l > 0, where l times its covariance was added.
A curve through them is read off at l = -1, no noise. Every curve here is linear in its coefficients, so that
what is read off is a sum c(l) V(l). Its error is found by leaving out one stretch of time after the other
(the jackknife), which sees also how values at different l hang together.

Curves: polynomials, or `model`: V = a + b f(l), where f is what the fitted model of rewards says the value is
at each l (evaluation/curve.py). If the model is right, b is 1 and nothing is left to be guessed. It is fitted
anew without each stretch, too, so that the error knows how uncertain its shape is.
"""

from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array, Ints

DEGREES = {"linear": 1, "quadratic": 2, "cubic": 3}
CURVES = ("model", *DEGREES)
STRETCHES = 50  # of time, one of which is left out after the other


def coefficients(curve: str, levels: Array, at: float, model: Array, model_at: float) -> Array:
    """The weights c(l) of values at `levels` (L,) in what the curve says at another level.

    `model` (L,) and `model_at` are f at these levels and there.
    """
    if curve == "model":
        rows, wanted = _line(model), np.array([1.0, model_at])
    else:
        powers = np.arange(DEGREES[curve] + 1)
        rows, wanted = levels[:, None] ** powers, np.asarray(at**powers, dtype=float)
    return np.linalg.lstsq(rows.T, wanted)[0]


def slope(model: Array) -> Array:
    """The weights of values in b of the curve `model`, which is 1 if the model is right."""
    return np.linalg.lstsq(_line(model).T, np.array([0.0, 1.0]))[0]


def _line(model: Array) -> Array:
    return np.stack([np.ones_like(model), model], axis=1)


class Jackknifed(NamedTuple):
    """An estimate, and its error."""

    mean: float
    se: float


def stretches(rounds: int) -> list[Ints]:
    """The rounds that are left out together."""
    return np.array_split(np.arange(rounds), min(STRETCHES, rounds))


def left_out(scores: Array) -> Array:
    """Means of scores (..., n) over all rounds but those of each stretch: (stretches, ...)."""
    n, total = scores.shape[-1], scores.sum(axis=-1)
    parts = stretches(n)
    return np.stack([(total - scores[..., part].sum(axis=-1)) / max(n - len(part), 1) for part in parts])


def jackknifed(mean: float, left: Array) -> Jackknifed:
    """From estimates (stretches,) without each of them."""
    if len(left) < 2:
        return Jackknifed(float(mean), np.nan)
    return Jackknifed(float(mean), float(np.sqrt((len(left) - 1) * ((left - left.mean()) ** 2).mean())))


def jackknife(scores: Array) -> Jackknifed:
    """The mean of scores (n,)."""
    return jackknifed(float(scores.mean()), left_out(scores))
