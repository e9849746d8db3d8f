"""Each learner's posterior compared with NUTS (paper/nuts.py), on the same rounds.

One trial is played first, by an agent's denoiser and chooser with the learner `adf`, which is quick; what
that learner observes is the data. Every learner then gets the data as it would in the bandit: round by round,
with its chain's steps before each decision. Replicas see the same rounds but other random numbers, so their
thetas before the decision after the last round are independent draws from the distribution that the agent
would draw from. Some of a sampler's chains are then continued without new rounds, as one long run.

The figure shows the posterior's two widest directions, and every learner's mean and spread.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unfog.agents.agent import Agent
from unfog.agents.base import Evidence, Learner, Parameters, RunsChain, State
from unfog.agents.catalogue import AGENTS, LEARNERS, Catalogue, select_rows
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
    """What a learner observes, and its prior knowledge."""

    known: Knowledge
    rounds_evidence: list[Evidence]  # (n,)  of one trial each
    rows: Array  # (n, m)
    spreads: Array  # (n, m, m)
    rewards: Array  # (n,)


class Check(NamedTuple):
    """Arguments and results of `check`; a second reference is for learners that average the context out."""

    agent: str
    rounds: int
    seed: int
    chains: int
    references: "list[Reference]"
    comparisons: "list[Comparison]"


class _End(NamedTuple):
    """The state of some replicas after the last round."""

    parameters: Parameters
    state: State
    draws: StepDraws


def problem_of(experiment: str | Path) -> tuple[str, Problem]:
    """The name and the problem of an experiment whose rewards are 0 or 1."""
    spec = load(experiment)
    problem = build_problem(spec.problem)
    if problem.rewards.kind != "bernoulli":
        fit = ", ".join(name for name, other in catalog().items() if other.problem["kind"] == "logistic")
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
    learners_by_name = _check_arguments(problem, agent, learners, rounds, seed, chains, draws)
    from unfog.paper import nuts

    data = play(problem, Catalogue("bernoulli")[f"{agent}-adf"], rounds, seed)
    total, done = chains * (len(learners_by_name) + 1), 0

    def tick(more: int) -> None:
        nonlocal done
        done += more
        progress(done, total)

    tick(0)
    kinds = dict.fromkeys(learner.averages_context for learner in learners_by_name.values())
    references = {marginal: _run_nuts(data, marginal, seed, draws) for marginal in kinds}
    tick(chains)
    comparisons = [
        nuts.compare(
            name,
            references[learner.averages_context],
            *_finite(name, *walks(learner, data, seed, chains, tick)),
        )
        for name, learner in learners_by_name.items()
    ]
    return Check(agent, rounds, seed, chains, list(references.values()), comparisons)


def _check_arguments(
    problem: Problem, agent: str, learners: Sequence[str], rounds: int, seed: int, chains: int, draws: int
) -> dict[str, Learner]:
    """Check the arguments of `check`; return the learners by name."""
    size = len(problem.knowledge().prior_mean)
    if problem.rewards.kind != "bernoulli" or size < 2:
        actual = f"{problem.rewards.kind} rewards of {size} features"
        raise InputError("problem", actual, "rewards of 0 or 1, of two features or more")
    one_of("agent", agent, tuple(AGENTS))
    count("rounds", rounds, most=10_000)
    count("seed", seed, 0, MOST_SEED)
    count("chains", chains, max(50, 2 * size), 100_000)
    count("draws", draws, 200, 100_000)
    if not learners or len(set(learners)) < len(learners):
        raise InputError("learners", ", ".join(learners) or "none named", "one or more, each once")
    learners_by_name = {name: learner_named(agent, name) for name in learners}
    for name, learner in learners_by_name.items():
        try:
            learner.setup(problem.knowledge())
        except InputError as error:
            raise InputError.prefixed(name, error) from None
    return learners_by_name


def learner_named(agent: str, name: str) -> Learner:
    """A learner by its name and settings, written as in the names of agents: lmc:temperature=1."""
    known_names = [known for known, learner in LEARNERS.items() if learner.rewards == "bernoulli"]
    base = name.partition(":")[0]
    if base not in known_names:
        allowed = f"{', '.join(known_names)}; settings are written lmc:temperature=1"
        raise InputError("learners", repr(name), allowed, nearest(base, known_names))
    return select_rows([f"{agent}-{name}"], "learners", Catalogue("bernoulli"))[0].learner


def play(problem: Problem, agent: Agent, rounds: int, seed: int) -> Data:
    """Play the rounds of trial 0; return what the agent's learner observes."""
    decisions = [decision for _, decision in played(problem, agent, rounds, [0], seed)]
    evidence = [decision.evidence for decision in decisions]
    rows = np.concat([x.row() for x in evidence])
    spreads = np.concat([x.covariance() for x in evidence])
    rewards = np.concat([decision.reward for decision in decisions if decision.reward is not None])
    return Data(problem.knowledge(), evidence, rows, spreads, rewards)


def _run_nuts(data: Data, marginal: bool, seed: int, draws: int) -> "Reference":
    """NUTS on these rounds, with the context averaged out where the learner does so."""
    from unfog.paper import nuts

    spreads = data.spreads if marginal else None
    target = nuts.Target(data.rows, data.rewards, data.known.prior_mean, data.known.prior_cov, spreads)
    return nuts.reference(target, generator(seed, 0, "nuts"), chains=NUTS_CHAINS, draws=draws)


def walks(
    learner: Learner, data: Data, seed: int, replicas: int, tick: Callable[[int], None] = lambda _: None
) -> tuple[Array, Array | None]:
    """Draws as the agent would make them, (replicas, m), and a sampler's long run, (some, thetas, m)."""
    walk = partial(_play_replicas, learner, data, seed)
    if not isinstance(learner, RunsChain) or learner.normals(data.known, 1) == 0:
        belief = learner.belief(*walk(range(1))[:2])
        tick(replicas)
        normals = RoundDraws(seed, range(replicas), "belief", data.rows.shape[1]).next(1)
        return belief.sample(normals[:, 0]), None
    ends = []
    pieces = [range(first, min(first + PIECE, replicas)) for first in range(0, replicas, PIECE)]
    with ThreadPoolExecutor(cores()) as pool:  # NumPy releases the GIL while it works
        for piece, end in zip(pieces, pool.map(walk, pieces), strict=True):
            ends.append(end)
            tick(len(piece))
    return np.concat([end.state.theta for end in ends]), _extend_chain(learner, ends[0], len(data.rewards))


def _play_replicas(learner: Learner, data: Data, seed: int, replicas: range) -> _End:
    """Play replicas of a learner through all rounds, up to the decision after the last."""
    draws = StepDraws(seed, replicas, learner if isinstance(learner, RunsChain) else None, data.known)
    parameters, state = learner.setup(data.known), learner.start(data.known, None)
    for t in range(len(data.rewards)):
        state = _advance_chain(learner, parameters, state, draws.next(t))
        state = learner.update(parameters, state, data.rounds_evidence[t], data.rewards[t, None])
    return _End(parameters, _advance_chain(learner, parameters, state, draws.next(len(data.rewards))), draws)


def _advance_chain(learner: Learner, parameters: Parameters, state: State, normals: Array) -> State:
    """Take some steps of the chain, with normals (steps, replicas, n)."""
    if isinstance(learner, RunsChain):
        with np.errstate(over="ignore", invalid="ignore"):  # `_finite` checks the result
            for step in normals:
                state = learner.step(parameters, state, step)
    return state


def _extend_chain(learner: Learner, end: _End, rounds: int) -> Array:
    """Continue a chain without new rounds: (replicas, thetas, m)."""
    state, thetas = end.state, []
    for _ in range(LONG_ROUNDS):
        for normals in np.array_split(end.draws.next(rounds), LONG_KEPT):
            state = _advance_chain(learner, end.parameters, state, normals)
            thetas.append(learner.belief(end.parameters, state).mean)
    return np.stack(thetas, 1)


def _finite(name: str, draws: Array, long: Array | None) -> tuple[Array, Array | None]:
    if not np.isfinite(draws).all() or not (long is None or np.isfinite(long).all()):
        raise InputError("learners", f"{name!r} runs off to infinity", "steps that are short enough")
    return draws, long


def figure(results: Check, title: str) -> "Figure":
    """Three panels: ellipses, means, spreads; the learners' names are the legend of all."""
    with new_figure(PAGE, max(2.9, 1.4 + 0.34 * len(results.comparisons))) as chart:
        cloud, means, spreads = chart.subplots(1, 3, width_ratios=(1.25, 1, 1))
        _draw_ellipses(cloud, results.references[0], results.comparisons)
        _draw_means(means, results.comparisons)
        _draw_spreads(spreads, results.comparisons)
        chart.get_layout_engine().set(wspace=0.06)  # type: ignore[union-attr, call-arg]
        add_title(chart, title)
        chains, draws, _ = results.references[0].draws.shape
        data = f"data: {results.rounds:,} rounds played by {results.agent}, seed {results.seed}"
        add_note(
            chart,
            f"{data}; NUTS: {chains} × {draws:,} draws; learners: {results.chains:,} draws each, as used",
        )
    return chart


def _draw_ellipses(axes: "Axes", reference: "Reference", learners: "list[Comparison]") -> None:
    """NUTS's draws along their two widest axes, and an ellipse for each learner's mean and covariance."""
    widest = reference.axes[:, [-1, -2]]
    draws = reference.draws.reshape(-1, len(widest)) @ widest
    cloud = draws[:: max(1, len(draws) // CLOUD)]
    axes.scatter(cloud[:, 0], cloud[:, 1], s=3, color="0.8", linewidths=0, rasterized=True)
    axes.plot(*ellipse(draws), color=_GREY, linewidth=3.5, alpha=0.55)
    for learner in learners:
        axes.plot(*ellipse(learner.draws @ widest), linewidth=1.3, **_line_style(learner.learner))
    middle, reach = draws.mean(0), REACH * draws.std(0).max()
    axes.set(xlim=(middle[0] - reach, middle[0] + reach), ylim=(middle[1] - reach, middle[1] + reach))
    axes.set_aspect("equal")
    axes.set(xlabel="θ along its first principal axis", ylabel="along its second")
    title_panel(axes, f"{tables.percent(LEVEL)} ellipses; grey: NUTS", 8)


def ellipse(draws: Array) -> Array:
    """The outline (2, points) that holds `LEVEL` of a Gaussian with the moments of these draws, (n, 2)."""
    angles = np.linspace(0, 2 * np.pi, 181)
    values, vectors = np.linalg.eigh(np.cov(draws.T))
    root = vectors * np.sqrt(np.maximum(values, 0))  # for a single point they may be slightly negative
    radius = np.sqrt(-2 * np.log1p(-LEVEL))
    outline: Array = draws.mean(0)[:, None] + radius * root @ np.stack([np.cos(angles), np.sin(angles)])
    return outline


def _draw_means(axes: "Axes", learners: "list[Comparison]") -> None:
    """Draw a row of dots for each learner, with its name and a sample of its line."""
    _draw_strip(axes, {learner.learner: learner.shifts for learner in learners})
    axes.axvline(0, color=_GREY, linewidth=0.8, zorder=0)
    axes.set_yticks(range(len(learners)), [learner.learner for learner in learners])
    axes.tick_params(axis="y", length=0, pad=31)
    for index, learner in enumerate(learners):
        line = {
            "arrowstyle": "-",
            "shrinkA": 0,
            "shrinkB": 0,
            "linewidth": 1.3,
            **_line_style(learner.learner),
        }
        placement: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        axes.annotate("", (-0.02, index), (-24, 0), arrowprops=line, annotation_clip=False, **placement)
    edge = 1.08 * max(0.3, *(float(np.abs(learner.shifts).max()) for learner in learners))
    axes.set(xlabel="(mean − NUTS's) / s.d.", xlim=(-edge, edge))
    title_panel(axes, "means,\na dot a coordinate", 8)


def _draw_spreads(axes: "Axes", learners: "list[Comparison]") -> None:
    """Draw the same rows for spreads, on a log axis, with their medians as text."""
    from matplotlib.ticker import LogLocator, NullFormatter

    values = {learner.learner: np.clip(learner.spreads, FLOOR, CEILING) for learner in learners}
    _draw_strip(axes, values)
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
            "color": _line_style(learner.learner)["color"],
            "va": "center",
            "annotation_clip": False,
        }
        placement: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        axes.annotate(percent(float(np.median(learner.spreads))), (1, index), (4, 0), **style, **placement)
    axes.set(xlabel="s.d. / NUTS's")
    title_panel(axes, "spreads,\nand their medians", 8)


def percent(share: float) -> str:
    """A share with two figures or more: 3.0 %, 94 %, 123 %."""
    return tables.percent(share, 0 if share >= 0.0995 else 1)


def _draw_strip(axes: "Axes", rows: Mapping[str, Array]) -> None:
    """Draw a row of dots for each learner, spread out so that they do not hide each other."""
    for index, (name, values) in enumerate(rows.items()):
        lanes = index + np.linspace(-0.25, 0.25, len(values))
        axes.scatter(values, lanes, s=11, color=_line_style(name)["color"], alpha=0.7, linewidths=0)
    axes.set_ylim(len(rows) - 0.45, -0.55)


def _line_style(name: str) -> dict[str, Any]:
    """The style of a learner's line, whichever others are drawn."""
    if name in _KNOWN:
        index = _KNOWN.index(name)
        return {"color": _SHADES[index], "linestyle": DASHES[index]}
    look = looks([name])[name]
    return {"color": look.colour, "linestyle": look.dash}
