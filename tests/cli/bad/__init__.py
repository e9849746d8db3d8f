"""Bad inputs by the thousand, from a seed: files, and the command lines that name them.

Some happen to be right: sizes are kept so small that these take no time.
"""

import random

from tests.cli.bad.calls import command_line, run_folder
from tests.cli.bad.case import Case
from tests.cli.bad.logs import log
from tests.cli.bad.specs import extreme, garbled, spec, whole_file

__all__ = ["MAKERS", "Case", "case"]

MAKERS = {
    spec: 40,  # how often of a hundred
    extreme: 12,
    garbled: 10,
    whole_file: 6,
    command_line: 18,
    log: 10,
    run_folder: 4,
}


def case(chance: random.Random, names: list[str]) -> Case:
    """One of them; specs are made from these of the catalog."""
    return chance.choices([*MAKERS], [*MAKERS.values()])[0](chance, names)
