"""What a page tells its readers to import is in the Reference."""

from pathlib import Path

from docs._ext.public import BESIDE, MODULES, NAMED, every, module

from tests.docs import mentioned
from tests.docs.conftest import ROOT
from tests.each import each

KINDS = ("docs/**/*.md", "docs/gallery/*.py", "docs/skeletons/*.py", "docs/notebooks/*.ipynb")
WRITTEN = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"] + [
    path
    for kind in KINDS
    for path in sorted(ROOT.glob(kind))
    if not {"_build", "generated", "examples"} & {*path.parts}
]
FILES = {"unfog.service"}  # names of files, not of Python
NAMES = {name.full for name in every()}
ROOMS = {*MODULES} | {one for beside in BESIDE.values() for one in beside}


def documented(name: str) -> bool:
    """It, or what it is a part of: an attribute of a class stands with the class."""
    parts = name.split(".")
    heads = {".".join(parts[:length]) for length in range(2, len(parts))}
    return name in NAMES | ROOMS or bool(heads & NAMES - ROOMS)


@each("path", WRITTEN)
def test_names_of_a_page_are_in_the_reference(path: Path) -> None:
    found = mentioned.names(path) - FILES
    assert sorted(name for name in found if not documented(name)) == []


def test_pages_are_looked_at() -> None:
    found = {path: mentioned.names(path) for path in WRITTEN}
    assert len(found) > 80
    every = set.union(*found.values())
    assert len(every) > 80
    for name in (
        "unfog.simulation.play",
        "unfog.theory.bounds.theorem_1",
        "unfog.simulation.executors.dask.Dask",
    ):
        assert name in every


def test_names_are_found_in_python_and_in_words(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "See `unfog.channel.thing(1)` and `from unfog.lab.a import B`, not docs/unfog.css.\n\n"
        "```python\nimport unfog\nfrom unfog.theory import bounds as b\nb.lemma(unfog.live.open)\n```\n\n"
        "```pycon\n>>> import unfog.plotting\n3\n```\n\n```text\n`unfog.not.this`\n```\n"
    )
    assert mentioned.names(page) == {
        "unfog.lab.a.B",
        "unfog.live",
        "unfog.live.open",
        "unfog.plotting",
        "unfog.channel.thing",
        "unfog.theory.bounds",
        "unfog.theory.bounds.lemma",
    }


def test_a_list_in_another_order_is_whole() -> None:
    for name, told in NAMED.items():
        own = vars(module(name)).get("__all__", told)
        assert {*told} == {*own}, name


def test_a_name_that_is_nowhere_is_missed() -> None:
    assert documented("unfog.live.Problem.decide")
    assert not documented("unfog.live.decide_at_random")
    assert not documented("unfog.maths.arrays.pick")
