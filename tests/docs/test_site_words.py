"""What the Reference adds to the code in words is about what the code has: nothing is left out or over."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from docs._ext import docstrings, generate, signatures
from docs._ext.agents import WHEN
from docs._ext.commands import _examples
from docs._ext.fields import MEANINGS, meaning

from tests.docs.conftest import ROOT
from tests.docs.site import STYLES, Site, outside
from unfog.agents.catalogue import AGENTS
from unfog.lab.spec import DEFAULTS, KINDS, RunSpec, Spec


def test_every_agent_says_when_to_use_it() -> None:
    assert set(WHEN) == set(AGENTS)
    assert all(one.endswith(".") for one in WHEN.values())


def test_every_field_of_an_experiment_has_a_meaning() -> None:
    assert set(MEANINGS["top"]) == set(Spec.model_fields)
    assert set(MEANINGS["run"]) == set(RunSpec.model_fields)
    for kind, fields in DEFAULTS.items():
        for field in fields:
            assert all(meaning(kind, field)), (kind, field)


def test_no_meaning_is_left_over() -> None:
    every = {field for fields in DEFAULTS.values() for field in fields}
    for name, said in MEANINGS["problem"].items():
        if isinstance(said, dict):
            assert name in KINDS
            assert set(said) <= set(DEFAULTS[name]), name
        else:
            assert name in every, name


def test_generated_pages_are_not_in_the_repository() -> None:
    pages = generate.pages()
    assert len(pages) > 15
    for name, text in pages.items():
        assert text.startswith("# "), name
        assert "\nNone\n" not in text, name


def test_examples_of_commands_are_taken_apart() -> None:
    one = """Examples: unfog a   |   echo '{}' | unfog b --terms -   |   unfog c"""
    assert _examples(one) == ["unfog a", "echo '{}' | unfog b --terms -", "unfog c"]
    assert _examples("Example: unfog list") == ["unfog list"]
    assert _examples(None) == []


def test_a_docstring_becomes_markdown() -> None:
    """Its examples in a fence, which an empty line ends; sections in bold."""
    text = "One.\n\nParameters\n----------\na, b : what\n\n>>> 1 + 1\n2\n\nMore for $5."
    found = docstrings.markdown(text)
    assert "```pycon\n>>> 1 + 1\n2\n```\n\nMore for \\$5." in found
    assert "**Parameters**\n\n- `a, b`: what" in found


def test_a_signature_is_that_of_the_source() -> None:
    assert signatures.of(inspect.cleandoc) == "(doc)"
    assert signatures.of(docstrings.markdown) == "(docstring: str | None) -> str"
    assert signatures.of(Spec.settings) == "() -> list[tuple[str, dict[str, Any]]]"
    assert signatures.of(type(AGENTS["unfog"].chooser)).startswith("(*, level=")


@pytest.mark.slow
def test_formulas_need_no_script(tmp_path: Path) -> None:
    (tmp_path / "conf.py").write_text(
        'extensions = ["myst_parser", "docs._ext.mathml"]\n'
        'myst_enable_extensions = ["dollarmath"]\nhtml_math_renderer = "mathml"\n'
    )
    (tmp_path / "index.md").write_text("# A\n\nWith $x^2$ and\n\n$$\\frac{a}{b}$$\n")
    told = ["-m", "sphinx", "-b", "html", "-W", "-q", str(tmp_path), str(tmp_path / "out")]
    subprocess.run([sys.executable, *told], cwd=ROOT, check=True)
    page = (tmp_path / "out" / "index.html").read_text("utf-8")
    assert page.count("<math") == 2
    assert "<msup>" in page
    assert "<mfrac>" in page
    assert "mathjax.js" not in page
    assert 'src="http' not in page


def test_what_a_browser_would_load_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<link rel="stylesheet" href="a.css"><link rel="next" href="b.html">'
        '<script src="//b.org/c.js"></script><img src="p.png"><a id="here" href="b.html#x">b</a><a href="https://b.org">b</a>'
    )
    (tmp_path / "a.css").write_text('@import "b.css"; p { background: url(data:image/png;base64,AAAA) }')
    (tmp_path / "b.css").write_text("p { margin: 0 }")
    site = Site(tmp_path)
    page = site.pages[tmp_path / "a.html"]
    assert page.anchors == {"here"}
    assert page.links == ["b.html", "b.html#x", "https://b.org"]
    assert [one for one in page.loads if outside(one)] == ["//b.org/c.js"]
    assert page.pictures == ["p.png"]
    assert STYLES.findall("p { background: url('https://b.org/d.png') }") == ["https://b.org/d.png"]
    page.loads = ["a.css"]
    assert site.loaded(page) == {tmp_path / "a.css", tmp_path / "b.css"}
