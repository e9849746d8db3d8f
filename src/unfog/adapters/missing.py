"""What to install where an adapter's package is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

from unfog.extras import hint


@contextmanager
def explained(adapter: str) -> Iterator[None]:
    """Imports inside; one that fails says which extra of ours brings the package."""
    try:
        yield
    except ModuleNotFoundError as error:
        message = hint(error)
        if message is None:
            raise
        raise ModuleNotFoundError(f"{adapter}: {message}", name=error.name) from None
