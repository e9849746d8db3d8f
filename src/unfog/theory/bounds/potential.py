"""The one step that unbounded features may escape: u <= 2 ln(1 + u) in the elliptical potential.

It holds up to u = 2.51, and u is at most |x|^2 lambda / sigma^2, x being the features of the arm chosen (in
setting 2) or the agent's belief in them (in setting 1). Linear features of Gaussian contexts have no largest
norm, so that rounds may be beyond. How likely that is for a round is bounded here: |G(a) v| <= |G(a)| |v|,
and with Chernoff's bound

    P(|v|^2 > y) <= min_s exp(-s y) E exp(s |v|^2),      v the context, or the plug-in's mean in round 1.

The means of later rounds, and the exact denoiser's, have exponential moments no larger (Jensen's inequality).
"""

import numpy as np

from unfog.channel.knowledge import as_told
from unfog.maths.arrays import Array
from unfog.theory.conditions import Case

LIMIT = 2.51
_GRID = np.linspace(0, 1, 1001)[1:-1]


def escape(case: Case) -> float:
    """A bound on the probability that a round's features are too large; 1 where none is known."""
    ratio = case.prior_var / case.reward_var
    if case.linear is None:
        return 0.0 if case.bounded and case.feature_norm**2 * ratio <= LIMIT else 1.0
    if not case.linear.largest:
        return 0.0
    known, gain = case.known, as_told(case.known).gain
    believed = gain @ (known.context_cov + known.noise_cov + known.bias_cov) @ gain.T
    least = LIMIT / (ratio * case.linear.largest)
    return max(tail(known.context_mean, cov, least) for cov in (known.context_cov, believed))


def tail(mean: Array, cov: Array, least: float) -> float:
    """Chernoff's bound on P(|v|^2 > least) for v ~ N(mean, cov)."""
    spreads, axes = np.linalg.eigh(cov)
    tilt = _GRID[:, None] / (2 * spreads[-1])
    left = 1 - 2 * tilt * spreads
    logs = (tilt * (axes.T @ mean) ** 2 / left - 0.5 * np.log(left)).sum(-1) - tilt[:, 0] * least
    return float(np.exp(min(logs.min(), 0)))
