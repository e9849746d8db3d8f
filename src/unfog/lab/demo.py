"""A simulated clinic: what happens there, its story in words, and its picture.

It calls the public methods of `unfog.live` on a simulated clock. Three times a day, for each of 20 patients,
the agent decides whether to send a walking suggestion or to wait. All it knows at that moment is what a step
counter and a sleep tracker say,

    noisy = true + bias of the patient's device + noise,

and the sleep reading is sometimes missing. The reward (how much more the patient moved) comes minutes or
hours later, or never; some suggestions are never shown; for half the decisions the true step count is known
the next morning. A suggestion is worth most to those who have walked little and slept well. `naive`, which
takes readings for the truth, runs as a shadow: it decides alongside the agent, but its choices are not acted
on.

The log records the probability p with which an arm was taken, so it also says what another policy would have
earned (inverse propensities): the mean of reward x q / p, where q is the probability with which that policy
takes the same arm. In a simulation the truth is known as well, and is printed beside the estimate.
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

NAME, AGENT, BASELINE = "clinic", "late", "naive"
PATIENTS, HOURS = 20, (9, 13, 17)
A_DAY = PATIENTS * len(HOURS)  # decisions
CONTEXT, ARMS = ("steps", "sleep"), ("send", "wait")
MEAN, SPREAD = np.array([6000.0, 7.0]), np.array([2000.0, 1.0])
NOISE, BIAS = np.array([1000.0, 0.5]), np.array([2000.0, 0.3])  # standard deviations
THETA = np.array([[0.2, -1.0, 0.4], [0.0, 0.0, 0.0]])  # of each arm: an intercept, and slopes in deviations
EPSILON = 0.2  # the share of random decisions, from which other policies can be evaluated
CANCELLED, SILENT, REVEALED, LOST = 0.05, 0.05, 0.5, 0.1  # shares of decisions
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
DELAY, WAIT = 40 * MINUTE, "2h"
START = 1_794_787_200.0  # midnight, in seconds since 1970
FOLLOWED = 4  # patients whose bias is drawn day by day
MOST = 20_000  # decisions
REACH = normal_reach()  # standard deviations in half an interval of 95 %


class Rows(NamedTuple):
    """What is recorded of the decisions, (n,) each."""

    patient: Ints
    sent: Array  # 1 where a suggestion was sent
    probability: Array  # of what was done
    send: Array  # the probability of sending
    baseline: Array  # the probability that `naive` sends
    paid: Array  # the reward, if it came in time; else not a number
    worth: Array  # (n, 2)  what each arm is worth in truth


class Played(NamedTuple):
    """What happened in the clinic, and what is believed at the end."""

    seed: int
    bias: Array  # (patients, d)  of the devices, in truth
    believed: Array  # (patients, d)
    sd: Array  # (patients, d)
    followed: Ints  # some patients, from the smallest to the largest bias of steps
    tracks: Array  # (days, followed, 2)  mean and deviation of what is believed of their steps' bias
    rows: Rows
    diagnostics: "xr.Dataset"


class Value(NamedTuple):
    """What a policy earns per decision: as the log estimates it, and in truth."""

    mean: float
    half_width: float  # of a 95 % interval
    truth: float


class Clinic:
    """Patients, their devices, the clock, and what will be reported when."""

    problem: "Problem"

    def __init__(self, seed: int) -> None:
        """Draw the biases of the devices."""
        self.seed, self.now = seed, START
        self.random = generator(seed, 0, "clinic")
        self.bias = BIAS * self.random.standard_normal((PATIENTS, len(CONTEXT)))
        ranks = np.linspace(0, PATIENTS - 1, FOLLOWED).round().astype(int)
        self.followed = np.argsort(self.bias[:, 0])[ranks]
        self.due: list[tuple[float, int, str, str, float]] = []  # time, row, kind, decision, value
        self.rows: list[list[Any]] = []
        self.ids: dict[str, int] = {}
        self.tracks: list[list[list[float]]] = []

    def decide(self, number: int) -> None:
        """Decide for the next patient, after reporting everything that is due by then."""
        session, patient = divmod(number, PATIENTS)
        day, slot = divmod(session, len(HOURS))
        self._advance_to(START + day * DAY + HOURS[slot] * HOUR + patient * MINUTE)
        if number % A_DAY == 0 and number:
            self._record_beliefs()
        deviations, noise = self.random.standard_normal((2, len(CONTEXT)))
        true = MEAN + SPREAD * deviations
        noisy = true + self.bias[patient] + NOISE * noise
        context = dict(zip(CONTEXT, noisy.tolist(), strict=True))
        if self.random.random() < LOST:
            context["sleep"] = None
        decision = self.problem.decide(context, unit=unit(patient))
        worth = THETA[:, 0] + THETA[:, 1:] @ deviations
        shadow = decision.shadows[BASELINE]
        baseline = shadow["probability"] if shadow["arm"] == "send" else 1 - shadow["probability"]
        sent = decision.arm == "send"
        self.ids[decision.id] = len(self.rows)
        self.rows.append(
            [patient, sent, decision.probability, decision.probabilities["send"], baseline, np.nan, worth]
        )
        self._plan_reports(
            decision.id, float(worth[0 if sent else 1]), float(true[0]), START + (day + 1) * DAY
        )

    def _plan_reports(self, decision: str, worth: float, steps: float, tomorrow: float) -> None:
        """Schedule what will be reported about a decision, if anything."""
        cancel_draw, answer_draw, reveal_draw = self.random.random(3)
        reward, delay = worth + self.random.standard_normal(), DELAY * self.random.exponential()
        if cancel_draw < CANCELLED:
            self._plan(self.now + 5 * MINUTE, "cancel", decision, 0.0)
            return
        if answer_draw >= SILENT:
            self._plan(self.now + delay, "reward", decision, reward)
        if reveal_draw < REVEALED:
            self._plan(tomorrow + 8 * HOUR, "reveal", decision, steps)

    def _plan(self, when: float, kind: str, decision: str, value: float) -> None:
        heapq.heappush(self.due, (when, self.ids[decision], kind, decision, value))

    def _advance_to(self, time: float) -> None:
        """Advance the clock to this time, reporting what becomes due on the way."""
        while self.due and self.due[0][0] <= time:
            self.now, row, kind, decision, value = heapq.heappop(self.due)
            if kind == "cancel":
                self.problem.cancel(decision)
            elif kind == "reveal":
                self.problem.reveal(decision, {"steps": value})
            elif self.problem.reward(decision, value).outcome != "late":
                self.rows[row][5] = value
        self.now = time

    def _record_beliefs(self) -> None:
        """Record what is believed of the followed patients' step counters at the end of a day."""
        beliefs = [self.problem.belief(unit(patient)) for patient in self.followed]
        self.tracks.append([[float(belief.bias[0]), float(belief.bias_sd[0])] for belief in beliefs])

    def summarise(self) -> Played:
        """Collect the record of the whole simulation."""
        self._record_beliefs()
        beliefs = [self.problem.belief(unit(patient)) for patient in range(PATIENTS)]
        believed, sd = (np.array([belief[name].values for belief in beliefs]) for name in ("bias", "bias_sd"))
        columns = [np.array(column, dtype=np.float64) for column in zip(*self.rows, strict=True)]
        patient, sent, probability, send, baseline, paid, worth = columns
        rows = Rows(patient.astype(int), sent, probability, send, baseline, paid, worth)
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
    """Play the clinic, in a new store at `path` or in a temporary one."""
    validation.count("decisions", decisions, A_DAY, MOST)
    validation.count("seed", seed, 0, 2**63 - 1)
    clinic = Clinic(seed)
    with _store_path(path) as store_path:
        from unfog import live

        with live.open(store_path, sync="normal", clock=lambda: clinic.now) as store:
            clinic.problem = store.problem(NAME, seed=seed, **problem_params())
            clinic.problem.add_shadow(BASELINE)
            for number in range(decisions):
                clinic.decide(number)
                progress(number + 1, decisions)
            return clinic.summarise()


@contextmanager
def _store_path(path: Path | None) -> Iterator[Path]:
    if path is not None:
        if path.exists():
            raise InputError("store", f"{path} is there already", "a new file")
        yield path
        return
    with TemporaryDirectory() as folder:
        yield Path(folder) / "clinic.unfog"


def problem_params() -> dict[str, Any]:
    """The parameters of the clinic's problem; its channel describes the devices correctly."""
    channel = {
        "context_mean": MEAN,
        "context_cov": SPREAD**2,
        "noise_cov": NOISE**2,
        "bias_cov": BIAS**2,
        "bias": 0.0,
    }
    params = {"context": list(CONTEXT), "arms": list(ARMS), "channel": channel, "agent": AGENT}
    return {**params, "epsilon": EPSILON, "reward_window": WAIT, "context_window": "2d"}


def unit(patient: int) -> str:
    """The name of a patient's unit."""
    return f"patient-{patient + 1:02d}"


def values(history: Played) -> dict[str, Value]:
    """The value of every policy, and the difference between agent and `naive` on the same decisions."""
    rows, ways = history.rows, chances(history)
    pairs = {name: (earned(rows, send), worth(rows, send)) for name, send in ways.items()}
    ours, theirs = pairs[AGENT], pairs[BASELINE]
    pairs["difference"] = ours[0] - theirs[0], ours[1] - theirs[1]
    return {name: _estimate_value(*pair) for name, pair in pairs.items()}


def chances(history: Played) -> dict[str, Array]:
    """The probability with which each policy sends a suggestion, (n,)."""
    rows = history.rows
    return {AGENT: rows.send, BASELINE: rows.baseline, "a coin": np.full(len(rows.sent), 0.5)}


def earned(rows: Rows, send: Array) -> Array:
    """Estimate from the log what each decision earns with these probabilities; (n,), NaN without a reward."""
    same = np.where(rows.sent > 0, send, 1 - send)
    estimates: Array = rows.paid * same / rows.probability
    return estimates


def worth(rows: Rows, send: Array) -> Array:
    """What decisions made with these probabilities are worth in truth, (n,)."""
    true: Array = send * rows.worth[:, 0] + (1 - send) * rows.worth[:, 1]
    return true


def _estimate_value(estimates: Array, truth: Array) -> Value:
    observed = estimates[np.isfinite(estimates)]
    reward = estimate(observed) if len(observed) else Estimate(np.nan, np.nan)
    return Value(reward.mean, reward.half_width(), float(truth.mean()))


def best(history: Played) -> float:
    """The mean reward of a policy that knows the true contexts and what the arms are worth."""
    return float(history.rows.worth.max(1).mean())


def story(history: Played) -> str:
    """Tell in plain words what happened and what came of it."""
    return "\n".join(
        [
            *_summary_lines(history),
            "",
            *_sensor_lines(history),
            "",
            *_reward_lines(history),
            "",
            *_alarm_lines(history),
        ]
    )


def _summary_lines(history: Played) -> list[str]:
    counts, n, days = history.diagnostics.attrs, len(history.rows.sent), len(history.tracks)
    return prose(
        f"A clinic of {PATIENTS} patients: {n:,} decisions in {days} days, seed {history.seed},",
        "each whether to send a walking suggestion or to wait, by what step counters say.",
        f"{counts['cancelled']} were never shown, {counts['expired']} got no answer in two hours,"
        f" {counts['late']} of these answered later.",
        f"Of {counts['revealed']} decisions the true step count came the next morning.",
    )


def _sensor_lines(history: Played) -> list[str]:
    off, error = (
        float(np.sqrt((x[:, 0] ** 2).mean())) for x in (history.bias, history.believed - history.bias)
    )
    inside = int((np.abs(history.believed - history.bias)[:, 0] <= REACH * history.sd[:, 0]).sum())
    rows = [["step counter of", "true bias", "believed", "± 95 %"]]
    for patient in history.followed:
        biases = history.bias[patient, 0], history.believed[patient, 0]
        width = REACH * history.sd[patient, 0]
        rows.append([unit(patient), *(f"{x:+,.0f}" for x in biases), f"{width:,.0f}"])
    intro = prose(
        f"Step counters were off by {off:,.0f} steps (root mean square). Nobody said by how much each was;",
        f"what is believed of them by now is off by {error:,.0f},"
        f" and {inside} of {PATIENTS} lie in their 95 % intervals:",
    )
    return [*intro, *align(rows)]


def _reward_lines(history: Played) -> list[str]:
    policies = values(history)
    difference = policies.pop("difference")
    rows = [["mean reward of", "by the log", "in truth"]]
    for name, policy in policies.items():
        rows.append([name, f"{policy.mean:.3f} ± {policy.half_width:.3f}", f"{policy.truth:.3f}"])
    rows.append(["the best there is", "-", f"{best(history):.3f}"])
    intro = prose(f"{AGENT} decided; {BASELINE}, which takes readings for the truth, only watched:")
    outro = prose(
        f"Over {BASELINE}, {AGENT} earned {difference.mean:+.3f} ± {difference.half_width:.3f} a decision"
        f" by the log, {difference.truth:+.3f} in truth.",
        f"(One decision in {1 / EPSILON:.0f} was a coin's, for both; that is what lets the log compare.)",
    )
    return [*intro, *align(rows), *outro]


def _alarm_lines(history: Played) -> list[str]:
    attrs = history.diagnostics.attrs
    alarms = attrs["alarm"] or ["Readings are as the channel says."]
    lines = [*alarms, f"{attrs['pending']} rewards are still awaited."]
    return [line for text in lines for line in prose(text)]


def figure(history: Played) -> "Figure":
    """Draw four panels: biases, rewards, arms, and the rewards that are still pending."""
    with new_figure(PAGE, 5.4) as chart:
        panels = chart.subplots(2, 2)
        for axes, draw in zip(
            panels.flat, (_draw_bias, _draw_rewards, _draw_arms, _draw_pending), strict=True
        ):
            draw(axes, history)
        add_note(
            chart, f"{PATIENTS} simulated patients, {len(history.rows.sent):,} decisions, seed {history.seed}"
        )
    return chart


def _draw_bias(axes: "Axes", history: Played) -> None:
    """Believed biases day by day, with 95 % bands, beside the true ones."""
    days = np.arange(1, len(history.tracks) + 1)
    for colour, patient, track in zip(COLOURS, history.followed, history.tracks.swapaxes(0, 1), strict=False):
        mean, sd = track.T
        axes.plot(days, mean, color=colour, linewidth=1.4, label=unit(patient))
        axes.fill_between(days, mean - REACH * sd, mean + REACH * sd, color=colour, alpha=0.15, linewidth=0)
        axes.axhline(history.bias[patient, 0], color=colour, linestyle=(0, (2, 2)), linewidth=1)
    _add_legend_above(axes)
    axes.set(xlabel="day", ylabel="steps")
    title_panel(axes, "bias of four step counters:\nbelieved (95 %), and true (dashed)")


def _draw_rewards(axes: "Axes", history: Played) -> None:
    """Running means of what decisions are worth in truth; those of paid rewards would show only noise."""
    ways = {name: worth(history.rows, send) for name, send in chances(history).items()}
    ways["the best there is"] = history.rows.worth.max(1)
    number = np.arange(1, len(history.rows.sent) + 1)
    for name, rewards in ways.items():
        mean = rewards.cumsum() / number
        later = slice(A_DAY - 1, None)  # the first day's are too few to be a mean
        axes.plot(number[later] / A_DAY, mean[later], label=name, **_style_of(name).line())
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    _add_legend_above(axes)
    axes.set(xlabel="day", ylabel="worth of a decision")
    title_panel(axes, "mean reward so far, in truth")


def _style_of(name: str) -> Look:
    """The style of a policy's line: the agent's own, or one for the two policies that are not agents."""
    dash = {"a coin": DASHES[2], "the best there is": DASHES[0]}.get(name)
    return (
        looks([name])[name] if dash is None else Look("0.45" if name == "a coin" else "0.0", dash, "o", 1.0)
    )


def _add_legend_above(axes: "Axes") -> None:
    """Raise the upper limit, and put the legend in the space above the curves."""
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.25 * (high - low))
    axes.legend(fontsize=7, loc="upper center", ncols=2, columnspacing=1.2, handlelength=2.4)


def _draw_arms(axes: "Axes", history: Played) -> None:
    """How often a suggestion was sent, by how much more it was worth than waiting."""
    gain = history.rows.worth[:, 0] - history.rows.worth[:, 1]
    edges = np.quantile(gain, np.linspace(0, 1, 9))
    bins = np.clip(np.searchsorted(edges, gain, side="right") - 1, 0, 7)
    middles = np.array([gain[bins == i].mean() for i in range(8)])
    for name, send in chances(history).items():
        shares: Array = np.array([send[bins == i].mean() for i in range(8)])
        look = _style_of(name)
        axes.plot(middles, shares, marker=look.mark, markersize=3.5, label=name, **look.line())
    axes.axvline(0, color="0.7", linewidth=0.8)
    axes.set(ylim=(0, 1), xlabel="what a suggestion is worth more than waiting", ylabel="share sent")
    axes.legend(fontsize=7, loc="upper left")
    sent = history.diagnostics.share.values
    title = ", ".join(f"{arm} {100 * x:.0f} %" for arm, x in zip(ARMS, sent, strict=True))
    title_panel(axes, f"arms: {title};\nsent where it pays?")


def _draw_pending(axes: "Axes", history: Played) -> None:
    """Pending rewards at the end, by age."""
    data = history.diagnostics
    ages = [str(age) if age == "longer" else f"< {age}" for age in data.age.values]
    bars = axes.bar(ages, data.waiting.values, color=COLOURS[0], width=0.6)
    axes.bar_label(bars, fmt="%.0f", fontsize=8)
    axes.set_ylabel("decisions")
    axes.locator_params(axis="y", integer=True)
    percent_in_time = 100 * data.attrs["join_rate"]
    title_panel(axes, f"rewards awaited at the end, by age;\n{percent_in_time:.0f} % came in time")
