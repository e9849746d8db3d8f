"""What a compiled program may decide while it runs: whether to do something at all, and how often.

NumPy has numbers and Python's own `if`. A library that compiles has none yet: what hangs on a number is
worked out for all cases, unless the library is handed a conditional and a loop of its own. The engine that
compiles does that (`offer`), since nothing here knows such a library by name; where none is offered, all is
worked out.
"""

from collections.abc import Callable
from typing import Any, NamedTuple


class Flow(NamedTuple):
    """Of a library that compiles."""

    choose: Callable[..., Any]  # (condition, this, that): this() if it holds, else that()
    repeat: Callable[..., Any]  # (condition, step, state): state = step(state) as long as condition(state)
    calls: bool  # whether LAPACK, called for one matrix after another, is quick: on a CPU, not on a GPU


_FLOWS = dict[Any, Flow]()


def offer(library: Any, flow: Flow) -> None:
    """From now on, for arrays of this library (what their `__array_namespace__()` gives)."""
    _FLOWS[library] = flow


def flow_of(library: Any) -> Flow | None:
    """What was offered for it, if anything."""
    return _FLOWS.get(library)
