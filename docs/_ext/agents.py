"""The Reference of agents: the catalogue and the baselines, with their parts, use and source."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docs._ext import public
from docs._ext.names import file_name
from docs._ext.tables import code, table

from unfog.agents.agent import Agent
from unfog.agents.baselines import BASELINES
from unfog.agents.baselines.base import Baseline
from unfog.agents.catalogue import AGENTS, WHEN

PLACES = {
    "denoiser": "unfog.denoise",
    "learner": "unfog.learn",
    "chooser": "unfog.choose",
    "binary_learner": "unfog.learn",
}
WORDS = {"binary_learner": "learner, rewards of 0 or 1"}
FIRST = ("unfog", "unfog-delayed", "adaptive", "late", "temporal")


def pages() -> dict[str, str]:
    """Two pages."""
    return {"agents": "\n".join(_catalogue()), "baselines": "\n".join(_baselines())}


def _catalogue() -> Iterator[str]:
    yield "# Every agent\n"
    yield "An agent is three parts: a denoiser, a learner, a chooser. A name of this page is what `agents=`,"
    yield "`--agents` and `agent=` take; a learner and a chooser may follow it ([every part](parts.md))."
    yield "[Which agent](../../guide/agents.md) compares them.\n"
    order = [*FIRST, *(name for name in AGENTS if name not in FIRST)]
    for name in order:
        yield f"## {name}\n"
        yield f"{_sentence(AGENTS[name].summary)}\n"
        yield f"**When:** {WHEN[name]}\n"
        yield from _parts(AGENTS[name])


def _baselines() -> Iterator[str]:
    yield "# Every baseline\n"
    yield "A baseline is a published system, made an agent. Take one to compare with it, or to repeat its"
    yield "paper; [Baselines](../../science/baselines.md) has them all in one table.\n"
    for name, baseline in BASELINES.items():
        yield f"## {name}\n"
        yield f"{_sentence(baseline.agent.summary)} {_baseline_when(baseline)}\n"
        yield from _parts(
            baseline.agent, ("must be told", baseline.needs), ("sees", baseline.sees), *_tuned(baseline)
        )


def _baseline_when(baseline: Baseline) -> str:
    return f"Its paper's own problem is the experiment `{baseline.home}`." if baseline.home else ""


def _tuned(baseline: Baseline) -> Iterator[tuple[str, str]]:
    if baseline.tuned:
        yield "explores by", f"`{baseline.tuned}`, tried at {', '.join(map(str, baseline.grid))}"


def _parts(agent: Agent, *more: tuple[str, str]) -> Iterator[str]:
    rows = [(WORDS.get(place, place), _part(module, part)) for place, module, part in _placed(agent)]
    yield table(("part", "what it is"), [*rows, *more, ("reference", _linked(agent.reference))])


def _placed(agent: Agent) -> Iterator[tuple[str, str, Any]]:
    for place, module in PLACES.items():
        part = getattr(agent, place)
        if part is not None:
            yield place, module, part


def _part(module: str, part: Any) -> str:
    """Its name, the settings that differ from its own defaults, and what it does."""
    defaults = {field.name: field.default for field in dataclasses.fields(part)}
    told = [
        f"{name}={getattr(part, name)}"
        for name, default in defaults.items()
        if getattr(part, name) != default
    ]
    call = code(f"{type(part).__name__}({', '.join(told)})")
    ours = type(part).__name__ in public.module(module).__all__
    linked = f"[{call}]({file_name(module)}.md#{type(part).__name__.lower()})" if ours else call
    return f"{linked}: {part.note}"


def _linked(reference: str) -> str:
    """Pages of our own are named by their path in the repository."""
    return re.sub(
        r"docs/([\w/-]+\.md)", lambda found: f"[{Path(found[1]).stem}](../../{found[1]})", reference
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
