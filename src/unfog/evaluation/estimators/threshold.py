"""Where to cut weights off: least estimated squared error.

Cutting weights at tau buys less variance with a bias. Of the bias an unbiased estimate is at hand: the mean
difference to what is not cut. Less the variance of that estimate, its square is that of the bias, so

    error(tau) = Var(scores) / n + max(0, mean(difference)^2 - Var(difference) / n)

is to be smallest (Y.-X. Wang, A. Agarwal and M. Dudik, *Optimal and Adaptive Off-policy Evaluation in
Contextual Bandits*, choose their threshold so, with a bound in place of the bias).
"""

from collections.abc import Callable

import numpy as np

from unfog.maths.arrays import Array

SHARES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 1.0)  # of rounds whose weights are not cut


def chosen(weight: Array, scores: Callable[[float], Array]) -> float:
    """The threshold, of quantiles of weights; the largest cuts nothing."""
    whole, n = scores(np.inf), len(weight)

    def error(threshold: float) -> float:
        cut = scores(threshold)
        off = whole - cut
        return float(cut.var() / n + max(0.0, off.mean() ** 2 - off.var() / n))

    return float(min(np.unique(np.quantile(weight, SHARES))[::-1], key=error))
