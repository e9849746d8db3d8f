"""Optional dependencies: which extra installs a missing module."""

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
    "pyarrow": "frames",
    "gymnasium": "adapters",
    "coba": "adapters",
    "river": "adapters",
}


def hint(error: ModuleNotFoundError) -> str | None:
    """What to install for this import to work; None if no extra has the module."""
    module = (error.name or "").split(".")[0]
    extra = EXTRA_OF.get(module)
    if extra is None:
        return None
    ways = f"pip install 'unfog[{extra}]', or in a clone pip install '.[{extra}]'"
    return f"{module} is not installed; it comes with the extra {extra!r}: {ways}"


@contextmanager
def explain_missing(adapter: str) -> Iterator[None]:
    """If an import in this block fails, say which extra installs the package."""
    try:
        yield
    except ModuleNotFoundError as error:
        message = hint(error)
        if message is None:
            raise
        raise ModuleNotFoundError(f"{adapter}: {message}", name=error.name) from None
