"""Information-directed sampling: the least ratio against grids and SciPy, and its definition by draws."""

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from tests.agents.choose.cases import Case, K, M, T
from unfog.agents.choose import Ids
from unfog.agents.choose.ids import cheapest_pair
from unfog.maths.arrays import Array
from unfog.maths.random import uniforms


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


def test_no_mixture_of_two_arms_on_a_grid_is_cheaper(rng: np.random.Generator) -> None:
    for arms in [2, 3, 40]:
        for law in range(4):
            check_no_mixture_of_two_arms_on_a_grid_is_cheaper(arms, law, rng)


def check_no_mixture_of_two_arms_on_a_grid_is_cheaper(arms: int, law: int, rng: np.random.Generator) -> None:
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
    assert pair.probabilities(3).tolist() == pytest.approx([0.5, 0.5, 0])
    regret, information = stakes(rng, 0, 30)
    other = cheapest_pair(1e-9 * regret, 1e7 * information)
    assert np.allclose(other, cheapest_pair(regret, information))


def test_what_is_free_or_tells_nothing() -> None:
    def odds(regret: list[float], information: list[float]) -> list[float]:
        pair = cheapest_pair(np.array(regret), np.array(information))
        found: list[float] = pair.probabilities(len(regret)).tolist()
        return found

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
    odds = chooser.probabilities(case.one(trial), normals[None])
    np.testing.assert_allclose(odds, law, atol=1e-9)
    arm = chooser.choose(case.one(trial), normals)
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


def test_closed_ids_follows_its_definition(case: Case, rng: np.random.Generator) -> None:
    for quantile in [0.7, 0.9, 0.999]:
        check_closed_ids_follows_its_definition(quantile, case, rng)


def check_closed_ids_follows_its_definition(quantile: float, case: Case, rng: np.random.Generator) -> None:
    mixed = 0
    for trial in range(T):
        _, mean, cov = case.explicit(trial)
        upper = mean + norm.ppf(quantile) * np.sqrt(np.diag(cov))
        stated = upper.max() - mean, np.diag(cov)
        mixed += check_law(Ids(quantile=quantile), case, trial, rng.standard_normal(2), *stated)
    assert mixed > 1
