"""Agents spelled out by name, the same one every time, and everything else refused with its reason."""

import pickle
from typing import Any

import pytest

from unfog.agents.catalogue import AGENTS, Catalogue, named
from unfog.agents.choose.greedy import Greedy
from unfog.agents.choose.ucb import Ucb
from unfog.agents.denoise.drift import Drift
from unfog.agents.denoise.robust import Robust
from unfog.agents.denoise.unknown_noise import UnknownNoise
from unfog.agents.learn import conjugate
from unfog.agents.learn.adf import Online
from unfog.agents.learn.hetero import Hetero
from unfog.agents.learn.laplace import Laplace
from unfog.agents.learn.lmc import LMC
from unfog.agents.learn.pg import PG
from unfog.agents.names import BERNOULLI, CHOOSERS, LEARNERS, NOTES, PAPERS, PARTS, settings_of, spelled_out
from unfog.inputs import InputError
from unfog.lab.prepare import prepare
from unfog.lab.spec import parse
from unfog.simulate import simulate
from unfog.worlds.gaussian import GaussianProblem
from unfog.worlds.logistic import LogisticProblem

ROWS = Catalogue("bernoulli")


@pytest.mark.parametrize("name", AGENTS)
def test_a_plain_name_is_the_row_with_a_learner_for_such_rewards(name: str) -> None:
    row, plain = ROWS[name], AGENTS[name]
    papers = plain.learner is conjugate
    told = name == "unfog-delayed"  # its rows are those of true contexts: nothing to average over
    assert row.learner == (LMC() if papers else Online(marginal=not told))
    assert (name in BERNOULLI) != papers
    assert (row.denoiser, row.chooser) == (plain.denoiser, plain.chooser)
    assert (row.reveals, row.privileged, row.reference) == (plain.reveals, plain.privileged, plain.reference)
    assert row.name == name
    assert row.summary == plain.summary + "; Langevin Monte Carlo" * papers


@pytest.mark.parametrize(
    ("name", "base", "learner"),
    [
        ("alg1-lmc", "alg1", LMC()),
        ("alg1-pg", "alg1", PG()),
        ("kk-laplace", "kk", Laplace()),
        ("alg2-online", "alg2", Online()),
        ("alg1-exact", "alg1-exact", LMC()),
        ("alg1-exact-online", "alg1-exact", Online()),
        ("alg2-exact-pg", "alg2-exact", PG()),
        ("alg1:steps=7", "alg1", LMC(steps=7)),
        ("alg1-exact:temperature=1", "alg1-exact", LMC(temperature=1.0)),
        ("alg1-lmc:temperature=1:steps=20", "alg1", LMC(temperature=1.0, steps=20)),
        ("alg1-lmc:steps=20:temperature=1", "alg1", LMC(temperature=1.0, steps=20)),
        ("alg1-lmc:temperature=1e-3:rate=.5:decay=0.5", "alg1", LMC(rate=0.5, decay=0.5)),
        ("oracle-lmc:marginal=true", "oracle", LMC(marginal=True)),
        ("oracle-lmc:marginal=false", "oracle", LMC()),
        ("naive-pg:sweeps=1", "naive", PG(sweeps=1)),
        ("alg1-laplace:steps=9:marginal=true", "alg1", Laplace(steps=9, marginal=True)),
        ("alg1-online:marginal=true", "alg1", Online(marginal=True)),
    ],
)
def test_a_name_spells_out_row_learner_and_settings(name: str, base: str, learner: Any) -> None:
    row = ROWS[name]
    assert row.learner == learner
    assert (row.name, row.denoiser) == (name, AGENTS[base].denoiser)
    assert row.reveals == AGENTS[base].reveals
    assert row.summary.startswith(AGENTS[base].summary)


def test_every_learner_has_a_name_and_a_note() -> None:
    assert list(PARTS) == list(NOTES) == [*LEARNERS, *CHOOSERS]
    assert PAPERS == "lmc"
    for name, note in NOTES.items():
        assert rows_of(name)[f"kk-{name}"].summary.endswith(note)


def rows_of(part: str) -> Catalogue:
    return Catalogue(getattr(PARTS[part], "kind", "bernoulli"))


@pytest.mark.parametrize("name", PARTS)
def test_settings_are_told_as_they_are_written(name: str) -> None:
    told = settings_of(name)
    row = rows_of(name)[":".join([f"kk-{name}", *told])]
    assert (row.learner if name in LEARNERS else row.chooser) == PARTS[name]()
    assert len(told) == len(set(told))


def test_settings_of_a_row_go_to_the_part_that_has_them() -> None:
    rows = Catalogue()
    assert rows["drift:step=0.01:quantile=0.9"].denoiser == Drift(step=0.01)
    assert rows["drift:step=0.01:quantile=0.9"].chooser == Ucb(quantile=0.9)
    assert rows["robust:nu=3"].denoiser == Robust(nu=3.0)
    assert rows["unknown-noise:trust=20"].denoiser == UnknownNoise(trust=20.0)
    assert rows["unfog:surprise=true"].learner == Hetero(surprise=True)
    assert ROWS["unfog:marginal=false:quantile=0.9"].learner == Online()
    assert rows["drift:step=0.01-greedy"].chooser == Greedy()
    with pytest.raises(
        InputError, match=r"^agents\.drift\.nu: no such setting; allowed: surprise=false, step="
    ):
        named(["drift:nu=3"])
    with pytest.raises(InputError, match=r"^agents\.drift\.pairs: no such setting"):
        named(["drift:pairs=true"])
    with pytest.raises(InputError, match=r"^agents\.drift\.step: -1\.0; allowed: zero or a positive number"):
        named(["drift:step=-1"])
    with pytest.raises(InputError, match="'alg1-exact-hetero-ucb' is 'unfog' by another name"):
        named(["unfog", "alg1-exact-hetero-ucb"])


def test_parts_of_ones_own_must_be_made_and_know_the_round() -> None:
    row = AGENTS["unfog"]._replace(name="mine")

    class Short:
        def choose(self, design: Any, belief: Any, normals: Any) -> Any:
            raise NotImplementedError

    parts: list[tuple[dict[str, Any], str]] = [
        ({"chooser": Ucb}, "the chooser of 'mine' is .*; allowed: a chooser, made"),
        ({"denoiser": Drift}, "the denoiser of 'mine' is .*; allowed: a denoiser, made"),
        ({"chooser": Short()}, r"cannot be told which round it is; allowed: choose\(design, belief"),
    ]
    for change, message in parts:
        with pytest.raises(InputError, match=message):
            named(["mine"], rows=Catalogue("gaussian", [row._replace(**change)]))


def test_a_learner_and_a_chooser_go_together() -> None:
    row = Catalogue()["alg1-exact-hetero:surprise=true-ucb:quantile=0.9:growth=1"]
    assert (row.learner, row.chooser) == (Hetero(surprise=True), Ucb(quantile=0.9, growth=1.0))
    assert row.denoiser is AGENTS["alg1-exact"].denoiser
    turned = Catalogue()["alg1-ucb-hetero"]
    assert (turned.learner, turned.chooser) == (Hetero(), Ucb())
    assert ROWS["alg1-greedy"].learner == LMC()
    assert ROWS["alg1-online-greedy"].chooser == Greedy()
    for name in ("alg1-ucb-greedy", "alg1-hetero-joint", "alg1-hetero-pg", "alg1-ucb-"):
        with pytest.raises(InputError, match="no agent is called"):
            named([name])


@pytest.mark.parametrize("name", ["alg1", "alg1-pg", "alg1-lmc:temperature=1:steps=20"])
def test_the_same_name_is_the_same_agent(name: str) -> None:
    assert Catalogue("bernoulli")[name] is Catalogue("bernoulli")[name]
    assert named([name], rows=ROWS)[0] is ROWS[name]
    assert ROWS.knows(ROWS[name])
    assert not Catalogue().knows(ROWS[name])
    assert not ROWS.knows(ROWS[name]._replace(summary="mine"))
    assert not ROWS.knows(spelled_out(AGENTS, name))  # equal, but made elsewhere


def test_names_of_ones_own_are_not_known() -> None:
    for name in ("mine", "alg1-mine", "alg1-lmc:steps=0"):
        assert not ROWS.knows(ROWS["alg1"]._replace(name=name))
    mine = ROWS["alg1-pg"]._replace(name="alg1")
    assert Catalogue("bernoulli", [mine])["alg1"] is mine
    assert list(Catalogue("bernoulli", [mine._replace(name="mine")])) == [*AGENTS, "mine"]


def test_learners_survive_the_way_to_another_process() -> None:
    for name in ("alg1", "alg1-pg:sweeps=2", "alg1-laplace", "alg1-online:marginal=true"):
        learner = ROWS[name].learner
        assert pickle.loads(pickle.dumps(learner)) == learner  # noqa: S301


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("alg9", "agents: no agent is called 'alg9'; allowed: alg1, alg2, naive"),
        ("alg1-gibbs", "agents: no agent is called 'alg1-gibbs'; allowed: alg1, alg2, naive"),
        ("alg9-pg", "agents: no agent is called 'alg9-pg'"),
        ("pg", "agents: no agent is called 'pg'"),
        ("-pg", "agents: no agent is called '-pg'"),
        ("alg1-", "agents: no agent is called 'alg1-'"),
        ("alg1-pg-pg", "agents: no agent is called 'alg1-pg-pg'"),
        ("", "agents: no agent is called ''"),
        ("ALG1", "agents: no agent is called 'ALG1'"),
        ("alg1-lmc:sweeps=3", "agents.alg1-lmc.sweeps: no such setting; allowed: temperature="),
        ("alg1-pg:steps=3", "agents.alg1-pg.steps: no such setting; allowed: sweeps="),
        ("alg1-pg:sweeps", "agents.alg1-pg.sweeps: has no value; allowed: sweeps=5, for instance"),
        ("alg1-pg:", "agents.alg1-pg.settings: no such setting"),
        ("alg1-pg:kind=3", "agents.alg1-pg.kind: no such setting"),
        ("alg1:steps=2:steps=3", "agents.alg1.steps: given twice; allowed: each setting once"),
        ("alg1:steps=many", "agents.alg1.steps: 'many'; allowed: a whole number, such as 50"),
        ("alg1:steps=2.5", "agents.alg1.steps: '2.5'; allowed: a whole number, such as 50"),
        ("alg1:steps=", "agents.alg1.steps: ''; allowed: a whole number, such as 50"),
        ("alg1:steps=0", "agents.alg1.steps: 0; allowed: a whole number, at least 1 and at most 10000"),
        ("alg1:steps=10001", "agents.alg1.steps: 10001; allowed: a whole number, at least 1"),
        ("alg1-pg:sweeps=-1", "agents.alg1-pg.sweeps: '-1'; allowed: a whole number, such as 5"),
        ("alg1:temperature=-1", "agents.alg1.temperature: -1.0; allowed: zero or a positive number"),
        ("alg1:temperature=nan", "agents.alg1.temperature: 'nan'; allowed: a number, such as 0.001"),
        ("alg1:temperature=hot", "agents.alg1.temperature: 'hot'; allowed: a number, such as 0.001"),
        ("alg1:rate=0", "agents.alg1.rate: 0.0; allowed: a positive number"),
        ("alg1:decay=-2", "agents.alg1.decay: -2.0; allowed: zero or a positive number"),
        ("alg1:marginal=yes", "agents.alg1.marginal: 'yes'; allowed: true, false"),
        ("alg1:marginal=True", "agents.alg1.marginal: 'True'; allowed: true, false"),
    ],
)
def test_what_a_name_cannot_say_is_refused(name: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        named(["naive", name], rows=ROWS)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_the_learners_are_among_what_is_allowed() -> None:
    choosers = "-ucb, -ids, -greedy, -epsilon, -toptwo"
    assert ROWS.allowed().endswith(f"; each also with -lmc, -pg, -laplace, -online, {choosers}")
    assert Catalogue().allowed().endswith(f"; each also with -hetero, -smoothing, -joint, {choosers}")


def test_agents_of_the_other_kind_are_refused() -> None:
    small: Any = {"rounds": 3, "trials": 2}
    message = r"^agents: 'alg1' learns from gaussian rewards; allowed: agents for bernoulli rewards"
    with pytest.raises(InputError, match=message):
        simulate(LogisticProblem(dim=2), [AGENTS["alg1"]], **small)
    message = r"^agents: 'alg1-pg' learns from bernoulli rewards; allowed: agents for gaussian rewards"
    with pytest.raises(InputError, match=message):
        simulate(GaussianProblem(dim=2), [ROWS["alg1-pg"]], **small)
    with pytest.raises(InputError, match=r"^agents: no agent is called 'alg1-pg'; allowed: alg1, alg2"):
        simulate(GaussianProblem(dim=2), ["alg1-pg"], **small)
    with pytest.raises(InputError, match=r"^agents\.alg1\.steps: no such setting; allowed: none"):
        simulate(GaussianProblem(dim=2), ["alg1:steps=3"], **small)


def test_a_spec_takes_and_refuses_the_same_names() -> None:
    def spec(kind: str, *names: str) -> Any:
        return prepare(parse({"problem": {"kind": kind}, "run": {"agents": list(names)}})).spec

    names = ["alg1", "alg1-pg", "alg1-lmc:temperature=1:steps=20"]
    assert spec("logistic", *names).run.agents == names
    with pytest.raises(InputError, match=r"^run\.agents: no agent is called 'alg1-pg'"):
        spec("gaussian", "alg1-pg")
    with pytest.raises(InputError, match=r"^run\.agents\.alg1\.steps: 0; allowed"):
        spec("logistic", "alg1:steps=0")
    with pytest.raises(InputError, match=r"^run\.agents: 'alg1-pg' is named twice"):
        spec("logistic", "alg1-pg", "alg1-pg")


def test_the_gaussian_catalogue_is_as_it_was() -> None:
    for name, row in AGENTS.items():
        assert Catalogue()[name] is row
        assert row.learner.kind == "gaussian"
