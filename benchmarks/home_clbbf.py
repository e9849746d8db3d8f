"""CLBBF at home: the synthetic problem of its paper, in the ten environments of its authors' code.

Kim, Yun, Jeong, Nam, Shin and Combes, *Contextual Linear Bandits under Noisy Features: Towards Bayesian
Oracles*, Figure 1 (a) and (b): d = 2, T = 10,000, K = 100 and 30 arms, each number measured with probability
p. Environment j draws Sigma_f, Sigma_n, nu and theta from NumPy's generator seeded with j, as the authors'
code does: Sigma_n is divided by the norm of Sigma_f, which is one by then, and so by nothing. Regret is the
mean reward of the Bayesian oracle's arm less that of the chosen one, at the features that were drawn
(`regret_realised`). The paper has a figure and no table; `REFERENCE` is what the authors' code gives on the
same draws.

    python -m benchmarks.home_clbbf [30 | 100]     writes benchmarks/results/home-clbbf.json, a minute a cell
    python -m benchmarks.home_clbbf ours           ours beside them in one cell, which are told more
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unfog.agents import round as rounds
from unfog.agents.agent import Agent
from unfog.agents.catalogue import select_rows
from unfog.agents.round import Observation
from unfog.channel.knowledge import masked_shrinkage
from unfog.maths.arrays import Array, Ints, take
from unfog.worlds import GaussianProblem

T, DIM, ENVIRONMENTS, BLOCK, SEED = 10_000, 2, 10, 100, 2023
ARMS, SHARES = (30, 100), (0.6, 0.7, 0.8, 0.9)
AGENTS = ("clbbf:horizon=10000", "clbbf-oful:horizon=10000")
OURS, BESIDE = ("gaps", "unfog"), (30, 0.7)
FIRST = 5  # environments that ours play, each a trial of its own since each is told another law
# What the authors' code gives in the first environments on the same draws, its first arm set to ours.
REFERENCE: dict[tuple[int, float], Any] = {
    (30, 0.7): {
        "authors_code": {
            "clbbf": [
                405.7735,
                580.5556,
                587.6977,
                349.5885,
                478.396,
                265.4204,
                325.833,
                678.4797,
                367.7603,
                280.3761,
            ],
            "clbbf-oful": [
                188.518,
                1623.0131,
                356.801,
                378.9645,
                1782.0194,
                247.6003,
                342.6655,
                286.4724,
                477.8641,
                834.9315,
            ],
        }
    },
    (100, 0.7): {"authors_code": {"clbbf": [303.8103], "clbbf-oful": [167.7919]}},
}
RESULT = Path(__file__).parent / "results" / "home-clbbf.json"


class Environment(NamedTuple):
    """What the authors draw once for a run."""

    features_cov: Array  # (d, d)  Sigma_f
    noise_cov: Array  # (d, d)  Sigma_n
    mean: Array  # (d,)  nu
    theta: Array  # (d,)


def environment(seed: int) -> Environment:
    """That of this seed."""
    source = np.random.RandomState(seed)
    a, b = (source.uniform(-1, 1, (DIM, DIM)) for _ in range(2))
    features, noise = a.T @ a, b.T @ b
    features = features / np.linalg.norm(features, 2)
    noise = noise / np.linalg.norm(features, 2)
    nu, theta = (source.uniform(-1, 1, DIM) for _ in range(2))
    return Environment(features, noise, nu / np.linalg.norm(nu), theta / np.linalg.norm(theta))


class Round(NamedTuple):
    """A round of some trials."""

    features: Array  # (n, K, d)  z
    noisy: Array  # (n, K, d)
    mask: Array  # (n, K, d)
    noise: Array  # (n,)  of the reward
    best: Ints  # (n,)  the Bayesian oracle's arm


def drawn(worlds: list[Environment], arms: int, share: float, seeds: list[int]) -> Iterator[Round]:
    """All rounds, one trial for every environment and seed."""
    sources = [np.random.default_rng([SEED, arms, round(100 * share), seed]) for seed in seeds]
    covs, noises, mean, theta = (np.stack(field) for field in zip(*worlds, strict=True))
    ways = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])  # to be measured
    gains = masked_shrinkage(mean, covs[:, None], noises[:, None], ways).gain
    slopes = (theta[:, None, None] @ gains)[..., 0, :]  # (n, ways, d)
    roots = np.linalg.cholesky(covs).mT, np.linalg.cholesky(noises).mT
    shape, trial = (BLOCK * arms, DIM), np.arange(len(seeds))[:, None]
    for _ in range(0, T, BLOCK):
        normals = np.stack([source.standard_normal((2, *shape)) for source in sources])
        kept = np.stack([source.random(shape) < share for source in sources]).astype(float)
        paid = np.stack([source.standard_normal(BLOCK) for source in sources])
        z = mean[:, None] + normals[:, 0] @ roots[0]
        x = z + normals[:, 1] @ roots[1]
        way = (kept @ [1, 2]).astype(int)
        expected = np.vecdot(slopes[trial, way], x - mean[:, None])  # but for nu'theta
        best = expected.reshape(-1, BLOCK, arms).argmax(-1)
        z, x, kept = (one.reshape(-1, BLOCK, arms, DIM) for one in (z, x, kept))
        for t in range(BLOCK):
            yield Round(z[:, t], x[:, t], kept[:, t], paid[:, t], best[:, t])


def problem(arms: int, share: float, world: Environment | None = None) -> GaussianProblem:
    """What agents are told: sizes alone, or the law of an environment; and that theta has a length of one."""
    told: dict[str, Any] = {"dim": arms * DIM, "actions": arms, "features": "own", "missing": 1 - share}
    if world is not None:
        told |= {"context_mean": world.mean, "context_cov": world.features_cov, "noise_cov": world.noise_cov}
    return GaussianProblem(**told, bias_cov=1e-12, prior_cov=1 / DIM, reward_var=1.0)


def play(
    agents: list[Agent], worlds: list[Environment], share: float, seeds: list[int], told: GaussianProblem
) -> Array:
    """Regret of every agent and trial after T rounds: (agents, n)."""
    arms, known = told.arms(), told.knowledge()
    source = np.random.default_rng([SEED, *seeds])  # of choosers that draw
    features = told.truth({"theta": np.zeros((len(seeds), DIM)), "bias": np.zeros(arms * DIM)}).features
    made = [rounds.start(agent, known) for agent in agents]
    setups, memories = [one for one, _ in made], [one for _, one in made]
    theta, lost = np.stack([world.theta for world in worlds]), np.zeros((len(agents), len(seeds)))
    for t, one in enumerate(drawn(worlds, arms, share, seeds)):

        def worth(arm: Ints, z: Array = one.features) -> Array:
            return np.vecdot(take(z, arm), theta)

        def pay(arm: Ints, worth: Callable[[Ints], Array] = worth, noise: Array = one.noise) -> Array:
            return worth(arm) + noise

        flat = (len(seeds), arms * DIM)
        observation = Observation(one.noisy.reshape(flat), one.mask.reshape(flat), round=np.asarray(t))
        for i, agent in enumerate(agents):
            normals = source.standard_normal((len(seeds), agent.chooser.normals(known)))
            memories[i], decision = rounds.play(
                agent, setups[i], memories[i], features, observation, normals, pay
            )
            lost[i] += worth(one.best) - worth(decision.arm)
    return lost


def summary(regret: Array) -> dict[str, Any]:
    """Over environments, as the paper has it: these differ more than two runs of one do."""
    return {
        "regret": round(float(regret.mean()), 1),
        "se": round(float(regret.std(ddof=1) / len(regret) ** 0.5), 1),
        "each": [round(float(x), 4) for x in regret],
    }


def cell(arms: int, share: float) -> dict[str, Any]:
    """CLBBF and its baseline on all environments."""
    start, agents = time.perf_counter(), select_rows(AGENTS)
    worlds = [environment(j) for j in range(ENVIRONMENTS)]
    lost = play(agents, worlds, share, list(range(ENVIRONMENTS)), problem(arms, share))
    found = {agent.name.partition(":")[0]: summary(one) for agent, one in zip(agents, lost, strict=True)}
    seconds = round(time.perf_counter() - start, 1)
    return {"arms": arms, "p": share, **found, "seconds": seconds, **REFERENCE.get((arms, share), {})}


def beside(arms: int, share: float) -> dict[str, Any]:
    """Ours, who are told the law of contexts and noise, in the same rounds."""
    agents, lost = select_rows(OURS), list[Array]()
    for j in range(FIRST):
        world = environment(j)
        lost.append(play(agents, [world], share, [j], problem(arms, share, world))[:, 0])
    pairs = zip(agents, np.stack(lost, 1), strict=True)
    return {"arms": arms, "p": share, **{agent.name: summary(one) for agent, one in pairs}}


def write(place: str, found: dict[str, Any]) -> None:
    """Put a cell in the place of the one there was."""
    kept = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    where = found["arms"], found["p"]
    others = [one for one in kept.get(place, []) if (one["arms"], one["p"]) != where]
    cells = sorted([*others, found], key=lambda one: (one["arms"], one["p"]))
    kept |= {"rounds": T, "environments": ENVIRONMENTS, "seed": SEED, "loss": "regret_realised", place: cells}
    RESULT.write_text(json.dumps(kept, indent=1) + "\n")
    print(found, flush=True)


def main() -> None:
    """All cells, or those with so many arms; "ours" for ours."""
    if sys.argv[1:] == ["ours"]:
        write("ours", beside(*BESIDE))
        return
    for arms in [int(x) for x in sys.argv[1:]] or ARMS:
        for share in SHARES:
            write("cells", cell(arms, share))


if __name__ == "__main__":
    main()
