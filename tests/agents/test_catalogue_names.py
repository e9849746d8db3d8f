"""Agents spelled out by name, the same one every time, and everything else refused with its reason."""

import re
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from unfog.agents.base import EstimatesScales
from unfog.agents.catalogue import (
    AGENTS,
    CHOOSERS,
    LEARNERS,
    PARTS,
    Catalogue,
    parse_name,
    select_rows,
    settings_of,
)
from unfog.agents.choose import Epsilon, Greedy, Ids, RandUcb, Thompson, TopTwo, Ucb
from unfog.agents.denoise import Drift, PlugIn, Robust, UnknownNoise
from unfog.agents.learn import (
    LMC,
    PG,
    Adf,
    Conjugate,
    Hetero,
    Joint,
    Laplace,
    Revisable,
    Scaled,
    Sites,
    Smoothing,
)
from unfog.lab.prepare import prepare
from unfog.lab.spec import parse
from unfog.simulation import play
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem, LogisticProblem

ROWS = Catalogue("bernoulli")
PAPERS = ["alg1", "alg2", "naive", "oracle", "kk", "alg1-exact", "alg2-exact"]
OURS = ["unfog", "unfog-oracle", "gaps", "late", "unknown-noise", "drift", "robust"]


def test_a_plain_name_is_the_row_with_a_learner_for_such_rewards() -> None:
    for name in [name for name, row in AGENTS.items() if row.binary_learner is not None]:
        check_a_plain_name_is_the_row_with_a_learner_for_such_rewards(name)


def check_a_plain_name_is_the_row_with_a_learner_for_such_rewards(name: str) -> None:
    row, plain = ROWS[name], AGENTS[name]
    assert row.learner == plain.binary_learner
    assert (row.denoiser, row.chooser) == (plain.denoiser, plain.chooser)
    assert (row.sees_context, row.can.see_bias) == (plain.sees_context, plain.can.see_bias)
    assert row.reference == plain.reference
    assert row.name == name
    assert row.summary == f"{plain.summary}; {row.learner.note}"


def test_the_learners_of_rows_for_such_rewards() -> None:
    assert {ROWS[name].learner for name in PAPERS} == {LMC()}
    revising = {"late", "unknown-noise"}
    assert {ROWS[name].learner for name in OURS if name not in revising} == {Adf(marginal=True)}
    assert {ROWS[name].learner for name in revising} == {Sites(marginal=True)}
    # its rows are those of true contexts: nothing to average over
    assert ROWS["unfog-delayed"].learner == Adf()
    assert ROWS["alg1"].summary.endswith("; Langevin Monte Carlo")
    assert ROWS["unfog"].summary.endswith("; a Gaussian filtered reward by reward, at constant cost")


def test_a_name_spells_out_row_learner_and_settings() -> None:
    for name, base, learner in [
        ("alg1-lmc", "alg1", LMC()),
        ("alg1-pg", "alg1", PG()),
        ("kk-laplace", "kk", Laplace()),
        ("alg2-adf", "alg2", Adf()),
        ("alg1-exact", "alg1-exact", LMC()),
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
        ("alg1-adf", "alg1", Adf()),
        ("alg1-exact-adf:marginal=true", "alg1-exact", Adf(marginal=True)),
    ]:
        check_a_name_spells_out_row_learner_and_settings(name, base, learner)


def check_a_name_spells_out_row_learner_and_settings(name: str, base: str, learner: Any) -> None:
    row = ROWS[name]
    assert row.learner == learner
    assert (row.name, row.denoiser) == (name, AGENTS[base].denoiser)
    assert row.sees_context == AGENTS[base].sees_context
    assert row.summary.startswith(AGENTS[base].summary)


def test_every_part_has_a_name_and_a_note() -> None:
    assert list(PARTS) == [*LEARNERS, *CHOOSERS]
    for name, part in PARTS.items():
        assert part.name == name
        assert rows_of(name)[f"{beside(name)}-{name}"].summary.endswith(part.note)
    assert set(CHOOSERS.values()) >= {Ucb, Ids, Greedy, Epsilon, Thompson, TopTwo}
    assert set(LEARNERS.values()) >= {LMC, PG, Adf, Laplace, Conjugate, Hetero, Joint, Revisable, Smoothing}


def rows_of(part: str) -> Catalogue:
    return Catalogue(getattr(PARTS[part], "rewards", "bernoulli"))


def beside(part: str) -> str:
    """A row that a part can be put into: alg1-exact, unless its denoiser lacks what a learner needs."""
    kind, learner = rows_of(part).kind, LEARNERS.get(part)
    kept = [
        name for name, row in AGENTS.items() if kind == row.learner.rewards or row.binary_learner is not None
    ]
    fits = [name for name in kept if learner is None or not learner().misses(AGENTS[name].denoiser)]
    if learner is not None and issubclass(learner, EstimatesScales):
        return "hedged"  # whose chooser can draw by lot, too
    return "alg1-exact" if "alg1-exact" in fits else fits[0]


def test_settings_are_told_as_they_are_written() -> None:
    for name in PARTS:
        check_settings_are_told_as_they_are_written(name)


def check_settings_are_told_as_they_are_written(name: str) -> None:
    told = settings_of(name)
    row = rows_of(name)[":".join([f"{beside(name)}-{name}", *told])]
    assert (row.learner if name in LEARNERS else row.chooser) == PARTS[name]()
    assert len(told) == len(set(told))


def test_settings_of_a_row_go_to_the_part_that_has_them() -> None:
    rows = Catalogue()
    assert rows["drift:step=0.01:tail=8"].denoiser == Drift(step=0.01)
    assert rows["drift:step=0.01:tail=8"].chooser == RandUcb(tail=8.0)
    assert rows["robust:nu=3"].denoiser == Robust(nu=3.0)
    assert rows["unknown-noise:trust=20"].denoiser == UnknownNoise(trust=20.0)
    assert rows["unfog:doubt=0.2"].learner == Scaled(doubt=0.2)
    assert rows["unfog-hetero:surprise=true"].learner == Hetero(surprise=True)
    assert ROWS["unfog:marginal=false:level=1.2"].learner == Adf()
    assert rows["drift:step=0.01-greedy"].chooser == Greedy()
    told = r"^agents\.drift\.nu: no such setting; allowed: pairs=false, step=0.001, scales=3, ratio=3.0, "
    with pytest.raises(InputError, match=told):
        select_rows(["drift:nu=3"])
    assert rows["drift:pairs=true"].denoiser == Drift(pairs=True)
    assert rows["alg1:pairs=true"].denoiser == PlugIn(pairs=True)
    assert rows["alg1:pairs=true"].awaits_context
    with pytest.raises(InputError, match="'alg1:pairs=true' is 'alg2' by another name"):
        select_rows(["alg2", "alg1:pairs=true"])
    with pytest.raises(InputError, match=r"^agents\.drift\.step: -1\.0; allowed: zero or a positive number"):
        select_rows(["drift:step=-1"])
    assert rows["unfog:clip_sd=9:tail=7"].clip_sd == 9.0
    assert rows["unfog:clip_sd=9-epsilon"].clip_sd == 9.0
    with pytest.raises(InputError, match=r"^agents\.unfog\.tail: no such setting"):
        select_rows(["unfog:tail=7-epsilon"])  # of a chooser that it does not keep
    assert rows["unfog-greedy"].clip_sd == 6.0
    assert rows["alg1-exact-scaled-randucb"].clip_sd is None
    with pytest.raises(InputError, match=r"^agents\.unfog\.clip_sd: 0\.0; allowed: a positive number"):
        select_rows(["unfog:clip_sd=0"])
    with pytest.raises(InputError, match=r"^agents\.alg1\.clip_sd: no such setting"):
        select_rows(["alg1:clip_sd=6"])
    assert (
        len(select_rows(["unfog", "alg1-exact-scaled-randucb"])) == 2
    )  # without `clip_sd` it is another agent
    with pytest.raises(InputError, match="'unfog-scaled-randucb' is 'unfog' by another name"):
        select_rows(["unfog", "unfog-scaled-randucb"])


def test_a_learner_and_a_chooser_go_together() -> None:
    row = Catalogue()["alg1-exact-hetero:surprise=true-ucb:quantile=0.9:growth=1"]
    assert (row.learner, row.chooser) == (Hetero(surprise=True), Ucb(quantile=0.9, growth=1.0))
    assert row.denoiser is AGENTS["alg1-exact"].denoiser
    turned = Catalogue()["alg1-ucb-hetero"]
    assert (turned.learner, turned.chooser) == (Hetero(), Ucb())
    assert ROWS["alg1-greedy"].learner == LMC()
    assert ROWS["alg1-adf-greedy"].chooser == Greedy()
    for name in ("alg1-ucb-greedy", "alg1-hetero-joint", "alg1-hetero-pg", "alg1-ucb-"):
        with pytest.raises(InputError, match="no agent is called"):
            select_rows([name])


def test_the_same_name_is_the_same_agent() -> None:
    for name in ["alg1", "alg1-pg", "alg1-lmc:temperature=1:steps=20"]:
        check_the_same_name_is_the_same_agent(name)


def check_the_same_name_is_the_same_agent(name: str) -> None:
    assert Catalogue("bernoulli")[name] is Catalogue("bernoulli")[name]
    assert select_rows([name], rows=ROWS)[0] is ROWS[name]
    assert ROWS[name] == parse_name(AGENTS, name, "bernoulli")  # made elsewhere, and equal
    assert ROWS[name] != replace(ROWS[name], summary="mine")


def test_a_row_of_ones_own_goes_before_one_of_that_name() -> None:
    mine = replace(ROWS["alg1-pg"], name="alg1", binary_learner=None)
    assert Catalogue("bernoulli", [mine])["alg1"] is mine
    assert list(Catalogue("bernoulli", [replace(mine, name="mine")])) == [*AGENTS, "mine"]
    both = replace(AGENTS["alg1"], name="mine")
    assert Catalogue("bernoulli", [both])["mine"] == replace(both, learner=LMC())


def test_what_a_name_cannot_say_is_refused() -> None:
    for name, message in [
        ("alg9", "agents: no agent is called 'alg9' (did you mean 'alg1'?); allowed: "),
        ("alg1-gibbs", "agents: no agent is called 'alg1-gibbs'"),
        ("alg9-pg", "agents: no agent is called 'alg9-pg'"),
        ("pg", "agents: no agent is called 'pg'"),
        ("-pg", "agents: no agent is called '-pg'"),
        ("alg1-", "agents: no agent is called 'alg1-'"),
        ("alg1-pg-pg", "agents: no agent is called 'alg1-pg-pg'"),
        ("", "agents: no agent is called ''"),
        ("ALG1", "agents: no agent is called 'ALG1'"),
        (
            "alg1-lmc:sweeps=3",
            "agents.alg1-lmc.sweeps: no such setting (did you mean 'steps'?); ",
        ),
        (
            "alg1-pg:steps=3",
            "agents.alg1-pg.steps: no such setting (did you mean 'sweeps'?); ",
        ),
        ("alg1-pg:sweeps", "agents.alg1-pg.sweeps: has no value; allowed: sweeps=5, for instance"),
        ("alg1-pg:", "agents.alg1-pg.settings: no such setting"),
        ("alg1-pg:kind=3", "agents.alg1-pg.kind: no such setting"),
        ("alg1:steps", "agents.alg1.steps: has no value; allowed: steps=50, for instance"),
        ("alg1:name", "agents.alg1.name: no such setting; allowed: pairs=false, temperature=0.001"),
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
        ("alg1:marginal=True", "agents.alg1.marginal: 'True' (did you mean 'true'?); allowed: true, false"),
    ]:
        check_what_a_name_cannot_say_is_refused(name, message)


def check_what_a_name_cannot_say_is_refused(name: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        select_rows(["naive", name], rows=ROWS)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_what_is_allowed_says_how_to_list_it() -> None:
    for rows, kind in ((ROWS, "bernoulli"), (Catalogue(), "gaussian")):
        said = rows.allowed()
        assert f"`unfog list agents` or `unfog list baselines` that learns from {kind} rewards" in said
        (example,) = re.findall(r"as (alg1-[a-z]+-ucb);", said)
        assert rows[example].learner.rewards == kind
    mine = replace(AGENTS["alg1"], name="mine")
    assert Catalogue(own=[mine]).allowed().startswith("mine, a name from ")


def test_agents_of_the_other_kind_are_refused() -> None:
    small: Any = {"rounds": 3, "trials": 2}
    message = r"^agents: 'alg1' learns from gaussian rewards; allowed: agents for bernoulli rewards"
    with pytest.raises(InputError, match=message):
        play(LogisticProblem(dim=2), [replace(AGENTS["alg1"], binary_learner=None)], **small)
    row, name = (play(LogisticProblem(dim=2), [one], **small) for one in (AGENTS["alg1"], "alg1"))
    np.testing.assert_array_equal(row.values["regret"], name.values["regret"])
    message = r"^agents: 'alg1-pg' learns from bernoulli rewards; allowed: agents for gaussian rewards"
    with pytest.raises(InputError, match=message):
        play(GaussianProblem(dim=2), [ROWS["alg1-pg"]], **small)
    with pytest.raises(InputError, match=r"^agents: no agent is called 'alg1-pg'"):
        play(GaussianProblem(dim=2), ["alg1-pg"], **small)
    with pytest.raises(InputError, match=r"^agents\.alg1\.steps: no such setting; allowed: pairs=false$"):
        play(GaussianProblem(dim=2), ["alg1:steps=3"], **small)


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
        assert row.learner.rewards == "gaussian"


def test_numbers_in_names_are_written_plainly() -> None:
    for setting in ["steps=1_0", "steps=+5", "steps=１０", "temperature= 1", "rate=1_0"]:
        check_numbers_in_names_are_written_plainly(setting)


def check_numbers_in_names_are_written_plainly(setting: str) -> None:
    with pytest.raises(InputError, match=r"number, such as"):
        select_rows([f"alg1-lmc:{setting}"], rows=Catalogue("bernoulli"))


def test_no_setting_of_a_row_belongs_to_two_of_its_parts() -> None:
    """`adaptive:spacing=2` must not mean two things."""
    for kind in ["gaussian", "bernoulli"]:
        check_no_setting_of_a_row_belongs_to_two_of_its_parts(kind)


def check_no_setting_of_a_row_belongs_to_two_of_its_parts(kind: str) -> None:
    rows = [
        row
        for row in AGENTS.values()
        if kind in (row.learner.rewards, row.binary_learner and row.binary_learner.rewards)
    ]
    for row in (row.for_rewards(kind) for row in rows):
        parts: list[Any] = [row.denoiser, row.learner, row.chooser]
        names = [field.name for part in parts for field in fields(part)]
        assert len(names) == len(set(names)), row.name


def test_a_refusal_shows_what_the_row_plays() -> None:
    row: Any = Catalogue()["linucb"]
    with pytest.raises(
        InputError, match=rf"^agents\.linucb\.alph: no such.*alpha={row.chooser.alpha}(,|;|$)"
    ):
        select_rows(["linucb:alph=1"])
    assert row.chooser.alpha != type(row.chooser)().alpha
