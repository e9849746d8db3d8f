"""Readings with a noise of their own in logs: from stores and tables to beliefs and taught agents."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.live.ground import CHANNEL, Hand, opened, problem
from tests.problems import given
from unfog.channel.channel import channel
from unfog.evaluation.beliefs import infer_contexts
from unfog.evaluation.context import EvaluationContext
from unfog.evaluation.log import noise_of
from unfog.evaluation.policies import LogRunner, log_agent
from unfog.evaluation.readers.live import read_store
from unfog.evaluation.readers.table import Columns, read_table
from unfog.live.decision_table import as_table
from unfog.validation import InputError

NAN = float("nan")
ROWS = {
    "context.x": [0.5, 1.5, -2.0, 0.1],
    "context.y": [-1.0, NAN, 2.0, 0.7],
    "noise_sd.x": [NAN, 3.0, 0.2, NAN],
    "arm": ["a", "b", "a", "c"],
    "reward": [1.0, 0.0, 0.5, 2.0],
    "probability": [0.4, 0.3, 0.4, 0.2],
}


def test_columns_of_a_table_are_read() -> None:
    log = read_table(pd.DataFrame(ROWS), Columns(), None, None, "rows")
    noise = log.own_noise(np.array([[0.5, 0.2], [0.2, 0.8]]))
    assert noise is not None
    assert noise[0].tolist() == noise[3].tolist() == [[0.5, 0.2], [0.2, 0.8]]
    assert noise[1].tolist() == [[9.0, 0.0], [0.0, 0.8]]
    with pytest.raises(InputError, match=r"noise_sd\.x.*-1.*a positive number"):
        read_table(pd.DataFrame({**ROWS, "noise_sd.x": [-1.0, 1, 1, 1]}), Columns(), None, None, "rows")


def test_beliefs_are_those_of_the_joint_gaussian() -> None:
    log = read_table(pd.DataFrame(ROWS), Columns(), None, None, "rows")
    known = channel({**CHANNEL, "noise_cov": [[0.5, 0.2], [0.2, 0.8]]}, log.coordinates)
    belief, noise, n = infer_contexts(known, log, own=True), log.own_noise(known.noise_cov), log.rounds
    assert noise is not None
    blocks = [known.bias_cov, *[known.context_cov] * n, *noise]
    cov = np.zeros((2 * len(blocks), 2 * len(blocks)))
    for i, block in enumerate(blocks):
        cov[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = block
    mean = np.concatenate([np.zeros(2), np.tile(known.context_mean, n), np.tile(known.bias, n)])
    units = np.eye(len(cov)).reshape(-1, 2, len(cov))
    rows = (units[0] + units[1 : n + 1] + units[n + 1 :]).reshape(-1, len(cov))
    seen = ~np.isnan(log.noisy.ravel())
    right, spread = given(mean, cov, rows[seen], log.noisy.ravel()[seen])
    np.testing.assert_allclose(belief.mean.ravel(), right[2 : 2 * n + 2], rtol=1e-7, atol=1e-7)
    for t in range(n):
        part = slice(2 * t + 2, 2 * t + 4)
        np.testing.assert_allclose(belief.covs[belief.kind[t]], spread[part, part], rtol=1e-7, atol=1e-7)


def test_logs_tables_and_taught_agents_agree_with_live(tmp_path: Path) -> None:
    """A log comes back from its store and from its table; an agent that it teaches believes the same."""
    with opened(tmp_path, Hand()) as store:
        live, beliefs = problem(store, "p", agent="gaps"), list[dict[str, Any]]()
        for more in (
            {},
            {"noise_sd": {"x": 3.0}},
            {"noise_sd": 0.4},
            {"noise_cov": [[2.0, 0.5], [0.5, 1.0]]},
        ):
            made = live.decide([1.0, -0.5], **dict[str, Any](more))
            live.reward(made.id, 1.0)
            beliefs.append(made.denoised)
        log = read_store(store, "p", None)
        texts = [
            ",".join("" if x is None else str(x) for x in row) for row in as_table(live.events(), ["x", "y"])
        ]
        assert texts[0].endswith("noise_sd.x,noise_sd.y")
        other = problem(store, "q", agent="gaps")
        other.import_decisions("\n".join(texts))
        logged = [event.get("noise_sd") for event in other.events() if event["kind"] == "decide"]
        assert logged == [None, {"x": 3.0}, {"x": 0.4, "y": 0.4}, {"x": 2.0**0.5, "y": 1.0}]
    expected = noise_of(np.array([[NAN, NAN], [3.0, NAN], [0.4, 0.4]]))
    assert log.noise is not None
    assert expected is not None
    np.testing.assert_array_equal(log.noise[:3], expected)
    np.testing.assert_array_equal(log.noise[3], [[2.0, 0.5], [0.5, 1.0]])
    evaluation = EvaluationContext(log, CHANNEL)
    runner, units = (
        LogRunner(log_agent("gaps", evaluation)),
        evaluation.units(channel(CHANNEL, log.coordinates)),
    )
    for row, denoised in enumerate(beliefs):
        considered = runner.consider(row, row)
        mean = units.outside(considered.view.context.mean[0])
        assert mean.tolist() == pytest.approx([denoised["x"], denoised["y"]], rel=1e-9)
        runner.learn(considered, row)
