"""Which parts go together, what an agent can do, and every refusal by name."""

from dataclasses import dataclass, field, replace
from typing import Any, Protocol, get_args, get_type_hints

import numpy as np
import pytest

from unfog.agents import agent as agents
from unfog.agents import base
from unfog.agents.agent import Abilities, Agent, check_fit
from unfog.agents.base import (
    Chooser,
    Corrects,
    Denoiser,
    Evidence,
    Learner,
    LooksBack,
    Rewinds,
    SeesBias,
    Smooths,
)
from unfog.agents.baselines import BASELINES
from unfog.agents.catalogue import AGENTS
from unfog.agents.choose import Thompson, Ucb
from unfog.agents.denoise import (
    Drift,
    Exact,
    Identity,
    Incomplete,
    KnownBias,
    PlugIn,
    PriorOnly,
    Robust,
    Temporal,
    UnknownNoise,
)
from unfog.agents.learn import (
    LMC,
    PG,
    Adf,
    Conjugate,
    Coupled,
    Hetero,
    Joint,
    Laplace,
    Revisable,
    Smoothing,
)
from unfog.channel.knowledge import Knowledge
from unfog.features import FeatureMap
from unfog.features.quadratic import quadratic
from unfog.features.quadrature import quadrature
from unfog.maths.arrays import Array
from unfog.simulation import play
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem, LogisticProblem

SMALL: Any = {"rounds": 3, "trials": 2}
USUAL: Any = {"rewards": "gaussian", "partial": False, "has_bias": True}
PROBLEM = GaussianProblem(dim=2, actions=3)
KNOWN, FEATURES = PROBLEM.knowledge(), quadratic(np.zeros((3, 2)))


def mine(**parts: Any) -> Agent:
    """An agent of good parts but for these."""
    return Agent(**{"name": "mine", "denoiser": Exact(), "learner": Hetero(), "chooser": Ucb(), **parts})


def refused(**parts: Any) -> str:
    with pytest.raises(InputError) as complaint:
        mine(**parts)
    assert "\n" not in str(complaint.value)
    return str(complaint.value)


@dataclass
class Soft(Chooser):
    """Not frozen."""

    name = "soft"
    note = "can be changed"

    def normals(self, known: Knowledge) -> int:
        return 0

    def choose(self, view: Any, normals: Array) -> Any:
        raise NotImplementedError

    def probabilities(self, view: Any, draws: Array) -> Array:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Listed(Ucb):
    """With a setting that cannot be hashed."""

    levels: list[float] = field(default_factory=list)


class Heir(Ucb):
    """Of a frozen dataclass, but none itself: what it has besides would be no setting."""


class Short:
    """Of no contract, and a method short."""

    name = "short"
    note = "too short"
    propensity, cost = "exact", 0.0

    def normals(self, known: Knowledge) -> int:
        return 0

    def choose(self, view: Any, normals: Array) -> Any:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Ranks(Conjugate):
    """For rewards that nobody knows."""

    name = "ranks"
    rewards = "ranks"


def test_a_class_is_no_part() -> None:
    for place, part in [("denoiser", Drift), ("learner", LMC), ("chooser", Ucb), ("binary_learner", Adf)]:
        check_a_class_is_no_part(place, part)


def check_a_class_is_no_part(place: str, part: Any) -> None:
    told = f"mine.{place}: the class {part.__name__}; allowed: an instance: {part.__name__}()"
    assert refused(**{place: part}) == told


def test_a_part_must_be_frozen() -> None:
    assert refused(chooser=Soft()) == "mine.chooser: Soft can be changed; allowed: a frozen dataclass"
    assert refused(chooser=Heir()) == "mine.chooser: Heir can be changed; allowed: a frozen dataclass"


def test_settings_must_be_hashable() -> None:
    told = refused(chooser=Listed(levels=[0.9]))
    assert told.startswith(
        "mine.chooser: Listed: unhashable type: 'list'; allowed: settings that can be hashed"
    )


def test_what_lacks_a_method_is_told_which() -> None:
    told = refused(chooser=Short())
    lacks = "choose_with_probabilities, draws_theta, interpreted, misses, needs_learner, "
    assert told.startswith(
        f"mine.chooser: Short has no {lacks}probabilities, takes_candidates; allowed: an instance"
    )
    assert "inherits Chooser of agents/base.py" in told


@dataclass(frozen=True, kw_only=True)
class Picky(Ucb):
    """For one kind of learner."""

    name = "picky"
    needs_learner = (Hetero,)


@dataclass(frozen=True, kw_only=True)
class Odd(Hetero):
    """With a belief that is no Gaussian."""

    name = "odd"
    own_belief = True


@dataclass(frozen=True, kw_only=True)
class Untold(Ucb):
    """Says not of what kind."""

    needs_learner = "hetero"  # type: ignore[assignment]


def test_a_chooser_for_one_learner_is_refused_beside_others() -> None:
    told = "mine.chooser: 'picky' beside the learner 'conjugate'; allowed: beside it the learner 'hetero'"
    assert refused(chooser=Picky(), learner=Conjugate()) == told
    assert mine(chooser=Picky()).chooser == Picky()
    assert refused(chooser=Untold()).startswith("mine.chooser.needs_learner: 'hetero'; allowed: a tuple")


def test_a_belief_for_one_chooser_is_refused_beside_others() -> None:
    told = (
        "mine.learner: 'odd' beside the chooser 'ucb'; allowed: beside it the chooser that its belief is for"
    )
    assert refused(learner=Odd()) == told
    assert mine(chooser=Picky(), learner=Odd()).learner == Odd()


def test_what_is_no_part_at_all_is_refused() -> None:
    for place, contract in [("denoiser", "Denoiser"), ("learner", "Learner")]:
        for wrong in [None, "pg", 3]:
            check_what_is_no_part_at_all_is_refused(wrong, place, contract)


def check_what_is_no_part_at_all_is_refused(wrong: Any, place: str, contract: str) -> None:
    told = refused(**{place: wrong})
    assert told.startswith(f"mine.{place}: {type(wrong).__name__} has no ")
    assert f"inherits {contract} of agents/base.py" in told


def test_a_part_in_the_place_of_another_is_refused() -> None:
    assert refused(learner=Exact()).startswith("mine.learner: Exact has no ")
    assert refused(denoiser=Conjugate()).startswith("mine.denoiser: Conjugate has no ")
    assert refused(binary_learner=Ucb()).startswith("mine.binary_learner: Ucb has no ")


def test_rewards_of_no_known_kind_are_refused() -> None:
    assert refused(learner=Ranks()) == "mine.learner.rewards: 'ranks'; allowed: gaussian, bernoulli"
    assert (
        refused(binary_learner=Ranks())
        == "mine.binary_learner.rewards: 'ranks'; allowed: gaussian, bernoulli"
    )


def test_a_learner_that_looks_back_needs_a_denoiser_that_rewinds() -> None:
    lacking = Identity(), KnownBias(), PriorOnly(), PlugIn(), Drift(), Incomplete(), Robust(), UnknownNoise()
    for denoiser in lacking:
        assert not isinstance(denoiser, Rewinds)
        check_that_it_cannot_look_back(Smoothing(), denoiser)
    for learner in (Coupled(), Joint()):
        check_that_it_cannot_look_back(learner, PlugIn())


def check_that_it_cannot_look_back(learner: Learner, denoiser: Denoiser) -> None:
    told = refused(denoiser=denoiser, learner=learner)
    start = f"mine.learner: {learner.name!r} beside the denoiser {denoiser.name!r}; allowed: beside it"
    assert told.startswith(f"{start} a denoiser that can say what past contexts were")
    assert told.endswith("(Rewinds)")


def test_it_needs_one_that_goes_by_noisy_contexts_alone() -> None:
    told = refused(denoiser=Exact(pairs=True), learner=Smoothing())
    start = "mine.learner: 'smoothing' beside the denoiser 'exact'; allowed: beside it"
    assert told == f"{start} a denoiser that learns from noisy contexts alone"


@dataclass(frozen=True, kw_only=True)
class Plain(Chooser):
    """All that a chooser must have."""

    name = "plain"
    note = "always the first arm"

    def normals(self, known: Knowledge) -> int:
        return 0

    def choose(self, view: Any, normals: Array) -> Any:
        return np.zeros(normals.shape[:-1], np.intp)

    def probabilities(self, view: Any, draws: Array) -> Array:
        return np.broadcast_to([1.0, 0.0, 0.0], (*draws.shape[1:-1], 3))


def test_parts_of_ones_own_play() -> None:
    agent = mine(chooser=Plain())
    assert (agent.chooser.propensity, agent.chooser.cost) == ("estimated", 0.0)
    assert np.isfinite(play(PROBLEM, [agent], **SMALL).values["regret"]).all()


def test_what_an_agent_can_follows_from_its_parts() -> None:
    today = "oracle", "unfog", "unfog-oracle", "gaps", "late", "unknown-noise", "alg2", "drift", "robust"
    assert [name for name in today if AGENTS[name].can.see_bias] == ["oracle", "unfog-oracle"]
    assert [name for name in today if AGENTS[name].takes_gaps] == ["gaps", "late"]
    assert [name for name in today if AGENTS[name].can.revise] == ["late", "unknown-noise"]
    assert all(AGENTS[name].can.look_back is None and AGENTS[name].can.sample is None for name in today)
    for row in AGENTS.values():
        if row.binary_learner in (LMC(), Adf(), Adf(marginal=True)):
            assert (row.for_rewards("bernoulli").can.sample is not None) == (row.binary_learner == LMC())
    for learner, able in ((Revisable(), True), (Hetero(), False)):
        for pairs in (False, True):
            agent = mine(denoiser=Incomplete(pairs=pairs), learner=learner)
            assert (agent.can.revise is not None) == (able and pairs)
            assert agent.awaits_context == (pairs and not able)
    assert mine(learner=PG(sweeps=3)).can.sample == PG(sweeps=3)
    assert mine(learner=Smoothing()).can.look_back == (Exact(), Smoothing())
    assert mine().can.look_back is None


HINTS = {name: get_args(kind)[0] for name, kind in get_type_hints(Abilities).items()}  # without the None
DECLARED = {name: get_args(kind) or (kind,) for name, kind in HINTS.items()}  # the protocols of an ability
EVERY_AGENT = [
    *AGENTS.values(),
    *(row.for_rewards("bernoulli") for row in AGENTS.values() if row.binary_learner),
    *(baseline.agent for baseline in BASELINES.values()),
    mine(learner=Smoothing()),
    mine(denoiser=Incomplete(), learner=Revisable()),
    mine(denoiser=Temporal(lag=2), learner=Revisable()),
]


def test_every_ability_is_looked_up() -> None:
    own = [one for one in vars(base).values() if isinstance(one, type) and one.__module__ == base.__name__]
    protocols = {one for one in own if Protocol in one.__bases__}
    others = {base.Part, Denoiser, Learner, Chooser, base.Counts}  # only one learner asks for the last
    assert protocols - others == {one for kinds in DECLARED.values() for one in kinds}


def test_an_agent_can_do_what_its_parts_declare() -> None:
    for name in DECLARED:
        check_an_agent_can_do_what_its_parts_declare(name)


def check_an_agent_can_do_what_its_parts_declare(name: str) -> None:
    found = 0
    for agent in EVERY_AGENT:
        parts = agent.denoiser, agent.learner, agent.chooser
        able = tuple(part for kind in DECLARED[name] for part in parts if kind in type(part).__mro__)
        lag = agent.denoiser.lag if isinstance(agent.denoiser, Smooths) else 0
        asked = {
            "revise": agent.sees_context,
            "revisit": lag > 0,
            "report_choice": agent.learner.needs_report != "",
        }
        whole = len(able) == len(DECLARED[name]) and asked.get(name, True)
        expected = None if not whole else able if len(able) > 1 else able[0]
        assert vars(agent.can)[name] == expected, agent.name
        found += whole
    assert found > 0


# With a problem.


def test_rewards_of_another_kind_are_refused() -> None:
    told = r"^agents: 'mine' learns from bernoulli rewards; allowed: agents for gaussian rewards$"
    for learner in (LMC(), PG(), Laplace(), Adf()):
        with pytest.raises(InputError, match=told):
            check_fit(mine(learner=learner), KNOWN, FEATURES, **USUAL)
    check_fit(mine(learner=PG()), KNOWN, FEATURES, **{**USUAL, "rewards": "bernoulli"})
    with pytest.raises(
        InputError, match=r"'mine' learns from gaussian rewards; allowed: agents for bernoulli"
    ):
        play(LogisticProblem(dim=2), [mine()], **SMALL)


def waves(action: Array, context: Array) -> Array:
    xp = context.__array_namespace__()
    found: Array = xp.sin(action * context)
    return found


def test_features_that_lack_an_ability_are_refused() -> None:
    other: FeatureMap = quadrature(waves, 2)(np.zeros((3, 2)))
    told = r"^mine\.learner: 'joint' with the features Quadrature; allowed: with it a feature map, linear or"
    with pytest.raises(InputError, match=told):
        check_fit(mine(learner=Joint()), KNOWN, other, **USUAL)
    check_fit(mine(learner=Joint()), KNOWN, FEATURES, **USUAL)
    check_fit(mine(), KNOWN, other, **USUAL)


def test_a_prior_in_other_blocks_than_the_features_is_refused() -> None:
    cut = KNOWN._replace(prior_cov=np.stack([np.eye(2)] * 3))
    told = r"^mine\.learner: 'smoothing' with this prior in blocks; allowed: a prior in one piece$"
    with pytest.raises(InputError, match=told):
        check_fit(mine(learner=Smoothing()), cut, FEATURES, **USUAL)


def test_settings_that_are_not_for_the_problem_are_refused() -> None:
    narrow = KNOWN._replace(prior_cov=0.01 * np.eye(6))
    bernoulli: Any = {**USUAL, "rewards": "bernoulli"}
    with pytest.raises(
        InputError, match=r"^mine\.rate: 0\.2 is too long a step for a prior precision of 100"
    ):
        check_fit(mine(learner=LMC()), narrow, FEATURES, **bernoulli)


def test_who_needs_every_context_is_refused_where_some_come_late() -> None:
    partial: Any = {**USUAL, "partial": True}
    allowed = "allowed: agents that take true contexts late and in part, or go without$"
    with pytest.raises(InputError, match=rf"^agents: 'mine' needs every true context at once; {allowed}"):
        check_fit(mine(denoiser=Exact(pairs=True)), KNOWN, FEATURES, **partial)
    told = rf"^agents: the learner of 'mine' needs every true context at once; {allowed}"
    with pytest.raises(InputError, match=told):
        check_fit(mine(denoiser=Incomplete(pairs=True)), KNOWN, FEATURES, **partial)
    revising = mine(denoiser=Incomplete(pairs=True), learner=Revisable())
    for agent in (revising, mine(), mine(denoiser=Incomplete())):
        check_fit(agent, KNOWN, FEATURES, **partial)


def test_who_is_told_the_bias_is_refused_where_there_is_none() -> None:
    without: Any = {**USUAL, "has_bias": False}
    told = r"^agents: 'mine' is told the bias; allowed: agents that need not be told: this world has none$"
    with pytest.raises(InputError, match=told):
        check_fit(mine(denoiser=KnownBias()), KNOWN, FEATURES, **without)
    check_fit(mine(denoiser=KnownBias()), KNOWN, FEATURES, **USUAL)
    check_fit(mine(), KNOWN, FEATURES, **without)


def test_a_row_for_the_other_kind_of_rewards() -> None:
    both = mine(binary_learner=Adf())
    assert both.for_rewards("gaussian") is both
    assert both.for_rewards("bernoulli") == replace(both, learner=Adf())
    with pytest.raises(KeyError):
        mine().for_rewards("bernoulli")
    told = r"^mine\.binary_learner: Hetero\(surprise=False\); allowed: a learner for rewards of 0 or 1"
    with pytest.raises(InputError, match=told):
        mine(binary_learner=Hetero())


def test_names_do_not_make_agents_differ() -> None:
    yours = replace(mine(), name="yours")
    assert mine().same_as(yours)
    assert mine() != yours
    for change in ({"denoiser": PlugIn()}, {"learner": Conjugate()}, {"chooser": Thompson()}):
        assert not mine().same_as(mine(**change))


def test_every_place_is_looked_at() -> None:
    assert list(agents.PLACES) == ["denoiser", "learner", "chooser"]


@dataclass(frozen=True, kw_only=True)
class Back(Conjugate, LooksBack):
    """It looks back, and does not say what it needs for that."""

    name = "back"

    def look_back(self, parameters: Any, state: Any, features: Any, hindsight: Any, noisy: Array) -> Any:
        raise AssertionError


@dataclass(frozen=True, kw_only=True)
class Mute(Learner):
    """It does not say what it is for."""

    name = "mute"
    note = "says little"

    def setup(self, known: Knowledge) -> Any:
        return ()

    def start(self, known: Knowledge, rounds: int | None) -> Any:
        return ()

    def belief(self, parameters: Any, state: Any) -> Any:
        return state

    def update(self, parameters: Any, state: Any, evidence: Evidence, reward: Array) -> Any:
        return state


@dataclass(frozen=True, kw_only=True)
class Single(Conjugate):
    """Its needs are not a tuple."""

    name = "single"
    needs = Rewinds  # type: ignore[assignment]


@dataclass(frozen=True, kw_only=True)
class Wants(Conjugate):
    """It needs to correct and to be told."""

    name = "wants"
    needs = (SeesBias, Corrects)


def test_what_a_learner_needs_or_forgets_is_said_by_name() -> None:
    assert "beside it a denoiser that can say what past contexts were" in refused(
        denoiser=PlugIn(), learner=Back()
    )
    mute: Any = Mute
    assert refused(learner=mute()).startswith("mine.learner: Mute has no rewards; allowed: ")
    assert refused(learner=Single()).startswith("mine.learner.needs: <class")
    assert refused(learner=Wants()).endswith("beside it a denoiser that is told the bias (SeesBias)")
    assert "true contexts that come late" in refused(denoiser=KnownBias(), learner=Wants())


def test_an_agent_has_a_name() -> None:
    for name in ["", " ", 5, None, "a\nb"]:
        check_an_agent_has_a_name(name)


def check_an_agent_has_a_name(name: Any) -> None:
    with pytest.raises(InputError, match=r"^name: .*; allowed: a word, on one line"):
        Agent(name, Exact(), Hetero(), Ucb())
