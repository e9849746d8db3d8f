"""The doors of a round: what comes in from a world or a caller, checked before anything is changed by it.

Not a number means lost in a noisy context, and hidden in a true one, where that is allowed; elsewhere it, and
infinity, would stay in a belief for good. What is finite but absurd may come in: agents/surprise.py.
"""

from typing import Any

import numpy as np

from unfog.inputs import LARGEST, Array, InputError


def numbers(field: str, values: Array, gaps: str = "") -> None:
    """Finite numbers; `gaps` says what a value means that is not a number, where it may be there."""
    bad = np.abs(values) > LARGEST
    bad |= ~np.isfinite(values) if not gaps else np.isinf(values)
    allowed = f"finite numbers, at most {LARGEST:g} in size" + (f"; nan where {gaps}" if gaps else "")
    _refuse(field, values, bad, allowed)


def reward(field: str, values: Array, kind: str, low: float = -LARGEST, high: float = LARGEST) -> None:
    """Rewards of this kind, from `low` to `high`."""
    if kind == "bernoulli":
        return _refuse(field, values, (values != 0) & (values != 1), "0 or 1")
    within = "" if (low, high) == (-LARGEST, LARGEST) else f" from {low:g} to {high:g}"
    return _refuse(field, values, ~((values >= low) & (values <= high)), f"finite numbers{within}")


def _refuse(field: str, values: Array, bad: Any, allowed: str) -> None:
    """Name the first bad one, by its place where there are several."""
    if not np.any(bad):
        return
    place = tuple(int(i) for i in np.argwhere(bad)[0])
    where = "".join(f"[{i}]" for i in place)
    raise InputError(f"{field}{where}", f"{float(np.asarray(values)[place])}", allowed)
