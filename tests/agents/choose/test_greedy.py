"""Greedy against its definition, arm by arm."""

import numpy as np

from tests.agents.choose.cases import Case, T
from unfog.agents.choose import Greedy


def test_greedy_takes_the_largest_mean(case: Case) -> None:
    arms = Greedy().choose(case.view(), np.empty((T, 0)))
    assert arms.tolist() == [case.explicit(i)[1].argmax() for i in range(T)]
