"""Keys: who may do what with which problems.

A key reads `unfog_<id>_<secret>`. The secret has 256 random bits and is shown once; what is kept is its
SHA-256, which says nothing of it: so many bits need no salt and no slow hash. Scopes:

    decide   ask for decisions            report   rewards, true contexts, void
    read     look at all there is         admin    everything, with the problems that the key is for
"""

import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from unfog import validation
from unfog.live.errors import StoreError, Unknown
from unfog.validation import InputError, one_of

SCOPES = ("decide", "report", "read", "admin")
PREFIX = "unfog"
LONGEST_NOTE = 200
LONGEST_KEY = 200  # characters that are looked at
NOBODY = hashlib.sha256(b"").hexdigest()  # held against a secret where there is no such key


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
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
