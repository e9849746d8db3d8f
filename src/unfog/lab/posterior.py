"""Each learner's posterior held against NUTS, on the same rounds.

One trial is played first, by an agent's denoiser and chooser with the learner `adf`, which is quick; what
that learner is shown is the data. Every learner then meets the data as it would in the bandit: round by
round, with its chain's steps before each decision. Replicas see the same rounds but other random numbers, so
that their thetas before the decision after the last round are independent draws from what the agent would
draw from. Some of a sampler's replicas then walk on without new rounds: a long run of the chain itself.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from unfog.agents.agent import Agent
from unfog.agents.base import Chain, Evidence, Learner, Parameters, State
from unfog.agents.catalogue import AGENTS, FORMER, LEARNERS, Catalogue, named
from unfog.channel.knowledge import Knowledge
from unfog.lab.run import Progress, quiet
from unfog.lab.spec import build_problem, catalog, load
from unfog.maths.arrays import Array
from unfog.maths.random import RoundDraws, generator
from unfog.simulation import MOST_SEED
from unfog.simulation.executors.local import cores
from unfog.simulation.job import StepDraws
from unfog.simulation.player import played
from unfog.validation import InputError, count, nearest, one_of
from unfog.worlds.problem import Problem

if TYPE_CHECKING:  # JAX and BlackJAX come with an extra
    from unfog.lab.nuts import Comparison, Reference

DEFAULT = ("lmc", "lmc:temperature=1", "pg", "laplace", "adf")
NUTS_CHAINS = 16
PIECE = 125  # replicas side by side: enough for NumPy's work to outweigh Python's, few enough for the cache
LONG_ROUNDS, LONG_KEPT = 80, 5  # the long run's length, and how many thetas of a round's steps are kept


class Data(NamedTuple):
    """What a learner is shown, and what it knows before."""

    known: Knowledge
    shown: list[Evidence]  # (n,)  of one trial each
    rows: Array  # (n, m)
    spreads: Array  # (n, m, m)
    rewards: Array  # (n,)


class Check(NamedTuple):
    """What was asked, and what came out; a second reference is for learners that average the context out."""

    agent: str
    rounds: int
    seed: int
    chains: int
    references: "list[Reference]"
    comparisons: "list[Comparison]"


def problem_of(experiment: str | Path) -> tuple[str, Problem]:
    """The name and the problem of an experiment whose rewards are 0 or 1."""
    spec = load(experiment)
    problem = build_problem(spec.problem)
    if problem.rewards.kind != "bernoulli":
        fit = ", ".join(name for name, one in catalog().items() if one.problem["kind"] == "logistic")
        raise InputError(
            "experiment",
            f"the rewards of {spec.name!r} are {problem.rewards.kind}",
            f"{fit} or a .toml file with rewards of 0 or 1",
        )
    return spec.name, problem


def check(
    problem: Problem,
    *,
    agent: str = "alg1",
    learners: Sequence[str] = DEFAULT,
    rounds: int = 200,
    seed: int = 0,
    chains: int = 500,
    draws: int = 1000,
    progress: Progress = quiet,
) -> Check:
    """Compare each learner with NUTS: `chains` replicas of it, `draws` of each of NUTS's chains."""
    chosen = _checked(problem, agent, learners, rounds, seed, chains, draws)
    from unfog.lab import nuts

    data = play(problem, Catalogue("bernoulli")[f"{agent}-adf"], rounds, seed)
    total, done = chains * (len(chosen) + 1), 0

    def tick(more: int) -> None:
        nonlocal done
        done += more
        progress(done, total)

    tick(0)
    kinds = dict.fromkeys(learner.averages_context for learner in chosen.values())
    references = {marginal: _reference(data, marginal, seed, draws) for marginal in kinds}
    tick(chains)
    comparisons = [
        nuts.compare(
            name,
            references[learner.averages_context],
            *_finite(name, *walks(learner, data, seed, chains, tick)),
        )
        for name, learner in chosen.items()
    ]
    return Check(agent, rounds, seed, chains, list(references.values()), comparisons)


def _checked(
    problem: Problem, agent: str, learners: Sequence[str], rounds: int, seed: int, chains: int, draws: int
) -> dict[str, Learner]:
    """The learners by name, all else being in order."""
    size = len(problem.knowledge().prior_mean)
    if problem.rewards.kind != "bernoulli" or size < 2:
        found = f"{problem.rewards.kind} rewards of {size} features"
        raise InputError("problem", found, "rewards of 0 or 1, of two features or more")
    one_of("agent", agent, tuple(AGENTS))
    count("rounds", rounds, most=10_000)
    count("seed", seed, 0, MOST_SEED)
    count("chains", chains, max(50, 2 * size), 100_000)
    count("draws", draws, 200, 100_000)
    if not learners or len(set(learners)) < len(learners):
        raise InputError("learners", ", ".join(learners) or "none named", "one or more, each once")
    chosen = {name: learner_named(agent, name) for name in learners}
    for name, learner in chosen.items():
        try:
            learner.setup(problem.knowledge())
        except InputError as error:
            raise InputError.prefixed(name, error) from None
    return chosen


def _finite(name: str, draws: Array, long: Array | None) -> tuple[Array, Array | None]:
    if not np.isfinite(draws).all() or not (long is None or np.isfinite(long).all()):
        raise InputError("learners", f"{name!r} runs off to infinity", "steps that are short enough")
    return draws, long


def learner_named(agent: str, name: str) -> Learner:
    """A learner by its name and settings, written as in the names of agents: lmc:temperature=1."""
    known = [one for one, learner in LEARNERS.items() if learner.rewards == "bernoulli"]
    told = name.partition(":")[0]
    if FORMER.get(told, told) not in known:
        allowed = f"{', '.join(known)}; settings are written lmc:temperature=1"
        raise InputError("learners", repr(name), allowed, nearest(told, known))
    return named([f"{agent}-{name}"], "learners", Catalogue("bernoulli"))[0].learner


def play(problem: Problem, agent: Agent, rounds: int, seed: int) -> Data:
    """The rounds of trial 0, as the agent's learner is shown them."""
    decisions = [decision for _, decision in played(problem, agent, rounds, [0], seed)]
    shown = [one.evidence for one in decisions]
    rows, spreads = np.concat([one.row() for one in shown]), np.concat([one.covariance() for one in shown])
    rewards = np.concat([one.reward for one in decisions if one.reward is not None])
    return Data(problem.knowledge(), shown, rows, spreads, rewards)


def _reference(data: Data, marginal: bool, seed: int, draws: int) -> "Reference":
    """NUTS on these rounds, with the context averaged out where the learner does so."""
    from unfog.lab import nuts

    spreads = data.spreads if marginal else None
    target = nuts.Target(data.rows, data.rewards, data.known.prior_mean, data.known.prior_cov, spreads)
    return nuts.reference(target, generator(seed, 0, "nuts"), chains=NUTS_CHAINS, draws=draws)


def walks(
    learner: Learner, data: Data, seed: int, replicas: int, tick: Callable[[int], None] = lambda _: None
) -> tuple[Array, Array | None]:
    """Draws as the agent would make them, (replicas, m), and a sampler's long run, (some, thetas, m)."""
    walk = partial(_walk, learner, data, seed)
    if not isinstance(learner, Chain) or learner.normals(data.known, 1) == 0:
        belief = learner.belief(*walk(range(1))[:2])
        tick(replicas)
        normals = RoundDraws(seed, range(replicas), "belief", data.rows.shape[1]).next(1)
        return belief.sample(normals[:, 0]), None
    ends = []
    pieces = [range(first, min(first + PIECE, replicas)) for first in range(0, replicas, PIECE)]
    with ThreadPoolExecutor(cores()) as pool:  # NumPy lets go of the interpreter while it works
        for piece, end in zip(pieces, pool.map(walk, pieces), strict=True):
            ends.append(end)
            tick(len(piece))
    return np.concat([end.state.theta for end in ends]), _walk_on(learner, ends[0], len(data.rewards))


class _End(NamedTuple):
    """Where some replicas have come to."""

    parameters: Parameters
    state: State
    draws: StepDraws


def _walk(learner: Learner, data: Data, seed: int, replicas: range) -> _End:
    """Through all rounds, up to the decision after the last."""
    draws = StepDraws(seed, replicas, learner if isinstance(learner, Chain) else None, data.known)
    parameters, state = learner.setup(data.known), learner.start(data.known, None)
    for t in range(len(data.rewards)):
        state = _advance(learner, parameters, state, draws.next(t))
        state = learner.update(parameters, state, data.shown[t], data.rewards[t, None])
    return _End(parameters, _advance(learner, parameters, state, draws.next(len(data.rewards))), draws)


def _advance(learner: Learner, parameters: Parameters, state: State, normals: Array) -> State:
    """Some steps of the chain: normals (steps, replicas, n)."""
    if isinstance(learner, Chain):
        with np.errstate(over="ignore", invalid="ignore"):  # where it leads is looked at in the end
            for step in normals:
                state = learner.step(parameters, state, step)
    return state


def _walk_on(learner: Learner, end: _End, seen: int) -> Array:
    """More steps without new rounds: (replicas, thetas, m)."""
    state, kept = end.state, []
    for _ in range(LONG_ROUNDS):
        for normals in np.array_split(end.draws.next(seen), LONG_KEPT):
            state = _advance(learner, end.parameters, state, normals)
            kept.append(learner.belief(end.parameters, state).mean)
    return np.stack(kept, 1)
