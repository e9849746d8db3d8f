"""What obp says of logs: python obp_worker.py LOGS.npz VALUES.npz, in obp's own environment.

Its doubly robust estimator with its `RegressionModel` over scikit-learn's Ridge, which sees the context and,
as a unit vector, the arm: fitted on all rounds (its default) and cross-fitted in three folds. And with a
table of rewards that is given, to hold one implementation against another.
"""

import sys
from typing import Any

import numpy as np
from obp.ope import DoublyRobust, InverseProbabilityWeighting, RegressionModel
from obp.ope import SelfNormalizedInverseProbabilityWeighting as SelfNormalized
from sklearn.linear_model import Ridge


def main(given: str, found: str) -> None:
    logs = np.load(given)
    rows: dict[str, list[float]] = {
        name: [] for name in ("dr", "dr_folds", "same_dr", "same_ips", "same_snips")
    }
    for i in range(len(logs["arm"])):
        for name, number in values({key: logs[key][i] for key in logs}).items():
            rows[name].append(number)
    named: Any = {name: np.array(numbers) for name, numbers in rows.items()}
    np.savez(found, **named)


def values(log: dict[str, Any]) -> dict[str, float]:
    """Of one log."""
    rounds = {"action": log["arm"], "reward": log["reward"], "pscore": log["probability"]}
    rounds["position"] = np.zeros(len(log["arm"]), int)
    whole = rounds | {"action_dist": log["policy"][:, :, None]}
    told = {name: rounds[name] for name in ("action", "reward", "pscore", "position")}
    model = RegressionModel(base_model=Ridge(), n_actions=log["policy"].shape[1])
    found = {}
    for name, folds in (("dr", 1), ("dr_folds", 3)):
        rewards = model.fit_predict(context=log["noisy"], **told, n_folds=folds, random_state=0)
        found[name] = DoublyRobust().estimate_policy_value(**whole, estimated_rewards_by_reg_model=rewards)
    same = log["rewards"][:, :, None]
    found["same_dr"] = DoublyRobust().estimate_policy_value(**whole, estimated_rewards_by_reg_model=same)
    found["same_ips"] = InverseProbabilityWeighting().estimate_policy_value(**whole)
    found["same_snips"] = SelfNormalized().estimate_policy_value(**whole)
    return found


main(*sys.argv[1:])
