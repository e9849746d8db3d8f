"""A simulated clinic: what happens there, its story in words, and its picture.

It is played through the public verbs of `unfog.live` on a clock of its own. Three times a day it is decided
for each of 20 patients whether to send a walking suggestion or to wait. What is known at that moment is what
a step counter and a sleep tracker say,

    noisy = true + bias of the patient's device + noise,

and sleep is lost now and then. The reward (how much more the patient moved) comes minutes or hours later, or
never; some suggestions are never shown; of half the decisions the true step count is known the next morning.
A suggestion is worth most to those who have walked little and slept well. `naive`, which takes readings for
the truth, decides beside the agent without being obeyed.

The log says with which probability p an arm was taken, so it also says what another way to decide would have
earned (inverse propensities): the mean of reward x q / p, where q is the probability with which the other one
takes the same arm. In a simulation the truth is known, too, and stands beside it.
"""

import heapq
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.lab.labels import Look, looks
from unfog.lab.run import Progress, quiet
from unfog.lab.tables import align, prose
from unfog.maths.arrays import Array, Ints
from unfog.maths.random import generator
from unfog.maths.statistics import Estimate, estimate, normal_reach
from unfog.plotting import COLOURS, DASHES, PAGE, add_note, new_figure, title_panel
from unfog.validation import InputError

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
REACH = normal_reach()  # standard deviations in half an interval of 95 %


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


class Value(NamedTuple):
    """What a way to decide earns per decision."""

    mean: float
    half_width: float  # of a 95 % interval
    truth: float


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
    """The terms of the clinic's problem; the channel is as its devices are."""
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


def values(found: Played) -> dict[str, Value]:
    """Of every way to decide, and how much the agent earned more than `naive`, on the same decisions."""
    rows, ways = found.rows, chances(found)
    pairs = {name: (earned(rows, send), worth(rows, send)) for name, send in ways.items()}
    ours, theirs = pairs[AGENT], pairs[RIVAL]
    pairs["difference"] = ours[0] - theirs[0], ours[1] - theirs[1]
    return {name: _value(*pair) for name, pair in pairs.items()}


def chances(found: Played) -> dict[str, Array]:
    """With which probability each way to decide sends a suggestion, (n,)."""
    rows = found.rows
    return {AGENT: rows.send, RIVAL: rows.rival, "a coin": np.full(len(rows.sent), 0.5)}


def earned(rows: Rows, send: Array) -> Array:
    """What the log says of each decision, had it been made with these probabilities; (n,), with gaps."""
    same = np.where(rows.sent > 0, send, 1 - send)
    earned: Array = rows.paid * same / rows.probability
    return earned


def worth(rows: Rows, send: Array) -> Array:
    """What decisions made with these probabilities are worth in truth, (n,)."""
    true: Array = send * rows.worth[:, 0] + (1 - send) * rows.worth[:, 1]
    return true


def _value(estimates: Array, truth: Array) -> Value:
    came = estimates[np.isfinite(estimates)]
    found = estimate(came) if len(came) else Estimate(np.nan, np.nan)
    return Value(found.mean, found.half_width(), float(truth.mean()))


def best(found: Played) -> float:
    """What is earned by whoever knows the true contexts and what arms are worth."""
    return float(found.rows.worth.max(1).mean())


def story(found: Played) -> str:
    """Tell in plain words what happened and what came of it."""
    return "\n".join([*_opening(found), "", *_sensors(found), "", *_rewards(found), "", *_watch(found)])


def _opening(found: Played) -> list[str]:
    counts, n = found.diagnostics.attrs, len(found.rows.sent)
    return prose(
        f"A clinic of {PATIENTS} patients: {n:,} decisions in {len(found.tracks)} days, seed {found.seed},",
        "each whether to send a walking suggestion or to wait, by what step counters say.",
        f"{counts['voided']} were never shown, {counts['expired']} got no answer in two hours,"
        f" {counts['late']} of these answered later.",
        f"Of {counts['revealed']} decisions the true step count came the next morning.",
    )


def _sensors(found: Played) -> list[str]:
    off, error = (float(np.sqrt((x[:, 0] ** 2).mean())) for x in (found.bias, found.believed - found.bias))
    inside = int((np.abs(found.believed - found.bias)[:, 0] <= REACH * found.sd[:, 0]).sum())
    rows = [["step counter of", "true bias", "believed", "± 95 %"]]
    for patient in found.followed:
        told = found.bias[patient, 0], found.believed[patient, 0]
        width = REACH * found.sd[patient, 0]
        rows.append([unit(patient), *(f"{x:+,.0f}" for x in told), f"{width:,.0f}"])
    said = prose(
        f"Step counters were off by {off:,.0f} steps (root mean square). Nobody said by how much each was;",
        f"what is believed of them by now is off by {error:,.0f},"
        f" and {inside} of {PATIENTS} lie in their 95 % intervals:",
    )
    return [*said, *align(rows)]


def _rewards(found: Played) -> list[str]:
    told = values(found)
    more = told.pop("difference")
    rows = [["mean reward of", "by the log", "in truth"]]
    for name, one in told.items():
        rows.append([name, f"{one.mean:.3f} ± {one.half_width:.3f}", f"{one.truth:.3f}"])
    rows.append(["the best there is", "-", f"{best(found):.3f}"])
    said = prose(f"{AGENT} decided; {RIVAL}, which takes readings for the truth, only watched:")
    more_said = prose(
        f"Over {RIVAL}, {AGENT} earned {more.mean:+.3f} ± {more.half_width:.3f} a decision"
        f" by the log, {more.truth:+.3f} in truth.",
        f"(One decision in {1 / FLOOR:.0f} was a coin's, for both; that is what lets the log compare.)",
    )
    return [*said, *align(rows), *more_said]


def _watch(found: Played) -> list[str]:
    attrs = found.diagnostics.attrs
    said = attrs["alarm"] or ["Readings are as the channel says."]
    lines = [*said, f"{attrs['pending']} rewards are still awaited."]
    return [line for one in lines for line in prose(one)]


def figure(found: Played) -> "Figure":
    """Draw four panels: biases, rewards, arms, and the rewards that are waited for."""
    with new_figure(PAGE, 5.4) as chart:
        panels = chart.subplots(2, 2)
        for axes, draw in zip(panels.flat, (_bias, _draw_rewards, _arms, _pending), strict=True):
            draw(axes, found)
        add_note(
            chart, f"{PATIENTS} simulated patients, {len(found.rows.sent):,} decisions, seed {found.seed}"
        )
    return chart


def _bias(axes: "Axes", found: Played) -> None:
    """Day by day, with bands of 95 %."""
    days = np.arange(1, len(found.tracks) + 1)
    for colour, patient, track in zip(COLOURS, found.followed, found.tracks.swapaxes(0, 1), strict=False):
        mean, sd = track.T
        axes.plot(days, mean, color=colour, linewidth=1.4, label=unit(patient))
        axes.fill_between(days, mean - REACH * sd, mean + REACH * sd, color=colour, alpha=0.15, linewidth=0)
        axes.axhline(found.bias[patient, 0], color=colour, linestyle=(0, (2, 2)), linewidth=1)
    _legend_above(axes)
    axes.set(xlabel="day", ylabel="steps")
    title_panel(axes, "bias of four step counters:\nbelieved (95 %), and true (dashed)")


def _draw_rewards(axes: "Axes", found: Played) -> None:
    """Running means of what decisions are worth in truth: of rewards as paid there would be noise alone."""
    ways = {name: worth(found.rows, send) for name, send in chances(found).items()}
    ways["the best there is"] = found.rows.worth.max(1)
    number = np.arange(1, len(found.rows.sent) + 1)
    for name, each in ways.items():
        mean = each.cumsum() / number
        later = slice(A_DAY - 1, None)  # the first day's are too few to be a mean
        axes.plot(number[later] / A_DAY, mean[later], label=name, **_way(name).line())
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    _legend_above(axes)
    axes.set(xlabel="day", ylabel="worth of a decision")
    title_panel(axes, "mean reward so far, in truth")


def _way(name: str) -> Look:
    """Of a way to decide: an agent's own look, or that of one of the two ways that are no agents."""
    dash = {"a coin": DASHES[2], "the best there is": DASHES[0]}.get(name)
    return (
        looks([name])[name] if dash is None else Look("0.45" if name == "a coin" else "0.0", dash, "o", 1.0)
    )


def _legend_above(axes: "Axes") -> None:
    """In a row over the curves, which leave room for it."""
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.25 * (high - low))
    axes.legend(fontsize=7, loc="upper center", ncols=2, columnspacing=1.2, handlelength=2.4)


def _arms(axes: "Axes", found: Played) -> None:
    """How often a suggestion was sent, by how much it was worth more than waiting."""
    gain = found.rows.worth[:, 0] - found.rows.worth[:, 1]
    edges = np.quantile(gain, np.linspace(0, 1, 9))
    places = np.clip(np.searchsorted(edges, gain, side="right") - 1, 0, 7)
    middle = np.array([gain[places == i].mean() for i in range(8)])
    for name, send in chances(found).items():
        shares: Array = np.array([send[places == i].mean() for i in range(8)])
        look = _way(name)
        axes.plot(middle, shares, marker=look.mark, markersize=3.5, label=name, **look.line())
    axes.axvline(0, color="0.7", linewidth=0.8)
    axes.set(ylim=(0, 1), xlabel="what a suggestion is worth more than waiting", ylabel="share sent")
    axes.legend(fontsize=7, loc="upper left")
    sent = found.diagnostics.share.values
    title = ", ".join(f"{arm} {100 * x:.0f} %" for arm, x in zip(ARMS, sent, strict=True))
    title_panel(axes, f"arms: {title};\nsent where it pays?")


def _pending(axes: "Axes", found: Played) -> None:
    """By age, at the end."""
    data = found.diagnostics
    ages = [str(age) if age == "longer" else f"< {age}" for age in data.age.values]
    bars = axes.bar(ages, data.waiting.values, color=COLOURS[0], width=0.6)
    axes.bar_label(bars, fmt="%.0f", fontsize=8)
    axes.set_ylabel("decisions")
    axes.locator_params(axis="y", integer=True)
    came = 100 * data.attrs["join_rate"]
    title_panel(axes, f"rewards awaited at the end, by age;\n{came:.0f} % came in time")
