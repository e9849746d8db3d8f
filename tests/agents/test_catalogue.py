"""Every row of the catalogue as a value, agents of one's own by module:name, and names that are refused."""

import pickle
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unfog.agents.agent import Agent
from unfog.agents.catalogue import AGENTS, Catalogue, parse_name, select_rows, with_own
from unfog.agents.choose import Epsilon, Greedy, Ids, TopTwo, Ucb
from unfog.agents.denoise import Drift, PlugIn
from unfog.agents.learn import LMC, PG, Adf, Conjugate, Hetero, Joint, Laplace, Smoothing
from unfog.simulation import play
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem, LogisticProblem

SMALL: Any = {"rounds": 8, "trials": 2}
SPELLED = {
    "gaussian": [
        "alg1-ucb",
        "alg1-exact-hetero:surprise=true-ucb:quantile=0.9:growth=1",
        "alg1-exact-joint:nodes=8",
        "alg1-exact-smoothing:hetero=false-ids:samples=4",
        "drift:step=0.01:tail=8",
        "robust:nu=4-greedy",
        "unknown-noise:trust=7-toptwo:beta=0.3",
        "late-epsilon:epsilon=0.2:decay=0.5",
        "alg1:pairs=true",
    ],
    "bernoulli": [
        "alg1-pg:sweeps=2",
        "alg1-lmc:temperature=1:steps=20",
        "kk-laplace:marginal=true-ucb",
        "alg2-adf",
        "alg2-adf:marginal=true",
        "unfog:marginal=false",
    ],
}


def rows_for(kind: str) -> list[str]:
    """The rows that have a learner for such rewards."""
    return [name for name, row in AGENTS.items() if kind == row.learner.rewards or row.binary_learner]


def test_every_row_says_what_it_is_and_whence() -> None:
    for name, agent in AGENTS.items():
        assert agent.name == name
        assert agent.summary, name
        assert agent.reference, name


def test_an_agent_is_a_value() -> None:
    """It pickles, hashes, and equals itself made anew, wherever that is; its parts do too."""
    for kind, more in SPELLED.items():
        for name in [*rows_for(kind), *more]:
            check_an_agent_is_a_value(kind, name)


def check_an_agent_is_a_value(kind: str, name: str) -> None:
    agent = Catalogue(kind)[name]
    assert (agent.can.see_bias is None) in (True, False)  # what was worked out once does not make it another
    again = pickle.loads(pickle.dumps(agent))  # noqa: S301
    made = parse_name(AGENTS, name, kind)
    rebuilt = Agent(**{field: vars(agent)[field] for field in Agent.__dataclass_fields__})
    parts = {place: replace(vars(agent)[place]) for place in ("denoiser", "learner", "chooser")}
    assert all(part is not vars(agent)[place] for place, part in parts.items())
    for other in (again, made, rebuilt, replace(agent, **parts)):
        assert other == agent
        assert hash(other) == hash(agent)
        assert other.same_as(agent)
    for place, part in parts.items():
        old = vars(again)[place]
        assert (part, hash(part)) == (old, hash(old))
    assert len({agent, again, made, rebuilt}) == 1
    assert agent.name == name
    assert agent.learner.rewards == kind


def test_another_setting_makes_another_agent() -> None:
    every: list[tuple[Any, dict[str, Any]]] = [
        (PlugIn(), {"pairs": True}),
        (Drift(), {"pairs": True, "step": 0.1}),
        (Hetero(), {"surprise": True}),
        (Joint(), {"nodes": 8, "hetero": False}),
        (Smoothing(), {"hetero": False}),
        (Adf(), {"marginal": True}),
        (Laplace(), {"steps": 4, "marginal": True}),
        (PG(), {"sweeps": 4}),
        (LMC(), {"temperature": 1.0, "steps": 4, "rate": 0.1, "decay": 0.0, "marginal": True}),
        (Ucb(), {"quantile": 0.8, "growth": 1.0}),
        (Ids(), {"samples": 4, "quantile": 0.8}),
        (Epsilon(), {"epsilon": 0.2, "decay": 1.0}),
        (TopTwo(), {"beta": 0.2, "redraws": 2}),
    ]
    for part, changes in every:
        check_another_setting_makes_another_agent(part, changes)


def check_another_setting_makes_another_agent(part: Any, changes: dict[str, Any]) -> None:
    place = next(p for p, kind in (("denoiser", "setup"), ("chooser", "choose")) if hasattr(part, kind))
    place = "learner" if hasattr(part, "rewards") else place
    parts: dict[str, Any] = {
        "denoiser": AGENTS["unfog"].denoiser,
        "learner": Conjugate(),
        "chooser": Greedy(),
    }
    agent = Agent("mine", **{**parts, place: part})
    assert set(changes) == set(part.__dataclass_fields__)  # every setting there is
    for field, value in changes.items():
        other = replace(agent, **{place: replace(part, **{field: value})})
        assert other != agent
        assert not other.same_as(agent)
        assert replace(other, **{place: part}) == agent


def test_names_give_rows_in_their_order() -> None:
    assert [agent.name for agent in select_rows(["kk", "alg1"])] == ["kk", "alg1"]


def test_bad_names_are_refused_by_name() -> None:
    for names, message in [
        (["alg1", "alg9"], "agents: no agent is called 'alg9' (did you mean 'alg1'?); allowed: a name from "),
        (["kk", "alg1", "kk"], "agents: 'kk' is named twice; allowed: each agent once"),
        ([], "agents: none named; allowed: one or more of a name from"),
    ]:
        check_bad_names_are_refused_by_name(names, message)


def check_bad_names_are_refused_by_name(names: list[str], message: str) -> None:
    with pytest.raises(InputError) as refused:
        select_rows(names)
    assert str(refused.value).startswith(message)


def test_the_field_is_named_as_asked() -> None:
    with pytest.raises(InputError, match=r"^run\.agents: no agent is called 'x'"):
        select_rows(["x"], "run.agents")


def test_one_agent_does_not_play_under_two_names() -> None:
    with pytest.raises(InputError, match=r"^agents: 'alg1-lmc:steps=50' is 'alg1' by another name"):
        select_rows(["naive", "alg1", "alg1-lmc:steps=50"], rows=Catalogue("bernoulli"))
    assert len(select_rows(["alg1", "alg1-lmc:steps=51"], rows=Catalogue("bernoulli"))) == 2


def test_what_is_neither_a_name_nor_a_row_is_refused() -> None:
    wrong: Any
    for wrong in ("alg1", [3], ["alg1", Ucb()], [Agent]):
        with pytest.raises(InputError, match=r"^agents: .*; allowed: a list of names or of rows"):
            with_own(wrong)
    mine = replace(AGENTS["alg1"], name="mine")
    assert with_own(["kk", mine]) == (["kk", "mine"], [mine])


# Agents of one's own, by module:name.


OWN = """
from unfog.agents.agent import Agent
from unfog.agents.choose import Greedy
from unfog.agents.denoise import Exact
from unfog.agents.learn import Adf, Hetero

mine = Agent("anything", Exact(), Hetero(), Greedy(), binary_learner=Adf())
plain = Agent("plain", Exact(), Hetero(), Greedy())
number = 3
kind = Agent
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module that can be imported while the test runs."""
    (tmp_path / "test_own_agents.py").write_text(OWN)
    (tmp_path / "test_needs_more.py").write_text("import no_such_thing_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "test_own_agents"
    sys.modules.pop("test_own_agents", None)


def test_an_agent_of_ones_own_goes_by_module_and_name(module: str) -> None:
    name = f"{module}:mine"
    [row] = select_rows([name])
    assert (row.name, row.denoiser, row.learner) == (name, AGENTS["unfog"].denoiser, Hetero())
    assert Catalogue("bernoulli")[name].learner == Adf()
    problem = GaussianProblem(dim=2, actions=3)
    found, right = (
        play(problem, [one], **SMALL).values["regret"] for one in (name, "alg1-exact-hetero-greedy")
    )
    np.testing.assert_array_equal(found, right)  # the same parts by another name
    with pytest.raises(InputError, match=rf"^agents: 'alg1-exact-hetero-greedy' is '{name}' by"):
        select_rows([name, "alg1-exact-hetero-greedy"])
    binary = play(LogisticProblem(dim=2, actions=3), [name], **SMALL)
    assert np.isfinite(binary.values["regret"]).all()


def test_a_module_agent_for_other_rewards_is_refused_as_such(module: str) -> None:
    told = rf"^agents: '{module}:plain' learns from gaussian rewards; allowed: agents for bernoulli rewards"
    with pytest.raises(InputError, match=told):
        play(LogisticProblem(dim=2), [f"{module}:plain"], **SMALL)


def test_what_a_module_does_not_have_is_refused_by_name(module: str) -> None:
    for name, told in [
        (
            "no_such_module_here:mine",
            "cannot import no_such_module_here: No module named 'no_such_module_here'",
        ),
        ("test_own_agents:other", "there is no 'other' in test_own_agents"),
        ("test_own_agents:number", "it is 3"),
        ("test_own_agents:kind", "it is <class"),
        ("test_needs_more:mine", "cannot import test_needs_more: No module named 'no_such_thing_at_all'"),
    ]:
        check_what_a_module_does_not_have_is_refused_by_name(name, told, module)


def check_what_a_module_does_not_have_is_refused_by_name(name: str, told: str, module: str) -> None:
    with pytest.raises(InputError) as refused:
        select_rows(["alg1", name])
    assert str(refused.value).startswith(f"agents.{name}: {told}")
    assert str(refused.value).endswith("; allowed: module:name of an unfog.Agent")


def test_a_row_is_not_taken_for_a_module() -> None:
    with pytest.raises(InputError, match=r"^agents\.drift\.step: has no value; allowed: step=0\.001, for"):
        select_rows(["drift:step"])
