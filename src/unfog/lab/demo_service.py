"""A store with a past that ends now and a present that goes on, for `unfog serve --demo`.

Decisions are made from noisy contexts at four invented sites:

    clinic       20 patients with biased step counters, described correctly: `late`, with `naive` as a shadow
    greenhouse   three sensors whose noise is three times what the problem was told: the alarm is on
    window       one more such sensor, with a bank of models that finds out what is wrong: `adaptive`
    banner       a shop with rewards of 0 or 1, where no click within two minutes counts as 0

The past is played by calling a store on a simulated clock. The present goes through anything that has the
same methods, such as the client of a service: a decision about once a second, its reward seconds later.
"""

import heapq
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unfog.lab import demo
from unfog.lab.demo import DAY, HOUR, MINUTE
from unfog.lab.run import Progress, quiet
from unfog.maths.arrays import Array
from unfog.maths.random import generator
from unfog.validation import InputError

WRONG = 3.0  # true noise of the greenhouse, in multiples of what its problem is told


@dataclass(frozen=True)
class Site:
    """What is true of a site, and what its problem is told about it."""

    name: str
    arms: tuple[str, ...]
    context: tuple[str, ...]
    mean: tuple[float, ...]
    spread: tuple[float, ...]  # standard deviations, as those of noise and bias
    noise: tuple[float, ...]
    bias: tuple[float, ...]
    theta: tuple[tuple[float, ...], ...]  # of each arm: an intercept, and slopes in deviations
    units: int
    unit: str  # what one is called
    terms: dict[str, Any]
    shadow: str | None = None
    assumed_noise: float = 1.0  # the noise that the problem is told of, as a share of the true noise
    decisions: int = 400  # of the past
    days: float = 3.0
    lost: float = 0.0  # the share of readings whose last coordinate is lost
    revealed: float = 0.0  # the share whose first coordinate is known in the end
    share: float = 0.2  # of what happens from now on

    @property
    def clicks(self) -> bool:
        """Whether rewards are 0 or 1."""
        return self.terms.get("rewards") == "binary"

    def problem_params(self) -> dict[str, Any]:
        """The parameters of its problem."""
        channel = {
            "context_mean": list(self.mean),
            "context_cov": [x**2 for x in self.spread],
            "noise_cov": [(self.assumed_noise * x) ** 2 for x in self.noise],
            "bias_cov": [x**2 for x in self.bias],
        }
        return {"context": list(self.context), "arms": list(self.arms), "channel": channel} | self.terms


CLINIC = Site(
    name=demo.NAME,
    arms=demo.ARMS,
    context=demo.CONTEXT,
    mean=tuple(demo.MEAN),
    spread=tuple(demo.SPREAD),
    noise=tuple(demo.NOISE),
    bias=tuple(demo.BIAS),
    theta=tuple(map(tuple, demo.THETA)),
    units=demo.PATIENTS,
    unit="patient",
    terms={"agent": demo.AGENT, "epsilon": demo.EPSILON, "reward_window": demo.WAIT, "context_window": "2d"},
    shadow=demo.BASELINE,
    decisions=700,
    days=14.0,
    lost=demo.LOST,
    revealed=demo.REVEALED,
    share=0.5,
)
GREENHOUSE = Site(
    name="greenhouse",
    arms=("open", "shut"),
    context=("temperature", "humidity"),
    mean=(24.0, 60.0),
    spread=(4.0, 10.0),
    noise=(4.0, 9.0),
    bias=(1.0, 3.0),
    theta=((0.1, 0.8, 0.2), (0.0, 0.0, 0.0)),
    units=3,
    unit="sensor",
    terms={"epsilon": 0.1, "reward_window": "30m"},
    assumed_noise=1 / WRONG,
    decisions=240,
    revealed=0.3,
    share=0.2,
)
WINDOW = replace(
    GREENHOUSE,
    name="window",
    units=1,
    terms=GREENHOUSE.terms | {"agent": "adaptive"},
    decisions=120,
    share=0.1,
)
BANNER = Site(
    name="banner",
    arms=("shoes", "books", "none"),
    context=("age", "spent"),
    mean=(40.0, 60.0),
    spread=(12.0, 30.0),
    noise=(9.0, 20.0),
    bias=(2.0, 5.0),
    theta=((-0.5, -0.8, 0.3), (-0.6, 0.8, 0.0), (-2.5, 0.0, 0.0)),
    units=1,
    unit="shop",
    terms={"rewards": "binary", "epsilon": 0.1, "reward_window": "2m", "default_reward": 0.0},
    shadow="naive",
    decisions=300,
    share=0.2,
)
SITES = (CLINIC, GREENHOUSE, WINDOW, BANNER)


class Visit(NamedTuple):
    """One moment at which something is to be decided."""

    unit: str
    context: dict[str, float | None]  # as it is read
    true: float  # of its first coordinate
    worth: Array  # (arms,)


class World:
    """What happens at a site, as a seed determines it."""

    def __init__(self, site: Site, seed: int) -> None:
        """Draw the biases of the sensors."""
        self.site, self.random = site, generator(seed, 0, f"demo of {site.name}")
        self.biases = np.array(site.bias) * self.random.standard_normal((site.units, len(site.bias)))

    def visit(self) -> Visit:
        """Draw the next visit."""
        site, unit = self.site, int(self.random.integers(self.site.units))
        deviations, noise = self.random.standard_normal((2, len(site.context)))
        true = np.array(site.mean) + np.array(site.spread) * deviations
        noisy = true + self.biases[unit] + np.array(site.noise) * noise
        context: dict[str, float | None] = dict(zip(site.context, noisy.tolist(), strict=True))
        if self.random.random() < site.lost:
            context[site.context[-1]] = None
        theta = np.array(site.theta)
        return Visit(
            f"{site.unit}-{unit + 1:02d}", context, float(true[0]), theta[:, 0] + theta[:, 1:] @ deviations
        )

    def draw_reward(self, worth: float) -> float | None:
        """Draw the reward of a decision; None if none is ever reported."""
        if self.site.clicks:
            return 1.0 if self.random.random() < 1 / (1 + np.exp(-worth)) else None
        reward = worth + self.random.standard_normal()
        return None if self.random.random() < demo.SILENT else float(reward)


class Pace(NamedTuple):
    """How long things take, in seconds."""

    reward: float  # on average
    reveal: float


PAST, PRESENT = Pace(20 * MINUTE, 10 * HOUR), Pace(4.0, 15.0)
QUICK = Pace(20.0, 10 * HOUR)  # of clicks


class Life:
    """A site, the problem that decides for it, and what will be reported when."""

    problem: Any  # of a store, or of anything that has its methods

    def __init__(self, site: Site, seed: int) -> None:
        """Start with nothing decided and nothing due."""
        self.site, self.world = site, World(site, seed)
        self._due: list[tuple[float, int, str, str, Any]] = []  # time, number, kind, decision, value
        self._planned = 0

    def decide(self, now: float, pace: Pace) -> None:
        """Draw a visit and decide; plan its reward and perhaps its true context."""
        site, visit = self.site, self.world.visit()
        decision = self.problem.decide(visit.context, unit=visit.unit)
        reward = self.world.draw_reward(float(visit.worth[site.arms.index(decision.arm)]))
        if reward is not None:
            self._plan(now + pace.reward * self.world.random.exponential(), "reward", decision.id, reward)
        if self.world.random.random() < site.revealed:
            self._plan(now + pace.reveal, "reveal", decision.id, {site.context[0]: visit.true})

    def _plan(self, when: float, kind: str, decision: str, value: Any) -> None:
        self._planned += 1
        heapq.heappush(self._due, (when, self._planned, kind, decision, value))

    def next_due(self) -> float:
        """When the next report is due."""
        return self._due[0][0] if self._due else np.inf

    def report(self) -> None:
        """Report what is due next."""
        _, _, kind, decision, value = heapq.heappop(self._due)
        if kind == "reward":
            self.problem.reward(decision, value)
        else:
            self.problem.reveal(decision, value)


class Clock:
    """A clock that is set by hand, for the past."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        """The time it is set to."""
        return self.now


def filled(path: Path, now: float, *, seed: int = 0, progress: Progress = quiet) -> list[Life]:
    """Create a store whose past ends at `now`; return the sites with what is still due at each."""
    if path.exists():
        raise InputError("store", f"{path} is there already", "a new file, for a demo")
    from unfog import live

    clock = Clock(now - max(site.days for site in SITES) * DAY)
    lives = [Life(site, seed) for site in SITES]
    with live.open(path, sync="normal", clock=clock) as store:
        for number, life in enumerate(lives):
            life.problem = store.problem(life.site.name, seed=seed + number, **life.site.problem_params())
            if life.site.shadow is not None:
                life.problem.add_shadow(life.site.shadow)
        with store.batch():
            _play(lives, clock, now, progress)
    return lives


def _play(lives: Sequence[Life], clock: Clock, now: float, progress: Progress) -> None:
    """Play the past of all sites, in the order of time."""
    times = [
        (now - life.site.days * DAY * (1 - i / life.site.decisions) - 1, index)
        for index, life in enumerate(lives)
        for i in range(1, life.site.decisions + 1)
    ]
    for number, (time, index) in enumerate(sorted(times), 1):
        _report_due(lives, clock, time)
        clock.now = time
        lives[index].decide(time, QUICK if lives[index].site.clicks else PAST)
        progress(number, len(times))
    clock.now = now


def _report_due(lives: Sequence[Life], clock: Clock, until: float) -> None:
    """Report everything that is due by `until`."""
    while (soonest := min(lives, key=Life.next_due)).next_due() <= until:
        clock.now = max(clock.now, soonest.next_due())
        soonest.report()


def go_on(lives: Sequence[Life], store: Any, stop: threading.Event, now: Any, every: float = 1.0) -> None:
    """Decide about once in `every` seconds, and report what is due, until `stop` is set.

    `store` is a store or the client of a service; `now` is a function that returns the time.
    """
    for life in lives:
        life.problem = store.problem(life.site.name)
    random, shares = generator(0, 0, "demo goes on"), np.array([life.site.share for life in lives])
    while not stop.wait(every * random.uniform(0.5, 1.5)):
        lives[int(random.choice(len(lives), p=shares / shares.sum()))].decide(now(), PRESENT)
        for life in lives:
            while life.next_due() <= now() and not stop.is_set():
                life.report()
