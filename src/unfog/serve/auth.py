"""Authentication: API keys and their scopes, local access without keys, and rate limits.

Without keys the service answers only on this machine (`Open`). A foreign web page, open in a browser here,
must not reach it: so the host in the address must be this machine, and the origin that a browser sends must
be ours. With keys every request needs one, wherever it comes from (`Keyed`).

A key reads `unfog_<id>_<secret>`. The secret has 256 random bits and is shown once. Only its SHA-256 is kept,
which does not reveal it: with so many bits neither a salt nor a slow hash is needed. A key is for some
problems or for all, and has scopes:

    decide   ask for decisions            report   rewards, true contexts, void
    read     look at all there is         admin    everything, with the problems that the key is for
"""

import hashlib
import hmac
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from math import ceil
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, Protocol

from unfog import validation
from unfog.live.errors import StoreError, Unknown
from unfog.serve.errors import Refused, busy
from unfog.validation import InputError, one_of

if TYPE_CHECKING:
    from starlette.types import Scope

SCOPES = ("decide", "report", "read", "admin")
PREFIX = "unfog"
LONGEST_NOTE = 200
LONGEST_KEY = 200  # characters that are looked at
NOBODY = hashlib.sha256(b"").hexdigest()  # held against a secret where there is no such key
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="unfog"'}
MOST = 10_000  # callers that are remembered; of more, those who asked longest ago are forgotten
log = logging.getLogger("unfog.serve")


class Key(NamedTuple):
    """What is known of a key; its secret is not."""

    id: str
    digest: str  # SHA-256 of the secret, in hexadecimal
    scopes: tuple[str, ...]
    problems: tuple[str, ...] | None  # None: all, those to come as well
    note: str
    created: float  # seconds since 1970
    revoked: float | None = None

    def may(self, wanted: str, problem: str | None) -> bool:
        """Whether it is for that, with a problem; None: with all of them."""
        return self.may_some(wanted) and (self.problems is None or problem in self.problems)

    def may_some(self, wanted: str) -> bool:
        """Whether it is for that, with some problem."""
        return wanted in self.scopes or "admin" in self.scopes


class KeysError(StoreError):
    """The keys cannot be read, so that nobody can be let in."""


class KeyRing(Protocol):
    """Where keys are kept. A revoked one stays, so that to revoke the last does not mean: no keys needed."""

    def stamp(self) -> object:
        """Something that differs whenever keys have changed; quick to ask for."""

    def load(self) -> dict[str, Key]:
        """All by their ids; none is no error, damage is."""

    def add(self, key: Key) -> None:
        """Keep one more."""

    def revoke(self, key: str, now: float) -> None:
        """From now on the key of this id is none."""


def made(scopes: Sequence[str], problems: Sequence[str], note: str, now: float) -> tuple[Key, str]:
    """A new key, and how it reads; no problem named: for all."""
    if not scopes:
        raise InputError("scope", "none", ", ".join(SCOPES))
    for scope in scopes:
        one_of("scope", scope, SCOPES)
    if len(note) > LONGEST_NOTE or not note.isprintable():
        raise InputError("note", repr(note), f"a line of at most {LONGEST_NOTE} characters")
    chosen = tuple(dict.fromkeys(validation.check_name("problem", one) for one in problems)) or None
    secret, name = secrets.token_urlsafe(32), secrets.token_hex(4)
    ordered = tuple(scope for scope in SCOPES if scope in scopes)
    return Key(name, _digest(secret), ordered, chosen, note, now), f"{PREFIX}_{name}_{secret}"


def found(keys: Mapping[str, Key], text: str) -> Key | None:
    """The key that reads so. It takes as long whether there is none of its id or its secret is another."""
    prefix, _, rest = text[:LONGEST_KEY].partition("_")
    name, _, secret = rest.partition("_")
    key = keys.get(name)
    same = hmac.compare_digest(_digest(secret), NOBODY if key is None else key.digest)
    valid = same and prefix == PREFIX and bool(secret) and len(text) <= LONGEST_KEY
    return key if valid and key is not None and key.revoked is None else None


def check_known(keys: Mapping[str, Key], name: str) -> Key:
    """The key of an id that is to be revoked."""
    if name not in keys or keys[name].revoked is not None:
        left = ", ".join(one.id for one in keys.values() if one.revoked is None)
        raise Unknown("id", repr(name), left or "none: there are no keys")
    return keys[name]


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


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

    def caller(self, scope: "Scope", headers: Mapping[bytes, bytes]) -> Caller:
        """Who asks; a complaint of who may not come in."""

    def refresh(self) -> None:
        """Look whether keys have changed; once a second, from any thread."""


class Open:
    """Whoever is on this machine may do anything."""

    def caller(self, scope: "Scope", headers: Mapping[bytes, bytes]) -> Caller:
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

    def caller(self, scope: "Scope", headers: Mapping[bytes, bytes]) -> Caller:
        """Complain of who has no key, or one that is not valid."""
        if self._trouble:
            raise busy("The keys cannot be read; the log of the service says why.")
        if not self._keys and self._unless is not None:
            return self._unless.caller(scope, headers)
        kind, _, told = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if kind.lower() != "bearer":
            raise Refused(401, "This takes a key: Authorization: Bearer unfog_...", CHALLENGE)
        key = found(self._keys, told.strip())
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


def address(scope: "Scope") -> str:
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


class Buckets:
    """How often each caller may ask: a bucket of tokens for each, which fills at a steady rate.

    Used by the event loop alone.
    """

    def __init__(self, rate: float, most: int = MOST, clock: Callable[[], float] = monotonic) -> None:
        """`rate` requests a second, of which a second's worth may come at once."""
        self._rate, self._full, self._most, self._clock = rate, max(rate, 1.0), most, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, and when

    def take(self, who: str) -> None:
        """One token; a complaint where there is none."""
        now = self._clock()
        tokens, then = self._left.get(who, (self._full, now))
        tokens = min(tokens + (now - then) * self._rate, self._full)
        enough = tokens >= 1
        self._left[who] = (tokens - 1 if enough else tokens, now)
        self._left.move_to_end(who)
        if len(self._left) > self._most:
            self._left.popitem(last=False)
        if not enough:
            wait = ceil((1 - tokens) / self._rate)
            said = f"More than {self._rate:g} requests a second; nothing was done."
            raise Refused(429, said, {"Retry-After": str(max(wait, 1))})
