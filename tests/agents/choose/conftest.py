"""The rounds that every chooser is tried on."""

import numpy as np
import pytest

from tests.agents.choose.cases import Case


@pytest.fixture
def case() -> Case:
    """With this seed some rounds of every kind have two arms that share the law of `ids`."""
    return Case(np.random.default_rng(9))
