"""The generated lists of experiments and parts have all there are, by the names that the program takes."""

import re

from docs._ext import experiments, generate, parts
from docs._ext.parts import DENOISERS

from unfog.agents.base import EstimatesScales
from unfog.agents.catalogue import AGENTS, CHOOSERS, LEARNERS, Catalogue
from unfog.cli.list import groups
from unfog.features.registry import BUILT_IN
from unfog.lab.spec import catalog


def section(text: str, heading: str) -> str:
    """What stands below a heading, up to the next of its level."""
    (found,) = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.S | re.M)
    return str(found)


def first_cells(text: str) -> list[str]:
    return re.findall(r"^\| `([\w-]+)` \|", text, re.M)


def test_every_experiment_is_listed_with_what_is_played() -> None:
    page = experiments.pages()["experiments"]
    for name in groups()["experiments"]:
        assert re.search(rf"^\| (\[{name}\]\(#{name}\)|`{name}`) \|", page, re.M), name
    for name, spec in catalog().items():
        text = section(page, name)
        assert spec.title in text
        assert f"[{spec.problem['kind']}](" in text
        assert f"| rounds | {spec.run.rounds:,} |\n| trials | {spec.run.trials:,} |" in text
        assert all(f"`{agent}`" in text for agent in spec.run.agents)
        assert all(f"`{field} = [" in text for field in spec.sweep)


def test_every_part_is_listed_by_the_name_that_spells_it_out() -> None:
    page = parts.pages()["parts"]
    assert sorted(first_cells(section(page, "Learners"))) == sorted(LEARNERS)
    assert first_cells(section(page, "Choosers")) == [*CHOOSERS]
    assert first_cells(section(page, "Denoisers")) == [*DENOISERS]
    assert first_cells(section(page, "Features")) == [*BUILT_IN]
    for part in [*LEARNERS.values(), *CHOOSERS.values(), *DENOISERS.values()]:
        assert part.note in page
    for row in AGENTS:
        assert f"[`{row}`](agents.md#{row})" in page


def test_names_and_settings_of_the_page_are_taken() -> None:
    """As they are printed, behind a row that goes with them."""
    page = parts.pages()["parts"]
    for heading, row in (("Learners", "alg1-exact"), ("Choosers", "alg1-exact-hetero")):
        for name, settings in re.findall(
            r"^\| `([\w-]+)` \| .*? \| (.*?) \| \[", section(page, heading), re.M
        ):
            told = "".join(f":{one}" for one in re.findall("`(.*?)`", settings))
            part = LEARNERS.get(name)
            own_scales = part is not None and issubclass(part, EstimatesScales)
            spelled = f"{'hedged' if own_scales else row}-{name}{told}"
            assert Catalogue(part.rewards if part else "gaussian")[spelled].name == spelled
    assert Catalogue()["alg1-exact-empiricalbayes-randucb"].chooser.name == "randucb"
    assert Catalogue()["alg1-exact-hetero-ucb:quantile=0.9"].chooser.name == "ucb"
    assert Catalogue()["drift:step=0.01"].denoiser.name == "drift"


def test_the_index_of_the_reference_leads_to_every_generated_page() -> None:
    index = (generate.ROOT / "docs/reference/index.md").read_text("utf-8")
    linked = set(re.findall(r"project:generated/([\w-]+)\.md", index))
    assert {name for name in generate.pages() if not name.startswith("python-")} - linked == {"contributing"}
