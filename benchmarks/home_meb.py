"""MEB at home: the table of Guo, Xu and Murphy, *Online Learning in Bandits with Predicted Context*.

    python -m benchmarks.home_meb [trials] [rounds]

Two arms, d = 5, contexts N(1, I), errors N(0, s I) with s = 0.1, 1, 2, rewards of deviation 0.01, 50,000
rounds, probabilities clipped to [0.2, 0.8]. The table in the authors' repository is printed by a notebook
whose arguments are kept with it: 5 is added to every entry of theta, the burn-in is 500, and there are 100
repeats. What it prints is the regret

    sum_t  E_{a ~ clipped argmax x~'theta_a} x'theta_a  -  E_{a ~ pi_t} x'theta_a

over rounds: true contexts pay, the best policy sees x~ alone and is clipped too. The sum over 100 repeats is
divided by 10 in the code of that time, so that the printed numbers are ten times that regret. They are
compared with ten times ours; the standard error of a difference takes theirs to be as uncertain as ours.

Our default is played beside them, without clipping; its regret is reckoned as if its choice had been clipped
alike (with probability 0.2 the other arm) and, apart, as it was. It is told the law of contexts, which
none of the others is told or uses, and can do better than argmax x~'theta_a: its regret is negative then.
"""

import json
import sys
import time
from math import erf, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unfog.agents import round as rounds
from unfog.agents.agent import Agent
from unfog.agents.base import View
from unfog.agents.baselines.meb import ClippedOptimism, ClippedThompson
from unfog.agents.catalogue import select_rows
from unfog.lab.spec import build_problem, load
from unfog.maths.arrays import Array, Ints, pick
from unfog.maths.random import RoundDraws
from unfog.maths.statistics import estimate
from unfog.simulation.job import Nature, truth_draws
from unfog.simulation.player import make_observation
from unfog.worlds.problem import Problem

SPEC, RESULT = "baseline-meb", Path(__file__).parent / "results" / "home-meb.json"
FLOOR, SEED, BLOCK, TENFOLD = 0.2, 11, 1000, 10
PUBLISHED = {
    0.1: {"meb-ts": 0.047, "meb-optimist": 0.046, "meb": 0.027, "meb-naive": 0.038},
    1.0: {"meb-ts": 0.757, "meb-optimist": 0.647, "meb": 0.198, "meb-naive": 0.371},
    2.0: {"meb-ts": 1.492, "meb-optimist": 1.504, "meb": 0.358, "meb-naive": 0.616},
}
CDF = np.vectorize(lambda z: 0.5 + 0.5 * erf(z / sqrt(2)), otypes=[float])


class Losses(NamedTuple):
    """Mean regret of a round, (trials,) each."""

    paper: Array  # against the clipped policy that sees x~, for choices clipped alike
    played: Array  # the same, for what was played
    best: Array  # of what was played, against the best arm for the true context


def choice(agent: Agent, view: View, normals: Array) -> tuple[Ints, Array | None, Array]:
    """The arm, its probability where the learner asks for it, and the probability of the first arm."""
    if isinstance(agent.chooser, ClippedOptimism):
        arm, told = agent.chooser.choose_and_report(view, normals)
        return arm, told, np.broadcast_to(agent.chooser.shares(view)[..., 0], arm.shape)
    arm = agent.chooser.choose(view, normals)
    if isinstance(agent.chooser, ClippedThompson):
        return arm, None, np.clip(CDF(agent.chooser.lead(view)), FLOOR, 1 - FLOOR)
    return arm, None, np.where(arm == 0, 1 - FLOOR, FLOOR)


def play(agent: Agent, problem: Problem, trials: int, number: int) -> Losses:
    """All rounds of all trials, and what was lost in the mean, in closed form for policies that are known."""
    told = range(trials)
    truth = problem.truth(truth_draws(SEED, told, problem.truth_draws()))
    known, features = problem.knowledge(), truth.features
    setup, memory = rounds.start(agent, known)
    nature, draws = Nature(problem, SEED, told), RoundDraws(SEED, told, "agent", agent.chooser.normals(known))
    lost = np.zeros((3, trials))
    for t in range(number):
        if t % BLOCK == 0:
            normals, mine = nature.next(BLOCK)[0], draws.next(BLOCK)
        emission = problem.emit(truth, normals[:, t % BLOCK], np.asarray(t))
        considered = rounds.consider(
            agent, setup, memory, features, make_observation(emission, np.asarray(t))
        )
        arm, chance, first = choice(agent, considered.view, mine[:, t % BLOCK])
        heard = chance if agent.can.report_choice else None
        decision = rounds.make_decision(agent, setup, features, considered, arm, heard)
        scores = features.at(emission.context).scores(truth.theta)
        paid = problem.reward(pick(scores, arm), normals[:, t % BLOCK])
        memory = rounds.observe_reading(agent, setup, memory, decision)
        memory, _ = rounds.reward(agent, setup, memory, decision, paid)
        top = features.at(emission.noisy).scores(truth.theta).argmax(-1)
        policy = np.where(top == 0, 1 - FLOOR, FLOOR)
        gap = scores[:, 0] - scores[:, 1]
        worth = scores[:, 1] + policy * gap
        lost += [(policy - first) * gap, worth - pick(scores, arm), scores.max(-1) - pick(scores, arm)]
    return Losses(*(lost / number))


def row(noise: float, name: str, found: Losses, seconds: float) -> dict[str, Any]:
    """One line of the table, with the published number beside it."""
    mean, se = estimate(found.paper)
    line: dict[str, Any] = {"noise_cov": noise, "agent": name, "regret": mean, "se": se}
    for field in ("played", "best"):
        line[f"regret_{field}"], line[f"se_{field}"] = estimate(getattr(found, field))
    line["cpu_seconds"] = seconds
    published = PUBLISHED[noise].get(name.partition(":")[0])
    if published is not None:
        off = TENFOLD * mean - published
        line |= {"published": published, "tenfold": TENFOLD * mean, "tenfold_se": TENFOLD * se}
        both = sqrt(2) * TENFOLD * se  # theirs has as many repeats, and so such an error too
        line |= {"off_in_se": off / both, "off_in_percent": 100 * off / published}
    return line


def main(trials: int = 100, number: int = 50_000) -> None:
    """Run all, and write what was found."""
    spec, lines = load(SPEC), []
    for noise in PUBLISHED:
        problem = build_problem({**spec.problem, "noise_cov": noise})
        for agent in select_rows(spec.run.agents):
            start = time.process_time()
            found = play(agent, problem, trials, number)
            lines.append(row(noise, agent.name, found, time.process_time() - start))
            print(json.dumps(lines[-1]), flush=True)
            told = {"seed": SEED, "trials": trials, "rounds": number, "floor": FLOOR}
            RESULT.write_text(json.dumps({**told, "note": __doc__, "rows": lines}, indent=1) + "\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
