"""From a study of a sensor to a world of the lab: `unfog.calibrate(...)` and `found.problem(...)`.

The estimators are in channel/studies.py, which knows no worlds. Their complete results are used here:

    c ~ N(mu_c, Sigma_c),    reading = c + bias + gamma + n,    gamma ~ N(0, Sigma_gamma),  n ~ N(0, Sigma_n),

with the known bias included, so that nobody has to remember it (`Synthetic.bias`). Contexts are standardised,
z = (c - mu_c) / sd, as in a live problem (channel/channel.py): with contexts in steps a day, a slope drawn
with variance 1 would make rewards of thousands. This module is among the worlds, and not with the estimators,
because imports point one way.
"""

from collections.abc import Sequence
from typing import Any, TypeVar, overload

import numpy.typing as npt

from unfog import validation
from unfog.channel.calibration import Calibration
from unfog.channel.channel import Units, keep_units, standard
from unfog.channel.fit_dynamics import check_periods
from unfog.channel.studies import Asked, study
from unfog.maths.arrays import Array
from unfog.validation import InputError, Numbers, check_keywords, display
from unfog.worlds.composed import LAWS
from unfog.worlds.synthetic import GaussianProblem, Synthetic

World = TypeVar("World", bound=Synthetic)


@check_keywords
class Calibrated(Calibration):
    """What a study says of a channel, and the world that it describes."""

    @property
    def units(self) -> Units:
        """Between the sensor's units and the standard ones of `problem` and of a live problem."""
        return standard(self.channel)

    @overload
    def problem(self, *, standardise: bool = True, **fields: Any) -> GaussianProblem: ...
    @overload
    def problem(self, world: type[World], *, standardise: bool = True, **fields: Any) -> World: ...
    def problem(
        self, world: type[Synthetic] = GaussianProblem, *, standardise: bool = True, **fields: Any
    ) -> Synthetic:
        """A world for the lab, whose contexts, noise and biases are those found here.

        `fields` are the others of `world`: actions, features, prior_cov, ... `unfog.LogisticProblem` is for
        rewards of 0 and 1. Contexts and errors are drawn one by one: constants of time are left out.

        Contexts are in standard units, deviations from their mean, as in a live problem: so a prior of theta
        says the same whatever the sensor counts in. `found.units.outside(context)` has them in the sensor's.
        With `standardise=False` the world is in the sensor's units, and its priors must be, too.
        """
        if not (isinstance(world, type) and issubclass(world, Synthetic)):
            raise InputError("world", display(world), "unfog.GaussianProblem or unfog.LogisticProblem")
        units = self.units if validation.flag("standardise", standardise) else keep_units(self.channel)
        laws: dict[str, Any] = {name: units.noise(getattr(self, name)) for name in LAWS[1:]}
        laws |= {LAWS[0]: units.inside(self.context_mean), "bias": self.bias / units.scale}
        twice = sorted(fields.keys() & {*laws, "dim"})
        if twice:
            allowed = f"fields that the study does not tell; for another {twice[0]} found._replace(...)"
            raise InputError(twice[0], "is given", allowed)
        return world(dim=len(self.bias), **laws, **fields)


@check_keywords
def calibrate(
    noisy: npt.ArrayLike,
    true: npt.ArrayLike | None = None,
    *,
    design: str | None = None,
    groups: npt.ArrayLike | None = None,
    times: npt.ArrayLike | None = None,
    cycles: Sequence[float] | Array = (),
    replicates: npt.ArrayLike | None = None,
    noise_cov: Numbers | None = None,
    noise_df: float | None = None,
    noise_error: Numbers | None = None,
    bias: Numbers | None = None,
    bias_cov: Numbers | None = None,
) -> Calibrated:
    """What a study of a sensor says of it: noise, bias, and how contexts spread, with standard errors.

    Four designs. Which it is follows from what is given, but for a subset, which must be named:

    - pairs, `calibrate(noisy, true)`: a reading and the truth beside it, (n, d) each. `groups` are labels of
      devices or weeks with biases of their own, `times` and `cycles` ask for constants of time.
    - replicates, `calibrate(readings)` of shape (n, r, d), or (rows, d) with `replicates`, the label of
      whose context a row is: two readings or more of the same context, no truth. The bias cannot be seen:
      `bias` and, for how well it is known, `bias_cov` may be told.
    - subset, `calibrate(noisy, true, design="subset")`: the truth for some, NaN elsewhere.
    - external, `calibrate(noisy, noise_cov=..., noise_df=..., bias_cov=...)`: the noise from elsewhere, its
      degrees of freedom or the standard errors `noise_error` (0: known exactly), `bias` and `bias_cov`.

    Covariances are a number (times I), a list (the diagonal) or a matrix. `found.design` says in words what
    was assumed and what cannot be known; `found.channel` is for a live problem, `found.problem(...)` for the
    lab. The estimators: unfog.channel.calibration and unfog.channel.studies.

    >>> import numpy as np
    >>> import unfog
    >>> rng = np.random.default_rng(0)
    >>> true = rng.normal([7000, 7], [2000, 1], (300, 2))
    >>> seen = true + [-800, 0.2] + rng.normal(0, [1200, 0.4], (300, 2))
    >>> found = unfog.calibrate(seen, true)
    >>> found.design
    Design(name='pairs', used='300 pairs', notes=())
    >>> np.round(found.channel.bias, 1).tolist()  # how far readings are off on average
    [-863.8, 0.2]
    """
    periods = check_periods(cycles) or None  # None is accepted by every design
    options = Asked(groups, times, periods, replicates, noise_cov, noise_df, noise_error, bias, bias_cov)
    return Calibrated(*study(noisy, true, design, options))
