"""The posterior of theta that logistic learners aim at: U(theta), minus its log density, and derivatives.

U(theta) = (theta - mu)'P(theta - mu) / 2 + sum_i (log(1 + exp(z_i)) - r_i z_i), with P the prior's precision
and z_i the logit of round i (learn/history.py), whose gradient is g_i. The gradient of U is P(theta - mu) +
sum_i (sigmoid(z_i) - r_i) g_i; its Hessian is P + sum_i sigmoid'(z_i) g_i g_i' where logits are linear in
theta, and where they are not this is Gauss and Newton's approximation of it.
"""

from typing import NamedTuple

import numpy as np

from unfog.agents.learn.history import History, logits
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array, matvec
from unfog.maths.gaussian import whole
from unfog.maths.logistic import sigmoid, softplus


class Prior(NamedTuple):
    """theta ~ N(mean, precision^-1)."""

    mean: Array  # (m,)
    precision: Array  # (m, m)


def prior(known: Knowledge) -> Prior:
    """The prior in the form that the posterior needs."""
    return Prior(known.prior_mean, np.asarray(np.linalg.inv(whole(known.prior_cov)), np.float64))


def energy(prior: Prior, past: History, theta: Array) -> Array:
    """U(theta): (..., m) -> (...,)."""
    xp = theta.__array_namespace__()
    z, away = logits(past, theta).value, theta - prior.mean
    misfit = (softplus(z) - past.rewards * z).sum(-1)
    found: Array = 0.5 * xp.vecdot(away, matvec(prior.precision, away)) + misfit
    return found


def gradient(prior: Prior, past: History, theta: Array) -> Array:
    """U'(theta): (..., m)."""
    at = logits(past, theta)
    misfit = matvec(at.rows, sigmoid(at.value) - past.rewards)
    return matvec(prior.precision, theta - prior.mean) + misfit


def hessian(prior: Prior, past: History, theta: Array) -> Array:
    """U''(theta): (..., m, m)."""
    at = logits(past, theta)
    chance = sigmoid(at.value)
    weighed = at.rows * (chance * (1 - chance))[..., None, :]
    return prior.precision + weighed @ at.rows.mT
