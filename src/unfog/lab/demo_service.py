"""A store with a past that ends now and a present that goes on, for `unfog serve --demo`.

Decisions are made through noise at four made-up places:

    clinic       20 patients with biased step counters, told as they are: `late`, with `naive` beside it
    greenhouse   three sensors whose noise is three times what was told: the alarm is on
    window       one more such sensor, with a bank of models that finds out what is wrong: `adaptive`
    banner       a shop with rewards of 0 or 1, where no click within two minutes is none

The past is played through the verbs of a store on a clock of its own. The present goes through whatever has
the same verbs, such as the client of a service: a decision about once a second, its reward seconds later.
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

WRONG = 3.0  # times the noise that was told


@dataclass(frozen=True)
class Site:
    """What is true of a place, and what is told of it."""

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
    told_noise: float = 1.0  # the share of the noise that is told
    decisions: int = 400  # of the past
    days: float = 3.0
    lost: float = 0.0  # the share of readings whose last coordinate is lost
    revealed: float = 0.0  # the share whose first coordinate is known in the end
    share: float = 0.2  # of what happens from now on

    @property
    def clicks(self) -> bool:
        """Whether rewards are 0 or 1."""
        return self.terms.get("rewards") == "bernoulli"

    def told(self) -> dict[str, Any]:
        """The terms of its problem."""
        channel = {
            "context_mean": list(self.mean),
            "context_cov": [x**2 for x in self.spread],
            "noise_cov": [(self.told_noise * x) ** 2 for x in self.noise],
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
    terms={"agent": demo.AGENT, "floor": demo.FLOOR, "wait": demo.WAIT, "reveal_within": "2d"},
    shadow=demo.RIVAL,
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
    terms={"floor": 0.1, "wait": "30m"},
    told_noise=1 / WRONG,
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
    terms={"rewards": "bernoulli", "floor": 0.1, "wait": "2m", "default_reward": 0.0},
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
    """What happens at a site: a seed decides it."""

    def __init__(self, site: Site, seed: int) -> None:
        """Sensors get their biases."""
        self.site, self.random = site, generator(seed, 0, f"demo of {site.name}")
        self.biases = np.array(site.bias) * self.random.standard_normal((site.units, len(site.bias)))

    def visit(self) -> Visit:
        """The next one."""
        site, which = self.site, int(self.random.integers(self.site.units))
        deviations, noise = self.random.standard_normal((2, len(site.context)))
        true = np.array(site.mean) + np.array(site.spread) * deviations
        noisy = true + self.biases[which] + np.array(site.noise) * noise
        context: dict[str, float | None] = dict(zip(site.context, noisy.tolist(), strict=True))
        if self.random.random() < site.lost:
            context[site.context[-1]] = None
        theta = np.array(site.theta)
        return Visit(
            f"{site.unit}-{which + 1:02d}", context, float(true[0]), theta[:, 0] + theta[:, 1:] @ deviations
        )

    def paid(self, worth: float) -> float | None:
        """What it earns; None: nothing is ever heard of it."""
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

    problem: Any  # of a store, or of whatever has its verbs

    def __init__(self, site: Site, seed: int) -> None:
        """Nothing has happened."""
        self.site, self.world = site, World(site, seed)
        self._due: list[tuple[float, int, str, str, Any]] = []  # when, which, what, of which decision
        self._planned = 0

    def decide(self, now: float, pace: Pace) -> None:
        """Somebody comes, and something is decided."""
        site, visit = self.site, self.world.visit()
        made = self.problem.decide(visit.context, unit=visit.unit)
        paid = self.world.paid(float(visit.worth[site.arms.index(made.arm)]))
        if paid is not None:
            self._plan(now + pace.reward * self.world.random.exponential(), "reward", made.id, paid)
        if self.world.random.random() < site.revealed:
            self._plan(now + pace.reveal, "reveal", made.id, {site.context[0]: visit.true})

    def _plan(self, when: float, what: str, decision: str, value: Any) -> None:
        self._planned += 1
        heapq.heappush(self._due, (when, self._planned, what, decision, value))

    def next_due(self) -> float:
        """When something is reported next."""
        return self._due[0][0] if self._due else np.inf

    def report(self) -> None:
        """What is due next."""
        _, _, what, decision, value = heapq.heappop(self._due)
        if what == "reward":
            self.problem.reward(decision, value)
        else:
            self.problem.reveal(decision, value)


class Clock:
    """Of the past."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        """What time it is."""
        return self.now


def filled(path: Path, now: float, *, seed: int = 0, progress: Progress = quiet) -> list[Life]:
    """A new store whose past ends at this time; what happens at its sites next."""
    if path.exists():
        raise InputError("store", f"{path} is there already", "a new file, for a demo")
    from unfog import live

    clock = Clock(now - max(site.days for site in SITES) * DAY)
    lives = [Life(site, seed) for site in SITES]
    with live.open(path, sync="normal", clock=clock) as store:
        for number, life in enumerate(lives):
            life.problem = store.problem(life.site.name, seed=seed + number, **life.site.told())
            if life.site.shadow is not None:
                life.problem.shadow(life.site.shadow)
        with store.together():
            _play(lives, clock, now, progress)
    return lives


def _play(lives: Sequence[Life], clock: Clock, now: float, progress: Progress) -> None:
    """The past of all sites, in the order of time."""
    times = [
        (now - life.site.days * DAY * (1 - i / life.site.decisions) - 1, place)
        for place, life in enumerate(lives)
        for i in range(1, life.site.decisions + 1)
    ]
    for number, (time, place) in enumerate(sorted(times), 1):
        _reported(lives, clock, time)
        clock.now = time
        lives[place].decide(time, QUICK if lives[place].site.clicks else PAST)
        progress(number, len(times))
    clock.now = now


def _reported(lives: Sequence[Life], clock: Clock, until: float) -> None:
    """What is due until then."""
    while (soonest := min(lives, key=Life.next_due)).next_due() <= until:
        clock.now = max(clock.now, soonest.next_due())
        soonest.report()


def go_on(lives: Sequence[Life], place: Any, stop: threading.Event, now: Any, every: float = 1.0) -> None:
    """Decide and report from now on, about `every` so many seconds, until told to stop; `now` says the time.

    `place` has problems by their names, as a store and the client of a service have.
    """
    for life in lives:
        life.problem = place.problem(life.site.name)
    random, shares = generator(0, 0, "demo goes on"), np.array([life.site.share for life in lives])
    while not stop.wait(every * random.uniform(0.5, 1.5)):
        lives[int(random.choice(len(lives), p=shares / shares.sum()))].decide(now(), PRESENT)
        for life in lives:
            while life.next_due() <= now() and not stop.is_set():
                life.report()
