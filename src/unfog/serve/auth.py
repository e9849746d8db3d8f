"""Authentication: API keys and their scopes, local access without keys, and rate limits.

Without keys the service answers only on this machine (`LocalhostOnly`). A foreign web page, open in a browser
here, must not reach it: so the host in the address must be this machine, and the origin that a browser sends
must be ours. With keys every request needs one, wherever it comes from (`Keyed`).

A key reads `unfog_<id>_<secret>`. The secret has 256 random bits and is shown once. Only its SHA-256 is kept,
which does not reveal it: with so many bits neither a salt nor a slow hash is needed. A key is for some
problems or for all, and has scopes:

    decide   ask for decisions            report   rewards, true contexts, cancellations
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
from unfog.live.errors import NotFoundError, StoreError
from unfog.serve.errors import ServiceError, busy
from unfog.validation import InputError, one_of

if TYPE_CHECKING:
    from starlette.types import Scope

SCOPES = ("decide", "report", "read", "admin")
PREFIX = "unfog"
LONGEST_NOTE = 200
LONGEST_KEY = 200  # characters; anything longer is no key
NOBODY = hashlib.sha256(b"").hexdigest()  # compared with the secret if no key has this id
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="unfog"'}
MOST = 10_000  # callers that are remembered; beyond that, the least recent are forgotten
log = logging.getLogger("unfog.serve")


class Key(NamedTuple):
    """A key as it is stored, with the hash of its secret only."""

    id: str
    digest: str  # SHA-256 of the secret, in hexadecimal
    scopes: tuple[str, ...]
    problems: tuple[str, ...] | None  # None: all, including future ones
    note: str
    created: float  # seconds since 1970
    revoked: float | None = None

    def may(self, scope: str, problem: str | None) -> bool:
        """Whether the key has this scope for a problem; None: for all problems."""
        return self.may_some(scope) and (self.problems is None or problem in self.problems)

    def may_some(self, scope: str) -> bool:
        """Whether the key has this scope for any problem."""
        return scope in self.scopes or "admin" in self.scopes


class KeysError(StoreError):
    """The keys cannot be read, so nobody can be authenticated."""


class KeyStorage(Protocol):
    """A storage of keys. Revoked keys stay in it: without the last one, the service would need no keys."""

    def stamp(self) -> object:
        """Return a value that differs whenever keys have changed; this is cheap."""

    def load(self) -> dict[str, Key]:
        """All keys by id; raises if the storage is damaged, not if it is empty."""

    def add(self, key: Key) -> None:
        """Store one more key."""

    def revoke(self, key: str, now: float) -> None:
        """Make the key of this id invalid from now on."""


def made(scopes: Sequence[str], problems: Sequence[str], note: str, now: float) -> tuple[Key, str]:
    """A new key, and its text; without `problems` it is for all of them."""
    if not scopes:
        raise InputError("scope", "none", ", ".join(SCOPES))
    for scope in scopes:
        one_of("scope", scope, SCOPES)
    if len(note) > LONGEST_NOTE or not note.isprintable():
        raise InputError("note", repr(note), f"a line of at most {LONGEST_NOTE} characters")
    names = tuple(dict.fromkeys(validation.check_name("problem", one) for one in problems)) or None
    secret, name = secrets.token_urlsafe(32), secrets.token_hex(4)
    ordered = tuple(scope for scope in SCOPES if scope in scopes)
    return Key(name, _digest(secret), ordered, names, note, now), f"{PREFIX}_{name}_{secret}"


def find_key(keys: Mapping[str, Key], text: str) -> Key | None:
    """The key with this text, or None, in the same time whether the id is unknown or the secret is wrong."""
    prefix, _, rest = text[:LONGEST_KEY].partition("_")
    name, _, secret = rest.partition("_")
    key = keys.get(name)
    same = hmac.compare_digest(_digest(secret), NOBODY if key is None else key.digest)
    valid = same and prefix == PREFIX and bool(secret) and len(text) <= LONGEST_KEY
    return key if valid and key is not None and key.revoked is None else None


def check_known(keys: Mapping[str, Key], name: str) -> Key:
    """Return the key of this id; raise if there is none, or it was revoked."""
    if name not in keys or keys[name].revoked is not None:
        valid = ", ".join(one.id for one in keys.values() if one.revoked is None)
        raise NotFoundError("id", repr(name), valid or "none: there are no keys")
    return keys[name]


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


class Caller(NamedTuple):
    """Who sent a request: the holder of a key, or somebody on this machine."""

    name: str  # the id of the key, or the address
    key: Key | None = None

    def may(self, scope: str, problem: str | None) -> bool:
        """Whether the caller has this scope for a problem; None: for all problems."""
        return self.key is None or self.key.may(scope, problem)

    def check(self, scope: str, problem: str | None) -> None:
        """Raise unless the caller has this scope, whether the problem exists or not."""
        if not self.may(scope, problem):
            target = "all problems" if problem is None else "this problem"
            raise ServiceError(403, f"This key is not for this: it takes the scope {scope} with {target}.")

    def check_some(self, scope: str) -> None:
        """Raise unless the caller has this scope for some problem."""
        if self.key is not None and not self.key.may_some(scope):
            raise ServiceError(403, f"This key is not for this: it takes the scope {scope}.")


class Authentication(Protocol):
    """Authentication: decides who may send requests."""

    def caller(self, scope: "Scope", headers: Mapping[bytes, bytes]) -> Caller:
        """Who sent the request; raises if they may not."""

    def refresh(self) -> None:
        """Reload keys that have changed; called once a second, from any thread."""


class LocalhostOnly:
    """Anybody on this machine may do anything."""

    def caller(self, scope: "Scope", headers: Mapping[bytes, bytes]) -> Caller:
        """Raise if the host is not this machine, or if a foreign web page sent the request."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if not _is_local(host):
            raise ServiceError(403, "Without keys the service answers to localhost alone.")
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower() != f"http://{host}":
            raise ServiceError(403, "Without keys the service does not answer to pages of others.")
        return Caller(address(scope))

    def refresh(self) -> None:
        """There are no keys to reload."""


class Keyed:
    """Anybody with a key; keys may be added and revoked at any time."""

    def __init__(self, storage: KeyStorage, unless: Authentication | None = None) -> None:
        """The keys of a storage; `unless` decides as long as it has never had any."""
        self._storage, self._unless = storage, unless
        self._stamp, self._keys = storage.stamp(), storage.load()
        self._trouble = ""

    def caller(self, scope: "Scope", headers: Mapping[bytes, bytes]) -> Caller:
        """Raise if the request has no key, or an invalid one."""
        if self._trouble:
            raise busy("The keys cannot be read; the log of the service says why.")
        if not self._keys and self._unless is not None:
            return self._unless.caller(scope, headers)
        kind, _, text = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if kind.lower() != "bearer":
            raise ServiceError(401, "This takes a key: Authorization: Bearer unfog_...", CHALLENGE)
        key = find_key(self._keys, text.strip())
        if key is None:
            raise ServiceError(401, "This key is not known, or was revoked.", CHALLENGE)
        return Caller(key.id, key)

    def refresh(self) -> None:
        """Reload keys that have changed; while they cannot be read nobody is let in."""
        try:
            stamp = self._storage.stamp()
            if stamp != self._stamp or self._trouble:
                # Once there were keys, a missing file does not mean that none are needed.
                loaded = self._storage.load()
                self._unless = None if self._keys else self._unless
                self._keys, self._stamp, self._trouble = loaded, stamp, ""
        except StoreError as error:
            if not self._trouble:
                log.error("%s", error)
            self._trouble = str(error)


def address(scope: "Scope") -> str:
    """The client's IP address, or "" if it is not known."""
    client = scope.get("client")
    return client[0] if client else ""


def _is_local(name: str) -> bool:
    """Whether a host means this machine: localhost or a loopback IP address, but no other name."""
    host = name if name.endswith("]") else name.rsplit(":", 1)[0]
    if host in LOOPBACK:
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Buckets:
    """Rate limits: a bucket of tokens for each caller, which fills at a steady rate.

    Used by the event loop alone.
    """

    def __init__(self, rate: float, most: int = MOST, clock: Callable[[], float] = monotonic) -> None:
        """Allow `rate` requests a second, and as many at once."""
        self._rate, self._full, self._most, self._clock = rate, max(rate, 1.0), most, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, last request

    def take(self, who: str) -> None:
        """Take a token; raise if none is left."""
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
            detail = f"More than {self._rate:g} requests a second; nothing was done."
            raise ServiceError(429, detail, {"Retry-After": str(max(wait, 1))})
