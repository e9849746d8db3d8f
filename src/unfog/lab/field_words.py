"""The fields of a problem in words, for axes and the titles of panels: one table for all figures.

Some values do not mean what they say: an actual size of the noise of 0 says that the noise is as agents were
told. They have words of their own in figures and tables, and are never drawn at zero.
"""

import re
from collections.abc import Mapping
from typing import Any

WORDS = {
    "action_law": "how arms are drawn",
    "actions": "number of arms",
    "actual_noise_cov": "true size of the noise",
    "after": "numbers seen after the decision",
    "after_var": "size of the noise of what is seen after",
    "before": "numbers seen before the decision",
    "bias": "size of the bias",
    "bias_cov": "size of the bias",
    "bias_walk": "size of a step of the bias",
    "calibration": "rounds used for calibration",
    "channel": "where the noise comes from",
    "clusters": "number of clusters",
    "context_cov": "spread of contexts",
    "context_law": "law of contexts",
    "context_mean": "mean of contexts",
    "contexts": "where contexts come from",
    "dim": "numbers in a context",
    "drift_cov": "size of a step of the bias",
    "drift_rounds": "rounds that the bias walks",
    "error_cov": "size of errors that persist",
    "error_time": "rounds that errors persist",
    "factors": "number of factors",
    "fast_cov": "spread of what moves fast",
    "fast_time": "rounds that fast moves last",
    "features": "features of a reward",
    "gaps": "share of readings lost",
    "late": "rounds until the true context is shown",
    "level_cov": "spread of the level",
    "level_walk": "size of a step of the level",
    "lost": "share of readings lost",
    "missing": "share of readings lost",
    "noise_cov": "size of the noise",
    "prior_cov": "spread of what rewards depend on",
    "reveal": "which true contexts are shown",
    "revealed": "share of true contexts shown",
    "reward_outlier": "size of outliers of rewards",
    "reward_outliers": "share of outliers among rewards",
    "reward_var": "size of the noise of rewards",
    "scale": "scale of readings",
    "tails": "degrees of freedom of the noise",
    "told_contexts": "true contexts told in advance",
    "told_noisy": "noisy contexts told in advance",
    "trouble_from": "round that the trouble starts in",
    "under": "share of steps not counted",
    "units": "number of sensors",
    "white": "size of fresh noise",
}
APART: dict[str, str] = {
    "actual_noise_cov": "as told",
    "tails": "Gaussian",
    "told_contexts": "all",
}  # what 0 means
TOLD = {"actual_noise_cov": "noise_cov"}  # where what was told stands


def plain(field: str) -> str:
    """A field in words."""
    return WORDS.get(field, field.replace("_", " "))


def value(field: str, text: str) -> str:
    """A value in words: `as told` for an actual size of the noise of 0."""
    return APART[field] if apart(field, text) else text


def values(setting: Mapping[str, str]) -> dict[str, str]:
    """A setting with its values in words."""
    return {field: value(field, text) for field, text in setting.items()}


def labelled(name: str) -> str:
    """A name with a setting after it, in words: `alg1 tails=Gaussian` for `alg1 tails=0`."""
    for field, said in APART.items():
        name = re.sub(rf"(?<= {field}=)0(\.0)?(?= |$)", said, name)
    return name


def apart(field: str, text: str) -> bool:
    """Whether a value, as text, is none of the axis's numbers."""
    return field in APART and text in {"0", "0.0"}


def meant(field: str, problem: Mapping[str, Any]) -> float | None:
    """The number that stands for a value that is apart: what was told, where that is a number."""
    told = problem.get(TOLD.get(field, ""))
    return float(told) if isinstance(told, int | float) and not isinstance(told, bool) else None
