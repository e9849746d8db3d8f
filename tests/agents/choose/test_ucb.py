"""Bayes-UCB against quantiles of SciPy, arm by arm."""

import numpy as np
from scipy.stats import norm

from tests.agents.choose.cases import Case, T
from unfog.agents.choose import Ucb


def test_ucb_takes_the_largest_quantile(case: Case) -> None:
    for quantile, growth in [(0.7, 0.0), (0.99, 0.0), (0.5, 1.0), (0.9, 0.3)]:
        check_ucb_takes_the_largest_quantile(quantile, growth, case)


def check_ucb_takes_the_largest_quantile(quantile: float, growth: float, case: Case) -> None:
    chooser, plain = Ucb(quantile=quantile, growth=growth), []
    for number in (0, 1, 9, 999, 10**6):
        level = 1 - (1 - quantile) / (number + 1) ** growth
        view = case.view(np.asarray(number))
        arms, bounds = chooser.choose(view, np.empty((T, 0))), chooser.bounds(view)
        for i in range(T):
            _, mean, cov = case.explicit(i)
            spread = np.sqrt(np.diag(cov))
            right = norm.ppf(level, mean, spread)
            # The accuracy that unfog.maths.random states, in standard deviations.
            np.testing.assert_allclose((bounds[i] - mean) / spread, norm.ppf(level), rtol=2e-7, atol=1e-9)
            assert arms[i] == right.argmax()
            plain.append(arms[i] == mean.argmax())
    assert not all(plain)
