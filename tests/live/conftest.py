"""A check of the conformance suite that fails says what it found, as a test does."""

import pytest

pytest.register_assert_rewrite("tests.live.conformance")
