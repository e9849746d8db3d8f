"""Every chooser against its definition, worked out arm by arm, and all of them against one contract."""

from collections import defaultdict
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2, norm

from tests.problems import every_row, spd
from unfog.agents.catalogue import Catalogue
from unfog.agents.choose import thompson
from unfog.agents.choose.epsilon import Epsilon
from unfog.agents.choose.greedy import Greedy
from unfog.agents.choose.ids import Ids, cheapest_pair
from unfog.agents.choose.top_two import TopTwo
from unfog.agents.choose.ucb import Ucb
from unfog.agents.parts import Chooser
from unfog.features import Context, Design
from unfog.features.per_arm import PerArm
from unfog.features.quadratic import quadratic
from unfog.inputs import InputError
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.blocks import from_moments, whole
from unfog.maths.gaussian import Gaussian
from unfog.maths.normal import uniforms
from unfog.model.knowledge import Knowledge
from unfog.simulate import simulate
from unfog.worlds.gaussian import GaussianProblem

T, K, D, M = 24, 5, 3, 9  # trials, arms, dimensions, features
NOW = np.asarray(7)
CHOOSERS: dict[str, Chooser] = {
    "thompson": thompson,
    "greedy": Greedy(),
    "ucb": Ucb(),
    "ucb growing": Ucb(quantile=0.8, growth=1.0),
    "epsilon": Epsilon(epsilon=0.3),
    "epsilon falling": Epsilon(epsilon=0.9, decay=0.5),
    "ids": Ids(),
    "ids wide": Ids(quantile=0.999),
    "ids drawn": Ids(samples=12),
    "top two": TopTwo(),
    "top two short": TopTwo(beta=0.7, redraws=1),
}
every = pytest.mark.parametrize("chooser", CHOOSERS.values(), ids=list(CHOOSERS))


class Case:
    """A batch of rounds, and one round of it at a time."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.actions = rng.normal(size=(T, K, D))
        self.context = Context(rng.normal(1.0, 1.0, (T, D)), spd(rng, D))
        scales = np.geomspace(1.0, 0.01, M)  # some directions are known well, so that arms differ in worth
        self.belief = Gaussian(rng.normal(size=(T, M)), scales * rng.normal(size=(T, M, M)))
        self.design: Design = quadratic(self.actions).design(self.context)

    def one(self, trial: int) -> tuple[Design, Gaussian]:
        context = Context(self.context.mean[trial], self.context.cov)
        belief = Gaussian(self.belief.mean[trial], self.belief.root[trial])
        return quadratic(self.actions[trial]).design(context), belief

    def explicit(self, trial: int) -> tuple[Array, Array, Array]:
        """Features of every arm as a matrix, and mean and covariance of the scores."""
        design, belief = self.one(trial)
        rows = every_row(design, K)
        return rows, rows @ belief.mean, rows @ belief.root @ belief.root.T @ rows.T


@pytest.fixture
def case() -> Case:
    """With this seed some rounds of every kind have two arms that share the law of `ids`."""
    return Case(np.random.default_rng(9))


@every
def test_arms_are_whole_numbers_in_range_and_trials_decide_apart(
    chooser: Chooser, case: Case, known: Knowledge, rng: np.random.Generator
) -> None:
    for _ in range(8):
        normals = rng.standard_normal((T, chooser.normals(known)))
        arms = chooser.choose(case.design, case.belief, normals, NOW)
        assert (arms.shape, arms.dtype) == ((T,), np.dtype(np.intp))
        assert arms.min() >= 0
        assert arms.max() < K
        alone = [chooser.choose(*case.one(i), normals[i], NOW) for i in range(T)]
        assert all(arm.shape == () for arm in alone)
        assert arms.tolist() == alone


@every
def test_rounds_may_differ_between_trials(
    chooser: Chooser, case: Case, known: Knowledge, rng: np.random.Generator
) -> None:
    numbers, normals = np.arange(T) ** 4, rng.standard_normal((T, chooser.normals(known)))
    arms = chooser.choose(case.design, case.belief, normals, numbers)
    assert arms.tolist() == [
        chooser.choose(*case.one(i), normals[i], np.asarray(numbers[i])) for i in range(T)
    ]


@every
def test_trials_that_share_everything_but_their_normals_all_get_an_arm(
    chooser: Chooser, case: Case, known: Knowledge, rng: np.random.Generator
) -> None:
    normals = rng.standard_normal((T, chooser.normals(known)))
    arms = chooser.choose(*case.one(0), normals, NOW)
    assert arms.tolist() == [chooser.choose(*case.one(0), normals[i], NOW) for i in range(T)]


@every
def test_odds_are_probabilities(
    chooser: Chooser, case: Case, known: Knowledge, rng: np.random.Generator
) -> None:
    draws = rng.standard_normal((20, T, chooser.normals(known)))
    odds = [chooser.probability(case.design, case.belief, np.full(T, a), draws, NOW) for a in range(K)]
    assert all(x.shape == (T,) and x.dtype == np.float64 and x.min() >= 0 and x.max() <= 1 for x in odds)
    np.testing.assert_allclose(sum(odds), 1, rtol=1e-14)
    alone = chooser.probability(*case.one(2), np.asarray(1), draws[:, 2], NOW)
    assert alone.shape == ()
    assert alone == pytest.approx(odds[1][2], rel=1e-12)
    assert chooser.odds in ("exact", "estimated")
    fewer = chooser.probability(case.design, case.belief, np.full(T, 1), draws[:1], NOW)
    if chooser.odds == "exact":
        np.testing.assert_array_equal(fewer, odds[1])


@every
def test_arms_come_as_often_as_their_odds_say(
    chooser: Chooser, case: Case, known: Knowledge, rng: np.random.Generator
) -> None:
    played, asked, width = 20_000, 4_000, chooser.normals(known)
    some = rng.standard_normal((50, T, width))
    rough = np.stack(
        [chooser.probability(case.design, case.belief, np.full(T, a), some, NOW) for a in range(K)]
    )
    open_ones = np.argsort((rough**2).sum(0))[:2]  # the two trials in which most is left to chance
    assert (rough[:, open_ones[0]].max() == 1) == isinstance(chooser, Greedy | Ucb)
    for trial in open_ones:
        one = case.one(trial)
        arms = chooser.choose(*one, rng.standard_normal((played, width)), NOW)
        share = np.bincount(arms, minlength=K) / played
        draws = rng.standard_normal((asked, width))
        odds = np.array([chooser.probability(*one, np.asarray(a), draws, NOW) for a in range(K)])
        guessed = chooser.odds == "estimated"
        noise = odds * (1 - odds) * (1 / played + guessed / asked)
        # Five standard errors: among ten arms a right chooser fails with probability 6e-6.
        assert np.all(np.abs(share - odds) <= 5 * np.sqrt(noise) + 1e-3 * guessed)


@every
def test_numpy_and_compiled_jax_agree(
    chooser: Chooser, case: Case, known: Knowledge, rng: np.random.Generator
) -> None:
    width = chooser.normals(known)
    normals, draws = rng.standard_normal((T, width)), rng.standard_normal((3, T, width))

    def play(
        actions: Array, context: Context, belief: Gaussian, normals: Array, draws: Array, now: Any
    ) -> Any:
        design = quadratic(actions).design(context)
        arm = chooser.choose(design, belief, normals, now)
        return arm, chooser.probability(design, belief, arm, draws, now)

    given = case.actions, case.context, case.belief, normals, draws, NOW
    right = play(*given)
    found = jax.jit(play)(*jax.tree.map(jnp.asarray, given))
    assert [x.dtype for x in found] == [x.dtype for x in right]
    assert found[0].tolist() == right[0].tolist()
    np.testing.assert_allclose(found[1], right[1], rtol=1e-11)


@every
def test_single_precision_stays_single(
    chooser: Chooser, case: Case, known: Knowledge, rng: np.random.Generator
) -> None:
    def single(tree: Any) -> Any:
        return jax.tree.map(lambda x: x.astype(np.float32), tree)

    draws = rng.standard_normal((4, T, chooser.normals(known)))
    design = quadratic(single(case.actions)).design(single(case.context))
    odds = chooser.probability(design, single(case.belief), np.zeros(T, np.intp), single(draws), NOW)
    assert odds.dtype == np.float32
    right = chooser.probability(case.design, case.belief, np.zeros(T, np.intp), draws, NOW)
    np.testing.assert_allclose(odds, right, atol=2e-4)


@every
def test_a_belief_in_blocks_is_the_same_belief(chooser: Chooser, rng: np.random.Generator) -> None:
    arms, dim = 4, 2
    mean, covs = rng.normal(size=(arms, dim)), np.stack([spd(rng, dim) for _ in range(arms)])
    blocks = from_moments(mean.reshape(-1), covs)
    flat = gaussian.from_moments(mean.reshape(-1), whole(covs))
    np.testing.assert_array_equal(blocks.centre, flat.centre)
    design = PerArm(arms, dim, intercept=False).design(Context(rng.normal(size=(50, dim)), spd(rng, dim)))
    zero = np.zeros(dim)
    known = Knowledge(zero, covs[0], covs[0], covs[0], blocks.centre, covs)
    normals = rng.standard_normal((50, chooser.normals(known)))
    np.testing.assert_array_equal(
        chooser.choose(design, blocks, normals, NOW), chooser.choose(design, flat, normals, NOW)
    )


@every
def test_certainty_is_acted_upon(chooser: Chooser, case: Case, known: Knowledge) -> None:
    design, belief = case.one(0)
    sure = gaussian.certain(belief.mean)
    normals = np.full(chooser.normals(known), 0.957)  # a coin of 0.4: neither explores nor takes the second
    assert chooser.choose(design, sure, normals, NOW) == case.explicit(0)[1].argmax()


def test_thompson_states_the_share_of_draws(case: Case, rng: np.random.Generator) -> None:
    draws = rng.standard_normal((30, M))
    rows, mean, _ = case.explicit(1)
    root = case.belief.root[1]
    best = [int((mean + rows @ root @ z).argmax()) for z in draws]
    for arm in range(K):
        odds = thompson.probability(*case.one(1), np.asarray(arm), draws)
        assert odds == pytest.approx(best.count(arm) / 30)


def test_greedy_takes_the_largest_mean(case: Case) -> None:
    arms = Greedy().choose(case.design, case.belief, np.empty((T, 0)))
    assert arms.tolist() == [case.explicit(i)[1].argmax() for i in range(T)]


@pytest.mark.parametrize(("quantile", "growth"), [(0.7, 0.0), (0.99, 0.0), (0.5, 1.0), (0.9, 0.3)])
def test_ucb_takes_the_largest_quantile(quantile: float, growth: float, case: Case) -> None:
    chooser, plain = Ucb(quantile=quantile, growth=growth), []
    for number in (0, 1, 9, 999, 10**6):
        level = 1 - (1 - quantile) / (number + 1) ** growth
        arms = chooser.choose(case.design, case.belief, np.empty((T, 0)), np.asarray(number))
        bounds = chooser.bounds(case.design, case.belief, np.asarray(number))
        for i in range(T):
            _, mean, cov = case.explicit(i)
            spread = np.sqrt(np.diag(cov))
            right = norm.ppf(level, mean, spread)
            # The accuracy that unfog.maths.normal states, in standard deviations.
            np.testing.assert_allclose((bounds[i] - mean) / spread, norm.ppf(level), rtol=2e-7, atol=1e-9)
            assert arms[i] == right.argmax()
            plain.append(arms[i] == mean.argmax())
    assert not all(plain)


def test_epsilon_explores_as_often_as_told(case: Case, rng: np.random.Generator) -> None:
    design, belief = case.one(0)
    greedy, draws = case.explicit(0)[1].argmax(), 40_000
    for number, share in [(0, 0.8), (15, 0.2)]:  # 0.8 / sqrt(16)
        normals = rng.standard_normal((draws, 2))
        arms = Epsilon(epsilon=0.8, decay=0.5).choose(design, belief, normals, np.asarray(number))
        expected = draws * (share / K + (1 - share) * (np.arange(K) == greedy))
        counts = np.bincount(arms, minlength=K)
        # Chi-square test: a right chooser fails with probability 0.001.
        assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(0.001, K - 1)
    plain = Epsilon(epsilon=0.0).choose(design, belief, rng.standard_normal((100, 2)))
    assert set(plain.tolist()) == {greedy}


def ratio(share: Any, regret: Array, information: Array) -> Any:
    """Squared regret for each unit of information of a law over arms."""
    return (share @ regret) ** 2 / (share @ information)


def of_pair(regret: Array, information: Array) -> float:
    """The ratio of the law that is found."""
    pair = cheapest_pair(regret, information)
    share = np.zeros(len(regret))
    share[pair.first] += pair.share
    share[pair.second] += 1 - pair.share
    return float(ratio(share, regret, information))


def stakes(rng: np.random.Generator, law: int, arms: int) -> tuple[Array, Array]:
    """Regret and information: unrelated, informative where dear, over many magnitudes, all of use."""
    if law == 0:
        return rng.exponential(size=arms), rng.exponential(size=arms)
    if law == 1:
        regret = 0.01 + rng.random(arms)
        return regret, regret**2 * rng.lognormal(0, 1, arms)
    if law == 2:
        return 10 ** rng.uniform(-6, 0, arms), 10 ** rng.uniform(-6, 0, arms)
    angle = rng.random(arms)
    return 1.05 - np.sqrt(1 - angle**2), 0.02 + angle


@pytest.mark.parametrize("law", range(4))
@pytest.mark.parametrize("arms", [2, 3, 40])
def test_no_mixture_of_two_arms_on_a_grid_is_cheaper(arms: int, law: int, rng: np.random.Generator) -> None:
    shares = np.linspace(0, 1, 201)[:, None, None]
    mixed = 0
    for _ in range(25):
        regret, information = stakes(rng, law, arms)
        costs = (shares * regret[:, None] + (1 - shares) * regret) ** 2
        grid = (costs / (shares * information[:, None] + (1 - shares) * information)).min()
        found = of_pair(regret, information)
        assert found <= grid * (1 + 1e-12)
        assert found >= grid * (1 - 0.01) or law == 2  # the grid is fine enough to be near
        mixed += found < 0.999 * (regret**2 / information).min()
    assert mixed or arms == 2


def test_no_law_over_all_arms_is_cheaper(rng: np.random.Generator) -> None:
    for law in (0, 1, 3):
        regret, information = stakes(rng, law, 4)
        found = of_pair(regret, information)
        for _ in range(5):
            best = minimize(
                ratio,
                rng.dirichlet(np.ones(4)),
                (regret, information),
                bounds=[(0, 1)] * 4,
                constraints={"type": "eq", "fun": lambda share: share.sum() - 1},
                method="SLSQP",
                options={"ftol": 1e-14},
            )
            assert found <= best.fun * (1 + 1e-7)
        assert found == pytest.approx(best.fun, rel=1e-4)


def test_the_closed_form_share(rng: np.random.Generator) -> None:
    """D = (1, 2), v = (1, 5): with q on the first, (2 - q)^2 / (5 - 4 q) is least at q = 1/2."""
    pair = cheapest_pair(np.array([1.0, 2.0]), np.array([1.0, 5.0]))
    assert (int(pair.first), int(pair.second)) == (0, 1)
    assert pair.share == pytest.approx(0.5)
    assert [float(pair.probability(np.asarray(a))) for a in (0, 1, 2)] == pytest.approx([0.5, 0.5, 0])
    regret, information = stakes(rng, 0, 30)
    other = cheapest_pair(1e-9 * regret, 1e7 * information)
    assert np.allclose(other, cheapest_pair(regret, information))


def test_what_is_free_or_tells_nothing() -> None:
    def odds(regret: list[float], information: list[float]) -> list[float]:
        pair = cheapest_pair(np.array(regret), np.array(information))
        return [float(pair.probability(np.asarray(arm))) for arm in range(len(regret))]

    assert odds([1.0, 0.0, 2.0], [5.0, 0.1, 9.0]) == [0, 1, 0]
    assert odds([1.0, 0.5, 2.0], [0.0, 0.0, 0.0]) == [0, 1, 0]
    assert odds([1.0, 0.5, 0.5], [1.0, 1.0, 2.0]) == [0, 0, 1]
    assert odds([0.0, 0.0], [0.0, 0.0]) == [1, 0]
    assert odds([0.3], [0.2]) == [1]


def by_definition(scores: Array) -> tuple[Array, Array]:
    """Regret and information from scores (n, K), draw by draw and best arm by best arm."""
    groups = defaultdict(list)
    for line in scores:
        groups[int(line.argmax())].append(line)
    mean = scores.mean(0)
    parts = [(len(group) / len(scores), np.mean(group, 0)) for group in groups.values()]
    return scores.max(1).mean() - mean, np.sum([weight * (at - mean) ** 2 for weight, at in parts], 0)


def best_law(regret: Array, information: Array) -> Array:
    """The law over arms, over all pairs, by the closed form of each."""
    laws = list(np.eye(K))
    for a in range(K):
        for b in range(K):
            dear, apart = regret[a] - regret[b], information[a] - information[b]
            if dear * apart > 0:
                share = np.clip(regret[b] / dear - 2 * information[b] / apart, 0, 1)
                laws.append(share * np.eye(K)[a] + (1 - share) * np.eye(K)[b])
    return min(laws, key=lambda law: float(ratio(law, regret, information)))


def check_law(
    chooser: Ids, case: Case, trial: int, normals: Array, regret: Array, information: Array
) -> bool:
    """Whether two arms share the law, which must be the best one."""
    law = best_law(regret, information)
    odds = [chooser.probability(*case.one(trial), np.asarray(a), normals[None]) for a in range(K)]
    np.testing.assert_allclose(odds, law, atol=1e-9)
    arm = chooser.choose(*case.one(trial), normals)
    first, second = np.argsort(-law)[:2] if law.max() < 1 else [law.argmax()] * 2
    pair = sorted((first, second), key=lambda a: float(regret[a]))  # the coin is for the one that costs less
    assert arm == pair[0 if uniforms(normals[-2:])[0] < law[pair[0]] else 1]
    return bool(law.max() < 1)


def test_drawn_ids_follows_its_definition(case: Case, rng: np.random.Generator) -> None:
    samples, mixed = 40, 0
    for trial in range(T):
        normals = rng.standard_normal(samples * M + 2)
        rows, mean, _ = case.explicit(trial)
        draws = normals[:-2].reshape(samples, M)
        scores = mean + draws @ case.belief.root[trial].T @ rows.T
        mixed += check_law(Ids(samples=samples), case, trial, normals, *by_definition(scores))
    assert mixed > 1


@pytest.mark.parametrize("quantile", [0.7, 0.9, 0.999])
def test_closed_ids_follows_its_definition(quantile: float, case: Case, rng: np.random.Generator) -> None:
    mixed = 0
    for trial in range(T):
        _, mean, cov = case.explicit(trial)
        upper = mean + norm.ppf(quantile) * np.sqrt(np.diag(cov))
        stated = upper.max() - mean, np.diag(cov)
        mixed += check_law(Ids(quantile=quantile), case, trial, rng.standard_normal(2), *stated)
    assert mixed > 1


@pytest.mark.parametrize("redraws", [1, 4])
def test_top_two_follows_its_definition(redraws: int, case: Case, rng: np.random.Generator) -> None:
    chooser, last = TopTwo(beta=0.6, redraws=redraws), 0
    for trial in range(T):
        normals = rng.standard_normal((1 + redraws) * M + 2)
        rows, mean, _ = case.explicit(trial)
        scores = mean + normals[:-2].reshape(-1, M) @ case.belief.root[trial].T @ rows.T
        leader, *others = (int(line.argmax()) for line in scores)
        different = [arm for arm in others if arm != leader]
        challenger = different[0] if different else int(np.argsort(scores[-1])[-2])
        last += not different
        led = np.exp(-(normals[-2:] ** 2).sum() / 2) < 0.6
        assert chooser.choose(*case.one(trial), normals) == (leader if led else challenger)
        odds = [chooser.probability(*case.one(trial), np.asarray(a), normals[None]) for a in range(K)]
        np.testing.assert_allclose(odds, 0.6 * np.eye(K)[leader] + 0.4 * np.eye(K)[challenger])
    assert last > 0


@pytest.mark.parametrize("chooser", [Ucb(growth=1.0), Epsilon(decay=1.0)], ids=["ucb", "epsilon"])
def test_what_changes_with_the_rounds_must_be_told_which(chooser: Chooser, case: Case) -> None:
    with pytest.raises(ValueError, match=r"^number: "):
        chooser.choose(case.design, case.belief, np.zeros((T, 2)))


@pytest.mark.parametrize(
    ("make", "field", "bad"),
    [
        (Ucb, "quantile", [0.49, 1.0, 1.5, -0.9, float("nan"), True, "0.9", [0.9]]),
        (Ucb, "growth", [-0.1, float("inf"), True, "1"]),
        (Ids, "samples", [-1, 2.5, 10_001, True, "8"]),
        (Ids, "quantile", [0.4, 1.0, float("nan"), "0.9"]),
        (Epsilon, "epsilon", [-0.1, 1.1, float("nan"), True, "0.1"]),
        (Epsilon, "decay", [-1.0, float("nan"), "1"]),
        (TopTwo, "beta", [-0.1, 1.1, float("nan"), True]),
        (TopTwo, "redraws", [0, 1.5, 10_001, True]),
    ],
)
def test_bad_settings_are_refused_by_name(make: Any, field: str, bad: list[Any]) -> None:
    for value in bad:
        with pytest.raises(InputError, match=rf"^{field}: .*; allowed: "):
            make(**{field: value})


@pytest.mark.parametrize(
    ("name", "chooser"),
    [
        ("alg1-ucb", Ucb()),
        ("alg1-exact-ucb:quantile=0.9:growth=0.5", Ucb(quantile=0.9, growth=0.5)),
        ("kk-ids:samples=8", Ids(samples=8)),
        ("oracle-greedy", Greedy()),
        ("naive-epsilon:epsilon=0.2", Epsilon(epsilon=0.2)),
        ("alg2-toptwo:beta=0.9:redraws=2", TopTwo(beta=0.9, redraws=2)),
    ],
)
def test_choosers_go_by_name(name: str, chooser: Chooser) -> None:
    agent = Catalogue()[name]
    assert agent.chooser == chooser
    assert agent.summary.startswith(Catalogue()[name.rpartition("-")[0]].summary + "; ")


def test_both_engines_play_them_alike() -> None:
    problem = GaussianProblem(dim=2, actions=4)
    names = ["alg1-greedy", "kk-ids:samples=3"]
    small: Any = {"rounds": 12, "trials": 5, "decompose": False}
    right = simulate(problem, names, **small)
    found = simulate(problem, names, engine="jax", draws="numpy", precision="float64", **small)
    np.testing.assert_allclose(found.values["regret"], right.values["regret"], rtol=1e-9, atol=1e-9)
    own = simulate(problem, names[:1], engine="jax", precision="float64", **small)  # no normals at all
    assert np.isfinite(own.values["regret"]).all()
