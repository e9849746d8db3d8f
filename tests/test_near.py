"""Which tests `make check` runs."""

from tests.near import ALWAYS, ROOT, beside


def test_tests_are_found_beside_what_they_test() -> None:
    assert beside("src/unfog/maths/trees.py") == ["tests/maths/test_trees.py"]
    assert beside("src/unfog/agents/denoise/exact.py") == [
        "tests/agents/denoise/test_exact.py",
        "tests/agents/denoise/test_exact_columns.py",
        "tests/agents/denoise/test_exact_plugin.py",
    ]
    assert beside("src/unfog/simulation/executors/dask.py") == ["tests/simulation/executors/test_dask.py"]
    assert beside("src/unfog/simulation/engines/numba/arrays.py") == [
        "tests/simulation/engines/numba"
    ]  # none of its name
    assert beside("tests/maths/test_trees.py") == ["tests/maths/test_trees.py"]


def test_what_has_no_tests_has_none() -> None:
    gone = "tests/maths/test_gone.py"
    for path in ("README.md", "docs/index.md", "tests/near.py", gone, "src/unfog/py.typed"):
        assert beside(path) == []


def test_those_of_the_maths_are_there() -> None:
    assert all((ROOT / path).exists() for path in ALWAYS)
