"""What a reader of values should know: what noise changes, and what not to trust."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from unfog.evaluation.checks import Fit
from unfog.evaluation.scene import Scene

if TYPE_CHECKING:
    from unfog.evaluation.evaluate import Found

NOISE = (
    "The logger drew its arms from the noisy context, so ips, snips and dr stand for any policy that sees the"
    " same noisy context; they need no model of the noise. A policy that would see another sensor needs the"
    " channel: --sensor."
)
DIRECT = (
    "dm is its model's word, and its interval does not know whether the model is right. Asked through the"
    " denoiser it speaks of noisy contexts; fitted on true contexts and fed with noisy ones it would say too"
    " much."
)
ADAPTIVE = (
    "Intervals are for loggers that may have learnt: rounds are weighed so that all stretches of time vary"
    " alike, and models know only what came before. The value is a mean over time with these weights."
)
LEARNING = (
    "Agents are valued as the log teaches them, from all of its rounds, over the whole of it, all rounds"
    " weighed alike; replay lets each live from its own choices, in as many rounds as come out like them."
)
ALONE = (
    "Intervals are for loggers that may have learnt: models know only what came before. All rounds weigh"
    " alike, since the log has the probability of the drawn arm alone; those of all arms would allow better."
)
FEW = 100  # effective rounds
FAR = 1 - 1 / 15_000  # the level at which the mean weight is not 1


def all_of(
    scene: Scene, found: "Sequence[Found]", names: Sequence[str], intervals: str, fits: Sequence[Fit]
) -> list[str]:
    """In the order in which they matter."""
    said = [f"Careful: {fit.sentence}" for fit in fits if not fit.fits]
    if scene.suspicion:
        said.append(f"Careful: {scene.suspicion} So models go by readings alone, where truth would mislead.")
    said += [note for one in found for note in _careful(one)]
    said += [*scene.log.notes, NOISE]
    if {"dr", "dm", "switch"} & {*names} or any(one.policy.name.startswith("fitted") for one in found):
        said.append(scene.about_channel)
    said += [DIRECT] if "dm" in names else []
    if intervals == "adaptive" and any(one.policy.fixed for one in found):
        said.append(ALONE if scene.log.probabilities is None else ADAPTIVE)
    said += [LEARNING] if any(not one.policy.fixed for one in found) else []
    return said + [note for one in found for note in one.notes]


def _careful(one: "Found") -> list[str]:
    """Where a policy is hardly seen in the log."""
    name, said, (low, high) = one.policy.name, list[str](), one.weight.interval(FAR)
    if one.unsupported > 0:
        said.append(
            f"Careful: {name} takes arms that could not be drawn, in {one.unsupported:.1%} of rounds."
            " What these would have been paid, no log can say."
        )
    elif one.weight.se > 0 and not low <= 1 <= high:
        said.append(
            f"Careful: weights of {name} average {one.weight.mean:.3f} ± {one.weight.se:.3f}, not 1. Either"
            " probabilities are wrong, or it takes arms that were never drawn."
        )
    if one.effective < FEW:
        said.append(
            f"Careful: {name} rests on {one.effective:.0f} effective rounds; the largest weight is"
            f" {one.largest:.3g}. Its intervals may be too short."
        )
    return said
