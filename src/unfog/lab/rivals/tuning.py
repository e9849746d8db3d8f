"""About the same budget for all: one setting each, of six or seven values, chosen on other seeds.

A rival's row names the setting that says how much it explores, and six values for it. The published value is
tried too: it is one of the six, or a seventh. Ours has the level of its chooser, six values with its own. The
value with the least mean regret on the tuning seed is taken, on each problem by itself; what is reported is
its regret on the reporting seed. An agent without such a setting stays as it is. Agents whose rounds take
long are tuned on fewer trials, and the slowest on a quarter of the rounds.
"""

from collections.abc import Mapping, Sequence

from unfog.agents.baselines import RIVALS
from unfog.agents.catalogue import EVERY
from unfog.lab.rivals.problems import OURS
from unfog.maths.arrays import Array

SEED = 1000
TRIALS = {"quick": 40, "slow": 40, "dear": 5}  # by how long an agent's rounds take
DEAR_ROUNDS = 4  # these take so long that their setting is chosen over one round in so many
LEVELS = (0.35, 0.5, 0.7, 1.0, 2.0)  # beside the default's, 1.4


def setting_of(name: str) -> tuple[str, tuple[float, ...]]:
    """The setting of an agent that is tuned, and its values; no values where it has none."""
    if name in RIVALS:
        return RIVALS[name].tuned, RIVALS[name].grid
    return ("level", LEVELS) if name in OURS else ("", ())


def candidates(name: str) -> list[str]:
    """The agent as published, then with each value: all that is tried."""
    setting, values = setting_of(name)
    spelled = [f"{name}:{setting}={value:g}" for value in values]
    return [name, *(one for one in spelled if not _published(name, setting, one))]


def _published(name: str, setting: str, spelled: str) -> bool:
    """Whether a value is that of the row itself, which stands in the list already."""
    row, value = EVERY[name], float(spelled.rpartition("=")[2])
    parts = row.denoiser, row.learner, row.chooser
    found = [vars(part)[setting] for part in parts if setting in vars(part)]
    return bool(found) and all(float(one) == value for one in found)


def chosen(names: Sequence[str], regrets: Mapping[str, Array]) -> dict[str, str]:
    """For each agent its candidate with the least mean regret; the first of equals."""
    return {name: min(candidates(name), key=lambda one: float(regrets[one].mean())) for name in names}


def setting(name: str, picked: str) -> str:
    """What was changed, in words."""
    return picked.removeprefix(f"{name}:") if picked != name else "as published"
