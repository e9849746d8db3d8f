"""The round: decide, observe, reward, reveal. The only place where the three parts of an agent meet.

    decide    denoise the noisy context, score every arm, choose one of those that may be chosen
    observe   the channel learns from the noisy context, at the time of the decision, reward or no reward
    reward    theta is learnt from the reward; one of setting 2 waits for its true context
    reveal    a true context comes: the channel learns from the pair; what was learnt without it is corrected

Rewards and true contexts may come in any order and any time after `decide`; a context may come in part, as
often as more of it becomes known, where the parts can take that (`Agent.can.revise`).

>>> import numpy as np
>>> import unfog
>>> from unfog.agents import round as rounds
>>> agent, known = unfog.AGENTS["late"], unfog.GaussianProblem(dim=2, actions=3).knowledge()
>>> features = unfog.features.quadratic(np.eye(2))  # two arms
>>> setup, memory = rounds.start(agent, known)
>>> observation = rounds.Observation(np.array([0.9, -0.2]), round=np.asarray(0))
>>> normals = np.zeros(agent.chooser.normals(known))
>>> decision = rounds.decide(agent, setup, memory, features, observation, normals)
>>> rounds.probabilities(agent, setup, memory, features, observation, normals[None]).tolist()
[1.0, 0.0]
>>> memory = rounds.observe(agent, setup, memory, observation)
>>> memory, decision = rounds.reward(agent, setup, memory, decision, np.asarray(1.5))
>>> memory, decision = rounds.reveal(agent, setup, memory, decision, np.array([0.4, 0.1]))
>>> isinstance(decision, rounds.Decision), int(decision.arm), float(decision.reward), decision.known.tolist()
(True, 0, 1.5, [0.4, 0.1])

Several units, persons or devices with biases of their own, may share an agent: see `Several`. If the agent
has a `clip_sd`, readings, rewards and true contexts too far from what was expected are clipped: see `clip`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from unfog.agents import hedge
from unfog.agents.agent import Agent
from unfog.agents.base import (
    EstimatesScales,
    Evidence,
    Known,
    Moment,
    Parameters,
    Pooled,
    Privilege,
    State,
    Term,
    View,
    is_news,
)
from unfog.channel.knowledge import Knowledge, masked_inverse
from unfog.features import Context, Design, FeatureMap
from unfog.features.per_arm import has_intercepts
from unfog.maths.arrays import Array, Bools, Ints, holds_everywhere
from unfog.maths.gaussian import Belief
from unfog.maths.trees import map_arrays, where
from unfog.validation import InputError


class Observation(NamedTuple):
    """What is observed before a decision, and which arms there are."""

    noisy: Array  # (..., d)
    mask: Array | None = None  # (..., d)  1 where a coordinate was measured, 0 where lost; None: all were
    unit: Ints | None = None  # (...,)  whose it is: each unit has a bias of its own; None: there is one unit
    bias: Array | None = None  # (..., d)  of this round, for the privileged, where it is not always the same
    round: Ints | None = None  # its number, from 0
    arms: Array | None = None  # (..., K)  true where an arm may be chosen; None: all of them
    measured_at: Array | None = None  # (...,)  the time of the reading; None: the number of the round
    noise: Array | None = None  # (..., d, d)  noise covariance of this reading alone; None: as told


class Setup(NamedTuple):
    """What does not change during a run."""

    denoiser: Parameters
    learner: Parameters
    context_mean: Array  # (d,)  mu_c
    context_var: Array  # (d,)  of its coordinates
    noise_cov: Array  # (d, d)  Sigma_n


class Surprises(NamedTuple):
    """How often something had to be clipped."""

    contexts: Ints  # (...,)  noisy contexts, and true ones
    rewards: Ints  # (...,)


class Memory(NamedTuple):
    """What changes from round to round."""

    denoiser: State  # with an axis for units in front, where there are several
    learner: State
    surprises: Surprises | tuple[()] = ()  # how many there were, if the agent has `clip_sd`
    pool: State = ()  # what the denoiser knows of all units together
    weights: Array | tuple[()] = ()  # (..., J)  logarithms of the candidates' weights, up to a constant


class Decision(NamedTuple):
    """A round so far: what was chosen and believed, the reward, and what is known of the context."""

    arm: Ints  # (...,)
    context: Context  # as it was believed to be
    evidence: Evidence
    noisy: Array  # (..., d)  as the denoiser was shown it
    unit: Ints | None = None
    clipped: Any = None  # (...,)  whether that had to be clipped
    reward: Array | None = None  # (...,)
    term: Term | None = None  # what its reward says of theta, if that can be taken back
    known: Array | None = None  # (..., d)  the true context as far as it is known, not a number elsewhere
    moment: Moment | None = None  # of its reading, for denoisers that use time, or its own noise
    law: tuple[Array, Array] | None = None  # expected mean and variance of its reward, if it is clipped


class _Reading(NamedTuple):
    """A noisy context as the denoiser sees it."""

    parameters: Parameters  # the denoiser's, with what is this round's own: bias, noise
    channel: State  # that of its unit
    noisy: Array  # (..., d)
    unit: Ints | None
    clipped: Any  # (...,)  whether it had to be clipped; None without `clip_sd`
    moment: Moment | None  # for denoisers that use time, or this reading's own noise
    law: tuple[Array, Array] | None = None  # its expected mean and variance, if the agent has `clip_sd`


class Denoised(NamedTuple):
    """A noisy context and what it says, before anyone looks at arms."""

    reading: _Reading
    context: Context
    belief: Belief | None  # about theta, for learners that look back; others need no context for it


class Considered(NamedTuple):
    """A round before an arm is chosen."""

    view: View
    reading: _Reading


class Several(NamedTuple):
    """How many units there are, and the shape of the batch.

    Units are an axis in front of all others: every array of a denoiser's state, (..., core), becomes (units,
    batch, core). A round reads the state of its unit, which may be a different one in every trial of a batch,
    and writes the new one back. With one unit there is no such axis.
    """

    number: int
    batch: tuple[int, ...] = ()


def start(
    agent: Agent,
    known: Knowledge,
    privilege: Privilege | None = None,
    rounds: int | None = None,
    several: Several | None = None,
    late: bool = True,
) -> tuple[Setup, Memory]:
    """Set up the parts. Only a privileged agent may be shown the truth.

    With `rounds` the memory of past rounds has that fixed size, as compiled programs need it; else it grows.
    `several` says how many units there are, where there is more than one. Unless true contexts may come
    `late`, nothing is kept for those that do.
    """
    if (agent.can.see_bias is None) != (privilege is None):
        raise ValueError(f"{agent.name}: privilege must be given to privileged agents, and to no others")
    if several is not None and agent.can.look_back is not None:
        reason = "its learner looks back on past rounds as those of one unit, and there are several"
        raise ValueError(f"{agent.name}: {reason}")
    xp, known = known.context_cov.__array_namespace__(), known.limited()
    parts = agent.denoiser.setup(known, privilege), agent.learner.setup(known)
    mean = xp.where(xp.isnan(known.context_mean), 0.0, known.context_mean)  # for those who know of no gaps
    setup = Setup(*parts, mean, xp.linalg.diagonal(known.context_cov), known.noise_cov)
    channel = agent.denoiser.start(setup.denoiser)
    if agent.can.use_time is not None and not late:
        channel = agent.can.use_time.at_once(channel)
    pool: State = ()
    if agent.can.pool is not None:
        pool, channel = channel
    if several is not None:
        channel = repeat_state(channel, several)
    counts = () if agent.clip_sd is None else start_counts(known.context_mean)
    learner, weights = agent.learner.start(known, rounds), ()
    if agent.can.hedge is not None:
        number = len(agent.can.hedge.candidates)
        learner = map_arrays(lambda x: xp.broadcast_to(x, (number, *x.shape)), learner)
        weights = xp.zeros(number, dtype=known.context_cov.dtype)
    return setup, Memory(channel, learner, counts, pool, weights)


def advance_chain(agent: Agent, setup: Setup, memory: Memory, normals: Array) -> Memory:
    """One step of the learner's chain: normals (..., n). A round's steps come before its decision."""
    if agent.can.sample is None:
        raise ValueError(f"{agent.name}: its learner has no steps to take")
    return memory._replace(learner=agent.can.sample.step(setup.learner, memory.learner, normals))


def estimate_scales(agent: Agent, setup: Setup, memory: Memory, number: int) -> Memory:
    """The memory before the decision of this number: learners that estimate scales do so now and then."""
    estimator = agent.can.estimate_scales
    if estimator is None or not estimator.is_due(number):
        return memory
    return memory._replace(learner=estimator.estimate_scales(setup.learner, memory.learner))


def _channel(agent: Agent, memory: Memory, unit: Ints | None, noisy: Array) -> State:
    """The denoiser's state in a round of this unit."""
    own = state_of(memory.denoiser, unit, noisy)
    return own if agent.can.pool is None else Pooled(memory.pool, own)


def _with_channel(agent: Agent, memory: Memory, unit: Ints | None, noisy: Array, channel: State) -> Memory:
    """The memory with the denoiser's state after a round of this unit."""
    if agent.can.pool is None:
        return memory._replace(denoiser=put_state(memory.denoiser, unit, noisy, channel))
    own = put_state(memory.denoiser, unit, noisy, channel.own)
    return memory._replace(denoiser=own, pool=channel.pool)


def design(
    agent: Agent, parameters: Parameters, channel: State, features: FeatureMap, context: Context
) -> Design:
    """The expected features under a belief, counted from the denoiser's origin where it has one."""
    scales = agent.can.scale_contexts
    has_candidates = agent.can.hedge is not None
    if scales is not None and has_intercepts(features):
        origin = scales.origin(parameters, channel)
        context = Context(context.mean - (origin[..., None, :] if has_candidates else origin), context.cov)
    return (features.over_rounds() if has_candidates else features).design(context)


def candidate_weights(memory: Memory) -> Array | None:
    """The weights of candidates in a choice, (..., J); None without candidates."""
    return None if isinstance(memory.weights, tuple) else hedge.shares(memory.weights)


def believed_context(
    agent: Agent, setup: Setup, weights: Array | None, channel: State, context: Context
) -> Context:
    """A belief about a context over all candidates, and without the mean error of readings."""
    context = context if weights is None else hedge.mix_contexts(weights, context)
    if agent.can.scale_contexts is None:
        return context
    error = agent.can.scale_contexts.mean_error(setup.denoiser, channel)
    return Context(context.mean - error, context.cov)


def for_each_candidate(agent: Agent, values: Any) -> Any:
    """Values (...,), one for all candidates, with an axis for these."""
    if agent.can.hedge is None:
        return values
    xp, number = values.__array_namespace__(), len(agent.can.hedge.candidates)
    return xp.broadcast_to(values[..., None], (*values.shape, number))


def mask_lost(agent: Agent, setup: Setup, observation: Observation) -> Array:
    """The noisy context as the agent sees it: lost coordinates are NaN, or mu_c for agents without gaps."""
    if observation.mask is None:
        return observation.noisy
    xp = observation.noisy.__array_namespace__()
    return xp.where(
        observation.mask > 0, observation.noisy, xp.nan if agent.takes_gaps else setup.context_mean
    )


def _stamp(agent: Agent, setup: Setup, channel: State, observation: Observation) -> Moment | None:
    """When a reading was taken and how noisy it is, as far as the agent uses that."""
    moment = Moment(observation.round, observation.measured_at, _own_noise(agent, setup, observation))
    if agent.can.use_time is not None:
        return agent.can.use_time.stamp(channel, moment)
    return None if moment.noise is None else Moment(noise=moment.noise)


def _own_noise(agent: Agent, setup: Setup, observation: Observation) -> Array | None:
    """The noise covariance of this reading alone; that of lost coordinates does not matter.

    To agents without gaps a lost coordinate has its mean for a reading. Its noise goes with that of the
    others as in the told covariance, whatever was said of it.
    """
    noise, mask = observation.noise, observation.mask
    if noise is not None and not agent.takes_noise:
        allowed = f"none: to {agent.name!r} all readings are alike"
        raise InputError("noise", "given for one reading", allowed)
    if noise is None or mask is None or agent.takes_gaps:
        return noise
    usual, both = setup.noise_cov, mask[..., :, None] * mask[..., None, :]
    known = usual * mask[..., None, :]
    share = known @ masked_inverse(usual, mask)  # regression of all coordinates on those that were not lost
    own: Array = usual - share @ known.mT + share @ (both * noise) @ share.mT
    return own


def _parameters(agent: Agent, setup: Setup, moment: Moment | None) -> Parameters:
    """The denoiser's parameters for a reading, which may have a noise of its own."""
    if agent.can.take_noise is None or moment is None or moment.noise is None:
        return setup.denoiser
    return agent.can.take_noise.with_noise(setup.denoiser, moment.noise)


def _prepare_reading(agent: Agent, setup: Setup, memory: Memory, observation: Observation) -> _Reading:
    """The reading as the denoiser sees it: lost coordinates marked, outliers clipped."""
    noisy = mask_lost(agent, setup, observation)
    channel = _channel(agent, memory, observation.unit, noisy)
    moment = _stamp(agent, setup, channel, observation)
    parameters = _parameters(agent, setup, moment)
    if agent.can.see_bias is not None and observation.bias is not None:
        parameters = agent.can.see_bias.with_bias(parameters, observation.bias)
    if agent.can.use_time is not None and moment is not None:
        channel = agent.can.use_time.before(parameters, channel, moment)
    if agent.can.precompute is not None:
        channel = agent.can.precompute.precompute(parameters, channel)
    if agent.clip_sd is None or agent.can.predict_reading is None:
        return _Reading(parameters, channel, noisy, observation.unit, None, moment)
    expected = agent.can.predict_reading.predict_reading(parameters, channel)
    noisy, clipped = clip(noisy, *expected, agent.clip_sd)
    return _Reading(parameters, channel, noisy, observation.unit, clipped.any(-1), moment, expected)


def denoise(
    agent: Agent, setup: Setup, memory: Memory, features: FeatureMap, observation: Observation
) -> Denoised:
    """Denoise alone, as `consider` does first: for a round whose arm is known already."""
    reading = _prepare_reading(agent, setup, memory, observation)
    return Denoised(reading, *_denoise_reading(agent, setup, memory, features, reading))


def _denoise_reading(
    agent: Agent, setup: Setup, memory: Memory, features: FeatureMap, reading: _Reading
) -> tuple[Context, Belief | None]:
    """The belief about the context; and that about theta, for learners that denoise past rounds, too."""
    parameters, channel, noisy, *_ = reading
    if agent.can.look_back is None:
        return agent.denoiser.predict(parameters, channel, noisy), None
    rewinds, learner = agent.can.look_back
    hindsight = rewinds.hindsight(parameters, channel, noisy)
    belief, context = learner.look_back(setup.learner, memory.learner, features, hindsight, noisy)
    return context, belief


def consider(
    agent: Agent,
    setup: Setup,
    memory: Memory,
    features: FeatureMap,
    observation: Observation,
    theta: Belief | None = None,
) -> Considered:
    """Denoise, and prepare the choice; `theta` is the belief of the learner, if it is computed already."""
    reading = _prepare_reading(agent, setup, memory, observation)
    return Considered(_build_view(agent, setup, memory, features, observation, reading, theta), reading)


def view(agent: Agent, setup: Setup, memory: Memory, features: FeatureMap, observation: Observation) -> View:
    """Denoise: the expected features of every arm, and the belief about theta that goes with them."""
    return _build_view(
        agent, setup, memory, features, observation, _prepare_reading(agent, setup, memory, observation)
    )


def _build_view(
    agent: Agent,
    setup: Setup,
    memory: Memory,
    features: FeatureMap,
    observation: Observation,
    reading: _Reading,
    theta: Belief | None = None,
) -> View:
    """What is believed before the choice; `theta` is the belief about it, where that is known already."""
    context, joint_belief = _denoise_reading(agent, setup, memory, features, reading)
    belief = theta if joint_belief is None else joint_belief
    if belief is None:
        belief = agent.learner.belief(setup.learner, memory.learner)
    expected = design(agent, reading.parameters, reading.channel, features, context)
    weights, estimator = candidate_weights(memory), agent.can.estimate_scales

    def noise(arm: Ints) -> Array | None:
        fitting: Any = belief
        hidden = (
            0.0
            if agent.awaits_context
            else expected.context_variance(fitting, for_each_candidate(agent, arm))
        )
        variance = agent.learner.noise(setup.learner, memory.learner, hidden)
        return variance if weights is None or variance is None else (weights * variance).sum(-1)

    return View(
        context,
        expected,
        belief,
        observation.round,
        observation.arms,
        noise,
        features,
        reach=_find_reach(agent, reading),
        weights=weights,
        by_lot=None if estimator is None else ~_all_ready(agent, estimator, memory, features),
    )


def _all_ready(agent: Agent, estimator: EstimatesScales, memory: Memory, features: FeatureMap) -> Bools:
    """Whether the learner, or that of every candidate, knows enough to choose, (...,)."""
    is_ready = estimator.is_ready(memory.learner, features.arms)
    xp = is_ready.__array_namespace__()
    ready: Bools = is_ready if agent.can.hedge is None else xp.all(is_ready, axis=-1)
    return ready


def _find_reach(agent: Agent, reading: _Reading) -> Array | None:
    """How far off the context's mean may be; None if the denoiser does not say."""
    if agent.can.bound_error is None:
        return None
    return agent.can.bound_error.reach(reading.parameters, reading.channel, reading.noisy)


def make_decision(
    agent: Agent,
    setup: Setup,
    features: FeatureMap,
    considered: Considered,
    arm: Ints,
    choice_report: Array | None = None,
) -> Decision:
    """The round with this arm (...,), whoever chose it; `choice_report` is what the learner must hear."""
    view, reading = considered
    noisy = reading.noisy
    unbiased = None if agent.can.look_back is None else agent.can.look_back[0].unbiased(setup.denoiser, noisy)
    arms = for_each_candidate(agent, arm)
    context = believed_context(agent, setup, view.weights, reading.channel, view.context)
    evidence = Evidence(
        features, view.design, view.belief, arms, unbiased, context=view.context, choice_report=choice_report
    )
    return Decision(arm, context, evidence, noisy, reading.unit, reading.clipped, moment=reading.moment)


def decide(
    agent: Agent, setup: Setup, memory: Memory, features: FeatureMap, observation: Observation, normals: Array
) -> Decision:
    """Denoise and choose; nothing is learnt yet."""
    considered = consider(agent, setup, memory, features, observation)
    if agent.can.report_choice is not None:
        arm, choice_report = agent.can.report_choice.choose_and_report(considered.view, normals)
        return make_decision(agent, setup, features, considered, arm, choice_report)
    return make_decision(agent, setup, features, considered, agent.chooser.choose(considered.view, normals))


def probabilities(
    agent: Agent, setup: Setup, memory: Memory, features: FeatureMap, observation: Observation, draws: Array
) -> Array:
    """With which probability `decide` takes each arm, (..., K): exactly, or from draws (n, ..., w)."""
    return agent.chooser.probabilities(view(agent, setup, memory, features, observation), draws)


def play(
    agent: Agent,
    setup: Setup,
    memory: Memory,
    features: FeatureMap,
    observation: Observation,
    normals: Array,
    pay: Callable[[Ints], Array],
    context: Array | None = None,
) -> tuple[Memory, Decision]:
    """A round whose reward comes at once: decide, observe, and the reward that the arm is paid.

    A full true `context` (..., d) that comes with the reward is learnt from first: what the reward says is
    the same as in the other order, up to rounding, and no term has to be taken back.
    """
    decision = decide(agent, setup, memory, features, observation, normals)
    memory, paid = observe_reading(agent, setup, memory, decision), pay(decision.arm)
    if context is not None:
        memory, decision = reveal(agent, setup, memory, decision, context)
    return reward(agent, setup, memory, decision, paid)


def observe(agent: Agent, setup: Setup, memory: Memory, observation: Observation) -> Memory:
    """The channel learns from the noisy context, or later, if it learns from pairs with the true one."""
    return observe_reading(agent, setup, memory, _prepare_reading(agent, setup, memory, observation))


def observe_reading(agent: Agent, setup: Setup, memory: Memory, reading: "_Reading | Decision") -> Memory:
    """`observe`, with the noisy context as it was denoised: clipped, and counted if it was."""
    memory = memory._replace(surprises=count_surprises(memory.surprises, contexts=reading.clipped))
    if agent.awaits_context:
        return memory
    channel = _channel(agent, memory, reading.unit, reading.noisy)
    if agent.can.use_time is not None and reading.moment is not None:
        channel = agent.can.use_time.before(setup.denoiser, channel, reading.moment)
    parameters = _parameters(agent, setup, reading.moment)
    channel = agent.denoiser.update(parameters, channel, reading.noisy, None)
    return _with_channel(agent, memory, reading.unit, reading.noisy, channel)


def reward(
    agent: Agent, setup: Setup, memory: Memory, decision: Decision, paid: Array
) -> tuple[Memory, Decision]:
    """Learn theta from the reward (...,), or keep it until the true context that it needs comes."""
    if decision.reward is not None:
        raise ValueError(f"{agent.name}: the reward of this decision is there already")
    decision = decision._replace(reward=paid)
    awaits = agent.awaits_context and decision.known is None
    return (memory, decision) if awaits else _learn_reward(agent, setup, memory, decision, paid)


def _learn_reward(
    agent: Agent, setup: Setup, memory: Memory, decision: Decision, paid: Array
) -> tuple[Memory, Decision]:
    """Learn theta from the reward; its term is kept where it may have to be taken back."""
    memory, decision, paid = _clip_reward(agent, setup, memory, decision, paid)
    if agent.can.hedge is not None:
        paid = for_each_candidate(agent, paid)
        memory, decision = _weigh_candidates(agent, setup, memory, decision, paid)
    if agent.can.revise is None:
        learner = agent.learner.update(setup.learner, memory.learner, decision.evidence, paid)
    else:
        _, reviser = agent.can.revise
        term = decision.term or reviser.term(setup.learner, decision.evidence)
        term = reviser.fit(setup.learner, memory.learner, None, term, paid)
        learner = reviser.replace(setup.learner, memory.learner, None, term, paid)
        decision = decision._replace(term=term)
    return memory._replace(learner=learner), decision


def _weigh_candidates(
    agent: Agent, setup: Setup, memory: Memory, decision: Decision, paid: Array
) -> tuple[Memory, Decision]:
    """Weigh the candidates by how well each predicted the reward (..., J), before any learns from it."""
    evidence = decision.evidence.weighed()
    noise = agent.learner.noise(setup.learner, memory.learner, evidence.context_variance())
    decision, estimator = decision._replace(evidence=evidence), agent.can.estimate_scales
    if noise is None or isinstance(memory.weights, tuple):
        return memory, decision
    counts: Bools = paid == paid if estimator is None else estimator.is_ready(memory.learner, 1)
    weights = hedge.weigh(memory.weights, *evidence.expected_reward(noise), paid, counts)
    return memory._replace(weights=weights), decision


def _clip_reward(
    agent: Agent, setup: Setup, memory: Memory, decision: Decision, paid: Array
) -> tuple[Memory, Decision, Array]:
    """Clip the reward to the agent's `clip_sd`; rewards of 0 or 1 are never clipped."""
    if agent.clip_sd is None or agent.learner.rewards != "gaussian":
        return memory, decision, paid
    evidence = decision.evidence.weighed()
    noise = agent.learner.noise(setup.learner, memory.learner, evidence.context_variance())
    if noise is None:
        return memory, decision, paid
    mean, variance = evidence.expected_reward(noise)
    paid, clipped = clip(paid, mean, variance, agent.clip_sd)
    counts = count_surprises(memory.surprises, rewards=clipped)
    decision = decision._replace(evidence=evidence, reward=paid, law=(mean, variance))
    return memory._replace(surprises=counts), decision, paid


def reveal(
    agent: Agent, setup: Setup, memory: Memory, decision: Decision, context: Array
) -> tuple[Memory, Decision]:
    """Learn from the true context (..., d) of a round, and correct what was learnt without it."""
    if agent.clip_sd is not None:
        moves = agent.can.use_time is not None  # contexts may move
        centre = decision.context.mean if moves else setup.context_mean
        context, clipped = clip(context, centre, setup.context_var, agent.clip_sd)
        clipped = clipped if decision.known is None else clipped & (context != decision.known)  # counted once
        memory = memory._replace(surprises=count_surprises(memory.surprises, contexts=clipped.any(-1)))
    if agent.awaits_context:
        return _learn_pair(agent, setup, memory, decision, context)
    return _revise_round(agent, setup, memory, decision, context)


def _learn_pair(
    agent: Agent, setup: Setup, memory: Memory, decision: Decision, context: Array
) -> tuple[Memory, Decision]:
    """Learn the channel from the reading and its full context, then theta from the reward if it has come."""
    if decision.known is not None:
        raise ValueError(f"{agent.name}: the true context of this decision is known already")
    noisy = decision.noisy
    channel = _channel(agent, memory, decision.unit, noisy)
    parameters = _parameters(agent, setup, decision.moment)
    channel = agent.denoiser.update(parameters, channel, noisy, context)
    memory = _with_channel(agent, memory, decision.unit, noisy, channel)
    evidence = decision.evidence.known_to_be(decision.evidence.features.at(context))
    decision = decision._replace(evidence=evidence, known=context)
    if decision.reward is None:
        return memory, decision
    return _learn_reward(agent, setup, memory, decision, decision.reward)


def _revise_round(
    agent: Agent, setup: Setup, memory: Memory, decision: Decision, context: Array
) -> tuple[Memory, Decision]:
    """Replace what was known of a past round's context by what is known now.

    NaN coordinates stay hidden; a context that says nothing new changes nothing. Contexts that become known
    in full may come in any order: the belief is the same to the last bits, except for learners that
    approximate (`Sites` in learn/adf.py). For one known in part, the rest is denoised with the belief about
    the bias at that moment, as in every round, and stays so until more of it is known.
    """
    if agent.can.revise is None:
        raise ValueError(f"{agent.name}: its parts cannot take in a true context")
    (denoiser, learner), use_time = agent.can.revise, agent.can.use_time
    xp, noisy = context.__array_namespace__(), decision.noisy
    before = xp.full_like(noisy, xp.nan) if decision.known is None else decision.known
    after = xp.where(xp.isnan(context), before, context)
    channel = _channel(agent, memory, decision.unit, noisy)
    parameters = _parameters(agent, setup, decision.moment)
    reading_args = parameters, channel, noisy, before, after
    if use_time is not None and decision.moment is not None:
        channel, posterior = use_time.reopen(*reading_args, decision.moment)
    else:
        channel, posterior = denoiser.correct(*reading_args)
    memory = _with_channel(agent, memory, decision.unit, noisy, channel)
    news, evidence = is_news(before, after), decision.evidence
    old = decision.term or learner.term(setup.learner, evidence)
    expected = design(agent, parameters, channel, evidence.features, posterior)
    revealed = evidence.known_to_be(expected)
    # The term of a known context needs no belief about theta.
    if holds_everywhere(~news | ~xp.isnan(after).any(-1)):
        new = learner.term(setup.learner, Known(*revealed))
    else:
        belief = learner.belief(setup.learner, memory.learner)
        new = learner.term(setup.learner, revealed._replace(belief=belief))
    if decision.reward is None:
        return memory, decision._replace(known=after, term=where(news, new, old))
    term_args = setup.learner, memory.learner, old
    paid = for_each_candidate(agent, decision.reward)
    new = where(news, learner.fit(*term_args, new, paid), old)
    memory = memory._replace(learner=learner.replace(*term_args, new, paid))
    return memory, decision._replace(known=after, term=new)


def revisit(agent: Agent, setup: Setup, memory: Memory, decision: Decision) -> tuple[Memory, Decision]:
    """Learn from a past round again, with what later readings and true contexts say of its context."""
    if agent.can.revisit is None or decision.moment is None:
        raise ValueError(f"{agent.name}: its parts do not learn from a round again")
    (denoiser, learner), noisy = agent.can.revisit, decision.noisy
    xp = noisy.__array_namespace__()
    known = xp.full_like(noisy, xp.nan) if decision.known is None else decision.known
    channel = _channel(agent, memory, decision.unit, noisy)
    posterior = denoiser.smooth(setup.denoiser, channel, decision.moment, known)
    evidence = decision.evidence.known_to_be(decision.evidence.features.design(posterior))
    new = learner.term(setup.learner, evidence._replace(belief=learner.belief(setup.learner, memory.learner)))
    if decision.reward is None:
        return memory, decision._replace(term=new)
    term_args, paid = (setup.learner, memory.learner, decision.term), decision.reward
    new = learner.fit(*term_args, new, paid)
    return memory._replace(learner=learner.replace(*term_args, new, paid)), decision._replace(term=new)


def value_of_reveal(agent: Agent, setup: Setup, memory: Memory, unit: Ints | None, noisy: Array) -> Array:
    """What the true context of a unit's last reading (..., d) would be worth, (...,).

    >>> import numpy as np
    >>> import unfog
    >>> from unfog.agents import round as rounds
    >>> agent, known = unfog.AGENTS["temporal"], unfog.TemporalProblem(dim=1, actions=3).knowledge()
    >>> setup, memory = rounds.start(agent, known)
    >>> observation = rounds.Observation(np.array([0.9]), measured_at=np.asarray(0.0))
    >>> memory = rounds.observe(agent, setup, memory, observation)
    >>> bool(rounds.value_of_reveal(agent, setup, memory, None, np.array([0.9])) > 0)
    True
    """
    if agent.can.value_reveal is None:
        raise ValueError(f"{agent.name}: its denoiser cannot say what a true context is worth")
    channel = state_of(memory.denoiser, unit, noisy)
    return agent.can.value_reveal.value_of_reveal(setup.denoiser, channel)


def repeat_state(state: Any, several: Several) -> Any:
    """The first state, repeated for each unit and trial."""

    def repeat(x: Array) -> Array:
        xp = x.__array_namespace__()
        return xp.broadcast_to(x, (several.number, *several.batch, *x.shape))

    return map_arrays(repeat, state)


def state_of(state: Any, unit: Ints | None, noisy: Array) -> Any:
    """The state of the unit whose noisy context (..., d) this is."""
    if unit is None:
        return state
    xp = noisy.__array_namespace__()
    index = xp.meshgrid(*(xp.arange(size) for size in noisy.shape[:-1]), indexing="ij")
    return map_arrays(lambda x: x[(unit, *index)], state)


def put_state(state: Any, unit: Ints | None, noisy: Array, new: Any) -> Any:
    """The states of all units, with that of this unit replaced."""
    if unit is None:
        return new
    xp, batch = noisy.__array_namespace__(), noisy.shape[:-1]

    def replace(old: Array, fresh: Array) -> Array:
        number = xp.arange(old.shape[0]).reshape(-1, *[1] * len(batch))
        is_unit = number == xp.broadcast_to(xp.asarray(unit), batch)
        states: Array = xp.where(
            is_unit.reshape(*is_unit.shape, *[1] * (old.ndim - is_unit.ndim)), fresh, old
        )
        return states

    return map_arrays(replace, state, new)


def start_counts(like: Array) -> Surprises:
    """The counts before the first round."""
    xp = like.__array_namespace__()
    return Surprises(xp.zeros((), dtype=xp.int64), xp.zeros((), dtype=xp.int64))


def clip(values: Array, mean: Array, variance: Array, clip_sd: float) -> tuple[Array, Any]:
    """The values clipped to reach of their means, and which of them were beyond it; NaN stays NaN.

    A value x that was expected to be N(mean, variance) is taken for

        mean + clip(x - mean, -clip_sd sd, clip_sd sd),

    so that a single absurd one, however large, moves a belief no further than one that is `clip_sd`
    deviations off (Winsorising; P. J. Huber, *Robust Estimation of a Location Parameter*, gives the reasons).
    Under a belief that is right, one value in 5e8 is touched at six deviations. Under one that is wrong,
    clipped values still point the right way, and what was too far yesterday is within reach once the belief
    has moved. Clipping is coordinate by coordinate. How often a value was clipped is counted (`Surprises`).
    Denoisers that would need an inverse a round keep their first expectation: see their `predict_reading`.
    """
    xp = values.__array_namespace__()
    deviation, reach = values - mean, clip_sd * xp.sqrt(variance)
    clipped = xp.abs(deviation) > reach
    if holds_everywhere(~clipped):
        return values, clipped
    return xp.where(clipped, mean + xp.sign(deviation) * reach, values), clipped


def count_surprises(
    counts: Surprises | tuple[()], contexts: Any = None, rewards: Any = None
) -> Surprises | tuple[()]:
    """The counts with these surprises added, (...,) each, if the agent counts them."""
    if not isinstance(counts, Surprises):
        return counts
    totals = (
        old if more is None else old + more for old, more in zip(counts, (contexts, rewards), strict=True)
    )
    return Surprises(*totals)
