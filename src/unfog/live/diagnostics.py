"""Whether the thing works, as a data set with names: the channel, rewards, arms, and what is waited for.

    coordinate   z is a reading less what was expected of it, in deviations: mean square 1 if all is as told;
                 the bias as believed, of the only unit or the mean of all (`bias_of` says whose), how unsure
                 that is of a unit, and how units differ; noisy and denoised against true contexts, where
                 these came
    arm          how often it was chosen, and what it paid
    level        the share of rewards in intervals of this level
    bin          rewards of 0 or 1 by the probability that was said of a 1: said and came should be alike
    age          decisions that wait for their rewards

What holds for the problem as a whole is in `attrs`: the counts, the share of decisions whose reward came, and
what is wrong with the channel, in words.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unfog.channel import innovations
from unfog.channel.innovations import ALARM, Innovations
from unfog.live import tallies
from unfog.live.tallies import BINS, LEVELS, Tallies
from unfog.maths.arrays import Array

if TYPE_CHECKING:
    import xarray as xr

AGES = {"minute": 60.0, "hour": 3600.0, "day": 86_400.0, "week": 604_800.0, "longer": np.inf}
"""Seconds that what is waited for is old at most, and what that is called."""


class Named(NamedTuple):
    """What coordinates and arms are called."""

    coordinates: Sequence[str]
    arms: Sequence[str]


class Bias(NamedTuple):
    """What is believed of the bias of one unit, or of many: (d,) each."""

    mean: Array
    sd: Array  # of what is believed of a unit
    units_sd: Array  # between units; not a number of one
    context_sd: Array  # of true contexts, as the channel has it
    of: str  # whose it is


def dataset(
    named: Named,
    found: Tallies,
    readings: Innovations | None,
    *,
    bias: Bias | None = None,
    ages: Sequence[float] = (),
) -> "xr.Dataset":
    """All of it; `readings` and `bias` where the agent has any.

    `ages` are those of decisions that wait, in seconds.
    """
    import xarray as xr

    coordinates = {
        "coordinate": list(named.coordinates),
        "arm": list(named.arms),
        "level": list(LEVELS),
        "bin": [(i + 0.5) / BINS for i in range(BINS)],
        "age": list(AGES),
    }
    values = {
        **{name: ("coordinate", x) for name, x in _channel(found, readings, bias).items()},
        **{name: ("arm", x) for name, x in _arms(found, len(named.arms)).items()},
        "coverage": ("level", tallies.coverage(found)),
        **{name: ("bin", x) for name, x in _bins(found).items()},
        "waiting": ("age", waiting(ages)),
    }
    attrs = _whole(named, found, readings, len(ages)) | {"bias_of": "" if bias is None else bias.of}
    return xr.Dataset(values, coordinates, attrs)


def _channel(found: Tallies, readings: Innovations | None, bias: Bias | None) -> dict[str, Array]:
    """What there is of every coordinate; not a number is what there is not."""
    nothing = np.full(found.contexts.shape[1], np.nan)
    bias = bias or Bias(nothing, nothing, nothing, nothing, "")
    seen, lately, values = innovations.Moments(nothing * 0, nothing, nothing), nothing, nothing
    if readings is not None:
        seen, lately = innovations.moments(readings.total), innovations.moments(readings.lately).mean_square
        values = innovations.e_values(readings)[0]
    worth = tallies.denoising(found)
    return {
        "readings": seen.seen,
        "z_mean": seen.mean,
        "z_mean_square": seen.mean_square,
        "z_mean_square_lately": lately,
        "e_value": values,
        "bias": bias.mean,
        "bias_sd": bias.sd,
        "bias_units_sd": bias.units_sd,
        "context_sd": bias.context_sd,
        "true_contexts": worth.revealed,
        "rmse_noisy": worth.rmse_noisy,
        "rmse_denoised": worth.rmse_denoised,
        "context_coverage": worth.coverage,
    }


def _arms(found: Tallies, number: int) -> dict[str, Array]:
    """What there is of every arm; those that came later and were never chosen have places of their own."""
    more = np.zeros((max(number - len(found.arms), 0), 4))
    arms = tallies.by_arm(found._replace(arms=np.concatenate((found.arms, more))))
    said = {"chosen": arms.chosen, "share": arms.share, "rewarded": arms.rewards}
    return {**said, "reward_mean": arms.mean, "reward_error": arms.error}


def _bins(found: Tallies) -> dict[str, Array]:
    """Means of what was said and of what came; not a number in an empty bin."""
    number, said, came = found.bins.T
    with np.errstate(invalid="ignore"):  # nothing by nothing
        return {"in_bin": number, "said": said / number, "came": came / number}


def waiting(ages: Sequence[float]) -> Array:
    """How many are of every age in `AGES`."""
    edges = np.array([0.0, *AGES.values()])
    places = np.searchsorted(edges[1:-1], np.maximum(np.asarray(ages, dtype=np.float64), 0.0), side="right")
    return np.bincount(places, minlength=len(AGES)).astype(np.float64)


def join_rate(found: Tallies) -> float:
    """The share of decisions whose reward came in time, of those that are settled; not a number: none is."""
    came = found.counts.answered
    settled = came + found.counts.expired
    return came / settled if settled else float("nan")


def _whole(named: Named, found: Tallies, readings: Innovations | None, pending: int) -> dict[str, Any]:
    """What holds for the problem."""
    said: dict[str, Any] = {"alarm": [], "alarmed": 0, "e_value_of_all": float("nan"), "alarm_at": ALARM}
    if readings is not None:
        said["alarm"] = innovations.sentences(readings, named.coordinates)
        said["alarmed"] = int(readings.alarmed)
        said["e_value_of_all"] = float(innovations.e_values(readings)[1])
    rates = {"pending": pending, "join_rate": join_rate(found)}
    return {**found.counts._asdict(), **rates, **said, "judged": found.judged}
