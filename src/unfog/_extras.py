"""Optional dependencies: which extra brings a module that is missing, and what to install for it."""

from collections.abc import Iterator
from contextlib import contextmanager

EXTRA_OF = {
    "xarray": "lab",
    "scipy": "lab",
    "sklearn": "lab",
    "matplotlib": "lab",
    "jax": "jax",
    "jaxlib": "jax",
    "blackjax": "exact",
    "numba": "numba",
    "dask": "dask",
    "distributed": "dask",
    "ray": "ray",
    "starlette": "serve",
    "uvicorn": "serve",
    "httptools": "serve",
    "httpx": "serve",
    "prometheus_client": "serve",
    "psycopg": "postgres",
    "gymnasium": "adapters",
    "coba": "adapters",
    "river": "adapters",
}


def hint(error: ModuleNotFoundError) -> str | None:
    """What to install for this import to work, or None where no extra of ours brings it."""
    module = (error.name or "").split(".")[0]
    extra = EXTRA_OF.get(module)
    if extra is None:
        return None
    ways = f"pip install 'unfog[{extra}]', or in a clone pip install '.[{extra}]'"
    return f"{module} is not installed; it comes with the extra {extra!r}: {ways}"


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
