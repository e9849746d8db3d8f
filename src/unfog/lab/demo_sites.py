"""Four made-up places where decisions are made through noise, for `unfog serve --demo`.

clinic       20 patients with biased step counters, told as they are: `late`, with `naive` beside it
greenhouse   three sensors whose noise is three times what was told: the alarm is on
window       one more such sensor, with a bank of models that finds out what is wrong: `adaptive`
banner       a shop with rewards of 0 or 1, where no click within two minutes is none
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from unfog.lab import demo
from unfog.maths.arrays import Array
from unfog.maths.random import generator

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
