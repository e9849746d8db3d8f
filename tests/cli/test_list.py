"""`unfog explain` as a user meets it: every agent, its parts and settings as they are."""

import json
import re
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from unfog.agents import denoise
from unfog.agents.base import EstimatesScales
from unfog.agents.baselines import BASELINES
from unfog.agents.catalogue import AGENTS, CHOOSERS, EVERY, LEARNERS, PARTS, WHEN, Catalogue
from unfog.agents.explain import PAGES, Explained, Part, explain, part_text
from unfog.cli import main
from unfog.cli.list import lines
from unfog.validation import InputError

Capture = pytest.CaptureFixture[str]


def unfog(capsys: Capture, *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(words)
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_every_agent_is_explained_in_80_columns() -> None:
    for name in (*EVERY, "alg1-hetero-ucb:quantile=0.9", "drift:step=0.5-greedy", "naive-pg"):
        found = explain(name)
        agent = Catalogue(found.rewards)[name]
        assert [part.step for part in found.parts] == ["denoise", "learn", "choose"]
        made: tuple[Any, ...] = (agent.denoiser, agent.learner, agent.chooser)
        assert [part.name for part in found.parts] == [one.name for one in made]
        for part, one in zip(found.parts, made, strict=True):
            told = {field: str(getattr(one, field)).lower() for field in part.settings}
            assert set(told) == {field.name for field in fields(one)}
            assert {field: _number(value) for field, value in told.items()} == {
                field: _number(value) for field, value in part.settings.items()
            }
        shown = lines(found)
        assert max(map(len, shown)) <= 80, name
        whole = " ".join(" ".join(shown).split())
        for text in (found.when, agent.summary, found.reference, *(part.note for part in found.parts)):
            assert " ".join(text.split()) in whole, name


def _number(text: str) -> float | str:
    return float(text) if text[-1].isdigit() else text


def test_there_is_a_line_on_when_to_use_each_and_for_nobody_else() -> None:
    assert set(WHEN) == set(AGENTS)
    assert all(line.endswith(".") and line[0].isupper() for line in WHEN.values())
    assert all(BASELINES[name].needs in explain(name).when for name in BASELINES)


def test_formulas_are_those_of_the_classes() -> None:
    denoise, learn, choose = explain("unfog").parts
    for part, word in ((denoise, "Sigma_c"), (learn, "Gamma(shape, rate)"), (choose, "slope_t(a)^2")):
        assert any(word in line for line in part.formula)
    _, learn, choose = explain("linrel").parts  # of one file, and each has a formula of its own
    assert [any("argmax r'a" in line for line in part.formula) for part in (learn, choose)] == [False, True]
    assert [any("diag(1 / l)" in line for line in part.formula) for part in (learn, choose)] == [True, False]


def kinds() -> set[type]:
    """The classes of all parts: those that can be spelled out, and those of all rows."""
    rows = [(one.denoiser, one.learner, one.chooser, one.binary_learner) for one in EVERY.values()]
    named = {vars(denoise)[name] for name in denoise.__all__}
    return {*PARTS.values(), *named} | {type(part) for row in rows for part in row if part is not None}


def test_each_part_has_words_of_its_own() -> None:
    """Nothing is inherited or taken from a module: a class says its idea, and what its settings mean."""
    assert len(kinds()) > 60
    for kind in kinds():
        works, settings = part_text(kind)
        assert works, kind
        assert bool(settings) == bool(getattr(kind, "__dataclass_fields__", ())), kind


def test_a_class_without_words_has_none() -> None:
    @dataclass(frozen=True)
    class Wordless:
        size: int = 1

    class Worded:
        """Twice the reading.

            c = 2 chat

        R. Bellman, *Dynamic Programming*.

        Settings
        --------
        `size` is no more
        than a number.

        >>> 1 + 1
        2
        """

    assert part_text(Wordless) == ("", "")
    works, settings = part_text(Worded)
    assert works.splitlines() == ["Twice the reading.", "", "    c = 2 chat", "", works.splitlines()[-1]]
    assert settings == "`size` is no more\nthan a number."


RELATION = re.compile(r" (?:=|~|<-|<=|>=) |^arg(?:max|min)")
GREEK = ("theta", "gamma", "sigma", "mu", "nu", "phi", "psi", "omega", "beta", "eta", "alpha")
FUNCTIONS = ("N", "E", "P", "Var", "Cov", "Gamma", "PG")
SPELLED = [
    f"{'hedged' if issubclass(part, EstimatesScales) else 'alg1-exact'}-{name}"
    for name, part in LEARNERS.items()
] + [f"unfog-{part}" for part in CHOOSERS]


def told(name: str) -> list[Explained]:
    """For each kind of rewards that it learns from."""
    found = []
    for kind in ("gaussian", "bernoulli"):
        with suppress(InputError):
            found.append(explain(name, kind))
    assert found
    return found


def letters_of(text: str) -> set[str]:
    """What is no word: single letters, Greek ones, and names with an index or a large letter."""
    text = re.sub(r"(?:Student|Kalman)'s|Polya-Gamma|Wishart", "", text)
    tokens = re.findall(r"[A-Za-z]+(?:_(?:\{[^}]*\}|[A-Za-z]+))?", text)
    return {one for one in tokens if len(one) == 1 or one in GREEK or "_" in one or one[0].isupper()}


def known_in(part: Part, shared: set[str]) -> set[str]:
    """What is explained: in words, by standing on the left, or as a setting."""
    own = {re.sub(r"[*^].*", "", one) for key in part.letters for one in key.split(", ")}
    pieces = [piece for line in part.formula for piece in re.split(r",? {3,}", line)]
    left = {
        found[1]
        for piece in pieces
        if (found := re.match(r"([A-Za-z]+(?:_[a-z])?)(?:\(a\))?(?:\^2)? (?:=|~|<-) ", piece))
    }
    return own | left | shared | {*part.settings} | {*FUNCTIONS}


def test_formulas_are_whole() -> None:
    for found in (one for name in (*EVERY, *SPELLED) for one in told(name)):
        for line in (line for part in found.parts for line in part.formula):
            assert not line.endswith((",", ";", ":")), line
        printed = [line for line in lines(found) if line.startswith("      ")]
        assert not [line for line in printed if line.endswith(",") and "(" not in line]


def test_formulas_have_a_left_side_and_letters_that_are_explained() -> None:
    for found in (one for name in (*AGENTS, *SPELLED) for one in told(name)):
        for part in found.parts:
            for line in part.formula:
                for piece in re.split(r" {3,}", line):
                    assert RELATION.search(piece), piece
            known = known_in(part, {*found.letters})
            for letter in letters_of(" ".join([*part.formula, *part.letters.values()])):
                base, _, index = letter.partition("_")
                whole = letter in known or (
                    base in {*known, "argmax", "sum", "max"} and letters_of(index) <= known
                )
                assert whole, (part.name, letter)


def test_the_letters_of_other_agents_are_left_out() -> None:
    assert "Sigma_gamma" not in explain("unfog").letters
    assert "Sigma_gamma" in explain("drift").letters
    assert "J = Sigma_c" in "\n".join(lines(explain("unfog")))  # the gain, as the pages call it


def test_a_name_spelled_out_of_parts_has_no_sentence_of_another_agent() -> None:
    assert explain("alg1-exact").when
    assert not explain("alg1-exact-joint-ucb").when
    assert not explain("drift:step=0.5").when


def test_references_name_no_file_that_only_a_clone_has() -> None:
    for name in EVERY:
        assert "docs/" not in told(name)[0].reference
    site = Path(__file__).parents[2]
    for path, title in PAGES.items():
        assert (site / path).read_text("utf-8").splitlines()[0] == f"# {title}"


def test_a_name_with_parts_has_the_settings_it_says(capsys: Capture) -> None:
    code, out, err = unfog(capsys, "explain", "alg1-hetero-ucb:quantile=0.9", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert list(found) == ["agent", "summary", "when", "rewards", "parts", "reference", "letters"]
    assert [part["name"] for part in found["parts"]] == ["plugin", "hetero", "ucb"]
    assert found["parts"][2]["settings"]["quantile"] == "0.9"
    assert found["parts"][1]["note"] == PARTS["hetero"].note


def test_rewards_of_0_or_1_are_learnt_by_another_part(capsys: Capture) -> None:
    for words, learner in (([], "conjugate"), (["--rewards", "bernoulli"], "lmc")):
        _, out, _ = unfog(capsys, "explain", "alg1", *words)
        assert f"Learn: {learner}" in out
    assert "for rewards of 0 or 1" in unfog(capsys, "explain", "pgts")[1]


def test_an_agent_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    Path("explained_mine.py").write_text(
        "import unfog\n"
        "mine = unfog.Agent('mine', unfog.denoise.Exact(), unfog.learn.Conjugate(), unfog.choose.Greedy())\n"
    )
    code, out, _ = unfog(capsys, "explain", "explained_mine:mine")
    assert code == 0
    assert "Denoise: exact" in out
    assert "When:" not in out


@pytest.mark.parametrize(
    ("words", "complaint", "meant"),
    [
        (["unfgo"], "agent: no agent is called 'unfgo'", "unfog"),
        (["alg1-hetro-ucb"], "agent: no agent is called 'alg1-hetro-ucb'", "alg1-hetero-ucb"),
        (["drift:stp=1"], "agent.drift.stp: no such setting", "step"),
        (["alg1", "--rewards", "bernouli"], "rewards: 'bernouli'", "bernoulli"),
    ],
)
def test_what_is_unknown_is_refused(words: list[str], complaint: str, meant: str, capsys: Capture) -> None:
    code, out, err = unfog(capsys, "explain", *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"unfog: {complaint}")
    assert f" (did you mean {meant!r}?); allowed: " in err
