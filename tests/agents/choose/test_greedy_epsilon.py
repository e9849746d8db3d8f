"""Epsilon-greedy: how often it explores."""

import numpy as np
from scipy.stats import chi2

from tests.agents.choose.cases import Case, K
from unfog.agents.choose import Epsilon


def test_epsilon_explores_as_often_as_told(case: Case, rng: np.random.Generator) -> None:
    greedy, draws = case.explicit(0)[1].argmax(), 40_000
    for number, share in [(0, 0.8), (15, 0.2)]:  # 0.8 / sqrt(16)
        normals = rng.standard_normal((draws, 2))
        arms = Epsilon(epsilon=0.8, decay=0.5).choose(case.one(0, np.asarray(number)), normals)
        expected = draws * (share / K + (1 - share) * (np.arange(K) == greedy))
        counts = np.bincount(arms, minlength=K)
        # Chi-square test: a right chooser fails with probability 0.001.
        assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(0.001, K - 1)
    plain = Epsilon(epsilon=0.0).choose(case.one(0), rng.standard_normal((100, 2)))
    assert set(plain.tolist()) == {greedy}
