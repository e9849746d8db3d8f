"""The table of a sweep: rows in groups by setting, a value written where it changes, at most 80 columns.

actions  noise_cov  agent         regret  minus oracle
10       0.5        alg1    140.1 ± 10.2    -5.1 ± 2.2
oracle  145.2 ± 11.0             -
1.0        alg1    ...
"""

import textwrap
from collections.abc import Mapping, Sequence

from unfog.lab import field_words
from unfog.lab import sweep as sweeps
from unfog.lab.dataset import Flat
from unfog.lab.terminal import GAP, WIDTH, columns

WIDEST = 40  # letters of fields and agent beside the numbers; where they are more, settings are numbered


def lines(found: Flat, titles: Sequence[str], cells: Sequence[Sequence[str]]) -> list[str]:
    """The whole of it, a row of cells for each agent of each setting."""
    settings, agents = [field_words.values(one) for one in found.settings], found.agents
    top = f"{_several(len(settings), 'setting')} x {_several(len(agents), 'agent')}"
    shown: Sequence[Mapping[str, str]] = settings
    listed = list[str]()
    if len(_names(settings, agents)[0]) > WIDEST:
        shown = [{"setting": str(number)} for number in range(1, len(settings) + 1)]
        for number, setting in enumerate(settings, 1):
            listed += textwrap.wrap(
                f"setting {number}:{sweeps.label(setting)}", WIDTH, subsequent_indent="  "
            )
    head, *names = _names(shown, agents)
    return [f"{top} x {_several(found.trials, 'trial')}", *listed, columns(head, names, titles, cells)]


def _several(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _names(settings: Sequence[Mapping[str, str]], agents: Sequence[str]) -> list[str]:
    """The columns left of the numbers, each line as one text; the first is their head."""
    rows, before = [[*settings[0], "agent"]], list[str]()
    for setting in settings:
        values = list(setting.values())
        new = next((i for i, (a, b) in enumerate(zip(values, before, strict=False)) if a != b), 0)
        rows.append(["" if i < new else value for i, value in enumerate(values)] + [agents[0]])
        rows += [["" for _ in values] + [agent] for agent in agents[1:]]
        before = values
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        (" " * GAP).join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows
    ]
