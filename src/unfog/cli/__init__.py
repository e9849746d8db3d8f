"""The `unfog` command: a module for each group of subcommands, and how errors end one.

No module of this folder does numerics, and heavy imports wait until a command needs them.
"""

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NoReturn

FAILED, BAD_INPUT, INTERRUPTED, STOPPED = 1, 2, 130, 143  # the last two: 128 and the number of the signal
LONGEST_LINE = 500
_stop_requested = threading.Event()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; an error becomes one line on stderr and an exit code, 2 for bad input."""
    words = [*(sys.argv[1:] if arguments is None else arguments)]  # our `list` is a command
    try:
        with _handle_stop(words):
            sys.exit(_run(words))
    except KeyboardInterrupt:
        word, code = ("stopped", STOPPED) if _stop_requested.is_set() else ("interrupted", INTERRUPTED)
        _exit_with(word + _resume_hint(words), code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
        sys.exit(0)
    except Exception as error:
        message, code = _describe_error(error)
        if message is None:
            raise
        hint = _resume_hint(words) if code == FAILED and _is_machine_failure(error) else ""
        _exit_with(message + hint, code)


@contextmanager
def _handle_stop(words: Sequence[str]) -> Iterator[None]:
    """Make SIGTERM interrupt a command that can be resumed, so that finished work is stored."""
    can_resume = threading.current_thread() is threading.main_thread() and _resume_hint(words)
    if not can_resume or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    _stop_requested.clear()
    signal.signal(signal.SIGTERM, _stop)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is _stop:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _stop(*_: Any) -> NoReturn:
    """Turn SIGTERM, as batch schedulers send it, into KeyboardInterrupt, which no library swallows."""
    _stop_requested.set()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # schedulers repeat it while we are stopping
    raise KeyboardInterrupt


def _describe_error(error: Exception) -> tuple[str | None, int]:
    """The message and exit code for an error; no message for a bug, whose traceback is shown."""
    if isinstance(error, ModuleNotFoundError):
        from unfog._extras import hint

        return hint(error), BAD_INPUT
    if isinstance(error, OSError):
        from unfog._io import reason

        return f"{error.filename or 'a file, or the output'}: {reason(error)}", FAILED
    if isinstance(error, MemoryError):
        return f"not enough memory: {error or 'what was asked for is too large'}", FAILED
    from unfog.validation import InputError

    if isinstance(error, InputError):  # the most frequent error; the others take longer to import
        return str(error), BAD_INPUT
    from unfog.live.errors import StoreError, StoreLockedError
    from unfog.serve.errors import ServiceError

    if isinstance(error, StoreLockedError | ServiceError):
        return str(error), BAD_INPUT
    is_expected = isinstance(error, StoreError) or _is_machine_failure(error)
    return str(error) if is_expected else None, FAILED


def _is_machine_failure(error: Exception) -> bool:
    """Whether the machine failed: a full disk, too little memory, a dead worker. The run can be resumed."""
    from unfog.simulation.executors import WorkerDiedError

    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return isinstance(error, MemoryError | WorkerDiedError)


def _run(arguments: Sequence[str]) -> int:
    """Run the command itself; errors in the command line are shortened."""
    import typer

    from unfog.cli.app import app

    _check_words(arguments)
    path_before = sys.path.copy()
    sys.path.append(os.getcwd())  # a user's own agents, module:name, may be here
    try:
        code = int(app(arguments, prog_name="unfog", standalone_mode=False) or 0)
    except typer.Abort as abort:
        raise _unwrap_abort(abort) from None
    except SystemExit as exiting:  # how typer exits when the reader of a pipe has closed it
        if isinstance(exiting.__context__, BrokenPipeError):
            raise BrokenPipeError from None
        raise
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # a group without a command: print its help unchanged
            print(error, file=sys.stderr)
            return BAD_INPUT
        if not hasattr(error, "format_message") or not hasattr(error, "exit_code"):
            raise
        _exit_with(f"{_shorten(error.format_message())} (see --help)", BAD_INPUT)
    finally:
        sys.path[:] = path_before
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return code


def _unwrap_abort(abort: BaseException) -> BaseException:
    """The exception behind typer's Abort: an interrupt, or an EOFError, which is a bug."""
    return abort.__cause__ if isinstance(abort.__cause__, EOFError) else KeyboardInterrupt()


def _check_words(arguments: Sequence[str]) -> None:
    """Exit if a name, file or folder is empty: as a path it would be `.`."""
    for before, word in pairwise(arguments):
        if not word and not before.startswith("-"):
            _exit_with(f"{arguments[0]}: ''; allowed: a name, a file or a folder (see --help)", BAD_INPUT)


def _resume_hint(arguments: Sequence[str]) -> str:
    """A hint that the interrupted command can be resumed, or an empty string."""
    return "; the same command goes on where it stopped" if arguments[:1] in (["run"], ["reproduce"]) else ""


def _shorten(text: str) -> str:
    """Shorten a message of click, which repeats words of any length."""
    return text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 3]}..."


def _exit_with(message: str, code: int) -> NoReturn:
    from unfog.validation import one_line

    print(f"unfog: {one_line(message)}", file=sys.stderr)
    sys.exit(code)
