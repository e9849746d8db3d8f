"""Which tests `make check` runs."""

from tests.near import ALWAYS, ROOT, beside


def test_tests_are_found_beside_what_they_test() -> None:
    assert beside("src/unfog/maths/linalg.py") == "tests/maths/test_linalg.py"
    assert beside("src/unfog/agents/denoise/exact.py") == "tests/agents/denoise/test_exact.py"
    assert beside("src/unfog/simulate/execute/dask.py") == "tests/simulate/execute/test_dask.py"
    assert beside("src/unfog/simulate/engines/numba_desk.py") == "tests/simulate/engines"  # none of its name
    assert beside("tests/maths/test_linalg.py") == "tests/maths/test_linalg.py"


def test_what_has_no_tests_has_none() -> None:
    for path in (
        "README.md",
        "docs/index.md",
        "tests/near.py",
        "tests/maths/test_gone.py",
        "src/unfog/py.typed",
    ):
        assert beside(path) is None


def test_those_of_the_maths_are_there() -> None:
    assert all((ROOT / path).exists() for path in ALWAYS)
