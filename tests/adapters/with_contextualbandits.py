"""Run by test_libraries_contextualbandits.py, where contextualbandits is installed: its pins are not ours.

Every verb that takes contexts gives what the policy gives alone for contexts that were denoised by hand.
"""

import copy
from typing import Any

import numpy as np
from contextualbandits.online import LinTS, LinUCB, SeparateClassifiers
from sklearn.linear_model import LogisticRegression

from unfog.adapters import wrap
from unfog.adapters.sklearn import Denoiser

MEAN = np.array([2.0, 0.5, -4.0])
COV = np.array([[9.0, 1.2, -2.0], [1.2, 0.8, 0.3], [-2.0, 0.3, 4.0]])
NOISE = np.array([[4.0, 0.4, 1.0], [0.4, 0.5, -0.2], [1.0, -0.2, 2.0]])
ROWS = 60

Policy = Any


def policies() -> dict[str, Policy]:
    return {
        "LinUCB": LinUCB(3, random_state=3),
        "LinTS": LinTS(3, random_state=3),
        "SeparateClassifiers": SeparateClassifiers(LogisticRegression(), 3, random_state=3, njobs=1),
    }


def check(name: str) -> None:
    """A log, then decisions, scores and rewards, with a precision and a device for each row."""
    rng = np.random.default_rng(5)
    log, live = np.split(rng.multivariate_normal(MEAN, COV + NOISE, 2 * ROWS), 2)
    log[::5, 1] = live[::7, 0] = np.nan
    covs = (1 + 8 * (np.arange(ROWS) % 2))[:, None, None] * NOISE
    told: dict[str, Any] = {"noise_cov": covs, "groups": np.array(["a", "b"])[np.arange(ROWS) % 3 // 2]}
    arms, rewards = rng.integers(0, 3, ROWS), rng.integers(0, 2, ROWS).astype(float)
    by_hand = Denoiser(NOISE, 0.5 * COV, MEAN, COV).fit(log)
    alone, wrapped = policies()[name], wrap(policies()[name], copy.deepcopy(by_hand))
    alone.fit(by_hand.transform(log, **told), arms, rewards)
    wrapped.fit(log, arms, rewards, **told)
    about = zip(live, covs, told["groups"].tolist(), strict=True)
    clean = np.array([by_hand.transform_one(row, noise_cov=cov, group=group) for row, cov, group in about])
    verbs = ["decision_function", "predict"]
    if name == "SeparateClassifiers":
        verbs += ["decision_function_std", "predict_proba_separate"]
    for verb in verbs:
        given, right = getattr(wrapped, verb)(live, **told), getattr(alone, verb)(clean)
        np.testing.assert_array_equal(given, right, err_msg=verb)
    if name.startswith("Lin"):
        alone.partial_fit(clean, arms, rewards)
        wrapped.partial_fit(live, arms, rewards, **told)
    again = zip(live, covs, told["groups"].tolist(), strict=True)
    clean = np.array([by_hand.transform_one(row, noise_cov=cov, group=group) for row, cov, group in again])
    np.testing.assert_array_equal(wrapped.topN(live, 2, **told), alone.topN(clean, 2))


if __name__ == "__main__":
    for each in policies():
        check(each)
