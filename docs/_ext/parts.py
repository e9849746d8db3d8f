"""The Reference of parts: the names by which an agent, or a problem's features, are spelled out."""

import inspect
from collections.abc import Iterator
from typing import Any

from docs._ext.names import file_name
from docs._ext.tables import code, table

from unfog.agents import denoise
from unfog.agents.base import EstimatesScales
from unfog.agents.catalogue import AGENTS, CHOOSERS, LEARNERS, settings_in
from unfog.features.registry import BUILT_IN

HEAD = ("name", "what it does", "settings", "in Python")
REWARDS = {"gaussian": "Rewards that are numbers", "bernoulli": "Rewards of 0 or 1"}
DENOISERS: dict[str, Any] = {part.name: part for part in (vars(denoise)[name] for name in denoise.__all__)}


def pages() -> dict[str, str]:
    """One page."""
    return {"parts": "\n".join([*_learners(), *_choosers(), *_denoisers(), *_features()])}


def _learners() -> Iterator[str]:
    yield "# Every part of an agent\n"
    yield "The name of an agent can say its parts. It begins with a row of [every agent](agents.md). Another"
    yield "learner, another chooser, or both follow behind dashes, and the settings of each behind colons."
    yield "`alg1-exact-hetero-ucb:quantile=0.9` is the row `alg1-exact` with the learner `hetero` and the"
    yield "chooser `ucb`, whose `quantile` is 0.9."
    yield "Settings of the row's own parts come right after its name: `drift:step=0.01`. Such a name stands"
    yield "wherever the name of an agent does: in `--agents`, in `agents=`, in an experiment file.\n"
    yield "## Learners\n"
    own_scales = [code(name) for name, part in LEARNERS.items() if issubclass(part, EstimatesScales)]
    yield f"{' and '.join(own_scales)} need a chooser that takes candidates, such as `randucb`."
    yield "The row `hedged` has one; behind another row, name it too: `alg1-exact-empiricalbayes-randucb`.\n"
    for kind, said in REWARDS.items():
        yield f"{said}:\n"
        found = {name: part for name, part in LEARNERS.items() if part.rewards == kind}
        yield table(HEAD, [_row("unfog.learn", name, part) for name, part in found.items()])


def _choosers() -> Iterator[str]:
    yield "## Choosers\n"
    yield table(HEAD, [_row("unfog.choose", name, part) for name, part in CHOOSERS.items()])


def _denoisers() -> Iterator[str]:
    yield "## Denoisers\n"
    yield "A denoiser comes with its row: to have another one, begin the name with another row.\n"
    rows = [(*_row("unfog.denoise", name, part), _having(part)) for name, part in DENOISERS.items()]
    yield table((*HEAD, "rows that have it"), rows)


def _features() -> Iterator[str]:
    yield "## Features\n"
    yield "What `features` of a problem may be, in an experiment file and in Python; a map of your own is"
    yield "`module:name`.\n"
    rows = [(code(name), _first(made), _linked("unfog.features", name)) for name, made in BUILT_IN.items()]
    yield table(("name", "what it is", "in Python"), rows)


def _row(module: str, name: str, part: Any) -> tuple[str, ...]:
    settings = ", ".join(map(code, settings_in(part))) or "none"
    return code(name), part.note, settings, _linked(module, part.__name__)


def _linked(module: str, name: str) -> str:
    return f"[{code(f'{module}.{name}')}]({file_name(module)}.md#{name.lower()})"


def _having(part: Any) -> str:
    """The rows of the catalogue whose denoiser it is."""
    found = [name for name, row in AGENTS.items() if type(row.denoiser) is part]
    return ", ".join(f"[{code(name)}](agents.md#{name})" for name in found) or "none"


def _first(made: Any) -> str:
    """What its builder says first."""
    return " ".join((inspect.getdoc(made) or "").partition("\n\n")[0].split())
