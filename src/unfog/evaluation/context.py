"""A log with everything else an evaluation needs: the channel, the features of arms, beliefs about contexts.

Without a channel from the caller, it is estimated from pairs of noisy and true contexts in the log, if there
are enough. Otherwise readings are taken for the truth. Values of policies that see the same readings remain
right: how rewards depend on readings can be learnt from readings alone, if the feature map is rich enough.
"""

from functools import cached_property
from typing import Any

import numpy as np

from unfog.channel.calibration import calibrate
from unfog.channel.channel import Channel, Units
from unfog.channel.channel import channel as as_channel
from unfog.channel.studies import calibrate_subset
from unfog.evaluation import model as models
from unfog.evaluation.beliefs import Believed, infer_by_round, infer_contexts, units_of
from unfog.evaluation.checks import suspicion
from unfog.evaluation.log import DecisionLog
from unfog.evaluation.model import Data, Predicted, cross_fit
from unfog.features import FeatureMap
from unfog.features.per_arm import PerArm
from unfog.features.registry import builder, check_map
from unfog.maths.arrays import Array, pick
from unfog.validation import InputError, numbers

ENOUGH = 10  # pairs for each number that is to be found of a channel
NO_CHANNEL = "No channel is told{}: the model of rewards takes readings as they are."


class EvaluationContext:
    """A log with its channel, features and beliefs: what policies and estimators work on."""

    def __init__(
        self,
        log: DecisionLog,
        channel: Any = None,
        features: Any = "per_arm",
        actions: Any = None,
        seed: int = 0,
        *,
        has_arm_order: bool = False,
    ) -> None:
        """Check the arguments; nothing else is computed until it is needed.

        `has_arm_order`: whether the caller gave the order of arms, so that policies may number them.
        """
        self.log, self.seed, self.has_arm_order = log, seed, has_arm_order
        self.features = _make_map(features, actions, log)
        self.channel, self.about_channel = _find_channel(channel, log)

    @property
    def own(self) -> bool:
        """Whether contexts stay in the caller's own units.

        They do for feature maps with numbers for each arm: these have no intercept, so that contexts as
        deviations from their mean would make a different model.
        """
        return not isinstance(self.features, PerArm)

    def units(self, channel: Channel) -> Units:
        """The units that contexts are in."""
        return units_of(channel, self.own)

    @cached_property
    def contexts(self) -> Believed:
        """The belief about the context of every round, given true contexts, too, if they may be used."""
        return self.seen if self.suspicion else infer_contexts(self.channel, self.log, own=self.own)

    @cached_property
    def seen(self) -> Believed:
        """The belief that a policy can have about each context, from the noisy context of its round."""
        return infer_by_round(self.channel, self.log, own=self.own)

    @cached_property
    def suspicion(self) -> str:
        """Why true contexts are not used in their own rounds; empty if they are used."""
        if self.log.true is None or self.channel is None:
            return ""
        data = Data(self.features, self.seen, self.log.arm, self.log.reward)
        by_readings = cross_fit(data, list(models.across(self.log.rounds)))
        return suspicion(self.log, self.log.reward - pick(by_readings.rewards, self.log.arm))

    @cached_property
    def data(self) -> Data:
        """The data that models of rewards are fitted on."""
        return Data(self.features, self.contexts, self.log.arm, self.log.reward)

    @cached_property
    def across(self) -> Predicted:
        """Predictions of models that are fitted on all other blocks of time."""
        return cross_fit(self.data, list(models.across(self.log.rounds)))

    @cached_property
    def forward(self) -> Predicted:
        """Predictions of models that are fitted on earlier blocks of time."""
        return cross_fit(self.data, list(models.forward(self.log.rounds)))


def _make_map(features: Any, actions: Any, log: DecisionLog) -> FeatureMap:
    """The feature map for the arms of the log."""
    arms, d = len(log.arms), len(log.coordinates)
    if actions is None:
        if isinstance(features, str) and features != "per_arm":
            raise InputError(
                "actions", None, f"numbers for each of the {arms} arms, with features {features!r}"
            )
        values: Array = np.zeros((arms, d))
    else:
        allowed = f"numbers, a row for each of the {arms} arms"
        values = numbers("actions", actions, allowed)
        if values.ndim < 2 or len(values) != arms:
            raise InputError("actions", f"numbers of shape {values.shape}", allowed)
    build = builder(features)
    check_map(lambda: build(values), arms, d)
    return build(values)


def _find_channel(channel: Any, log: DecisionLog) -> tuple[Channel | None, str]:
    """The channel, or None, and a sentence that says where it comes from."""
    if channel is not None:
        return as_channel(channel, log.coordinates), "The channel is the one that was told."
    if log.channel is not None:
        return as_channel(log.channel, log.coordinates), "The channel is the one that the log tells."
    if log.true is None:
        return None, NO_CHANNEL.format("")
    pairs, d = int((log.known() & ~np.isnan(log.noisy).any(axis=1)).sum()), len(log.coordinates)
    if pairs < ENOUGH * d * (d + 3):
        reason = f", and {pairs} rounds have a whole true context and a whole reading, too few to find one"
        return None, NO_CHANNEL.format(reason)
    has_units = log.unit is not None and len(np.unique(log.unit[log.known()])) > 1
    try:
        calibration = (
            calibrate(log.noisy, log.true, groups=log.unit)
            if has_units
            else calibrate_subset(log.noisy, log.true)
        )
    except InputError as error:
        return None, NO_CHANNEL.format(f", and none can be found from true contexts ({error})")
    return calibration.channel, f"The channel is found from {pairs} rounds whose true context is known."
