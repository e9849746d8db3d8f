"""What the clinic of lab/demo.py comes to: what each way to decide earned, and the story in plain words.

The log says with which probability p an arm was taken, so it also says what another way to decide would have
earned (inverse propensities): the mean of reward x q / p, where q is the probability with which the other one
takes the same arm. Here the truth is known, too, and stands beside it.
"""

from typing import NamedTuple

import numpy as np

from unfog.lab import demo
from unfog.lab.demo import Played
from unfog.lab.terminal import align, prose
from unfog.maths.arrays import Array

Z = 1.96  # standard errors in half an interval of 95 %


class Value(NamedTuple):
    """What a way to decide earns per decision."""

    mean: float
    half_width: float  # of a 95 % interval
    truth: float


def chances(found: Played) -> dict[str, Array]:
    """With which probability each way to decide sends a suggestion, (n,)."""
    rows = found.rows
    return {demo.AGENT: rows.send, demo.RIVAL: rows.rival, "a coin": np.full(len(rows.sent), 0.5)}


def earned(rows: demo.Rows, send: Array) -> Array:
    """What the log says of each decision, had it been made with these probabilities; (n,), with gaps."""
    same = np.where(rows.sent > 0, send, 1 - send)
    estimate: Array = rows.paid * same / rows.probability
    return estimate


def worth(rows: demo.Rows, send: Array) -> Array:
    """What decisions made with these probabilities are worth in truth, (n,)."""
    true: Array = send * rows.worth[:, 0] + (1 - send) * rows.worth[:, 1]
    return true


def values(found: Played) -> dict[str, Value]:
    """Of every way to decide, and how much the agent earned more than `naive`, on the same decisions."""
    rows, ways = found.rows, chances(found)
    pairs = {name: (earned(rows, send), worth(rows, send)) for name, send in ways.items()}
    ours, theirs = pairs[demo.AGENT], pairs[demo.RIVAL]
    pairs["difference"] = ours[0] - theirs[0], ours[1] - theirs[1]
    return {name: _value(*pair) for name, pair in pairs.items()}


def _value(estimates: Array, truth: Array) -> Value:
    came = estimates[np.isfinite(estimates)]
    error = came.std(ddof=1) / np.sqrt(len(came)) if len(came) > 1 else np.nan
    return Value(float(came.mean()) if len(came) else np.nan, float(Z * error), float(truth.mean()))


def best(found: Played) -> float:
    """What is earned by whoever knows the true contexts and what arms are worth."""
    return float(found.rows.worth.max(1).mean())


def story(found: Played) -> str:
    """The whole of it, for people."""
    return "\n".join([*_opening(found), "", *_sensors(found), "", *_rewards(found), "", *_watch(found)])


def _opening(found: Played) -> list[str]:
    counts, n = found.diagnostics.attrs, len(found.rows.sent)
    return prose(
        f"A clinic of {demo.PATIENTS} patients: {n:,} decisions in {len(found.tracks)} days,"
        f" seed {found.seed},",
        "each whether to send a walking suggestion or to wait, by what step counters say.",
        f"{counts['voided']} were never shown, {counts['expired']} got no answer in two hours,"
        f" {counts['late']} of these answered later.",
        f"Of {counts['revealed']} decisions the true step count came the next morning.",
    )


def _sensors(found: Played) -> list[str]:
    off, error = (float(np.sqrt((x[:, 0] ** 2).mean())) for x in (found.bias, found.believed - found.bias))
    inside = int((np.abs(found.believed - found.bias)[:, 0] <= Z * found.sd[:, 0]).sum())
    rows = [["step counter of", "true bias", "believed", "± 95 %"]]
    for patient in found.followed:
        told = found.bias[patient, 0], found.believed[patient, 0]
        width = Z * found.sd[patient, 0]
        rows.append([demo.unit(patient), *(f"{x:+,.0f}" for x in told), f"{width:,.0f}"])
    said = prose(
        f"Step counters were off by {off:,.0f} steps (root mean square). Nobody said by how much each was;",
        f"what is believed of them by now is off by {error:,.0f},"
        f" and {inside} of {demo.PATIENTS} lie in their 95 % intervals:",
    )
    return [*said, *align(rows)]


def _rewards(found: Played) -> list[str]:
    told = values(found)
    more = told.pop("difference")
    rows = [["mean reward of", "by the log", "in truth"]]
    for name, one in told.items():
        rows.append([name, f"{one.mean:.3f} ± {one.half_width:.3f}", f"{one.truth:.3f}"])
    rows.append(["the best there is", "-", f"{best(found):.3f}"])
    said = prose(f"{demo.AGENT} decided; {demo.RIVAL}, which takes readings for the truth, only watched:")
    more_said = prose(
        f"Over {demo.RIVAL}, {demo.AGENT} earned {more.mean:+.3f} ± {more.half_width:.3f} a decision"
        f" by the log, {more.truth:+.3f} in truth.",
        f"(One decision in {1 / demo.FLOOR:.0f} was a coin's, for both; that is what lets the log compare.)",
    )
    return [*said, *align(rows), *more_said]


def _watch(found: Played) -> list[str]:
    attrs = found.diagnostics.attrs
    said = attrs["alarm"] or ["Readings are as the channel says."]
    lines = [*said, f"{attrs['pending']} rewards are still awaited."]
    return [line for one in lines for line in prose(one)]
