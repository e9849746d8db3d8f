"""Regret as a ratio to ours on the same trials, with an interval.

    r exp(± t se(r) / r)

r and its standard error are those of maths/statistics.py, and that of ln r is se(r) / r: the interval is
symmetric around ln r, since ratios are, and t is Student's quantile with n - 1 degrees of freedom.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from unfog.maths.arrays import Array
from unfog.maths.statistics import quotient
from unfog.theory.regret import estimate

LEVEL = 0.95


class Ratio(NamedTuple):
    """Of two means over the same trials, with the ends of its 95 % interval; NaN where there is none."""

    value: float
    low: float
    high: float

    @property
    def wins(self) -> bool:
        """Whether ours loses less, beyond doubt."""
        return self.low > 1

    @property
    def loses(self) -> bool:
        """Whether ours loses more, beyond doubt."""
        return self.high < 1


def ratio(other: Array, ours: Array) -> Ratio:
    """Of the regrets (trials,) of another to ours; above 1 where ours is better."""
    value, error = quotient(other, ours)
    if not value > 0:  # rewards of 0 or 1: an oracle that is no maximiser may be beaten
        return Ratio(np.nan, np.nan, np.nan)
    if len(ours) < 2:
        return Ratio(value, np.nan, np.nan)
    width = float(stdtrit(len(ours) - 1, 0.5 + LEVEL / 2)) * error / value
    return Ratio(value, value * float(np.exp(-width)), value * float(np.exp(width)))


class Row(NamedTuple):
    """An agent on a problem, held against one of ours."""

    agent: str
    against: str
    told: str  # beside it: same, more, less; or "ours" where it is one of ours
    ratio: Ratio
    regret: float
    regret_se: float
    trials: int
    setting: str = ""  # chosen on other seeds; empty as published

    @property
    def exception(self) -> bool:
        """Whether it is told no more than ours, and ours does not win beyond doubt."""
        return self.told in ("same", "less") and not self.ratio.wins


class Outcome(NamedTuple):
    """All agents on one problem."""

    problem: str
    title: str
    rounds: int
    seed: int
    yardstick: str
    rows: tuple[Row, ...]
    tuned: tuple[Row, ...]
    ours: dict[str, float]  # regret of those of ours that others are held against
    left_out: dict[str, str]  # agent: why it cannot play
    seconds: dict[str, float]  # a trial's round, in a batch


class Comparison(NamedTuple):
    """All agents on all problems."""

    outcomes: tuple[Outcome, ...]
    left_out: dict[str, str]  # problem: why it was not played

    def exceptions(self, tuned: bool = False) -> list[tuple[Outcome, Row]]:
        """Where ours does not win beyond doubt against a rival that is told no more; the worst first."""
        found = [
            (one, row) for one in self.outcomes for row in (one.tuned if tuned else one.rows) if row.exception
        ]
        return sorted(found, key=lambda pair: np.nan_to_num(pair[1].ratio.value, nan=1.0))

    def __str__(self) -> str:
        """The table, for people."""
        from unfog.lab.rivals.report import text

        return text(self)


def held(agent: str, against: str, told: str, regrets: dict[str, Array], setting: str = "") -> Row:
    """A row, from the regrets (trials,) of both; where one has fewer trials, on those that both have."""
    n = min(len(regrets[agent]), len(regrets[against]))
    own = regrets[agent][:n]
    mean, se = estimate(own)
    return Row(agent, against, told, ratio(own, regrets[against][:n]), mean, se, n, setting)


def plain(found: Comparison) -> dict[str, Any]:
    """As numbers, words and lists alone, for JSON: what is no number is null."""
    outcomes = [
        {**one._asdict(), "rows": [_row(r) for r in one.rows], "tuned": [_row(r) for r in one.tuned]}
        for one in found.outcomes
    ]
    return {"outcomes": outcomes, "left_out": found.left_out}


def _row(row: Row) -> dict[str, Any]:
    numbers = {**row.ratio._asdict(), "regret": row.regret, "regret_se": row.regret_se}
    said = {"agent": row.agent, "against": row.against, "told": row.told, "setting": row.setting}
    return {
        **said,
        **{name: None if np.isnan(value) else float(value) for name, value in numbers.items()},
        "trials": row.trials,
    }


def from_plain(data: dict[str, Any]) -> Comparison:
    """What `plain` made of it, read again."""
    outcomes = [
        Outcome(**one | {kind: tuple(map(_read, one[kind])) for kind in ("rows", "tuned")})
        for one in data["outcomes"]
    ]
    return Comparison(tuple(outcomes), data["left_out"])


def _read(row: dict[str, Any]) -> Row:
    told: dict[str, Any] = {name: np.nan if value is None else value for name, value in row.items()}
    found = Ratio(*(told.pop(name) for name in Ratio._fields))
    return Row(ratio=found, **told)
