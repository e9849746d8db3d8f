"""The machine of tests/live/test_machine.py, for long."""

import pytest

from tests.live.test_machine import KINDS, play


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_any_order(kind: str) -> None:
    play(kind, 300)
