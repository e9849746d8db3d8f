"""What a live problem has learnt, in numbers and in the caller's units; live/words.py says it in words.

An arm is judged at an average context: that of the rounds learnt from, for agents that learn moments, else
the one the caller stated. With a score theta'x, x = [1, c], and c on average m, it brings theta'[1, m], and a
coordinate's effect is its slope times one standard deviation of true contexts, within and between people.
Several candidates count by their weights.

Exploration costs epsilon L a decision, where L is what a random arm loses against the best:

    L = E[max_a s_a(c) - mean_a s_a(c)],    s_a(c) = E[theta_a]'[1, c],    c ~ N(m, C).

C is the covariance of denoised contexts, since an agent chooses by these; the mean is over `DRAWS` draws that
are the same every time.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unfog.agents.agent import Agent
from unfog.agents.base import Spreads
from unfog.agents.hedge import mix_moments
from unfog.channel.context import Category, Coordinate, Cycle, Reading
from unfog.channel.knowledge import known_shrinkage
from unfog.features.per_arm import has_intercepts
from unfog.live import monitoring
from unfog.live.monitoring import LEVELS
from unfog.live.state import State
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.logistic import sigmoid
from unfog.maths.random import generator
from unfog.maths.statistics import binomial_p_value, normal_reach

LEVEL = 0.9  # of intervals
DRAWS = 2000  # of contexts, for the cost of exploration
MOST_SCORES = 2_000_000  # of arms in these draws
FIRST_READINGS = 20  # before which nothing is said of a noise that was cut


class Block(NamedTuple):
    """What one candidate believes of arms with features of their own."""

    theta: Array  # (K, k)  means
    root: Array  # (K, k, n)  of covariances
    mean: Array  # (d,)  of denoised contexts, in the units of features
    cov: Array  # (d, d)
    weight: float


def describe_learnt(state: State, bias: tuple[Array, Array] | None) -> dict[str, Any]:
    """All of it, for JSON; `bias` is the mean over units and how units differ, where it is learnt of each."""
    counts, terms, runner = state.watch.tallies.counts, state.terms, state.runner
    spreads, blocks = runner.spreads, _blocks(state)
    loss = _find_loss(state, blocks)
    names = ("revealed", "late", "expired", "cancelled", "late_contexts", "dropped")
    return {
        **{name: getattr(counts, name) for name in names},
        "wanted": runner.rewards_wanted(len(state.arms.order)),
        "context": _describe_coordinates(state, spreads, bias),
        "candidates": runner.candidate_weights,
        "arms": _describe_arms(state, blocks, _context_sd(state, spreads)),
        "rewards": _describe_rewards(state),
        "exploration": {"loss": loss, "cost": None if loss is None else terms.epsilon * loss},
        "coverage": _describe_coverage(state),
    }


def find_context_sd(state: State) -> Array:
    """The standard deviation of true contexts in the caller's units, (d,): learnt, or as stated."""
    sd = _context_sd(state, state.runner.spreads)
    d = len(state.terms.context)
    return np.full(d, np.nan) if sd is None else sd * state.made.units.scale


def _context_sd(state: State, spreads: Spreads | None) -> Array | None:
    """The same in the agent's units; None where nothing is known of it."""
    if spreads is not None:
        return np.sqrt(spreads.within + np.maximum(spreads.between - spreads.devices, 0.0))
    if not state.made.knows_noise:
        return None
    return np.sqrt(np.diag(state.runner.known.context_cov))


def _describe_coordinates(
    state: State, spreads: Spreads | None, bias: tuple[Array, Array] | None
) -> dict[str, Any]:
    """What is believed of each coordinate and the way it is read."""
    terms, decisions = state.terms, state.watch.tallies.counts.decisions
    units, channel = state.made.units, state.made.channel
    columns: list[dict[str, float]] = [{} for _ in terms.context]
    if spreads is not None:
        values: dict[str, Array] = {
            "mean": units.outside(spreads.mean),
            "sd": np.sqrt(spreads.within) * units.scale,
            "between_sd": np.sqrt(np.maximum(spreads.between - spreads.devices, 0.0)) * units.scale,
            "bias": np.where(spreads.revealed > 0, spreads.bias * units.scale, np.nan),
            "bias_sd": np.sqrt(spreads.devices) * units.scale,
            "noise_sd": np.sqrt(spreads.noise) * units.scale,
            "units_revealed": spreads.revealed,
            "noise_is_cut": np.where(spreads.is_cut & (spreads.readings >= FIRST_READINGS), 1.0, 0.0),
        }
    else:
        values = {}
        if state.made.knows_noise:
            values = {
                "mean": channel.context_mean,
                "sd": np.sqrt(np.diag(channel.context_cov)),
                "noise_sd": np.sqrt(np.diag(channel.noise_cov)),
            }
        if bias is not None:
            values |= {"bias": bias[0], "bias_sd": bias[1]}
    lost = state.watch.tallies.lost
    values["missing"] = lost / decisions if decisions else np.ones_like(lost)
    for name, array in values.items():
        for column, value in zip(columns, array.tolist(), strict=True):
            column[name] = value
    is_stated = spreads is None
    if terms.spec is None:
        is_exact = (
            np.diag(channel.noise_cov) == 0 if terms.channel is not None else np.full(len(columns), True)
        )
        rows = zip(terms.context, columns, is_exact.tolist(), strict=True)
        return {
            name: {"kind": "number", "exact": exact, "stated": is_stated, **to_json(x)}
            for name, x, exact in rows
        }
    spec = terms.spec
    return {
        name: _describe_coordinate(one, columns[spec.slices[name]], name in spec.exact, is_stated)
        for name, one in spec.coordinates.items()
    }


def _describe_coordinate(
    one: Coordinate, columns: Sequence[Mapping[str, float]], is_exact: bool, is_stated: bool
) -> dict[str, Any]:
    """One coordinate from its columns."""
    head = {"exact": is_exact, "stated": is_stated}
    if isinstance(one, Reading):
        return {"kind": "number", **head, **to_json(columns[0])}
    missing = to_json({"missing": columns[0]["missing"]})
    if isinstance(one, Cycle):
        return {"kind": "cycle", **head, "period": one.period, **missing}
    shares = {level: column.get("mean") for level, column in zip(one.columns, columns, strict=True)}
    return {"kind": "category", **head, "levels": {} if is_stated else to_json(shares), **missing}


def _blocks(state: State) -> list[Block]:
    """What each candidate believes of arms; none where arms have vectors, or no context is the average."""
    runner, features = state.runner, state.arms.features
    theta = runner.theta()
    if not has_intercepts(features) or theta.centre.shape[-1] != features.size or not state.arms.order:
        return []
    weights = list(runner.candidate_weights.values()) or [1.0]
    laws = _context_laws(state, runner.agent, len(weights))
    if laws is None:
        return []
    blocks, k = [], features.size // len(state.arms.order)
    for j, (law, weight) in enumerate(zip(laws, weights, strict=True)):
        if weight > 0:
            belief = gaussian.pick_belief(theta, j) if runner.candidate_weights else theta
            root = belief.root.reshape(-1, k, belief.root.shape[-1])
            blocks.append(Block(belief.centre.reshape(-1, k), root, *law, weight))
    return blocks


def _context_laws(state: State, agent: Agent, number: int) -> list[tuple[Array, Array]] | None:
    """Mean and covariance of denoised contexts, of each candidate, as features count them."""
    runner, d = state.runner, len(state.terms.context)
    estimator = agent.can.estimate_scales
    if estimator is not None:
        scales = estimator.estimates(runner.setup.learner, runner.learner)
        if not scales.is_set.all() or scales.mean.shape[-1] != 1 + d:
            return None
        mean, cov = scales.mean.reshape(-1, 1 + d), scales.cov.reshape(-1, 1 + d, 1 + d)
        return [(mean[j, 1:], cov[j, 1:, 1:]) for j in range(number)]
    if not state.made.knows_noise or not runner.known.has_moments:
        return None
    mean, cov = runner.known.context_mean, runner.known.context_cov
    return [(mean - runner.origin, cov - known_shrinkage(runner.known).cov)] * number


def _describe_arms(state: State, blocks: Sequence[Block], sd: Array | None) -> dict[str, Any]:
    """What each arm that may be chosen brings: at an average context, or on average of its own rewards."""
    sums = monitoring.by_arm(state.watch.tallies)
    size = len(sums.chosen)
    reach, arms = normal_reach(LEVEL), {}
    for arm in state.arms.available:
        i = state.arms.place[arm]
        mean, error = (x[i] if i < size else np.nan for x in (sums.mean, sums.error))
        about: dict[str, Any] = {
            "chosen": int(sums.chosen[i]) if i < size else 0,
            "rewards": int(sums.rewards[i]) if i < size else 0,
            "at_average": bool(blocks),
            "effects": {},
        }
        if blocks:
            first = np.zeros(blocks[0].theta.shape[-1])
            first[0] = 1.0
            mean, error = _contrast(blocks, i, [first + np.append(0.0, block.mean) for block in blocks])
            if sd is not None:
                effects = _describe_effects(state, blocks, i, sd)
                about["effects"] = {name: _of_reward(state, mean, one) for name, one in effects.items()}
        error = error if error > 0 else np.nan  # of a sample of theta, which a chain is certain of
        ends = np.array([mean, mean - reach * error, mean + reach * error])
        ends = _probable(state, ends) if blocks or not state.terms.is_binary else np.clip(ends, 0.0, 1.0)
        arms[arm] = about | to_json(dict(zip(("mean", "low", "high"), ends.tolist(), strict=True)))
    return arms


def _probable(state: State, scores: Array) -> Array:
    """Scores as rewards: probabilities, where rewards are 0 or 1."""
    if not state.terms.is_binary:
        return scores
    return np.clip(scores, 0.0, 1.0) if state.runner.agent.learner.is_linear else sigmoid(scores)


def _of_reward(state: State, score: float, effect: dict[str, Any]) -> dict[str, Any]:
    """An effect on the score as one on the reward, about the score in an average context."""
    if not state.terms.is_binary or state.runner.agent.learner.is_linear:
        return effect
    at = float(sigmoid(np.asarray(score)))
    ends = {part: effect[part] for part in ("mean", "low", "high") if effect[part] is not None}
    return effect | {part: float(sigmoid(np.asarray(score + x))) - at for part, x in ends.items()}


def _contrast(blocks: Sequence[Block], arm: int, rows: Sequence[Array]) -> tuple[float, float]:
    """Mean and deviation of a linear function of an arm's theta, one row (k,) for each candidate."""
    means = np.array([row @ block.theta[arm] for row, block in zip(rows, blocks, strict=True)])
    halves = [row @ block.root[arm] for row, block in zip(rows, blocks, strict=True)]
    weights = np.array([block.weight for block in blocks])
    mean, variance = mix_moments(weights, means, np.array([half @ half for half in halves]), 0)
    return float(mean), float(np.sqrt(variance))


def _describe_effects(state: State, blocks: Sequence[Block], arm: int, sd: Array) -> dict[str, Any]:
    """The effects of coordinates on the score of an arm."""
    spec, columns = state.terms.spec, state.terms.context
    effects: dict[str, Any] = {}
    origin = state.runner.origin
    if spec is None:
        slices: dict[str, slice] = {name: slice(i, i + 1) for i, name in enumerate(columns)}
        kinds: dict[str, Any] = dict.fromkeys(columns)
    else:
        slices, kinds = spec.slices, dict(spec.coordinates)
    for name, part in slices.items():
        if isinstance(kinds[name], Category):
            for j, level in enumerate(kinds[name].columns):
                rows = [_level_row(block, origin, part, j) for block in blocks]
                effects[f"{name}={level}"] = _interval(*_contrast(blocks, arm, rows))
        elif isinstance(kinds[name], Cycle):
            effects[name] = _describe_wave(blocks, arm, part, kinds[name].period)
        else:
            row = np.zeros(1 + len(columns))
            row[1:][part] = sd[part]
            effects[name] = _interval(*_contrast(blocks, arm, [row] * len(blocks)))
    return effects


def _level_row(block: Block, origin: Array, part: slice, level: int) -> Array:
    """One level of a category against the average over levels."""
    row, shares = np.zeros(block.theta.shape[-1]), (block.mean + origin)[part]
    row[1:][part] = np.eye(len(shares))[level] - shares
    return row


def _describe_wave(blocks: Sequence[Block], arm: int, part: slice, period: float) -> dict[str, Any]:
    """How far a cycle goes up and down, and where it is highest."""
    slopes = sum(block.weight * block.theta[arm][1:][part] for block in blocks)
    angle = float(np.arctan2(slopes[1], slopes[0]))
    row = np.zeros(blocks[0].theta.shape[-1])
    row[1:][part] = np.cos(angle), np.sin(angle)
    wave = _interval(*_contrast(blocks, arm, [row] * len(blocks)), reach=WAVE_REACH)
    return wave | {"highest": angle / (2 * np.pi) % 1 * period}


WAVE_REACH = float(np.sqrt(-2 * np.log(1 - LEVEL)))  # of a chi-square with two degrees of freedom


def _interval(mean: float, sd: float, reach: float = normal_reach(LEVEL)) -> dict[str, Any]:
    sd = sd if sd > 0 else np.nan
    interval: dict[str, Any] = to_json({"mean": mean, "low": mean - reach * sd, "high": mean + reach * sd})
    return interval


def _find_loss(state: State, blocks: Sequence[Block]) -> float | None:
    """What an arm drawn at random loses against the best one, a decision; None if nothing is known of it."""
    indices = [state.arms.place[arm] for arm in state.arms.available]
    if not blocks or not indices:
        return None
    d, number = len(state.terms.context), max(100, min(DRAWS, MOST_SCORES // len(indices)) // 2)
    half = generator(state.terms.seed, 0, "cost").standard_normal((number, d))
    normals, loss = np.concatenate([half, -half]), 0.0
    for block in blocks:
        values, vectors = np.linalg.eigh(block.cov)
        contexts = block.mean + normals @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        theta = block.theta[indices]
        scores = _probable(state, theta[:, 0] + contexts @ theta[:, 1:].T)
        loss += block.weight * float((scores.max(-1) - scores.mean(-1)).mean())
    return loss


def _describe_rewards(state: State) -> dict[str, Any]:
    """Mean and spread of rewards as they came; their noise where it is learnt, context and arm known."""
    runner, (_, number, total, squares) = state.runner, state.watch.tallies.arms.T
    mean, sd = np.nan, np.nan
    if number.sum() > 0:
        mean = total.sum() / number.sum()
        if number.sum() > 1:
            sd = np.sqrt(max(squares.sum() - number.sum() * mean**2, 0.0) / (number.sum() - 1))
    noise, estimator = np.nan, runner.agent.can.estimate_scales
    if estimator is not None and not state.terms.is_binary:
        scales = estimator.estimates(runner.setup.learner, runner.learner)
        if scales.is_set.all():
            weights = np.array(list(runner.candidate_weights.values()) or [1.0])
            noise = np.sqrt((weights * scales.noise.reshape(-1)).sum())
    about: dict[str, Any] = to_json({"mean": float(mean), "sd": float(sd), "noise_sd": float(noise)})
    return about


def _describe_coverage(state: State) -> dict[str, Any] | None:
    """How many rewards were in their intervals, and whether that is by chance; None for rewards of 0 or 1."""
    judged = state.watch.tallies.judged
    if state.terms.is_binary or not judged:
        return None
    inside = int(state.watch.tallies.inside[LEVELS.index(LEVEL)])
    p_value = binomial_p_value(inside, judged, LEVEL)
    return {"level": LEVEL, "rewards": judged, "inside": inside, "p_value": p_value}


def to_json(values: Mapping[str, float | None]) -> dict[str, Any]:
    """Numbers by name, None for what is not a number."""
    return {name: x if x is not None and np.isfinite(x) else None for name, x in values.items()}
