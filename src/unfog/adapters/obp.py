"""Logs for Open Bandit Pipeline (obp), without obp: `to_obp(log)` is its feedback dictionary.

`log` is anything that `unfog.evaluate` reads. Arms become numbers, in the order of the log's arms. Lost
readings stay NaN, which most models of obp refuse. The way back needs no function: `unfog.evaluate(feedback,
…)` reads such a dictionary as it is.

Y. Saito, S. Aihara, M. Matsutani and Y. Narita, *Open Bandit Dataset and Pipeline: Towards Realistic and
Reproducible Off-Policy Evaluation*.
"""

from typing import Any

from unfog.evaluation.log import DecisionLog
from unfog.evaluation.readers import to_obp as _to_obp
from unfog.lab.evaluate import read_log
from unfog.validation import check_keywords


@check_keywords
def to_obp(log: Any, **options: Any) -> dict[str, Any]:
    """The feedback dictionary of a log; `options` say how to read it: columns, arms, probability, …

    >>> import numpy as np
    >>> import unfog
    >>> rng = np.random.default_rng(0)
    >>> steps, sent = rng.normal(7000, 2000, 1000), rng.integers(0, 2, 1000)
    >>> log = {
    ...     "steps": steps + rng.normal(-800, 1200, 1000),  # what was read
    ...     "arm": np.where(sent, "send", "wait"),
    ...     "reward": sent * np.where(steps < 6500, 0.5, -0.4) + rng.normal(0, 1, 1000),
    ... }
    >>> from unfog.adapters.obp import to_obp
    >>> feedback = to_obp(log, columns={"context": ["steps"]}, probability=0.5)
    >>> feedback["n_rounds"], feedback["n_actions"]
    (1000, 2)
    """
    return _to_obp(log if isinstance(log, DecisionLog) else read_log(log, **options))
