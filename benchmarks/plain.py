"""Algorithm 1 as one would write it first: one trial at a time, an inverse and a multivariate normal a round.

The yardstick of the benchmarks, and an independent check: it shares no code with the package. Constants are
inverted once and arms are scored by one matrix product; anything less would flatter the comparison.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def features(actions: Floats, mean: Floats, square: Floats) -> Floats:
    """The expected features of every action: (K, d) -> (K, 3d)."""
    return np.hstack([actions**2, np.broadcast_to(square, actions.shape), actions * mean])


def run_trial(rounds: int, seed: int, *, dim: int = 5, arms: int = 40) -> float:
    """The final regret of Algorithm 1 in one trial of the paper's first experiment."""
    rng = np.random.default_rng(seed)
    zero, identity = np.zeros(dim), np.eye(dim)
    sigma_c, sigma_n, sigma_g, mu_c, reward_var, prior_var = (
        identity,
        1.1 * identity,
        1.1 * identity,
        zero,
        2.0,
        0.01,
    )
    theta = rng.normal(0, prior_var**0.5, 3 * dim)
    bias = rng.multivariate_normal(zero, sigma_g)
    actions = rng.normal(size=(arms, dim))
    c_inv, n_inv, g_inv = np.linalg.inv(sigma_c), np.linalg.inv(sigma_n), np.linalg.inv(sigma_g)
    m_inv, f = np.linalg.inv(c_inv + n_inv), np.linalg.inv(sigma_c + sigma_n)
    precision, weighted, total, lost = np.eye(3 * dim) / prior_var, np.zeros(3 * dim), np.zeros(dim), 0.0
    for t in range(rounds):
        context = rng.multivariate_normal(mu_c, sigma_c)
        noisy = context + bias + rng.multivariate_normal(zero, sigma_n)
        s = np.linalg.inv(g_inv + t * f)
        mean = m_inv @ (c_inv @ mu_c + n_inv @ (noisy - s @ f @ total))
        cov = m_inv + m_inv @ n_inv @ s @ n_inv @ m_inv
        psi = features(actions, mean, mean**2 + np.diag(cov))
        posterior = np.linalg.inv(precision)
        arm = int(np.argmax(psi @ rng.multivariate_normal(posterior @ weighted, posterior)))
        true = m_inv @ (c_inv @ mu_c + n_inv @ (noisy - bias))
        best = features(actions, true, true**2 + np.diag(m_inv)) @ theta
        lost += float(best.max() - best[arm])
        seen = features(actions[arm : arm + 1], context, context**2)[0]
        reward = seen @ theta + rng.normal(0, reward_var**0.5)
        precision += np.outer(psi[arm], psi[arm]) / reward_var
        weighted += psi[arm] * reward / reward_var
        total += noisy - mu_c
    return lost
