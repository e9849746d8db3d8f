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
uniform, fitted and agents choose from the arms that there were in a round.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unfog.agents.catalogue import EVERY, row_of
from unfog.agents.choose.greedy import best
from unfog.evaluation.contexts import believed
from unfog.evaluation.log import Log
from unfog.evaluation.model import Data
from unfog.evaluation.predicted import predicted
from unfog.evaluation.pupil import Pupil, pupil
from unfog.evaluation.scene import Scene
from unfog.evaluation.taught import Tick, taught
from unfog.maths.arrays import Array
from unfog.validation import REFERENCE, InputError, nearest, numbers

ALWAYS = "always:"
RULE = "a function of noisy contexts (n, d), or a table: probabilities (n, K) that sum to 1, or arms (n,)"
FIXED = ("logger", "uniform", "fitted", "fitted-noisy")  # that need not be taught round by round
NAMES = f"logger, uniform, {ALWAYS}ARM, fitted, fitted-noisy, a name from `unfog list agents`"
ALLOWED = f"{NAMES}; or {{name: {RULE}}}"
TOLERANCE = 1e-6  # of sums of probabilities


class Policy(NamedTuple):
    """One policy on one log."""

    name: str
    table: Callable[[Tick], Array]  # (n, K)
    pupil: Pupil | None = None  # of an agent that learns
    drawn: bool = False  # whether it takes what was drawn, so that all weights are 1

    @property
    def fixed(self) -> bool:
        """Whether it does the same in all rounds, given what it sees."""
        return self.pupil is None


def policies(given: Any, scene: Scene) -> list[Policy]:
    """Those that are asked for, each checked."""
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


def _learner(rule: str, scene: Scene, others: Sequence[str]) -> Pupil:
    """The agent of this name, to be taught; a name that is none may have meant one of the other policies."""
    try:
        return pupil(rule, scene)
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
    """All on the arm of the highest reward (n, K), of those there were."""
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
    """Of arms that are told by name; whole numbers are places, unless arms have such names."""
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
