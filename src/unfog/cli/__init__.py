"""The command line. One file a command; no numerics; heavy imports wait until a command needs them."""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; what goes wrong is one line on stderr and an exit code: 2 for bad input."""
    told = sys.argv[1:] if arguments is None else arguments
    try:
        sys.exit(_run(arguments))
    except KeyboardInterrupt:
        _leave("interrupted" + _resumes(told), INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
        sys.exit(0)
    except Exception as error:
        message, code = _complaint(error)
        if message is None:
            raise
        _leave(message + _resumes(told) if _kept(error) else message, code)


def _complaint(error: Exception) -> tuple[str | None, int]:
    """What to say of an error, and with which code to leave; None: it is a bug, to be seen whole."""
    if isinstance(error, ModuleNotFoundError):
        from unfog.extras import hint

        return hint(error), BAD_INPUT
    if isinstance(error, OSError):
        return f"{error.filename or 'a file'}: {error.strerror or error}", FAILED
    from unfog.inputs import InputError
    from unfog.live.errors import Held, StoreError
    from unfog.serve.refusals import Refused

    if isinstance(error, InputError | Held | Refused):
        return str(error), BAD_INPUT
    return (str(error), FAILED) if isinstance(error, StoreError) or _kept(error) else (None, FAILED)


def _kept(error: Exception) -> bool:
    """Whether what was finished before this error is kept, and the rest can be done again."""
    from unfog.simulate.execute import WorkerDiedError

    return isinstance(error, WorkerDiedError)


def _run(arguments: Sequence[str] | None) -> int:
    """The command itself; complaints about the command line are made short."""
    import typer

    from unfog.cli.app import app

    before = sys.path.copy()
    sys.path.append(os.getcwd())  # agents of one's own, module:name, may lie here
    try:
        code = int(app(arguments, standalone_mode=False) or 0)
    except typer.Abort:
        raise KeyboardInterrupt from None
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
        _leave(f"{' '.join(error.format_message().split())} (see --help)", BAD_INPUT)
    finally:
        sys.path[:] = before
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return code


def _resumes(arguments: Sequence[str]) -> str:
    """What becomes of an interrupted command: runs are kept."""
    return "; the same command goes on where it stopped" if arguments[:1] in (["run"], ["reproduce"]) else ""


def _leave(message: str, code: int) -> NoReturn:
    print(f"unfog: {message}", file=sys.stderr)
    sys.exit(code)
