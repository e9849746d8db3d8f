"""The command line. One file a command; no numerics; heavy imports wait until a command needs them."""

import sys
from collections.abc import Sequence

BAD_INPUT, INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; bad input is one line on stderr and exit code 2."""
    from unfog.cli.app import app
    from unfog.extras import hint

    try:
        app(arguments)
    except KeyboardInterrupt:
        _leave("interrupted; the same command goes on where it stopped", INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except ModuleNotFoundError as error:
        message = hint(error)
        if message is None:
            raise
        _leave(message, BAD_INPUT)
    except ValueError as error:
        from unfog.inputs import InputError

        if not isinstance(error, InputError):
            raise
        _leave(str(error), BAD_INPUT)


def _leave(message: str, code: int) -> None:
    print(f"unfog: {message}", file=sys.stderr)
    sys.exit(code)
