"""`unfog explain` as a user meets it: every agent, its parts and settings as they are."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from unfog.agents.catalogue import AGENTS, EVERY, Catalogue
from unfog.agents.explain import explained
from unfog.agents.names import PARTS
from unfog.agents.rivals.rows import RIVALS
from unfog.agents.when import WHEN
from unfog.cli import main
from unfog.cli.explain import lines

Capture = pytest.CaptureFixture[str]


def unfog(capsys: Capture, *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(words)
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


@pytest.mark.parametrize(
    "name", [*EVERY, "alg1-hetero-ucb:quantile=0.9", "drift:step=0.5-greedy", "naive-pg"]
)
def test_every_agent_is_explained_in_80_columns(name: str) -> None:
    found = explained(name)
    agent = Catalogue(found.rewards)[name]
    assert [part.step for part in found.parts] == ["denoise", "learn", "choose"]
    made: tuple[Any, ...] = (agent.denoiser, agent.learner, agent.chooser)
    assert [part.name for part in found.parts] == [one.name for one in made]
    for part, one in zip(found.parts, made, strict=True):
        told = {field: str(getattr(one, field)).lower() for field in part.settings}
        assert set(told) == {field.name for field in fields(one)}
        assert {field: float(value) if value[-1].isdigit() else value for field, value in told.items()} == {
            field: float(value) if value[-1].isdigit() else value for field, value in part.settings.items()
        }
    said = lines(found)
    assert max(map(len, said)) <= 80
    whole = " ".join(" ".join(said).split())
    for text in (found.when, agent.summary, agent.reference, *(part.note for part in found.parts)):
        assert " ".join(text.split()) in whole


def test_there_is_a_line_on_when_to_use_each_and_for_nobody_else() -> None:
    assert set(WHEN) == set(AGENTS)
    assert all(line.endswith(".") and line[0].isupper() for line in WHEN.values())
    assert all(RIVALS[name].told in explained(name).when for name in RIVALS)


def test_formulas_are_those_of_the_files() -> None:
    denoise, learn, choose = explained("unfog").parts
    for part, word in ((denoise, "Sigma_c"), (learn, "Gamma(a, b)"), (choose, "slope_t(a)^2")):
        assert any(word in line for line in part.formula)
    shared = "\n".join(lines(explained("linrel")))
    assert shared.count("argmax r'a") == 1  # its learner and its chooser are of one file
    assert "as above" in shared


def test_a_name_with_parts_has_the_settings_it_says(capsys: Capture) -> None:
    code, out, err = unfog(capsys, "explain", "alg1-hetero-ucb:quantile=0.9", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert list(found) == ["agent", "summary", "when", "rewards", "parts", "reference"]
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
    ("words", "said", "meant"),
    [
        (["unfgo"], "agent: no agent is called 'unfgo'", "unfog"),
        (["alg1-hetro-ucb"], "agent: no agent is called 'alg1-hetro-ucb'", "alg1-hetero-ucb"),
        (["drift:stp=1"], "agent.drift.stp: no such setting", "step"),
        (["alg1", "--rewards", "bernouli"], "rewards: 'bernouli'", "bernoulli"),
    ],
)
def test_what_is_unknown_is_refused(words: list[str], said: str, meant: str, capsys: Capture) -> None:
    code, out, err = unfog(capsys, "explain", *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"unfog: {said}")
    assert f" (did you mean {meant!r}?); allowed: " in err
