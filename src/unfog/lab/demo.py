"""A simulated clinic, played through the public verbs of `unfog.live` on a clock of its own.

Three times a day it is decided for each of 20 patients whether to send a walking suggestion or to wait. What
is known at that moment is what a step counter and a sleep tracker say,

    noisy = true + bias of the patient's device + noise,

and sleep is lost now and then. The reward (how much more the patient moved) comes minutes or hours later, or
never; some suggestions are never shown; of half the decisions the true step count is known the next morning.
A suggestion is worth most to those who have walked little and slept well. `naive`, which takes readings for
the truth, decides beside the agent without being obeyed: lab/demo_story.py tells what came of it.
"""

import heapq
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.lab.run import Progress, quiet
from unfog.maths.arrays import Array, Ints
from unfog.maths.random import generator
from unfog.validation import InputError

if TYPE_CHECKING:
    import xarray as xr

    from unfog.live import Problem

NAME, AGENT, RIVAL = "clinic", "late", "naive"
PATIENTS, HOURS = 20, (9, 13, 17)
A_DAY = PATIENTS * len(HOURS)  # decisions
CONTEXT, ARMS = ("steps", "sleep"), ("send", "wait")
MEAN, SPREAD = np.array([6000.0, 7.0]), np.array([2000.0, 1.0])
NOISE, BIAS = np.array([1000.0, 0.5]), np.array([2000.0, 0.3])  # standard deviations
THETA = np.array([[0.2, -1.0, 0.4], [0.0, 0.0, 0.0]])  # of each arm: an intercept, and slopes in deviations
FLOOR = 0.2  # that share of decisions is a coin's, so that the log can tell what others would have earned
VOID, SILENT, REVEALED, LOST = 0.05, 0.05, 0.5, 0.1  # shares of decisions
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
DELAY, WAIT = 40 * MINUTE, "2h"
START = 1_794_787_200.0  # midnight, in seconds since 1970
FOLLOWED = 4  # patients whose bias is drawn day by day
MOST = 20_000  # decisions


class Rows(NamedTuple):
    """What there is of every decision, (n,) each."""

    patient: Ints
    sent: Array  # 1 where a suggestion was sent
    probability: Array  # of what was done
    send: Array  # the probability of sending
    rival: Array  # that of `naive`
    paid: Array  # the reward, if it came in time; else not a number
    worth: Array  # (n, 2)  what each arm is worth in truth


class Played(NamedTuple):
    """What happened."""

    seed: int
    bias: Array  # (patients, d)  of the devices, in truth
    believed: Array  # (patients, d)
    sd: Array  # (patients, d)
    followed: Ints  # some patients, from the smallest to the largest bias of steps
    tracks: Array  # (days, followed, 2)  mean and deviation of what is believed of their steps' bias
    rows: Rows
    diagnostics: "xr.Dataset"


def played(
    path: Path | None = None, *, decisions: int = 2400, seed: int = 0, progress: Progress = quiet
) -> Played:
    """Play it, in a store that is kept where a path is given."""
    validation.count("decisions", decisions, A_DAY, MOST)
    validation.count("seed", seed, 0, 2**63 - 1)
    clinic = Clinic(seed)
    with _place(path) as place:
        from unfog import live

        with live.open(place, sync="normal", clock=lambda: clinic.now) as store:
            clinic.problem = store.problem(NAME, seed=seed, **terms())
            clinic.problem.shadow(RIVAL)
            for number in range(decisions):
                clinic.decide(number)
                progress(number + 1, decisions)
            return clinic.told()


@contextmanager
def _place(path: Path | None) -> Iterator[Path]:
    if path is not None:
        if path.exists():
            raise InputError("store", f"{path} is there already", "a new file")
        yield path
        return
    with TemporaryDirectory() as folder:
        yield Path(folder) / "clinic.unfog"


def terms() -> dict[str, Any]:
    """What the clinic tells of its problem: the channel is as its devices are."""
    channel = {
        "context_mean": MEAN,
        "context_cov": SPREAD**2,
        "noise_cov": NOISE**2,
        "bias_cov": BIAS**2,
        "bias": 0.0,
    }
    told = {"context": list(CONTEXT), "arms": list(ARMS), "channel": channel, "agent": AGENT}
    return {**told, "floor": FLOOR, "wait": WAIT, "reveal_within": "2d"}


def unit(patient: int) -> str:
    """What a patient is called."""
    return f"patient-{patient + 1:02d}"


class Clinic:
    """Patients, their devices, the clock, and what will be reported when."""

    problem: "Problem"

    def __init__(self, seed: int) -> None:
        """Devices get their biases."""
        self.seed, self.now = seed, START
        self.random = generator(seed, 0, "clinic")
        self.bias = BIAS * self.random.standard_normal((PATIENTS, len(CONTEXT)))
        ranks = np.linspace(0, PATIENTS - 1, FOLLOWED).round().astype(int)
        self.followed = np.argsort(self.bias[:, 0])[ranks]
        self.due: list[tuple[float, int, str, str, float]] = []  # when, which, what, of which decision, value
        self.rows: list[list[Any]] = []
        self.ids: dict[str, int] = {}
        self.tracks: list[list[list[float]]] = []

    def decide(self, number: int) -> None:
        """The next patient's turn: what is due until then is reported first."""
        turn, patient = divmod(number, PATIENTS)
        day, slot = divmod(turn, len(HOURS))
        self._until(START + day * DAY + HOURS[slot] * HOUR + patient * MINUTE)
        if number % A_DAY == 0 and number:
            self._follow()
        deviations, noise = self.random.standard_normal((2, len(CONTEXT)))
        true = MEAN + SPREAD * deviations
        noisy = true + self.bias[patient] + NOISE * noise
        context = dict(zip(CONTEXT, noisy.tolist(), strict=True))
        if self.random.random() < LOST:
            context["sleep"] = None
        made = self.problem.decide(context, unit=unit(patient))
        worth = THETA[:, 0] + THETA[:, 1:] @ deviations
        beside = made.shadow[RIVAL]
        rival = beside["probability"] if beside["arm"] == "send" else 1 - beside["probability"]
        sent = made.arm == "send"
        self.ids[made.id] = len(self.rows)
        self.rows.append([patient, sent, made.probability, made.probabilities["send"], rival, np.nan, worth])
        self._will_come(made.id, float(worth[0 if sent else 1]), float(true[0]), START + (day + 1) * DAY)

    def _will_come(self, decision: str, worth: float, steps: float, tomorrow: float) -> None:
        """What will be reported of a decision, if anything."""
        shown, answers, revealed = self.random.random(3)
        reward, delay = worth + self.random.standard_normal(), DELAY * self.random.exponential()
        if shown < VOID:
            self._plan(self.now + 5 * MINUTE, "void", decision, 0.0)
            return
        if answers >= SILENT:
            self._plan(self.now + delay, "reward", decision, reward)
        if revealed < REVEALED:
            self._plan(tomorrow + 8 * HOUR, "reveal", decision, steps)

    def _plan(self, when: float, what: str, decision: str, value: float) -> None:
        heapq.heappush(self.due, (when, self.ids[decision], what, decision, value))

    def _until(self, time: float) -> None:
        """Time passes, and what is due is reported."""
        while self.due and self.due[0][0] <= time:
            self.now, place, what, decision, value = heapq.heappop(self.due)
            if what == "void":
                self.problem.void(decision)
            elif what == "reveal":
                self.problem.reveal(decision, {"steps": value})
            elif self.problem.reward(decision, value).outcome != "late":
                self.rows[place][5] = value
        self.now = time

    def _follow(self) -> None:
        """What is believed of some patients' step counters at the end of a day."""
        beliefs = [self.problem.belief(unit(patient)) for patient in self.followed]
        self.tracks.append([[float(one.bias[0]), float(one.bias_sd[0])] for one in beliefs])

    def told(self) -> Played:
        """All of it."""
        self._follow()
        beliefs = [self.problem.belief(unit(patient)) for patient in range(PATIENTS)]
        believed, sd = (np.array([one[name].values for one in beliefs]) for name in ("bias", "bias_sd"))
        columns = [np.array(column, dtype=np.float64) for column in zip(*self.rows, strict=True)]
        patient, sent, probability, send, rival, paid, worth = columns
        rows = Rows(patient.astype(int), sent, probability, send, rival, paid, worth)
        return Played(
            self.seed,
            self.bias,
            believed,
            sd,
            self.followed,
            np.array(self.tracks),
            rows,
            self.problem.diagnostics(),
        )
