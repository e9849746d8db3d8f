"""Policies by what a caller names them: each says with which probability it takes every arm in every round.

    logger            what was done: the arms that were drawn
    uniform           all arms that there were, evenly
    always:send       one arm
    fitted            the arm that a model of rewards through the denoiser likes best, cross-fitted
    fitted-noisy      likewise, of a model that takes readings for the truth
    unfog, naive, …   an agent of the catalogue, taught by the log
    {"mine": rule}    a function of noisy contexts (n, d) to probabilities (n, K), or to arms (n,)
    {"mine": table}   probabilities (n, K), or arms (n,)

Arms of a rule are names. Integers are indices from 0 where the caller gave the order of arms, by `arms=`.
uniform, fitted and agents choose from the arms that there were in a round. An agent that learns (`LogAgent`)
can be valued in two ways: `teach` by the whole log, or `replay` on the rounds that come out as its own.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unfog.agents import round as rounds
from unfog.agents.agent import Agent, check_fit
from unfog.agents.catalogue import EVERY, Catalogue, row_of, select_rows, without_channel
from unfog.agents.choose.greedy import best
from unfog.agents.round import Considered, Decision, Observation
from unfog.agents.runner import Recent, Runner, propensity_draws
from unfog.channel.channel import Channel
from unfog.channel.knowledge import Knowledge, limit_cov
from unfog.evaluation.beliefs import infer_contexts, mean_reading
from unfog.evaluation.context import EvaluationContext
from unfog.evaluation.intervals import Value
from unfog.evaluation.log import DecisionLog
from unfog.evaluation.model import Data, cross_fit
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
    """An agent of the catalogue that is to learn from a log, and what it learns from.

    A log has no prior for theta, so rewards are taught in deviations from their mean, for which the prior
    N(0, I) and a variance of 1 are of the right size; rewards of 0 or 1 stay as they are. Where no channel is
    known an agent takes readings for the truth.
    """

    agent: Agent
    known: Knowledge
    noisy: Array  # (n, d)
    true: Array | None  # (n, d)  if it uses true contexts
    reward: Array  # (n,)
    evaluation: EvaluationContext
    noise: Array | None = None  # (n, d, d)  of every reading, if some have a noise of their own


class LogRunner:
    """An agent that is taught by a log, round by round. Each unit has a channel state of its own."""

    def __init__(self, learner: LogAgent) -> None:
        """Start before the first round."""
        self._learner, self._evaluation = learner, learner.evaluation
        self._runner = Runner(learner.agent, learner.known, learner.evaluation.seed)
        self._recent = Recent[Decision](self._runner.lag)
        unit = learner.evaluation.log.unit
        self._units = (
            [""] * learner.evaluation.log.rounds if unit is None else [str(one) for one in unit.tolist()]
        )

    def consider(self, row: int, time: int) -> Considered:
        """Denoise a row of the log, the agent's round number `time`, and score every arm."""
        noisy, log = self._learner.noisy[[row]], self._evaluation.log
        mask = (~np.isnan(noisy)).astype(float)
        at = None
        if self._learner.agent.can.use_time is not None and log.time is not None:
            at = log.time[[row]]
        arms: Any = None if log.offered is None else log.offered[[row]]
        noise = None if self._learner.noise is None else self._learner.noise[[row]]
        observation = Observation(
            noisy, None if mask.all() else mask, None, None, np.asarray(time), arms, at, noise
        )
        unit = self._units[row]
        self._runner.check_unit(unit)
        past = self._recent.due(unit)
        if past is not None:
            self._runner.revisit(unit, past)
        return self._runner.consider(unit, observation, self._evaluation.features)

    def probabilities(self, considered: Considered) -> Array:
        """The probabilities with which the agent would take each arm, (K,)."""
        return self._learner.agent.chooser.probabilities(considered.view, self._draws())[0]

    def choose(self, considered: Considered) -> int:
        """The arm that the agent would take."""
        return int(self._learner.agent.chooser.choose(considered.view, self._draws()[0])[0])

    def _draws(self) -> Array:
        """The standard normals of a decision, (n, 1, w)."""
        count = propensity_draws(self._learner.agent.chooser)
        return self._runner.normals.next(count).swapaxes(0, 1)

    def learn(self, considered: Considered, row: int) -> None:
        """Learn from a row: its reading, its reward, and its true context as far as that is known."""
        learner, unit, arm = self._learner, self._units[row], int(self._evaluation.log.arm[row])
        decision = self._runner.take(unit, considered, arm, self._evaluation.features)
        decision = self._runner.reward(unit, decision, learner.reward[row])
        if learner.true is not None and not np.isnan(learner.true[row]).all():
            decision = self._runner.reveal(unit, decision, learner.true[[row]])
        self._recent.add(unit, decision)


class Policy(NamedTuple):
    """One policy on one log."""

    name: str
    table: Callable[[Tick], Array]  # (n, K)
    learner: LogAgent | None = None  # set if the policy is an agent that learns
    drawn: bool = False  # whether it takes the arms that were drawn, so that all weights are 1

    @property
    def fixed(self) -> bool:
        """Whether it does the same in all rounds, given what it sees."""
        return self.learner is None


class Replayed(NamedTuple):
    """The rounds of a log that count for a replayed agent."""

    accepted: Ints  # (rounds,)  their indices

    def value(self, reward: Array) -> Value:
        """The mean of their rewards."""
        paid, influence = reward[self.accepted], np.zeros(len(reward))
        if len(paid) < 2:
            return Value(np.nan, np.nan, influence)
        mean = float(paid.mean())
        influence[self.accepted] = (paid - mean) / len(paid)
        return Value(mean, float(np.sqrt((influence**2).sum())), influence)


def silent(_: int) -> None:
    """Report no progress."""


def policies(spec: Any, evaluation: EvaluationContext) -> list[Policy]:
    """Read and check the policies that a caller names."""
    if isinstance(spec, str):
        spec = [name.strip() for name in spec.split(",") if name.strip()]
    pairs = list(spec.items()) if isinstance(spec, Mapping) else [(name, name) for name in _check_names(spec)]
    if not pairs:
        raise InputError("policies", "none", ALLOWED)
    for i, (name, _) in enumerate(pairs):
        if name in [other for other, _ in pairs[:i]]:
            raise InputError("policies", f"{name!r} twice", "each policy once")
    return [_make_policy(name, rule, evaluation) for name, rule in pairs]


def _check_names(spec: Any) -> Sequence[str]:
    if not isinstance(spec, Sequence) or not all(isinstance(name, str) for name in spec):
        raise InputError("policies", spec, ALLOWED)
    return spec


def _make_policy(name: Any, rule: Any, evaluation: EvaluationContext) -> Policy:
    if not isinstance(name, str) or not name:
        raise InputError("policies", name, "names")
    if isinstance(rule, str):
        return _make_named_policy(name, rule, evaluation)
    return Policy(name, lambda _: _read_table(name, rule, evaluation))


def _make_named_policy(name: str, rule: str, evaluation: EvaluationContext) -> Policy:
    log = evaluation.log
    built_in: dict[str, Callable[[Tick], Array]] = {
        "uniform": lambda _: _make_uniform(log),
        "fitted": lambda _: choose_best(evaluation.across.asked(evaluation.seen), log),
        "fitted-noisy": lambda _: choose_best(noisy_model(evaluation), log),
    }
    if rule == "logger":
        return Policy(name, lambda _: _choose_always(log.arm, log), drawn=True)
    if rule in built_in:
        return Policy(name, built_in[rule])
    if rule.startswith(ALWAYS):
        arm = rule.removeprefix(ALWAYS)
        if arm not in log.arms:
            suggestion = nearest(arm, log.arms)
            allowed = f"{ALWAYS}ARM, with one of {', '.join(log.arms)}"
            raise InputError("policies", rule, allowed, ALWAYS + suggestion if suggestion else "")
        return Policy(name, lambda _: _choose_always(np.full(log.rounds, log.arms.index(arm)), log))
    learner = _make_learner(rule, evaluation, [*FIXED, *(ALWAYS + arm for arm in log.arms)])
    return Policy(name, lambda tick: teach(learner, tick), learner)


def _make_learner(rule: str, evaluation: EvaluationContext, others: Sequence[str]) -> LogAgent:
    """The agent of this name, to be taught; the error for an unknown name suggests a similar policy."""
    try:
        return log_agent(rule, evaluation)
    except InputError as error:
        suggestion = nearest(rule, [*others, str(error.near)])
        if row_of(rule) in EVERY or (REFERENCE.fullmatch(rule) and not suggestion):
            raise
        raise InputError("policies", f"no policy is called {rule!r}", ALLOWED, suggestion) from None


def _make_uniform(log: DecisionLog) -> Array:
    if log.offered is None:
        return np.full((log.rounds, len(log.arms)), 1 / len(log.arms))
    return log.offered / log.offered.sum(axis=1, keepdims=True)


def noisy_model(evaluation: EvaluationContext) -> Array:
    """Predictions of a model that takes readings for the truth, on the same folds as the other model."""
    if evaluation.channel is None:
        return evaluation.across.asked(evaluation.seen)
    log = evaluation.log._replace(true=None)
    return cross_fit(
        Data(evaluation.features, infer_contexts(None, log, own=evaluation.own), log.arm, log.reward),
        evaluation.across.folds,
    ).rewards


def choose_best(rewards: Array, log: DecisionLog) -> Array:
    """The policy that takes the arm of the highest reward (n, K) among those that were offered."""
    candidates = rewards if log.offered is None else np.where(log.offered, rewards, -np.inf)
    return _choose_always(best(candidates), log)


def _choose_always(arms: Any, log: DecisionLog) -> Array:
    table = np.zeros((log.rounds, len(log.arms)))
    table[np.arange(log.rounds), arms] = 1.0
    return table


def _read_table(name: str, rule: Any, evaluation: EvaluationContext) -> Array:
    """The probabilities (n, K) that a caller's function or table gives, checked."""
    field, log = f"policies.{name}", evaluation.log
    values = np.asarray(rule(log.noisy) if callable(rule) else rule)
    if values.dtype.kind in "OUiu" and values.shape == (log.rounds,):
        return _choose_always(_find_arms(field, values, evaluation), log)
    table = numbers(field, values, RULE)
    if table.shape != (log.rounds, len(log.arms)):
        raise InputError(field, f"has shape {table.shape}", f"shape {(log.rounds, len(log.arms))}: {RULE}")
    _check_table(field, table)
    return table


def _find_arms(field: str, values: Any, evaluation: EvaluationContext) -> list[int]:
    """Indices of arms given by name, or by index if the caller gave their order."""
    log = evaluation.log
    by_index = values.dtype.kind in "iu" and not any(name.isdecimal() for name in log.arms)
    if by_index and not evaluation.has_arm_order:
        allowed = (
            f"arms by name: {', '.join(log.arms)}; integers only with arms=[...], which gives their order"
        )
        raise InputError(f"{field}, row 1", f"the integer {values[0]}", allowed, "")
    known = {i if by_index else name: i for i, name in enumerate(log.arms)}
    arms = values.tolist() if by_index else [str(arm) for arm in values.tolist()]
    for row, arm in enumerate(arms, 1):
        if arm not in known:
            allowed = f"arms from 0 to {len(log.arms) - 1}" if by_index else f"arms: {', '.join(log.arms)}"
            raise InputError(f"{field}, row {row}", arm, allowed)
    return [known[arm] for arm in arms]


def _check_table(field: str, table: Array) -> None:
    """Raise InputError for the first row that is not a distribution over arms."""
    bad = (table < 0).any(axis=1) | (np.abs(table.sum(axis=1) - 1) > TOLERANCE)
    if bad.any():
        row = int(bad.argmax())
        text = ", ".join(f"{x:g}" for x in table[row][:8])
        raise InputError(f"{field}, row {row + 1}", text, "probabilities from 0 to 1 that sum to 1")


def log_agent(name: str, evaluation: EvaluationContext) -> LogAgent:
    """The agent of this name, if it can learn from this log."""
    log, kind, field = evaluation.log, _find_kind(evaluation.log.reward), "policies"
    (agent,) = select_rows([name], field, Catalogue(kind))
    if agent.can.see_bias is not None:
        raise InputError(field, f"{name!r} is told the bias", "agents that need not be told the truth")
    if agent.can.sample is not None:
        raise InputError(field, f"{name!r} takes steps between rounds", "agents that do not, such as unfog")
    if evaluation.channel is None:
        agent = without_channel(field, agent)
    channel = _make_channel(log) if evaluation.channel is None else evaluation.channel
    units = evaluation.units(channel)
    mean, cov = prior(evaluation.features, 0.0, 1.0)
    known = channel.to_knowledge(units, prior_mean=mean, prior_cov=cov, reward_var=np.asarray(1.0))
    if agent.awaits_context and not log.known().all():
        raise InputError(field, f"{name!r} needs the true context of every round", "agents that do not")
    world = {"partial": False, "has_bias": False, "logged": True}
    try:
        check_fit(agent, known, evaluation.features, rewards=kind, **world)
        rounds.start(agent, known)
    except InputError as error:
        raise _rename_error(field, error) from None
    true = None if log.true is None or not agent.sees_context else units.inside(log.true)
    noise = log.own_noise(channel.noise_cov) if agent.takes_noise else None
    noise = None if noise is None else limit_cov(units.noise(noise), known.context_cov)
    reward = _standardise(log.reward, kind)
    return LogAgent(agent, known, units.read(log.noisy), true, reward, evaluation, noise)


def _rename_error(field: str, error: InputError) -> InputError:
    """The same error about the caller's field; if it is about a setting it still names the setting."""
    if error.field != "agents":
        return InputError.prefixed(field, error)
    return error.renamed(field)


def _make_channel(log: DecisionLog) -> Channel:
    """A channel for agents that have none: it centres readings, and the rest of it is never used."""
    identity, mean = np.eye(len(log.coordinates)), mean_reading(log)
    spread = np.where(np.isnan(log.noisy), 0.0, (log.noisy - mean) ** 2).mean(axis=0)
    return Channel(mean, np.diag(np.where(spread > 0, spread, 1.0)), identity, identity, np.zeros_like(mean))


def _find_kind(reward: Array) -> str:
    return "bernoulli" if np.isin(reward, (0.0, 1.0)).all() else "gaussian"


def _standardise(reward: Array, kind: str) -> Array:
    spread = float(reward.std())
    return reward if kind == "bernoulli" else (reward - reward.mean()) / (spread if spread > 0 else 1.0)


def teach(learner: LogAgent, tick: Tick = silent) -> Array:
    """With which probability an agent that is taught by the whole log would have taken each arm: (n, K).

    It goes through the rounds in order: it gives the probability with which it would have taken each arm, and
    learns from the arm that was drawn and its reward. These probabilities depend on the past alone, so that
    every estimator can use them; only the units of rewards, and of readings without a channel, are those of
    the whole log. The value is that of the agent as the log teaches it. Its own choices would have taught it
    other things; `replay` is for that.
    """
    log, runner = learner.evaluation.log, LogRunner(learner)
    table = np.empty((log.rounds, len(log.arms)))
    for row in range(log.rounds):
        considered = runner.consider(row, row)
        table[row] = runner.probabilities(considered)
        runner.learn(considered, row)
        tick(1)
    return table


def replay(learner: LogAgent, tick: Tick = silent) -> Replayed:
    """Replay a learning agent: only rounds count that come out as if it had played them itself.

    It chooses, and a round counts if the logger drew the same arm, and then with probability c / p, c being
    the smallest probability in the log: so each arm it chooses is accepted equally often, and a share c of
    all rounds counts. It learns from these alone, that is, from its own choices; the mean of their rewards is
    what it would have earned in as many rounds (L. Li, W. Chu, J. Langford and X. Wang, *Unbiased Offline
    Evaluation of Contextual-bandit-based News Article Recommendation Algorithms*, for loggers that draw
    evenly).
    """
    log, runner = learner.evaluation.log, LogRunner(learner)
    chances = log.probability if log.probabilities is None else log.probabilities[log.probabilities > 0]
    smallest, accepted = float(chances.min()), list[int]()
    uniforms = generator(learner.evaluation.seed, 0, "replay").random(log.rounds)
    for row in range(log.rounds):
        tick(1)
        if uniforms[row] * log.probability[row] >= smallest:
            continue
        considered = runner.consider(row, len(accepted))
        if runner.choose(considered) == log.arm[row]:
            accepted.append(row)
            runner.learn(considered, row)
    return Replayed(np.array(accepted, np.intp))
