"""One test for several values in turn, where a test of each would say the same many times over."""

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature
from typing import Any


def each(names: str, values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like `pytest.mark.parametrize`, as a loop in one test; what fails says with which values.

    Fixtures are made once for all of them: random numbers go on, and a folder keeps its files.
    """
    wanted = [name.strip() for name in names.split(",")]
    given = [dict(zip(wanted, value if len(wanted) > 1 else (value,), strict=True)) for value in values]
    if not given:
        raise ValueError(f"no values of {names}")

    def looped(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def run(**fixtures: Any) -> None:
            for told in given:
                try:
                    test(**fixtures, **told)
                except BaseException as error:
                    error.add_note(f"with {', '.join(f'{name} = {value!r}' for name, value in told.items())}")
                    raise

        asked = signature(test)
        rest = [one for name, one in asked.parameters.items() if name not in wanted]
        run.__signature__ = asked.replace(parameters=rest)  # type: ignore[attr-defined]  # what pytest gives
        return run

    return looped
