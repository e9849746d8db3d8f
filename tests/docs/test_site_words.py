"""What the Reference adds to the code in words is about what the code has: nothing is left out or over."""

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from docs._ext import docstrings, generate, records, signatures
from docs._ext.commands import _examples
from docs._ext.fields import MEANINGS, REQUIRED, meaning
from docs._ext.search import COMMON, Words

from tests.docs.conftest import ROOT
from tests.docs.site import STYLES, Site, outside
from unfog.agents.catalogue import AGENTS
from unfog.channel.knowledge import Knowledge
from unfog.lab.spec import DEFAULTS, KINDS, RunSpec, Spec
from unfog.live import Store
from unfog.validation import InputError


def test_every_field_of_an_experiment_has_a_meaning() -> None:
    assert set(MEANINGS["top"]) == set(Spec.model_fields)
    assert set(MEANINGS["run"]) == set(RunSpec.model_fields)
    for kind, fields in DEFAULTS.items():
        for field in fields:
            assert all(meaning(kind, field)), (kind, field)


def test_what_a_field_may_be_is_what_refusals_say() -> None:
    """Whole numbers in a range and names in a list are refused with what is allowed."""
    held = 0
    for kind in ("gaussian", "logistic", "temporal", "post_serving"):  # those that need no file
        for field, default in DEFAULTS[kind].items():
            said = meaning(kind, field)[0]
            allowed = refusal(kind, field, "nonsense" if isinstance(default, str) else -7)
            if numbers := re.fullmatch(r"a whole number, at least (\d+) and at most (\d+)", allowed):
                low, high = (f"{int(one):,}" for one in numbers.groups())
                assert said.startswith((f"{low} to {high}", "0, or ")), (kind, field)
                assert f" to {high}" in said, (kind, field)
            elif isinstance(default, str) and ", or module" not in allowed:
                assert set(re.findall("`(.*?)`", said)) == set(allowed.split(", ")), (kind, field)
            elif allowed.startswith("a number from "):
                assert said == allowed.removeprefix("a number from "), (kind, field)
            elif allowed == "a positive number":
                assert said == allowed, (kind, field)
            else:
                continue
            held += 1
    assert held > 70


def refusal(kind: str, field: str, value: Any) -> str:
    """What is allowed, where it is refused."""
    try:
        KINDS[kind](**{field: value})
    except InputError as error:
        return error.allowed if error.field == field else f"of {error.field}"
    return ""


def test_required_fields_are_refused_where_they_are_missing() -> None:
    whole: dict[str, Any] = {"file": "a.csv", "noisy": ["read"], "true": ["truth"]}
    assert tuple(whole) == REQUIRED["recorded"]
    for field in whole:
        with pytest.raises(InputError, match=rf"^{field}"):
            KINDS["recorded"](**{name: one for name, one in whole.items() if name != field})


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


def test_a_signature_shows_keywords_that_a_table_has() -> None:
    told = signatures.of(Store.problem)
    assert told.startswith("(name: str, *, context=None, arms=None, ")
    assert told.endswith("context_window='7d') -> Problem")


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


def test_fields_of_a_named_tuple_are_those_of_the_source() -> None:
    """With the comment behind each, and nothing of other classes."""
    rows = {name: (kind, said) for name, kind, said in records.fields(Knowledge)}
    assert list(rows) == [f"`{name}`" for name in Knowledge._fields]
    assert rows["`noise_cov`"] == ("`Array`", "`(d, d)` Sigma_n")
    assert records.fields(Spec) == []


def test_words_that_mean_nothing_are_in_no_index() -> None:
    """Not where they begin a sentence, nor parts of numbers; what shares a stem with them is."""
    words = Words({})
    assert words.split("The only sensor, 1e6 of 100_000 (A): Within alg1, 3f") == ["sensor", "alg1"]
    assert {"the", "only", "within"} <= words.stopwords  # so that they are left out of what is typed, too
    assert words.split("useful") == ["useful"]
    assert not COMMON & {"late", "lost", "mean", "missing", "part", "own", "told", "time"}  # words of ours
