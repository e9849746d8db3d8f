"""What agents are told of time in a world made of a record: constants found in the rows that calibrate.

They are fitted once for the same rows. Where these cannot say it, agents are told of no time. Contexts or
errors that are drawn from the calibrated model, one by one, have no time, and agents are told so.
"""

from functools import lru_cache

import numpy as np

from unfog.channel.calibration import Calibration, calibrate
from unfog.channel.dynamics import Moving, Tempo, untimed
from unfog.maths.arrays import Array
from unfog.validation import InputError


def tempo(noisy: Array, true: Array, times: Array) -> tuple[Tempo | None, str]:
    """Constants of time of pairs (n, d) at these times (n,); or none, and why."""
    return _found(noisy.tobytes(), true.tobytes(), times.tobytes(), true.shape[1])


@lru_cache(maxsize=32)
def _found(noisy: bytes, true: bytes, times: bytes, dim: int) -> tuple[Tempo | None, str]:
    first, second = (np.frombuffer(x).reshape(-1, dim) for x in (noisy, true))
    try:
        return calibrate(first, second, times=np.frombuffer(times)).tempo, ""
    except InputError as error:  # too few rows, or several devices at one moment
        return None, f"agents are told of no time, which the calibration does not show ({error})"


def drawn(tempo: Tempo | None, found: Calibration, contexts: bool, errors: bool) -> Tempo | None:
    """Constants for a world in which contexts, or errors, are drawn one by one."""
    if tempo is None or not (contexts or errors):
        return tempo
    plain = untimed(found.context_cov, found.noise_cov, found.bias_cov)
    if contexts:
        tempo = tempo._replace(fast=plain.fast, level=None, periods=(), cycles=None)
    if errors:
        tempo = tempo._replace(bias=Moving(found.bias_cov, np.inf), error=None, white=plain.white)
    return tempo
