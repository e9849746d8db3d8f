"""Policies by what a caller names them: each says with which probability it takes every arm in every round.

    logger            what was done: the arms that were drawn
    uniform           all arms that there were, evenly
    always:send       one arm
    fitted            the arm that a model of rewards through the denoiser likes best, cross-fitted
    fitted-noisy      likewise, of a model that takes readings for the truth
    unfog, naive, …   an agent of the catalogue, taught by the log
    {"mine": rule}    a function of noisy contexts (n, d) to probabilities (n, K), or to arms (n,)
    {"mine": table}   probabilities (n, K), or arms (n,)

Arms of a rule are names, or whole numbers: places from 0, unless arms are called by whole numbers themselves.
uniform, fitted and agents choose from the arms that there were in a round. An agent that learns (`LogAgent`)
can be valued in two ways: `taught` by the whole log, or `replayed` on the rounds that come out as its own.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unfog.agents import round as rounds
from unfog.agents.agent import Agent, refuse_misfit
from unfog.agents.catalogue import EVERY, Catalogue, named, row_of, without_channel
from unfog.agents.choose.greedy import best
from unfog.agents.round import Considered, Offer
from unfog.agents.runner import Runner, propensity_draws
from unfog.channel.channel import Channel
from unfog.channel.knowledge import Knowledge
from unfog.evaluation.beliefs import believed, mean_reading
from unfog.evaluation.context import Scene
from unfog.evaluation.intervals import Value
from unfog.evaluation.log import Log
from unfog.evaluation.model import Data, predicted
from unfog.features.registry import prior
from unfog.maths.arrays import Array, Ints
from unfog.maths.random import generator
from unfog.validation import REFERENCE, InputError, nearest, numbers

ALWAYS = "always:"
RULE = "a function of noisy contexts (n, d), or a table: probabilities (n, K) that sum to 1, or arms (n,)"
FIXED = ("logger", "uniform", "fitted", "fitted-noisy")  # that need not be taught round by round
NAMES = f"logger, uniform, {ALWAYS}ARM, fitted, fitted-noisy, a name from `unfog list agents`"
ALLOWED = f"{NAMES}; or {{name: {RULE}}}"
TOLERANCE = 1e-6  # of sums of probabilities
Tick = Callable[[int], None]


class LogAgent(NamedTuple):
    """An agent of the catalogue that is to learn from a log, and what it is told.

    A log has no prior for theta, so rewards are taught in deviations from their mean, for which the prior
    N(0, I) and a variance of 1 are of the right size; rewards of 0 or 1 stay as they are. Where no channel is
    known an agent takes readings for the truth.
    """

    agent: Agent
    known: Knowledge
    noisy: Array  # (n, d)
    true: Array | None  # (n, d)  where it takes true contexts in
    reward: Array  # (n,)
    scene: Scene


class LogRunner:
    """An agent that is taught by a log, round by round. Each unit has a channel state of its own."""

    def __init__(self, given: LogAgent) -> None:
        """Before the first round."""
        self._given, self._scene = given, given.scene
        self._runner = Runner(given.agent, given.known, given.scene.seed)
        unit = given.scene.log.unit
        self._units = [""] * given.scene.log.rounds if unit is None else [str(one) for one in unit.tolist()]

    def consider(self, number: int, time: int) -> Considered:
        """Denoise a round of the log, the agent's round number `time`, and look at every arm."""
        noisy, log = self._given.noisy[[number]], self._scene.log
        mask = (~np.isnan(noisy)).astype(float)
        at = None
        if self._given.agent.can.use_time is not None and log.time is not None:
            at = log.time[[number]]
        arms: Any = None if log.offered is None else log.offered[[number]]
        offer = Offer(noisy, None if mask.all() else mask, time=np.asarray(time), at=at, arms=arms)
        return self._runner.consider(self._units[number], offer, self._scene.features)

    def probabilities(self, considered: Considered) -> Array:
        """With which probability it would take each arm, (K,)."""
        return self._given.agent.chooser.probabilities(considered.view, self._draws())[0]

    def choose(self, considered: Considered) -> int:
        """The arm that it would take."""
        return int(self._given.agent.chooser.choose(considered.view, self._draws()[0])[0])

    def _draws(self) -> Array:
        """The normals of a decision, (n, 1, w): as many for its arm as for its probabilities."""
        number = propensity_draws(self._given.agent.chooser)
        return self._runner.normals.next(number).swapaxes(0, 1)

    def learn(self, considered: Considered, number: int) -> None:
        """What a round says: its reading, its reward, its true context as far as that is known."""
        given, unit, arm = self._given, self._units[number], int(self._scene.log.arm[number])
        decision = self._runner.take(unit, considered, arm, self._scene.features)
        decision = self._runner.reward(unit, decision, given.reward[number])
        if given.true is not None and not np.isnan(given.true[number]).all():
            self._runner.reveal(unit, decision, given.true[[number]])


class Policy(NamedTuple):
    """One policy on one log."""

    name: str
    table: Callable[[Tick], Array]  # (n, K)
    learner: LogAgent | None = None  # of an agent that learns
    drawn: bool = False  # whether it takes what was drawn, so that all weights are 1

    @property
    def fixed(self) -> bool:
        """Whether it does the same in all rounds, given what it sees."""
        return self.learner is None


class Replayed(NamedTuple):
    """The rounds of a log that count for a replayed agent."""

    accepted: Ints  # (rounds,)  which

    def value(self, reward: Array) -> Value:
        """The mean of their rewards."""
        paid, moved = reward[self.accepted], np.zeros(len(reward))
        if len(paid) < 2:
            return Value(np.nan, np.nan, moved)
        mean = float(paid.mean())
        moved[self.accepted] = (paid - mean) / len(paid)
        return Value(mean, float(np.sqrt((moved**2).sum())), moved)


def silent(_: int) -> None:
    """Nobody is told of progress."""


def policies(given: Any, scene: Scene) -> list[Policy]:
    """The policies that are asked for, each checked."""
    if isinstance(given, str):
        given = [name.strip() for name in given.split(",") if name.strip()]
    pairs = list(given.items()) if isinstance(given, Mapping) else [(name, name) for name in _listed(given)]
    if not pairs:
        raise InputError("policies", "none", ALLOWED)
    for place, (name, _) in enumerate(pairs):
        if name in [other for other, _ in pairs[:place]]:
            raise InputError("policies", f"{name!r} twice", "each policy once")
    return [_policy(name, rule, scene) for name, rule in pairs]


def _listed(given: Any) -> Sequence[str]:
    if not isinstance(given, Sequence) or not all(isinstance(name, str) for name in given):
        raise InputError("policies", given, ALLOWED)
    return given


def _policy(name: Any, rule: Any, scene: Scene) -> Policy:
    if not isinstance(name, str) or not name:
        raise InputError("policies", name, "names")
    if isinstance(rule, str):
        return _named(name, rule, scene)
    return Policy(name, lambda _: _checked(name, rule, scene.log))


def _named(name: str, rule: str, scene: Scene) -> Policy:
    log = scene.log
    plain: dict[str, Callable[[Tick], Array]] = {
        "uniform": lambda _: _uniform(log),
        "fitted": lambda _: liked(scene.across.asked(scene.seen), log),
        "fitted-noisy": lambda _: liked(noisy_model(scene), log),
    }
    if rule == "logger":
        return Policy(name, lambda _: _ones(log.arm, log), drawn=True)
    if rule in plain:
        return Policy(name, plain[rule])
    if rule.startswith(ALWAYS):
        arm = rule.removeprefix(ALWAYS)
        if arm not in log.arms:
            near = nearest(arm, log.arms)
            allowed = f"{ALWAYS}ARM, with one of {', '.join(log.arms)}"
            raise InputError("policies", rule, allowed, ALWAYS + near if near else "")
        return Policy(name, lambda _: _ones(np.full(log.rounds, log.arms.index(arm)), log))
    learner = _learner(rule, scene, [*FIXED, *(ALWAYS + arm for arm in log.arms)])
    return Policy(name, lambda tick: taught(learner, tick), learner)


def _learner(rule: str, scene: Scene, others: Sequence[str]) -> LogAgent:
    """The agent of this name, to be taught; a name that is none may have meant one of the other policies."""
    try:
        return log_agent(rule, scene)
    except InputError as error:
        near = nearest(rule, [*others, error.near])
        if row_of(rule) in EVERY or (REFERENCE.fullmatch(rule) and not near):
            raise
        raise InputError("policies", f"no policy is called {rule!r}", ALLOWED, near) from None


def _uniform(log: Log) -> Array:
    if log.offered is None:
        return np.full((log.rounds, len(log.arms)), 1 / len(log.arms))
    return log.offered / log.offered.sum(axis=1, keepdims=True)


def noisy_model(scene: Scene) -> Array:
    """What a model says that takes readings for the truth, cross-fitted as the other is."""
    if scene.channel is None:
        return scene.across.asked(scene.seen)
    log = scene.log._replace(true=None)
    return predicted(
        Data(scene.features, believed(None, log, own=scene.own), log.arm, log.reward), scene.across.folds
    ).rewards


def liked(rewards: Array, log: Log) -> Array:
    """A policy that takes the arm of the highest reward (n, K), of those there were."""
    there = rewards if log.offered is None else np.where(log.offered, rewards, -np.inf)
    return _ones(best(there), log)


def _ones(arms: Any, log: Log) -> Array:
    table = np.zeros((log.rounds, len(log.arms)))
    table[np.arange(log.rounds), arms] = 1.0
    return table


def _checked(name: str, rule: Any, log: Log) -> Array:
    """What a caller's function or table says, if it is what it should be."""
    field = f"policies.{name}"
    given = np.asarray(rule(log.noisy) if callable(rule) else rule)
    if given.dtype.kind in "OUiu" and given.shape == (log.rounds,):
        return _ones(_places(field, given, log), log)
    table = numbers(field, given, RULE)
    if table.shape != (log.rounds, len(log.arms)):
        raise InputError(field, f"has shape {table.shape}", f"shape {(log.rounds, len(log.arms))}: {RULE}")
    _refuse_table(field, table)
    return table


def _places(field: str, given: Any, log: Log) -> list[int]:
    """The places of arms that are told by name; whole numbers are places, unless arms have such names."""
    by_place = given.dtype.kind in "iu" and not any(name.isdecimal() for name in log.arms)
    known = {i if by_place else name: i for i, name in enumerate(log.arms)}
    told = given.tolist() if by_place else [str(one) for one in given.tolist()]
    for row, one in enumerate(told, 1):
        if one not in known:
            allowed = f"arms from 0 to {len(log.arms) - 1}" if by_place else f"arms: {', '.join(log.arms)}"
            raise InputError(f"{field}, row {row}", one, allowed)
    return [known[one] for one in told]


def _refuse_table(field: str, table: Array) -> None:
    """Name the first row that is no set of probabilities."""
    bad = (table < 0).any(axis=1) | (np.abs(table.sum(axis=1) - 1) > TOLERANCE)
    if bad.any():
        row = int(bad.argmax())
        shown = ", ".join(f"{x:g}" for x in table[row][:8])
        raise InputError(f"{field}, row {row + 1}", shown, "probabilities from 0 to 1 that sum to 1")


def log_agent(name: str, scene: Scene) -> LogAgent:
    """The agent of this name, if it can learn here."""
    log, kind, field = scene.log, _kind(scene.log.reward), "policies"
    (agent,) = named([name], field, Catalogue(kind))
    if agent.can.see_bias is not None:
        raise InputError(field, f"{name!r} is told the bias", "agents that need not be told the truth")
    if agent.can.sample is not None:
        raise InputError(field, f"{name!r} takes steps between rounds", "agents that do not, such as unfog")
    if scene.channel is None:
        agent = without_channel(field, agent)
    channel = _as_read(log) if scene.channel is None else scene.channel
    units = scene.units(channel)
    mean, cov = prior(scene.features, 0.0, 1.0)
    known = channel.told(units, prior_mean=mean, prior_cov=cov, reward_var=np.asarray(1.0))
    if agent.awaits_context and not log.known().all():
        raise InputError(field, f"{name!r} needs the true context of every round", "agents that do not")
    world = {"partial": False, "has_bias": False, "logged": True}
    try:
        refuse_misfit(agent, known, scene.features, rewards=kind, **world)
        rounds.begin(agent, known)
    except InputError as error:
        raise _renamed(field, error) from None
    true = None if log.true is None or not agent.sees_context else units.inside(log.true)
    return LogAgent(agent, known, units.read(log.noisy), true, _standardised(log.reward, kind), scene)


def _renamed(field: str, error: InputError) -> InputError:
    """The same complaint in the caller's words; one of a setting still names the setting."""
    if error.field != "agents":
        return InputError.prefixed(field, error)
    return error.renamed(field)


def _as_read(log: Log) -> Channel:
    """Readings in deviations from their mean; the rest is never looked at."""
    one, mean = np.eye(len(log.coordinates)), mean_reading(log)
    spread = np.where(np.isnan(log.noisy), 0.0, (log.noisy - mean) ** 2).mean(axis=0)
    return Channel(mean, np.diag(np.where(spread > 0, spread, 1.0)), one, one, np.zeros_like(mean))


def _kind(reward: Array) -> str:
    return "bernoulli" if np.isin(reward, (0.0, 1.0)).all() else "gaussian"


def _standardised(reward: Array, kind: str) -> Array:
    spread = float(reward.std())
    return reward if kind == "bernoulli" else (reward - reward.mean()) / (spread if spread > 0 else 1.0)


def taught(one: LogAgent, tick: Tick = silent) -> Array:
    """With which probability an agent that is taught by the whole log would have taken each arm: (n, K).

    It sees every round in order: it says with which probabilities it would have taken each arm, is then told
    the arm that was drawn and what it was paid, and goes on. These probabilities hang on the past alone, so
    that every estimator can weigh them; but for the units of rewards, and of readings without a channel,
    which are those of the whole log. What is valued is the agent as the log teaches it: its own choices would
    have taught it other things, which is what `replayed` is for.
    """
    log, runner = one.scene.log, LogRunner(one)
    found = np.empty((log.rounds, len(log.arms)))
    for number in range(log.rounds):
        considered = runner.consider(number, number)
        found[number] = runner.probabilities(considered)
        runner.learn(considered, number)
        tick(1)
    return found


def replayed(one: LogAgent, tick: Tick = silent) -> Replayed:
    """Replay a learning agent: only rounds count that come out as if it had played them itself.

    It chooses, and a round counts if the logger drew that arm, and then with probability c / p, c the
    smallest probability in the log: so each of its arms counts as often, and c of all rounds do. What it
    learns, it learns from its own choices; the mean of the rewards that count is what it would have earned in
    as many rounds (L. Li, W. Chu, J. Langford and X. Wang, *Unbiased Offline Evaluation of
    Contextual-bandit-based News Article Recommendation Algorithms*, for loggers that draw evenly).
    """
    log, runner = one.scene.log, LogRunner(one)
    chances = log.probability if log.probabilities is None else log.probabilities[log.probabilities > 0]
    least, accepted = float(chances.min()), list[int]()
    uniforms = generator(one.scene.seed, 0, "replay").random(log.rounds)
    for number in range(log.rounds):
        tick(1)
        if uniforms[number] * log.probability[number] >= least:
            continue
        considered = runner.consider(number, len(accepted))
        if runner.choose(considered) == log.arm[number]:
            accepted.append(number)
            runner.learn(considered, number)
    return Replayed(np.array(accepted, np.intp))
