"""Each learner's posterior held against NUTS (paper/nuts.py), on the same rounds.

One trial is played first, by an agent's denoiser and chooser with the learner `adf`, which is quick; what
that learner is shown is the data. Every learner then meets the data as it would in the bandit: round by
round, with its chain's steps before each decision. Replicas see the same rounds but other random numbers, so
that their thetas before the decision after the last round are independent draws from what the agent would
draw from. Some of a sampler's replicas then walk on without new rounds: a long run of the chain itself.

The figure shows the posterior's two widest directions, and every learner's mean and spread.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unfog.agents.agent import Agent
from unfog.agents.base import Chain, Evidence, Learner, Parameters, State
from unfog.agents.catalogue import AGENTS, LEARNERS, Catalogue, named
from unfog.agents.runner import StepDraws
from unfog.channel.knowledge import Knowledge
from unfog.lab import tables
from unfog.lab.labels import looks
from unfog.lab.run import Progress, quiet
from unfog.lab.spec import build_problem, catalog, load
from unfog.maths.arrays import Array
from unfog.maths.random import RoundDraws, generator
from unfog.plotting import COLOURS, DASHES, PAGE, add_note, add_title, new_figure, title_panel
from unfog.simulation import MOST_SEED
from unfog.simulation.executors.local import cores
from unfog.simulation.player import played
from unfog.validation import InputError, count, nearest, one_of
from unfog.worlds.problem import Problem

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from unfog.paper.nuts import Comparison, Reference

DEFAULT = ("lmc", "lmc:temperature=1", "pg", "laplace", "adf")
NUTS_CHAINS = 16
PIECE = 125  # replicas side by side: enough for NumPy's work to outweigh Python's, few enough for the cache
LONG_ROUNDS, LONG_KEPT = 80, 5  # the long run's length, and how many thetas of a round's steps are kept

CLOUD = 2000  # draws of NUTS shown
LEVEL = 0.9  # of the ellipses
REACH = 3.3  # posterior standard deviations that the panel of ellipses shows
FLOOR, CEILING = 1e-3, 1e3  # ratios of spread beyond are shown there
_GREY = "0.45"  # NUTS
_KNOWN = ("lmc", "lmc:temperature=1", "pg", "laplace", "adf", "sites")
_SHADES = [colour for colour in COLOURS if colour != "#7F7F7F"]


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


class _End(NamedTuple):
    """Where some replicas have come to."""

    parameters: Parameters
    state: State
    draws: StepDraws


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
    from unfog.paper import nuts

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


def learner_named(agent: str, name: str) -> Learner:
    """A learner by its name and settings, written as in the names of agents: lmc:temperature=1."""
    known = [one for one, learner in LEARNERS.items() if learner.rewards == "bernoulli"]
    told = name.partition(":")[0]
    if told not in known:
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
    from unfog.paper import nuts

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


def _finite(name: str, draws: Array, long: Array | None) -> tuple[Array, Array | None]:
    if not np.isfinite(draws).all() or not (long is None or np.isfinite(long).all()):
        raise InputError("learners", f"{name!r} runs off to infinity", "steps that are short enough")
    return draws, long


def figure(found: Check, title: str) -> "Figure":
    """Three panels: ellipses, means, spreads; the learners' names are the legend of all."""
    with new_figure(PAGE, max(2.9, 1.4 + 0.34 * len(found.comparisons))) as chart:
        cloud, means, spreads = chart.subplots(1, 3, width_ratios=(1.25, 1, 1))
        _ellipses(cloud, found.references[0], found.comparisons)
        _means(means, found.comparisons)
        _spreads(spreads, found.comparisons)
        chart.get_layout_engine().set(wspace=0.06)  # type: ignore[union-attr, call-arg]
        add_title(chart, title)
        chains, draws, _ = found.references[0].draws.shape
        data = f"data: {found.rounds:,} rounds played by {found.agent}, seed {found.seed}"
        add_note(
            chart,
            f"{data}; NUTS: {chains} × {draws:,} draws; learners: {found.chains:,} draws each, as used",
        )
    return chart


def _ellipses(axes: "Axes", reference: "Reference", learners: "list[Comparison]") -> None:
    """NUTS's draws along their two widest axes, and an ellipse of everyone's mean and covariance there."""
    widest = reference.axes[:, [-1, -2]]
    draws = reference.draws.reshape(-1, len(widest)) @ widest
    shown = draws[:: max(1, len(draws) // CLOUD)]
    axes.scatter(shown[:, 0], shown[:, 1], s=3, color="0.8", linewidths=0, rasterized=True)
    axes.plot(*ellipse(draws), color=_GREY, linewidth=3.5, alpha=0.55)
    for learner in learners:
        axes.plot(*ellipse(learner.draws @ widest), linewidth=1.3, **_style(learner.learner))
    middle, reach = draws.mean(0), REACH * draws.std(0).max()
    axes.set(xlim=(middle[0] - reach, middle[0] + reach), ylim=(middle[1] - reach, middle[1] + reach))
    axes.set_aspect("equal")
    axes.set(xlabel="θ along its first principal axis", ylabel="along its second")
    title_panel(axes, f"{tables.percent(LEVEL)} ellipses; grey: NUTS", 8)


def ellipse(draws: Array) -> Array:
    """The outline (2, points) that holds `LEVEL` of a Gaussian with the moments of these draws, (n, 2)."""
    turn = np.linspace(0, 2 * np.pi, 181)
    values, vectors = np.linalg.eigh(np.cov(draws.T))
    root = vectors * np.sqrt(np.maximum(values, 0))  # of a single point they may be anything about zero
    radius = np.sqrt(-2 * np.log1p(-LEVEL))
    outline: Array = draws.mean(0)[:, None] + radius * root @ np.stack([np.cos(turn), np.sin(turn)])
    return outline


def _means(axes: "Axes", learners: "list[Comparison]") -> None:
    """Named rows, each with a sample of the learner's line."""
    _strip(axes, {learner.learner: learner.shifts for learner in learners})
    axes.axvline(0, color=_GREY, linewidth=0.8, zorder=0)
    axes.set_yticks(range(len(learners)), [learner.learner for learner in learners])
    axes.tick_params(axis="y", length=0, pad=31)
    for index, learner in enumerate(learners):
        line = {"arrowstyle": "-", "shrinkA": 0, "shrinkB": 0, "linewidth": 1.3, **_style(learner.learner)}
        place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        axes.annotate("", (-0.02, index), (-24, 0), arrowprops=line, annotation_clip=False, **place)
    edge = 1.08 * max(0.3, *(float(np.abs(learner.shifts).max()) for learner in learners))
    axes.set(xlabel="(mean − NUTS's) / s.d.", xlim=(-edge, edge))
    title_panel(axes, "means,\na dot a coordinate", 8)


def _spreads(axes: "Axes", learners: "list[Comparison]") -> None:
    """The same rows on a log axis; their medians in figures."""
    from matplotlib.ticker import LogLocator, NullFormatter

    values = {one.learner: np.clip(one.spreads, FLOOR, CEILING) for one in learners}
    _strip(axes, values)
    axes.axvline(1, color=_GREY, linewidth=0.8, zorder=0)
    axes.set_yticks([])
    everyone = np.concat(list(values.values()))
    axes.set_xscale("log")
    low, high = min(0.3, everyone.min()) / 1.6, max(2.0, everyone.max()) * 1.6
    axes.set_xlim(low, high)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 3) if high < 300 * low else (1,)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    for index, learner in enumerate(learners):
        style: dict[str, Any] = {
            "color": _style(learner.learner)["color"],
            "va": "center",
            "annotation_clip": False,
        }
        place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        axes.annotate(percent(float(np.median(learner.spreads))), (1, index), (4, 0), **style, **place)
    axes.set(xlabel="s.d. / NUTS's")
    title_panel(axes, "spreads,\nand their medians", 8)


def percent(share: float) -> str:
    """A share with two figures or more: 3.0 %, 94 %, 123 %."""
    return tables.percent(share, 0 if share >= 0.0995 else 1)


def _strip(axes: "Axes", rows: Mapping[str, Array]) -> None:
    """A row of dots for each learner, side by side so that they do not hide each other."""
    for index, (name, values) in enumerate(rows.items()):
        lanes = index + np.linspace(-0.25, 0.25, len(values))
        axes.scatter(values, lanes, s=11, color=_style(name)["color"], alpha=0.7, linewidths=0)
    axes.set_ylim(len(rows) - 0.45, -0.55)


def _style(name: str) -> dict[str, Any]:
    """Of a learner: the same in whichever company."""
    if name in _KNOWN:
        place = _KNOWN.index(name)
        return {"color": _SHADES[place], "linestyle": DASHES[place]}
    look = looks([name])[name]
    return {"color": look.colour, "linestyle": look.dash}
