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
_told_to_stop = threading.Event()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; what goes wrong is one line on stderr and an exit code: 2 for bad input."""
    words = [*(sys.argv[1:] if arguments is None else arguments)]  # our `list` is a command
    try:
        with _heeding_stops(words):
            sys.exit(_run(words))
    except KeyboardInterrupt:
        word, code = ("stopped", STOPPED) if _told_to_stop.is_set() else ("interrupted", INTERRUPTED)
        _leave(word + _resumes(words), code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
        sys.exit(0)
    except Exception as error:
        message, code = _complaint(error)
        if message is None:
            raise
        _leave(message + (_resumes(words) if code == FAILED and _gave_in(error) else ""), code)


@contextmanager
def _heeding_stops(words: Sequence[str]) -> Iterator[None]:
    """Let SIGTERM end the workers of a command that can be resumed, and keep what is finished."""
    ours = threading.current_thread() is threading.main_thread() and _resumes(words)
    if not ours or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    _told_to_stop.clear()
    signal.signal(signal.SIGTERM, _stop)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is _stop:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _stop(*_: Any) -> NoReturn:
    """SIGTERM, of a batch scheduler perhaps: an interrupt, the one thing that all libraries let through."""
    _told_to_stop.set()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # schedulers say it again, and we are at it
    raise KeyboardInterrupt


def _complaint(error: Exception) -> tuple[str | None, int]:
    """What to say of an error, and with which code to leave; None: it is a bug, to be seen whole."""
    if isinstance(error, ModuleNotFoundError):
        from unfog._extras import hint

        return hint(error), BAD_INPUT
    if isinstance(error, OSError):
        from unfog._io import reason

        return f"{error.filename or 'a file, or the output'}: {reason(error)}", FAILED
    if isinstance(error, MemoryError):
        return f"not enough memory: {error or 'what was asked for is too large'}", FAILED
    from unfog.validation import InputError

    if isinstance(error, InputError):  # most often, and the others take longer to import
        return str(error), BAD_INPUT
    from unfog.live.errors import Held, StoreError
    from unfog.serve.errors import Refused

    if isinstance(error, Held | Refused):
        return str(error), BAD_INPUT
    return (str(error), FAILED) if isinstance(error, StoreError) or _gave_in(error) else (None, FAILED)


def _gave_in(error: Exception) -> bool:
    """Whether it was the machine: a full disk, too little memory, a dead worker. What is finished is kept."""
    from unfog.simulation.executors import WorkerDiedError

    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return isinstance(error, MemoryError | WorkerDiedError)


def _run(arguments: Sequence[str]) -> int:
    """The command itself; complaints about the command line are made short."""
    import typer

    from unfog.cli.app import app

    _refuse_empty(arguments)
    before = sys.path.copy()
    sys.path.append(os.getcwd())  # agents of one's own, module:name, may lie here
    try:
        code = int(app(arguments, prog_name="unfog", standalone_mode=False) or 0)
    except typer.Abort as abort:
        raise _behind(abort) from None
    except SystemExit as leaving:  # typer's way out when whoever read our output has enough of it
        if isinstance(leaving.__context__, BrokenPipeError):
            raise BrokenPipeError from None
        raise
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # a group of commands without one: its help, as it is
            print(error, file=sys.stderr)
            return BAD_INPUT
        if not hasattr(error, "format_message") or not hasattr(error, "exit_code"):
            raise
        _leave(f"{_cut(error.format_message())} (see --help)", BAD_INPUT)
    finally:
        sys.path[:] = before
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return code


def _behind(abort: BaseException) -> BaseException:
    """What typer made an Abort of: an interrupt, or an EOFError from anywhere inside, which is a bug."""
    return abort.__cause__ if isinstance(abort.__cause__, EOFError) else KeyboardInterrupt()


def _refuse_empty(arguments: Sequence[str]) -> None:
    """Complain of an empty word where a name, a file or a folder is meant: as a path it would be `.`."""
    for before, word in pairwise(arguments):
        if not word and not before.startswith("-"):
            _leave(f"{arguments[0]}: ''; allowed: a name, a file or a folder (see --help)", BAD_INPUT)


def _resumes(arguments: Sequence[str]) -> str:
    """Say that an interrupted command can be resumed, where it can."""
    return "; the same command goes on where it stopped" if arguments[:1] in (["run"], ["reproduce"]) else ""


def _cut(text: str) -> str:
    """What click says of a word repeats it, however long it is."""
    return text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 3]}..."


def _leave(message: str, code: int) -> NoReturn:
    from unfog.validation import one_line

    print(f"unfog: {one_line(message)}", file=sys.stderr)
    sys.exit(code)
