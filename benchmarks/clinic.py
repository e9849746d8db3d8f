"""A clinic in natural units: `unfog.Bandit`, told only how noisy one reading is, beside two LinUCBs.

python benchmarks/clinic.py                      # 60 clinics of each kind, an hour; results/clinic.json
python benchmarks/clinic.py --clinics 2 --print  # two of each, a table alone

40 people carry phones. At each of 1,500 decisions the phone's step count, a mood from a questionnaire and
the hour are read; an app may send a walking suggestion, wait or, in the second half, call. The reward is the
steps of the next half hour. A tenth of the rewards comes days late and a twentieth never; three in ten true
step counts are known a day later, and shown to `unfog, truths` alone. What differs between the readings of
different people is their phones, the people themselves, both or neither.

`raw` is what anybody would write: ridge regression for each arm on the readings, with one deviation of
optimism, told by hand where steps, moods, hours and rewards lie and how far they spread. `centred` is the
same on steps less the person's running mean. `unfog` is told the standard deviations of one reading, 1100
steps, 0.55 of mood and 0 hours, and nothing else; it draws no arm at random (epsilon = 0).

Lost are steps a decision, against an app that knows what every arm pays at the true context.
"""

import argparse
import heapq
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

import unfog
from benchmarks.peers.run import ROOT, machine

RESULTS = ROOT / "benchmarks" / "results" / "clinic.json"
DAY, PEOPLE, DECISIONS = 86_400.0, 40, 1_500
KINDS = {"devices": (0.0, 1400.0), "people": (1400.0, 0.0), "both": (950.0, 950.0), "neither": (0.0, 0.0)}
NOISE = {"steps": 1100.0, "mood": 0.55, "hour": 0.0}  # standard deviations: all that unfog is told
ARMS = ["send", "wait", "call"]
FIRST = 100  # the first seed: none of those on which anything was chosen


class Clinic:
    """Everything that nature will do in one clinic, whatever is decided."""

    def __init__(self, seed: int, kind: str) -> None:
        draw, n = np.random.default_rng(seed), DECISIONS
        person_sd, device_sd = KINDS[kind]
        person, device = draw.normal(0, person_sd, PEOPLE), draw.normal(-400, device_sd, PEOPLE)
        mood_bias = draw.normal(0, 0.35, PEOPLE)
        self.unit = draw.integers(0, PEOPLE, n)
        self.true_steps = 6500 + person[self.unit] + draw.normal(0, 1800, n)
        mood = np.clip(draw.normal(3, 1, n), 1, 5)
        hour = draw.integers(8, 22, n).astype(float)
        steps = self.true_steps + device[self.unit] + draw.normal(0, NOISE["steps"], n)
        read_mood = np.clip(np.round(mood + mood_bias[self.unit] + draw.normal(0, 0.47, n)), 1, 5)
        read_mood[draw.random(n) < 0.2] = np.nan
        self.readings = {"steps": steps, "mood": read_mood, "hour": hour}
        z, m, h = (self.true_steps - 6500) / 1800, mood - 3, (hour - 14.5) / 4
        wait = 280 + 55 * z + 15 * m
        send, call = wait - 165 * z + 65 * m - 55 * h + 15, wait + 110 * z - 80 * m + 35
        self.value = {"send": send, "wait": wait, "call": call}
        self.noise = draw.normal(0, 230, n)
        self.delay = np.where(draw.random(n) < 0.1, draw.uniform(1, 3, n) * DAY, 1800.0)
        self.never, self.shown = draw.random(n) < 0.05, draw.random(n) < 0.3
        self.time = 1.7e9 + np.arange(n) * DAY / PEOPLE / 2

    def arms(self, number: int) -> list[str]:
        """The arms that may be chosen in this decision."""
        return ARMS[:2] if number < DECISIONS // 2 else ARMS

    def reading(self, number: int) -> dict[str, float]:
        """What is read before this decision; NaN where nothing was."""
        return {name: float(values[number]) for name, values in self.readings.items()}


class Player(Protocol):
    """Who decides: a ticket for each decision is handed back with its reward and its true step count."""

    def decide(self, reading: dict[str, float], unit: int, arms: Sequence[str]) -> tuple[Any, str]: ...

    def reward(self, ticket: Any, reward: float) -> None: ...

    def reveal(self, ticket: Any, steps: float) -> None: ...


def play(clinic: Clinic, player: Player) -> float:
    """Steps lost a decision."""
    waiting: list[tuple[float, int, str, Any, float]] = []
    lost = 0.0
    for i in range(DECISIONS):
        while waiting and waiting[0][0] <= clinic.time[i]:
            _, _, verb, ticket, value = heapq.heappop(waiting)
            getattr(player, verb)(ticket, value)
        arms = clinic.arms(i)
        ticket, arm = player.decide(clinic.reading(i), int(clinic.unit[i]), arms)
        lost += max(clinic.value[one][i] for one in arms) - clinic.value[arm][i]
        if not clinic.never[i]:
            reward = float(clinic.value[arm][i] + clinic.noise[i])
            heapq.heappush(waiting, (clinic.time[i] + clinic.delay[i], 2 * i, "reward", ticket, reward))
        if clinic.shown[i]:
            truth = float(clinic.true_steps[i])
            heapq.heappush(waiting, (clinic.time[i] + DAY, 2 * i + 1, "reveal", ticket, truth))
    return float(lost / DECISIONS)


class LinUcb:
    """Ridge regression for each arm, on readings or on readings less the person's running mean."""

    def __init__(self, *, centred: bool = False) -> None:
        self.centred = centred
        self.total, self.count = np.zeros(PEOPLE), np.zeros(PEOPLE)
        self.precision = {arm: np.eye(4) for arm in ARMS}
        self.moment = {arm: np.zeros(4) for arm in ARMS}

    def decide(self, reading: dict[str, float], unit: int, arms: Sequence[str]) -> tuple[Any, str]:
        steps = reading["steps"]
        if self.centred:
            self.total[unit] += steps
            self.count[unit] += 1
            steps += 6500 - (self.total[unit] + 2 * 6100) / (self.count[unit] + 2)
        mood = 0.0 if np.isnan(reading["mood"]) else reading["mood"] - 3
        row = np.array([1.0, (steps - 6500) / 2300, mood, (reading["hour"] - 14.5) / 4])
        arm = max(arms, key=lambda one: self.bound(one, row))
        return (arm, row), arm

    def bound(self, arm: str, row: np.ndarray[Any, Any]) -> float:
        half = np.linalg.solve(self.precision[arm], row)
        return float(half @ self.moment[arm] + np.sqrt(row @ half))

    def reward(self, ticket: Any, reward: float) -> None:
        arm, row = ticket
        self.precision[arm] += np.outer(row, row)
        self.moment[arm] += row * (reward - 280) / 230

    def reveal(self, ticket: Any, steps: float) -> None:
        pass


class Unfog:
    """`unfog.Bandit`, told nothing but how far one reading may be off by chance."""

    def __init__(self, seed: int, *, truths: bool) -> None:
        self.truths = truths
        self.bandit = unfog.Bandit(arms=ARMS, context=NOISE, epsilon=0.0, seed=seed)

    def decide(self, reading: dict[str, float], unit: int, arms: Sequence[str]) -> tuple[Any, str]:
        decision = self.bandit.decide(reading, unit=unit, arms=list(arms))
        return decision.id, decision.arm

    def reward(self, ticket: Any, reward: float) -> None:
        self.bandit.reward(ticket, reward)

    def reveal(self, ticket: Any, steps: float) -> None:
        if self.truths:
            self.bandit.reveal(ticket, {"steps": steps})


def players(seed: int) -> dict[str, Player]:
    """Everybody who is compared, anew."""
    return {
        "raw": LinUcb(),
        "centred": LinUcb(centred=True),
        "unfog": Unfog(seed, truths=False),
        "unfog, truths": Unfog(seed, truths=True),
    }


def compare(clinics: int) -> dict[str, dict[str, list[float]]]:
    """What everybody lost, by kind of clinic and name, a number for each clinic."""
    lost: dict[str, dict[str, list[float]]] = {kind: {} for kind in KINDS}
    for seed in range(FIRST, FIRST + clinics):
        for kind, by_name in lost.items():
            for name, player in players(seed).items():
                by_name.setdefault(name, []).append(play(Clinic(seed, kind), player))
        print(f"{seed - FIRST + 1} of {clinics} clinics of each kind", file=sys.stderr, flush=True)
    return lost


def summarise(lost: dict[str, list[float]]) -> dict[str, Any]:
    """Means with standard errors, and ratios to the better LinUCB with paired ones."""
    values = {name: np.array(one) for name, one in lost.items()}
    root = np.sqrt(len(values["raw"]))
    best = min(("raw", "centred"), key=lambda name: values[name].mean())
    ratios = {}
    for name in ("unfog", "unfog, truths"):
        ratio = values[name].mean() / values[best].mean()
        error = (values[name] - ratio * values[best]).std(ddof=1) / root / values[best].mean()
        ratios[name] = {"ratio": float(ratio), "se": float(error), "to": best}
    means = {name: {"mean": float(x.mean()), "se": float(x.std(ddof=1) / root)} for name, x in values.items()}
    return {"lost": means, "ratios": ratios}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clinics", type=int, default=60, help="how many of each kind, two at least")
    parser.add_argument("--print", action="store_true", help="write no file")
    options = parser.parse_args(arguments)
    lost = compare(options.clinics)
    rows = {kind: summarise(by_name) for kind, by_name in lost.items()}
    for kind, row in rows.items():
        means = ", ".join(f"{name} {x['mean']:.1f} ({x['se']:.1f})" for name, x in row["lost"].items())
        ratios = ", ".join(f"{name} {x['ratio']:.3f} ({x['se']:.3f})" for name, x in row["ratios"].items())
        print(f"{kind:8} {means}; to the better LinUCB: {ratios}")
    if not options.print:
        content = {"clinics": options.clinics, "first_seed": FIRST, "machine": machine(), "kinds": rows}
        RESULTS.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
