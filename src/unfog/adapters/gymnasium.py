"""A problem as an environment of gymnasium (M. Towers and others, *Gymnasium: A Standard Interface for
Reinforcement Learning Environments*).

    gymnasium.make("unfog.adapters.gymnasium:unfog/Gaussian-v0", rounds=500, dim=3, actions=5)

An observation is the noisy context, an action an arm, and an episode is a whole horizon: it is truncated
after `rounds` rounds and never terminated. `reset(seed=s)` begins trial 0 of seed s, which has the numbers
that it has in `unfog.run`; each further `reset()` begins the next trial of that seed.

    info["round"]     the round of the observation, from 0
    info["regret"]    of the decision just taken
    info["measured"]  which coordinates were measured, in worlds that lose some; a lost one reads the mean
    info["unit"]      whose context it is, in worlds with several units
    info["time"]      when it was read, in worlds with a clock
    info["revealed"]  {"round": t, "context": c}, the true context of round t, where that is shown

True contexts are shown with `reveal=True` alone: as the problem has it, late or in part (not a number where a
coordinate stays hidden). Otherwise nothing of them is in `info`.
"""

import secrets
from typing import Any

import numpy as np

from unfog import validation
from unfog._extras import explain_missing
from unfog.adapters.simulation import Episode, Reading, check_playable
from unfog.lab.spec import build_problem, parse
from unfog.maths.arrays import Array
from unfog.simulation import MOST_SEED
from unfog.validation import LARGEST, InputError, check_keywords
from unfog.worlds.problem import Problem

with explain_missing("unfog.adapters.gymnasium"):
    import gymnasium
    from gymnasium import spaces
    from gymnasium.error import ResetNeeded

WORLDS = ("Gaussian", "Logistic", "MovieLens", "AirQuality")


@check_keywords
class Env(gymnasium.Env[Array, np.int64]):
    """One problem. `features`, `actions` and `problem` are for agents that want to know them.

    >>> import unfog
    >>> from unfog.adapters.gymnasium import Env
    >>> env = Env(unfog.GaussianProblem(dim=2, actions=5), rounds=10)
    >>> noisy, info = env.reset(seed=1)
    >>> noisy, reward, _, over, info = env.step(3)
    >>> noisy.shape, over
    ((2,), False)
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - gymnasium declares it on the instance

    def __init__(self, problem: Problem, *, rounds: int = 1000, reveal: bool = False) -> None:
        """For so many rounds an episode; with `reveal`, true contexts are shown as the problem has it."""
        check_playable(problem)
        self.problem, self.rounds = problem, validation.count("rounds", rounds)
        self.reveal = validation.flag("reveal", reveal)
        dim = len(problem.knowledge().context_mean)
        # A reading may be any number. Infinite limits are warned of, so these are the largest that we take.
        self.observation_space = spaces.Box(-LARGEST, LARGEST, (dim,), np.float64)
        self.action_space = spaces.Discrete(problem.arms())
        self._seed: int | None = None
        self._trial = 0
        self._episode: Episode | None = None

    @property
    def features(self) -> Any:
        """The feature map of this trial, whose actions may have been drawn."""
        return self._get_episode().features

    @property
    def actions(self) -> Array | None:
        """The numbers that tell arms apart, (K, p); None where an arm has none."""
        return self._get_episode().actions

    @property
    def trial(self) -> int:
        """Which trial of its seed is played."""
        return self._trial

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin an episode: trial 0 of a seed, the one after the last, or `options={"trial": 3}`."""
        if unknown := [name for name in options or {} if name != "trial"]:
            raise InputError("options", unknown[0], "trial alone")
        super().reset(seed=seed)
        if seed is None and self._seed is not None:
            new_seed, trial = self._seed, self._trial + 1
        else:
            new_seed, trial = secrets.randbelow(MOST_SEED) if seed is None else int(seed), 0
        trial = (options or {}).get("trial", trial)
        self._episode = Episode(self.problem, new_seed, trial)
        self._seed, self._trial = new_seed, trial
        reading = self._episode.reading()
        return reading.noisy, _make_info(reading)

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Take an arm: the next noisy context, the reward, and whether this was the last round."""
        episode = self._get_episode()
        if episode.number >= self.rounds:
            raise ResetNeeded(f"the episode of {self.rounds} rounds is over: call reset() first")
        number = action[()] if isinstance(action, np.ndarray) else action  # the space has both
        arm = validation.count("action", number, 0, self.problem.arms() - 1)
        paid, reading = episode.pay(arm), episode.reading()
        info = {**_make_info(reading), "regret": paid.regret}
        if self.reveal and paid.revealed is not None:
            info["revealed"] = {"round": paid.revealed.round, "context": paid.revealed.context.copy()}
        return reading.noisy, paid.reward, False, episode.number >= self.rounds, info

    def _get_episode(self) -> Episode:
        if self._episode is None:
            raise ResetNeeded("no episode has begun: call reset() first")
        return self._episode


def _make_info(reading: Reading) -> dict[str, Any]:
    """The `info` that comes with an observation."""
    info: dict[str, Any] = {"round": reading.round}
    more = {"measured": reading.measured, "unit": reading.unit, "time": reading.time}
    return info | {name: value for name, value in more.items() if value is not None}


@check_keywords
def make(kind: str, *, rounds: int = 1000, reveal: bool = False, **fields: Any) -> Env:
    """The environment of a world of the lab, with these fields of its problem: `unfog list` names them.

    >>> from unfog.adapters.gymnasium import make
    >>> env = make("gaussian", rounds=10, dim=2, actions=5)
    >>> env.action_space.n.item()
    5
    """
    spec = parse({"problem": {"kind": kind, **fields}})
    return Env(build_problem(spec.problem), rounds=rounds, reveal=reveal)


for _id, _kind in ((f"unfog/{name}-v0", name.lower()) for name in WORLDS):
    if _id not in gymnasium.registry:
        gymnasium.register(_id, entry_point=f"{__name__}:make", kwargs={"kind": _kind})
