"""`unfog serve --demo`: a store with a past that ends now, and a present that goes on.

The past is played through the verbs of a store on a clock of its own. The present goes through whatever has
the same verbs, such as the client of a service: a decision about once a second, its reward seconds later.
"""

import heapq
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unfog.lab.demo_sites import SITES, Site, World
from unfog.lab.run import Progress, quiet
from unfog.maths.random import generator
from unfog.validation import InputError

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0


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
