"""A fault planted for each rule is refused, by the name of the part and of the rule."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from unfog import testing
from unfog.agents.base import Chooser, Denoiser, Evidence, Learner, LooksBack, Privilege, Rewinds, Term, View
from unfog.agents.baselines.clbbf import Imputed
from unfog.agents.baselines.meb import ClippedOptimism
from unfog.agents.choose import Epsilon, Greedy, Thompson
from unfog.agents.choose.greedy import best, for_all
from unfog.agents.denoise import Exact, Incomplete, KnownBias
from unfog.agents.learn import LMC, Conjugate, Revisable, Smoothing
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.features.base import certain
from unfog.features.linear import Product
from unfog.maths.arrays import Array, Ints
from unfog.testing import ContractError
from unfog.worlds import GaussianProblem
from unfog.worlds.problem import Emission


@dataclass(frozen=True, kw_only=True)
class Peeks(Exact):
    name = "peeks"

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Any:
        if privilege is not None:
            known = known._replace(context_mean=known.context_mean + privilege.bias)
        return super().setup(known, None)


@dataclass(frozen=True, kw_only=True)
class Deaf(KnownBias):
    name = "deaf"

    def with_bias(self, parameters: Any, bias: Array) -> Any:
        return parameters


@dataclass(frozen=True, kw_only=True)
class ListState(Exact):
    name = "list_state"

    def start(self, parameters: Any) -> Any:
        return [np.zeros(2)]


@dataclass(frozen=True, kw_only=True)
class FloatState(Exact):
    name = "float_state"

    def start(self, parameters: Any) -> Any:
        return super().start(parameters)._replace(seen=0.0)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Writes(Exact):
    name = "writes"

    def update(self, parameters: Any, state: Any, noisy: Array, context: Any) -> Any:
        noisy -= parameters.mean
        return super().update(parameters, state, noisy, context)


@dataclass(frozen=True, kw_only=True)
class Mixes(Exact):
    name = "mixes"

    def predict(self, parameters: Any, state: Any, noisy: Array) -> Context:
        mean, cov = super().predict(parameters, state, noisy)
        return Context(mean + noisy.mean(0), cov)


@dataclass(frozen=True, kw_only=True)
class Lopsided(Exact):
    name = "lopsided"

    def predict(self, parameters: Any, state: Any, noisy: Array) -> Context:
        mean, cov = super().predict(parameters, state, noisy)
        return Context(mean, cov + np.triu(np.ones((2, 2)), 1))


@dataclass(frozen=True, kw_only=True)
class Forgets(Incomplete):
    name = "forgets"

    def correct(self, parameters: Any, state: Any, noisy: Array, before: Array, after: Array) -> Any:
        new, context = super().correct(parameters, state, noisy, before, after)
        return new._replace(natural_mean=0.5 * new.natural_mean), context


@dataclass(frozen=True, kw_only=True)
class Inventive(Incomplete):
    name = "inventive"

    def predict(self, parameters: Any, state: Any, noisy: Array) -> Context:
        mean, cov = super().predict(parameters, state, noisy)
        return Context(mean + 0.1, cov)


@dataclass(frozen=True, kw_only=True)
class Superstitious(Imputed):
    """It goes by readings alone, and reads something into those that were lost."""

    name = "superstitious"

    def predict(self, parameters: Any, state: Any, noisy: Array) -> Context:
        mean, cov = super().predict(parameters, state, noisy)
        return Context(mean + 0.1 * state.rounds, cov)


@dataclass(frozen=True, kw_only=True)
class Changeable(Exact):
    name = "changeable"
    setting: Any = None


@dataclass(kw_only=True)
class Thawed(Chooser):
    name = "thawed"
    note = "can be changed"

    def normals(self, known: Knowledge) -> int:
        return 0

    def choose(self, view: View, normals: Array) -> Ints:
        return Greedy().choose(view, normals)

    def probabilities(self, view: View, draws: Array) -> Array:
        return Greedy().probabilities(view, draws)


@dataclass(frozen=True, kw_only=True)
class Counts(Exact):
    name = "counts"

    def start(self, parameters: Any) -> Any:
        return super().start(parameters)._replace(seen=np.zeros((), np.int64))


@dataclass(frozen=True, kw_only=True)
class Flags(Exact):
    name = "flags"

    def update(self, parameters: Any, state: Any, noisy: Array, context: Any) -> Any:
        found = super().update(parameters, state, noisy, context)
        return found._replace(seen=np.ones(noisy.shape[:-1], bool))


@dataclass(frozen=True, kw_only=True)
class Nameless(Denoiser):
    """It has no name, and no note."""

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Any:
        return known.context_cov

    def predict(self, parameters: Any, state: Any, noisy: Array) -> Context:
        return Context(noisy, parameters)


@dataclass(frozen=True, kw_only=True)
class Noteless(Nameless):
    name = "noteless"


class Bare:
    """No part at all."""


@pytest.mark.parametrize(
    ("part", "rule"),
    [
        (Peeks(), "'peeks': reads 'bias' of the privilege"),
        (Deaf(), "'deaf': declares SeesBias and makes nothing of the bias"),
        (ListState(), "'list_state': a state is a tuple of arrays, and this one holds a list"),
        (FloatState(), "'float_state': a state is a tuple of arrays, and this one holds a float"),
        (Writes(), "'writes': writes into its arguments"),
        (Mixes(), "'mixes': a trial's belief depends on the trials beside it"),
        (Lopsided(), "'lopsided': its covariance is not symmetric"),
        (Forgets(pairs=True), "'forgets': true contexts that come late give another state"),
        (Counts(), "'counts': a state holds an array of int64; floats alone"),
        (Flags(), "'flags': a state holds an array of bool; floats alone"),
        (Nameless(), "Nameless.*name"),  # type: ignore[abstract]
        (Noteless(), "(?i)Noteless.*note"),  # type: ignore[abstract]
        (Inventive(), "'inventive': takes gaps, and makes something of a context that was lost"),
        (Superstitious(), "'superstitious': takes gaps, and learns from what was lost"),
        (Changeable(setting=[1]), "Changeable: .*unhashable"),
        (Changeable(setting=lambda: 0), "'changeable': cannot be pickled"),
        (Bare(), "Bare has no .*predict"),
        (Exact, "the class Exact"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_denoisers(part: Any, rule: str) -> None:
    with pytest.raises(ContractError, match=rule):
        testing.check_denoiser(part)


def test_an_ability_that_is_declared_must_be_there() -> None:
    """Python itself refuses to make such a part, by the name of what it lacks."""

    @dataclass(frozen=True, kw_only=True)
    class Boasts(Conjugate, LooksBack):
        name = "boasts"

    @dataclass(frozen=True, kw_only=True)
    class Pretends(Denoiser, Rewinds):
        name = "pretends"

    with pytest.raises(TypeError, match=r"Boasts with.* abstract method '?look_back"):
        Boasts()  # type: ignore[abstract]
    with pytest.raises(TypeError, match=r"Pretends with.* abstract methods '?hindsight'?, '?predict"):
        Pretends()  # type: ignore[abstract]


@dataclass(frozen=True, kw_only=True)
class Learns(Conjugate):
    name = "learns"

    def update(self, parameters: Any, state: Any, evidence: Evidence, reward: Array) -> Any:
        return state


@dataclass(frozen=True, kw_only=True)
class Loose(Conjugate):
    name = "loose"

    def update(self, parameters: Any, state: Any, evidence: Evidence, reward: Array) -> Any:
        return {"belief": super().update(parameters, state, evidence, reward)}


@dataclass(frozen=True, kw_only=True)
class Gossips(Conjugate):
    name = "gossips"

    def update(self, parameters: Any, state: Any, evidence: Evidence, reward: Array) -> Any:
        return super().update(parameters, state, evidence, reward + reward.mean())


@dataclass(frozen=True, kw_only=True)
class Sloppy(Revisable):
    name = "sloppy"

    def replace(self, parameters: Any, state: Any, old: Term | None, new: Term, reward: Array) -> Any:
        old = None if old is None else old._replace(variance=1.1 * old.variance)
        return super().replace(parameters, state, old, new, reward)


@dataclass(frozen=True, kw_only=True)
class Nonsense(Conjugate):
    name = "nonsense"
    rewards = "poisson"


@dataclass(frozen=True, kw_only=True)
class Tallies(Conjugate):
    """Its state is a pair of what it believes, and a count."""

    name = "tallies"

    def start(self, known: Knowledge, rounds: int | None) -> Any:
        return super().start(known, rounds), np.zeros((), np.int64)

    def belief(self, parameters: Any, state: Any) -> Any:
        return super().belief(parameters, state[0])

    def update(self, parameters: Any, state: Any, evidence: Evidence, reward: Array) -> Any:
        return super().update(parameters, state[0], evidence, reward), state[1] + 1


@dataclass(frozen=True, kw_only=True)
class Scribbles(Conjugate):
    name = "scribbles"

    def update(self, parameters: Any, state: Any, evidence: Evidence, reward: Array) -> Any:
        reward -= 1.0
        return super().update(parameters, state, evidence, reward)


@dataclass(frozen=True, kw_only=True)
class Trembles(LMC):
    name = "trembles"
    steps: int = 2

    def step(self, parameters: Any, state: Any, normals: Array) -> Any:
        normals *= 2.0
        return super().step(parameters, state, normals)


@dataclass(frozen=True, kw_only=True)
class Silent(Learner):
    """It does not say which rewards it is for."""

    name = "silent"
    note = "for who knows what"

    def setup(self, known: Knowledge) -> Any:
        return ()

    def start(self, known: Knowledge, rounds: int | None) -> Any:
        return ()

    def belief(self, parameters: Any, state: Any) -> Any:
        return None

    def update(self, parameters: Any, state: Any, evidence: Evidence, reward: Array) -> Any:
        return ()


@dataclass(frozen=True, kw_only=True)
class Needy(Conjugate):
    name = "needy"
    needs = Rewinds  # type: ignore[assignment]


@dataclass(frozen=True, kw_only=True)
class Picky(Conjugate):
    name = "picky"
    needs_features = ["Liftable"]  # type: ignore[assignment]  # noqa: RUF012


@dataclass(frozen=True, kw_only=True)
class Demanding(Conjugate):
    name = "demanding"
    needs = (Rewinds,)

    def check(self, known: Knowledge, features: Any) -> None:
        from unfog.validation import InputError

        raise InputError("learner", "'demanding' with five arms", "six")


@pytest.mark.parametrize(
    ("part", "rule"),
    [
        (Learns(), "'learns': learns nothing from rewards"),
        (Loose(), "'loose': a state is a tuple of arrays, and this one holds a dict"),
        (Gossips(), "'gossips': a trial's belief depends on the trials beside it"),
        (Sloppy(), "'sloppy': takes back something else than it took in"),
        (Nonsense(), "'poisson'; allowed: gaussian, bernoulli"),
        (Tallies(), "'tallies': a state holds an array of int64; floats alone"),
        (Scribbles(), "'scribbles': writes into its arguments"),
        (Trembles(), "'trembles': writes into its arguments"),
        (Silent(), "Silent.*rewards"),  # type: ignore[abstract]
        (Needy(), "needs.*Rewinds"),
        (Picky(), "needs_features.*Liftable"),
        (Demanding(), "'demanding' with five arms; allowed: six"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_learners(part: Any, rule: str) -> None:
    with pytest.raises(ContractError, match=rule):
        testing.check_learner(part)


def test_a_learner_that_needs_what_the_denoiser_has_not() -> None:
    with pytest.raises(ContractError, match="'smoothing' beside the denoiser 'known_bias'"):
        testing.check_learner(Smoothing(), KnownBias())


@dataclass(frozen=True, kw_only=True)
class Blind(Greedy):
    name = "blind"

    def choose(self, view: View, normals: Array) -> Ints:
        return for_all(best(view.design.scores(view.belief.centre)), normals)


@dataclass(frozen=True, kw_only=True)
class Overconfident(Thompson):
    name = "overconfident"

    def probabilities(self, view: View, draws: Array) -> Array:
        return super().probabilities(view, draws) ** 2


@dataclass(frozen=True, kw_only=True)
class Liar(Epsilon):
    name = "liar"

    def probabilities(self, view: View, draws: Array) -> Array:
        return Epsilon(epsilon=self.epsilon / 2).probabilities(view, draws)


@dataclass(frozen=True, kw_only=True)
class Halves(Greedy):
    name = "halves"

    def choose(self, view: View, normals: Array) -> Any:
        return super().choose(view, normals) * 1.0


@dataclass(frozen=True, kw_only=True)
class Astray(Greedy):
    """It chooses an arm that there is not."""

    name = "astray"
    arm: int = 99

    def choose(self, view: View, normals: Array) -> Ints:
        return np.full_like(super().choose(view, normals), self.arm)


@dataclass(frozen=True, kw_only=True)
class Anonymous(Chooser):
    """It has no name, and no note."""

    def normals(self, known: Knowledge) -> int:
        return 0

    def choose(self, view: View, normals: Array) -> Ints:
        return Greedy().choose(view, normals)


@dataclass(frozen=True, kw_only=True)
class Misquoted(ClippedOptimism):
    """It reports another probability than it chooses with."""

    name = "misquoted"

    def choose_and_report(self, view: View, normals: Array) -> tuple[Ints, Array]:
        arm, told = super().choose_and_report(view, normals)
        return arm, told / 2


@pytest.mark.parametrize(
    ("part", "rule"),
    [
        (Misquoted(), "'misquoted': reports another probability than it chooses with"),
        (Astray(), r"'astray': chooses arm 99, where arms are numbered 0 to 4"),
        (Astray(arm=-1), r"'astray': chooses arm -1, where arms are numbered 0 to 4"),
        (Anonymous(), "Anonymous.*name"),  # type: ignore[abstract]
        (Blind(), "'blind': ignores the mask"),
        (Overconfident(), "'overconfident': its probabilities do not add up to one"),
        (Liar(epsilon=0.2), "'liar': says exact probabilities with which it does not choose"),
        (Halves(), "'halves': chooses what is no whole number"),
        (Thawed(), "Thawed can be changed"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_choosers(part: Any, rule: str) -> None:
    with pytest.raises(ContractError, match=rule):
        testing.check_chooser(part)


class Wrong(NamedTuple):
    """A design with one method replaced."""

    design: Any
    method: str
    by: Any

    def __getattr__(self, name: str) -> Any:
        real = getattr(self.design, name)
        return (lambda *a: self.by(real(*a))) if name == self.method else real


class Tampered(Product):
    """A map whose designs have one method replaced where the context is not known exactly."""

    method = ""

    def at(self, context: Any) -> Any:
        return super().design(certain(context))

    def design(self, context: Context) -> Any:
        return Wrong(super().design(context), self.method, lambda x: 1.3 * x)


@pytest.mark.parametrize(
    ("method", "rule"),
    [
        ("row", "is not the mean of phi"),
        ("covariance", "is not that of phi"),
        ("scores", "scores are not rows times theta"),
        ("variances", "variances are not those of the scores"),
        ("context_variance", "context_variance is off"),
        ("context_slope", "context_slope is off"),
    ],
)
def test_feature_maps(method: str, rule: str) -> None:
    kind: Any = type("Mine", (Tampered,), {"method": method})
    with pytest.raises(ContractError, match=f"feature map Mine: .*{rule}"):
        testing.check_feature_map(kind, np.random.default_rng(3).standard_normal((4, 2)), dim=2)


@dataclass(frozen=True, kw_only=True, eq=False)
class Leaks(GaussianProblem):
    """Trials are not independent."""

    def emit(self, truth: Any, normals: Array, number: Any = None) -> Emission:
        found = super().emit(truth, normals, number)
        return found._replace(noisy=found.noisy + found.noisy.mean(0))


@dataclass(frozen=True, kw_only=True, eq=False)
class Miscounts(GaussianProblem):
    """It says another number of arms than its features have."""

    def arms(self) -> int:
        return 7


@dataclass(frozen=True, kw_only=True, eq=False)
class Bankrupt(GaussianProblem):
    """It pays nothing that is a number."""

    def reward(self, score: Array, normals: Array) -> Array:
        return score / 0 * 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Returns(GaussianProblem):
    """Its time goes back."""

    def emit(self, truth: Any, normals: Array, number: Any = None) -> Emission:
        return super().emit(truth, normals, number)._replace(at=-number * np.ones(len(normals)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Strangers(GaussianProblem):
    """Rounds belong to units that it does not tell of."""

    def emit(self, truth: Any, normals: Array, number: Any = None) -> Emission:
        return super().emit(truth, normals, number)._replace(unit=np.full(len(normals), 2))


@dataclass(frozen=True, kw_only=True, eq=False)
class Hides(GaussianProblem):
    """It says nothing of what it shows."""

    def reveal_mask(self, uniforms: Array, number: Any) -> None:
        return None


@dataclass(frozen=True, kw_only=True)
class Compared(GaussianProblem):
    """It equals worlds with the same fields, which may be lists."""


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
@pytest.mark.parametrize(
    ("world", "rule"),
    [
        (Returns(dim=2, actions=4), "Returns: time is not finite, or goes back"),
        (Strangers(dim=2, actions=4, units=2), "Strangers: a round's unit is not a whole number from 0 to 1"),
        (Hides(dim=2, actions=4, revealed=0.5), "Hides: what is shown is not a number for each context"),
        (
            Compared(context_mean=[0.0] * 5),
            "Compared: cannot be hashed .*'list'.*: write @dataclass.*eq=False",
        ),
        (Leaks(), "Leaks: a trial depends on the trials beside it"),
        (Miscounts(), "Miscounts: arms\\(\\) is not how many arms the features have"),
        (Bankrupt(), "Bankrupt: a reward is not a number a trial"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_worlds(world: Any, rule: str) -> None:
    with pytest.raises(ContractError, match=rule):
        testing.check_world(world)
