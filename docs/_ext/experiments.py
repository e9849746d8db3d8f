"""The Reference of experiments: each that comes with the package, from its file."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from docs._ext.tables import code, table

from unfog.agents.baselines import BASELINES
from unfog.agents.catalogue import AGENTS, row_of
from unfog.lab.spec import SUITES, Spec, catalog

LONGEST = 70  # letters of a value of a field; a long list is cut


def pages() -> dict[str, str]:
    """One page."""
    return {"experiments": "\n".join(_page(catalog()))}


def _page(found: Mapping[str, Spec]) -> Iterator[str]:
    yield "# Every experiment\n"
    yield "`unfog run NAME` plays one, and so does `unfog.run(NAME)` in Python. `--rounds`, `--trials` and"
    yield "`--agents` change what stands here. To write one of your own: [the experiment file](../spec.md).\n"
    yield table(("name", "what it is about"), [*_rows(found), *_suites()])
    for name, spec in found.items():
        yield f"## {name}\n"
        yield f"{spec.title}.\n"
        yield table(("part", "what it is"), _told(spec))


def _rows(found: Mapping[str, Spec]) -> Iterator[tuple[str, str]]:
    for name, spec in found.items():
        yield f"[{name}](#{name})", spec.title


def _suites() -> Iterator[tuple[str, str]]:
    for name, said in SUITES.items():
        yield code(name), f"{said}: [Baselines](../../science/baselines.md)"


def _told(spec: Spec) -> Iterator[tuple[str, str]]:
    kind = spec.problem["kind"]
    fields = [_field(name, value) for name, value in spec.problem.items() if name != "kind"]
    yield "problem", f"[{kind}](fields.md#kind--{kind}): {', '.join(fields)}"
    yield "agents", ", ".join(map(_agent, spec.run.agents))
    yield "rounds", f"{spec.run.rounds:,}"
    yield "trials", f"{spec.run.trials:,}"
    yield "sweep", ", ".join(_swept(spec)) or "none: one setting"


def _swept(spec: Spec) -> list[str]:
    """A grid by its fields; of a list each setting."""
    if isinstance(spec.sweep, Mapping):
        return [_field(name, values) for name, values in spec.sweep.items()]
    return [" and ".join(_field(*one) for one in setting.items()) for setting in spec.sweep]


def _field(name: str, value: Any) -> str:
    text = json.dumps(value)  # TOML writes numbers, lists and names in the same way
    return code(f"{name} = {text if len(text) <= LONGEST else text[:LONGEST] + '…'}")


def _agent(name: str) -> str:
    """With a link to where its row is explained."""
    row = name if name in AGENTS else row_of(name)
    page = "agents" if row in AGENTS else "baselines" if row in BASELINES else ""
    return f"[{code(name)}]({page}.md#{row})" if page else code(name)
