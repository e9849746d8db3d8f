"""The errors of a store: it failed, or a request contradicts what it contains."""

import errno

from unfog.validation import InputError


class StoreError(Exception):
    """The store could not do it: disk, damage, held, closed. The message is one sentence.

    Services write it to their logs: it names files, problems and rows, never a caller's values.

    >>> import unfog
    >>> store = unfog.live.open("walks.unfog")
    >>> channel = {"context_mean": [7000], "context_cov": 4e6, "noise_cov": 1e6, "bias_cov": 4e6}
    >>> walks = store.problem("walks", context=["steps"], arms=["send", "wait"], channel=channel, seed=1)
    >>> store.close()
    >>> try:
    ...     walks.decide({"steps": 1648})
    ... except unfog.live.StoreError as error:
    ...     print(error)
    walks.unfog cannot be used: it is closed; open it again
    """


class InternalError(RuntimeError):
    """A change failed half-way after it had been checked: a bug of this package, or of your own code.

    Nothing was logged, and the state is read again from the log. The message contains no values of a caller;
    the exception that caused it may.
    """

    def __init__(self, problem: str, kind: str, error: Exception) -> None:
        message = f"{kind!r} of problem {problem!r} failed half-way with {type(error).__name__}"
        super().__init__(f"{message}: a bug of unfog, or of your own code; this request changed nothing")


class StoreLockedError(StoreError):
    """Another process, or this one, holds the file.

    >>> import unfog
    >>> store = unfog.live.open("walks.unfog")
    >>> try:
    ...     unfog.live.open("walks.unfog")
    ... except unfog.live.StoreLockedError as error:
    ...     print(error)
    walks.unfog is held by this process already; close it first
    >>> store.close()
    """


class ImportInProgressError(StoreError):
    """The log of the problem is being imported: nothing else can be done with it meanwhile."""


class ReplayMismatchError(StoreError):
    """A decision would come out differently today. The message contains beliefs: do not log it."""


class OwnershipLostError(StoreError):
    """Another process serves the problem now: this one can never write to it again."""

    def __init__(self, message: str, kept: int | None = None) -> None:
        """`kept`: the last row that this process wrote, if the database could be asked."""
        super().__init__(message)
        self.kept = kept


class ServedElsewhereError(StoreError):
    """Another process serves the problem, and can be reached.

    >>> import unfog
    >>> issubclass(unfog.live.ServedElsewhereError, unfog.live.StoreError)
    True
    >>> unfog.live.ServedElsewhereError("walks is served elsewhere", "http://10.0.0.2:8000").url
    'http://10.0.0.2:8000'
    """

    def __init__(self, message: str, url: str) -> None:
        """`url`: where the other process can be reached."""
        super().__init__(message)
        self.url = url


class ConflictError(InputError):
    """The same key with another body, or a second, different reward.

    >>> import unfog
    >>> store = unfog.live.open("walks.unfog")
    >>> channel = {"context_mean": [7000], "context_cov": 4e6, "noise_cov": 1e6, "bias_cov": 4e6}
    >>> walks = store.problem("walks", context=["steps"], arms=["send", "wait"], channel=channel, seed=1)
    >>> d = walks.decide({"steps": 1648})
    >>> _ = walks.reward(d.id, 1.0)
    >>> try:
    ...     walks.reward(d.id, 0.0)
    ... except unfog.live.ConflictError as error:
    ...     print(error)
    value: 0.0; allowed: the reward it has, 1; several are combined where update is 'at_close'
    >>> store.close()
    """


class NotFoundError(InputError):
    """There is no such decision, problem or unit.

    >>> import unfog
    >>> store = unfog.live.open("walks.unfog")
    >>> channel = {"context_mean": [7000], "context_cov": 4e6, "noise_cov": 1e6, "bias_cov": 4e6}
    >>> walks = store.problem("walks", context=["steps"], arms=["send", "wait"], channel=channel, seed=1)
    >>> try:
    ...     walks.reward("nobody", 1.0)
    ... except unfog.live.NotFoundError as error:
    ...     print(error)
    decision: 'nobody'; allowed: the id of a decision of this problem
    >>> store.close()
    """


class DecisionClosedError(InputError):
    """A decision that is closed for this.

    >>> import unfog
    >>> store = unfog.live.open("walks.unfog")
    >>> channel = {"context_mean": [7000], "context_cov": 4e6, "noise_cov": 1e6, "bias_cov": 4e6}
    >>> walks = store.problem("walks", context=["steps"], arms=["send", "wait"], channel=channel, seed=1)
    >>> d = walks.decide({"steps": 1648})
    >>> _ = walks.cancel(d.id)
    >>> try:
    ...     walks.reward(d.id, 1.0)
    ... except unfog.live.DecisionClosedError as error:
    ...     print(error.allowed)
    a decision that was not cancelled
    >>> store.close()
    """


class KeyForgottenError(KeyError):
    """The row is no longer in memory: look it up in the file."""


def reason(error: BaseException) -> str:
    """Why it failed, as part of a sentence for users."""
    if isinstance(error, StoreError):
        return str(error)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return "the disk is full"
    if isinstance(error, Exception):
        return f"{type(error).__name__}: {error}"
    return "it was interrupted"
