"""Who may come in.

Without keys the service answers on this machine alone. A page of somebody else, open in a browser here, must
not reach it under another name: so the name in the address must be one of this machine's own.
"""

from typing import Protocol

from starlette.types import Scope

from unfog.serve.refusals import Refused

LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1")


class Doors(Protocol):
    """What the service asks before it does anything."""

    def admit(self, scope: Scope, headers: dict[bytes, bytes], wanted: str, problem: str | None) -> None:
        """Complain of who may not do what is wanted with a problem; None: with some problem at least."""

    def may(self, headers: dict[bytes, bytes], wanted: str, problem: str) -> bool:
        """Whether who was admitted may do that with a problem."""


class Open:
    """Whoever is on this machine may do anything."""

    def admit(
        self,
        scope: Scope,  # noqa: ARG002
        headers: dict[bytes, bytes],
        wanted: str,  # noqa: ARG002
        problem: str | None,  # noqa: ARG002
    ) -> None:
        """Complain of a name that is not this machine's."""
        told = headers.get(b"host", b"").decode("latin-1").lower()
        host = told if told.endswith("]") else told.rsplit(":", 1)[0]
        if host not in LOOPBACK:
            raise Refused(403, "Without keys the service answers to localhost alone.")

    def may(self, headers: dict[bytes, bytes], wanted: str, problem: str) -> bool:  # noqa: ARG002
        """Anything."""
        return True
