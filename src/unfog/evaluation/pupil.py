"""An agent of the catalogue that is to learn from a log: what it is told, and one round of it.

A log has no prior for theta, so rewards are taught in deviations from their mean, for which the prior N(0, I)
and a variance of 1 are of the right size; rewards of 0 or 1 stay as they are. Where no channel is known an
agent takes readings for the truth. Each unit has a channel state of its own. The round is that of
agents/round.py.
"""

from typing import Any, NamedTuple

import numpy as np

from unfog.agents import round as rounds
from unfog.agents.agent import Agent, refuse_misfit
from unfog.agents.base import State
from unfog.agents.catalogue import Catalogue, named, without_channel
from unfog.agents.round import Considered, Memory, Offer, Setup
from unfog.channel.channel import Channel
from unfog.channel.knowledge import Knowledge
from unfog.evaluation.contexts import mean_reading
from unfog.evaluation.log import Log
from unfog.evaluation.scene import Scene
from unfog.features.registry import prior
from unfog.maths.arrays import Array
from unfog.maths.random import generator
from unfog.validation import InputError

DRAWS = 200  # of an arm, where its probability is not known exactly


class Pupil(NamedTuple):
    """An agent, what it is told, and the log in its units."""

    agent: Agent
    known: Knowledge
    setup: Setup
    fresh: Memory  # before the first round
    noisy: Array  # (n, d)
    true: Array | None  # (n, d)  where it takes true contexts in
    reward: Array  # (n,)
    scene: Scene

    def normals(self) -> "Normals":
        """Its random numbers, from the first round on."""
        draws = 1 if self.agent.chooser.propensity == "exact" else DRAWS
        return Normals(self.scene.seed, (draws, 1, self.agent.chooser.normals(self.known)))

    def consider(self, memory: Memory, number: int, time: int) -> Considered:
        """Denoise a round of the log, the agent's round number `time`, and look at every arm."""
        noisy, log = self.noisy[[number]], self.scene.log
        mask = (~np.isnan(noisy)).astype(float)
        at = log.time[[number]] if self.agent.timed is not None and log.time is not None else None
        arms: Any = None if log.offered is None else log.offered[[number]]
        offer = Offer(noisy, None if mask.all() else mask, time=np.asarray(time), at=at, arms=arms)
        return rounds.consider(self.agent, self.setup, memory, self.scene.features, offer)

    def learn(self, memory: Memory, considered: Considered, number: int) -> Memory:
        """What a round says: its reading, its reward, its true context as far as that is known."""
        agent, setup, arm = self.agent, self.setup, self.scene.log.arm[[number]]
        decision = rounds.taken(agent, setup, self.scene.features, considered, arm)
        memory = rounds.observed(agent, setup, memory, decision)
        memory, decision = rounds.reward(agent, setup, memory, decision, self.reward[[number]])
        if self.true is not None and not np.isnan(self.true[number]).all():
            memory, _ = rounds.reveal(agent, setup, memory, decision, self.true[[number]])
        return memory


class Normals:
    """Standard normals of one round after the other."""

    def __init__(self, seed: int, shape: tuple[int, ...]) -> None:
        """`shape`: draws of an arm, one trial, normals of a choice."""
        self._stream, self._shape = generator(seed, 0, "agent"), shape

    def next(self) -> Array:
        """Of the next round."""
        return self._stream.standard_normal(self._shape)


class Life:
    """What a pupil remembers: of theta, and of each unit's channel."""

    def __init__(self, pupil: Pupil) -> None:
        """Nothing yet."""
        self.pupil, self._memory = pupil, pupil.fresh
        self._channels: dict[int, State] = {}
        unit = pupil.scene.log.unit
        self._whose = np.zeros(pupil.scene.log.rounds, np.intp) if unit is None else unit

    def memory(self, number: int) -> Memory:
        """In a round of the log: with the channel of its unit."""
        channel = self._channels.get(int(self._whose[number]), self.pupil.fresh.denoiser)
        return self._memory._replace(denoiser=channel)

    def learn(self, considered: Considered, number: int) -> None:
        """Go on by a round."""
        self._memory = self.pupil.learn(self.memory(number), considered, number)
        self._channels[int(self._whose[number])] = self._memory.denoiser


def pupil(name: str, scene: Scene, field: str = "policies") -> Pupil:
    """The agent of this name, if it can learn here."""
    log, kind = scene.log, _kind(scene.log.reward)
    (agent,) = named([name], field, Catalogue(kind))
    if agent.privileged is not None:
        raise InputError(field, f"{name!r} is told the bias", "agents that need not be told the truth")
    if agent.chain is not None:
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
        setup, memory = rounds.begin(agent, known)
    except InputError as error:
        raise _renamed(field, error) from None
    true = None if log.true is None or not agent.sees_context else units.inside(log.true)
    return Pupil(agent, known, setup, memory, units.read(log.noisy), true, _taught(log.reward, kind), scene)


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


def _taught(reward: Array, kind: str) -> Array:
    spread = float(reward.std())
    return reward if kind == "bernoulli" else (reward - reward.mean()) / (spread if spread > 0 else 1.0)
