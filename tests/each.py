"""One test for several values in turn, where a test of each would say the same many times over."""

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature
from typing import Any


def each(names: str, values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like `pytest.mark.parametrize`, as a loop in one test; a failure names its values.

    Fixtures are made once for all values: a generator keeps drawing, and a folder keeps its files.
    """
    arguments = [name.strip() for name in names.split(",")]
    several = len(arguments) > 1
    cases = [dict(zip(arguments, value if several else (value,), strict=True)) for value in values]
    if not cases:
        raise ValueError(f"no values of {names}")

    def loop(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def run(**fixtures: Any) -> None:
            for case in cases:
                try:
                    test(**fixtures, **case)
                except BaseException as error:
                    error.add_note(f"with {', '.join(f'{name} = {value!r}' for name, value in case.items())}")
                    raise

        original = signature(test)
        fixtures = [one for name, one in original.parameters.items() if name not in arguments]
        run.__signature__ = original.replace(parameters=fixtures)  # type: ignore[attr-defined]  # read by pytest
        return run

    return loop
