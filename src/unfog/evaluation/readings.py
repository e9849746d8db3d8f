"""Do readings vary as the channel says? If not, no curve of it can be followed to less noise.

The variance of a coordinate's readings, within a unit, must be that of contexts and noise together. By how
much a variance varies by chance hangs on the tails: (m4 - s^4) / n.
"""

import numpy as np

from unfog.channel.channel import Channel
from unfog.evaluation.log import Log
from unfog.maths.arrays import Array

LARGE = 0.1  # a misfit of less would change little
FAR = 4.0  # standard errors


def misfits(channel: Channel, log: Log) -> list[str]:
    """A sentence for each coordinate whose readings vary otherwise."""
    told = np.diag(channel.context_cov + channel.noise_cov)
    said = []
    for place, name in enumerate(log.coordinates):
        found, error = _variance(log.noisy[:, place], log)
        if abs(found / told[place] - 1) > LARGE and abs(found - told[place]) > FAR * error:
            said.append(
                f"Careful: readings of {name} have a variance of {found:.3g}; by the channel it should be"
                f" {told[place]:.3g}, contexts and noise together. What is said of less noise hangs on it."
            )
    return said


def _variance(values: Array, log: Log) -> tuple[float, float]:
    """Within units, and its standard error."""
    there = ~np.isnan(values)
    unit = np.zeros(log.rounds, np.intp) if log.unit is None else log.unit
    numbers = np.bincount(unit[there])
    left = int((numbers > 0).sum())
    if there.sum() <= left:
        return np.nan, np.nan
    means = np.bincount(unit[there], values[there]) / np.maximum(numbers, 1)
    squares = (values[there] - means[unit[there]]) ** 2
    found = float(squares.sum()) / (len(squares) - left)
    return found, float(np.sqrt(squares.var() / len(squares)))
