"""A log, and all that is told besides: the channel, the features of arms, what is believed of contexts.

Where no channel is told, pairs of noisy and true contexts in the log say what it is, if there are enough.
Else readings are taken for the truth. That does no harm to what is said of policies that see the same
readings: what a reading says of a reward can be learnt from readings alone, if the features have room for it.
"""

from functools import cached_property
from typing import Any

import numpy as np

from unfog.channel.calibration import calibrate
from unfog.channel.channel import Channel, Units
from unfog.channel.channel import channel as told_channel
from unfog.channel.studies import calibrate_subset
from unfog.evaluation import model as models
from unfog.evaluation.beliefs import Believed, believed, seen, units_of
from unfog.evaluation.checks import suspicion
from unfog.evaluation.log import Log
from unfog.evaluation.model import Data, Predicted, predicted
from unfog.features import FeatureMap
from unfog.features.per_arm import PerArm
from unfog.features.registry import builder, check_map
from unfog.maths.arrays import Array, pick
from unfog.validation import InputError, numbers

ENOUGH = 10  # pairs for each number that is to be found of a channel
AS_THEY_ARE = "No channel is told{}: the model of rewards takes readings as they are."


class Scene:
    """What policies and estimators look at."""

    def __init__(
        self, log: Log, channel: Any = None, features: Any = "per_arm", actions: Any = None, seed: int = 0
    ) -> None:
        """Check what is told; nothing is computed before it is asked for."""
        self.log, self.seed = log, seed
        self.features = _features(features, actions, log)
        self.channel, self.about_channel = _channel(channel, log)

    @property
    def own(self) -> bool:
        """Whether contexts are taken in the caller's own units, which maps are meant for that arms have
        numbers for: without an intercept, deviations from the mean would be another model.
        """
        return not isinstance(self.features, PerArm)

    def units(self, channel: Channel) -> Units:
        """In which contexts are taken."""
        return units_of(channel, self.own)

    @cached_property
    def contexts(self) -> Believed:
        """What is believed of the context of every round, true contexts included if they may be used."""
        return self.seen if self.suspicion else believed(self.channel, self.log, own=self.own)

    @cached_property
    def seen(self) -> Believed:
        """What a policy can know of it, from the noisy context of the round."""
        return seen(self.channel, self.log, own=self.own)

    @cached_property
    def suspicion(self) -> str:
        """Why true contexts are not used in the rounds they belong to; empty where they are."""
        if self.log.true is None or self.channel is None:
            return ""
        data = Data(self.features, self.seen, self.log.arm, self.log.reward)
        by_readings = predicted(data, list(models.across(self.log.rounds)))
        return suspicion(self.log, self.log.reward - pick(by_readings.rewards, self.log.arm))

    @cached_property
    def data(self) -> Data:
        """The rounds as the model of rewards sees them."""
        return Data(self.features, self.contexts, self.log.arm, self.log.reward)

    @cached_property
    def across(self) -> Predicted:
        """What models of all other blocks of time say."""
        return predicted(self.data, list(models.across(self.log.rounds)))

    @cached_property
    def forward(self) -> Predicted:
        """What models of earlier blocks say."""
        return predicted(self.data, list(models.forward(self.log.rounds)))


def _features(features: Any, actions: Any, log: Log) -> FeatureMap:
    """The map of the log's arms."""
    number, d = len(log.arms), len(log.coordinates)
    if actions is None:
        if isinstance(features, str) and features != "per_arm":
            raise InputError(
                "actions", None, f"numbers for each of the {number} arms, with features {features!r}"
            )
        given: Array = np.zeros((number, d))
    else:
        allowed = f"numbers, a row for each of the {number} arms"
        given = numbers("actions", actions, allowed)
        if given.ndim < 2 or len(given) != number:
            raise InputError("actions", f"numbers of shape {given.shape}", allowed)
    make = builder(features)
    check_map(lambda: make(given), number, d)
    return make(given)


def _channel(told: Any, log: Log) -> tuple[Channel | None, str]:
    """The channel, and where it comes from."""
    if told is not None:
        return told_channel(told, log.coordinates), "The channel is the one that was told."
    if log.channel is not None:
        return told_channel(log.channel, log.coordinates), "The channel is the one that the log tells."
    if log.true is None:
        return None, AS_THEY_ARE.format("")
    known, d = int((log.known() & ~np.isnan(log.noisy).any(axis=1)).sum()), len(log.coordinates)
    if known < ENOUGH * d * (d + 3):
        few = f", and {known} rounds have a whole true context and a whole reading, too few to find one"
        return None, AS_THEY_ARE.format(few)
    several = log.unit is not None and len(np.unique(log.unit[log.known()])) > 1
    try:
        found = (
            calibrate(log.noisy, log.true, groups=log.unit)
            if several
            else calibrate_subset(log.noisy, log.true)
        )
    except InputError as error:
        return None, AS_THEY_ARE.format(f", and none can be found from true contexts ({error})")
    return found.channel, f"The channel is found from {known} rounds whose true context is known."
