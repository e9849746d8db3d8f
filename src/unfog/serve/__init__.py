"""Decisions for everybody: HTTP over `unfog.live`, and a page that shows whether it works.

`Client` asks a service as one asks a store. It needs nothing beyond the standard library and is looked up
when first used, so that whoever only asks need not install what serves.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unfog.serve.client import Client
    from unfog.serve.errors import ServiceError

__all__ = ["Client", "ServiceError"]


def __getattr__(name: str) -> Any:
    if name == "Client":
        from unfog.serve.client import Client

        return Client
    if name == "ServiceError":
        from unfog.serve.errors import ServiceError

        return ServiceError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
