"""Who may come in.

Without keys the service answers on this machine alone. A page of somebody else, open in a browser here, must
not reach it: so the name in the address must be one of this machine's own, and a browser must say that the
page that asks is ours. With keys it takes a key, wherever a request comes from.
"""

import logging
from collections.abc import Mapping
from ipaddress import ip_address
from typing import NamedTuple, Protocol

from starlette.types import Scope

from unfog.live.errors import StoreError
from unfog.serve import keys
from unfog.serve.keys import Key, KeyRing
from unfog.serve.refusals import Refused, busy

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="unfog"'}
log = logging.getLogger("unfog.serve")


class Caller(NamedTuple):
    """Who asks: whoever has a key, or whoever is on this machine."""

    name: str  # the id of the key, or the address
    key: Key | None = None

    def may(self, wanted: str, problem: str | None) -> bool:
        """Whether this may be done with a problem; None: with all of them."""
        return self.key is None or self.key.may(wanted, problem)

    def check(self, wanted: str, problem: str | None) -> None:
        """Complain where it may not. That is said whether there is such a problem or not."""
        if not self.may(wanted, problem):
            what = "all problems" if problem is None else "this problem"
            raise Refused(403, f"This key is not for this: it takes the scope {wanted} with {what}.")

    def check_some(self, wanted: str) -> None:
        """Complain where it may not be done with any problem."""
        if self.key is not None and not self.key.may_some(wanted):
            raise Refused(403, f"This key is not for this: it takes the scope {wanted}.")


class Doors(Protocol):
    """What the service asks before it does anything."""

    def caller(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Caller:
        """Who asks; a complaint of who may not come in."""

    def refresh(self) -> None:
        """Look whether keys have changed; once a second, from any thread."""


class Open:
    """Whoever is on this machine may do anything."""

    def caller(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Caller:
        """Complain of a name that is not this machine's, and of other people's pages."""
        told = headers.get(b"host", b"").decode("latin-1").lower()
        if not _ours(told):
            raise Refused(403, "Without keys the service answers to localhost alone.")
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower() != f"http://{told}":
            raise Refused(403, "Without keys the service does not answer to pages of others.")
        return Caller(address(scope))

    def refresh(self) -> None:
        """Nothing can change."""


class Keyed:
    """Whoever has a key, which may be added or revoked at any time."""

    def __init__(self, ring: KeyRing, unless: Doors | None = None) -> None:
        """With the keys of a ring; where it never had any, others decide, if there are others."""
        self._ring, self._unless = ring, unless
        self._stamp, self._keys = ring.stamp(), ring.load()
        self._trouble = ""

    def caller(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Caller:
        """Complain of who has no key, or one that is not valid."""
        if self._trouble:
            raise busy("The keys cannot be read; the log of the service says why.")
        if not self._keys and self._unless is not None:
            return self._unless.caller(scope, headers)
        kind, _, told = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if kind.lower() != "bearer":
            raise Refused(401, "This takes a key: Authorization: Bearer unfog_...", CHALLENGE)
        key = keys.found(self._keys, told.strip())
        if key is None:
            raise Refused(401, "This key is not known, or was revoked.", CHALLENGE)
        return Caller(key.id, key)

    def refresh(self) -> None:
        """Where the keys cannot be read nobody is let in: who was revoked is not known then."""
        try:
            stamp = self._ring.stamp()
            if stamp != self._stamp or self._trouble:
                # Keys that were there and are gone, file and all, do not open the door either.
                loaded = self._ring.load()
                self._unless = None if self._keys else self._unless
                self._keys, self._stamp, self._trouble = loaded, stamp, ""
        except StoreError as error:
            if not self._trouble:
                log.error("%s", error)
            self._trouble = str(error)


def address(scope: Scope) -> str:
    """Where a request comes from."""
    client = scope.get("client")
    return client[0] if client else ""


def _ours(told: str) -> bool:
    """Whether the name in an address is this machine's own: what is not a name but a number cannot lie."""
    host = told if told.endswith("]") else told.rsplit(":", 1)[0]
    if host in LOOPBACK:
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
