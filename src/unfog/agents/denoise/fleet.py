"""Denoise by what the readings of all units together say, with candidates for whose a unit's offset is."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from unfog import validation
from unfog.agents.base import (
    Corrects,
    Denoiser,
    HasCandidates,
    KnowsBias,
    Pooled,
    PoolsUnits,
    PredictsReading,
    Privilege,
    ScalesContexts,
    Spreads,
    TakesNoise,
)
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths.arrays import Array, diagonal_matrix
from unfog.validation import InputError

SPLITS = {
    "read": None,  # as read
    "device": 1.0,  # the whole offset is the device's
    "person": 0.0,
    "both": 0.5,
}
LITTLE = 1e-3  # of the offsets' variance, for whom a candidate does not blame
MOST_NOISE = 0.95  # of the variance within units
FEWEST = 5  # units from which the spread of offsets is estimated
ASSUMED = 0.2  # that spread before, as a part of the variance within units
# What is assumed counts as so many readings, units, units with truths.
WITHIN, SPREAD, DEVICES = 5.0, 3.0, 4.0
MOST_WEIGHT = 1e6  # of a pair, relative to one whose reading is as noisy as told
ROUNDING = 1e-9  # of a sum of weights
FIRST = 2.0  # readings for which the first guess of the spread counts: four times the noise


class Parameters(NamedTuple):
    """The noise, and what each candidate blames for an offset."""

    noise: Array  # (d,)  variance of one reading about the true context and the device's offset
    device: Array  # (J,)  the part of the offsets' variance that is the devices'; NaN: as read
    mean: Array  # (d,)  of true contexts; NaN where it is to be learnt, as in what follows, or says nothing
    within: Array  # (d,)  variance of true contexts within units
    persons: Array  # (d,)  variance of persons' offsets
    devices: Array  # (d,)  variance of devices' offsets
    reading: Array  # (..., d)  variance of the noise of the reading at hand
    excess: Array  # (..., d)  by how much that is more than told
    weight: Array  # (..., d)  what the reading counts for offsets; for the pool its square
    precision: Array  # (..., d)  of the reading less its truth, relative to the told one


class Pool(NamedTuple):
    """Sums over all units, of readings less `origin`, by their weights w; each (..., d)."""

    origin: Array  # the first reading; zero before
    number: Array  # readings, N: sum of w
    total: Array
    square: Array
    squares: Array  # sum of w^2
    excess: Array  # sum of w r, of noise r beyond what is told
    excesses: Array  # sum of w^2 r
    units: Array  # with a reading, U
    between: Array  # sum of n_u times the squared mean of the unit
    sizes: Array  # sum of n_u squared
    means: Array  # sum over units of sum w^2 / n_u: U, where all weights are 1
    mean_excess: Array  # sum over units of sum w^2 r / n_u
    lagged: Array  # sum of the lag-one products of residuals within units
    links: Array  # sum of the weights of these products
    paired: Array  # units with a reading and its true value
    offset: Array  # sum over these of the mean of reading less truth
    offset_square: Array
    offset_noise: Array  # sum over these of one over the number of pairs


class Readings(NamedTuple):
    """Sums over readings by their weights w; each (..., d)."""

    number: Array  # sum of w
    total: Array
    squares: Array  # sum of w^2
    excess: Array  # sum of w^2 r, of noise r beyond what is told

    def plus(self, value: Array, weight: Array, excess: Array, sign: int = 1) -> "Readings":
        """The sums with one reading more, or less."""
        square = sign * weight * weight
        return Readings(
            self.number + sign * weight,
            self.total + sign * weight * value,
            self.squares + square,
            self.excess + square * excess,
        )

    def variance(self, variance: Array) -> Array:
        """The variance of their mean, times their number, where a reading of weight 1 has this one."""
        return variance * _per_weight(self.squares, self.number) + _per_weight(self.excess, self.number)


class Own(NamedTuple):
    """Sums of one unit; each (..., d)."""

    readings: Readings  # by the weights of the pool
    alone: Readings  # whose true value is not known, by the weights of offsets
    last: Array
    last_weight: Array
    product: Array  # of neighbouring readings, by the root of their weights' product
    neighbours: Array  # likewise, the sum of both
    links: Array  # the sum of these roots
    truths: Array  # true values
    truth: Array  # their sum
    pairs: Array  # readings whose true value is known, by precision relative to that of the told noise
    error: Array  # likewise, sum of reading less truth


class Moments(NamedTuple):
    """The fleet, in units of readings; each (..., d)."""

    mean: Array  # of readings, less the origin
    within: Array  # variance of readings within units, W
    between: Array  # variance of units' offsets, B
    shift: Array  # mean of reading less truth
    device: Array  # the part of B that is the devices', as pairs have it
    paired: Array  # units with pairs


@dataclass(frozen=True, kw_only=True)
class Fleet(
    Denoiser, PoolsUnits, ScalesContexts, HasCandidates, Corrects, TakesNoise, KnowsBias, PredictsReading
):
    """Denoise, told how noisy one reading is, with everything else from the readings of all units.

    A unit is a person with a device. Coordinate by coordinate its readings are

        y = mean + p + e + b + n,   e ~ N(0, W - noise),   n ~ N(0, noise),   p + b ~ N(0, B)
        p: the offset of the person, part of the true context mean + p + e
        b: the offset of the device, part of the error
        W: the variance within units;   B: the variance of units' offsets

    Readings alone give the mean, the variance W within units and the variance B of units' offsets (analysis
    of variance), but not whose offset it is. Each candidate answers that in its own way, and has its own
    belief about the context:

    - `read`: the reading is taken for the context, and the mean where there is none;
    - `device`: the offset is the device's, and is subtracted;
    - `person`: it is the person's, and is kept;
    - `both`: each has half of the variance.

    True contexts tell: a truth informs of p, a reading less its truth of b. Where two units or more have
    pairs, the part that is the devices' is estimated from them, and the last three candidates move towards it
    as such units grow in number. The mean error of the devices is then known, too; contexts are given on the
    scale of readings, that is with this mean error, so that rounds from before are comparable.

    Contexts that persist look like offsets. With the lag-one correlation r of residuals within units, n
    readings count as n (1 - r) / (1 + r) in B, at least as one. With fewer than five units B is not estimated
    but assumed to be W / 5. Noise counts as 0.95 W at most. A coordinate with noise 0 is exact.

    A reading with a noise of its own is denoised with that. In the sums it has a weight: the told variance
    within units and the told noise, over that variance and its own noise; 3 noise stands for the first where
    it is to be learnt, since weights never change. In sums over all units it has the square of that, as suits
    variances. All moments allow for the weights and for noise that is not as told: their expectations are as
    without. What is known of a unit's offsets is exact given the weighted mean of its readings; nothing more
    can be known of them if the variance within units is told.

    S. R. Searle, G. Casella and C. E. McCulloch, *Variance Components*, for the moments; M. G. Kendall, *Note
    on Bias in the Estimation of Autocorrelation*, for short series.

    What is told of the mean of contexts, of their variance within units, and of the variances of persons' and
    devices' offsets takes the place of what readings say; it is learnt where it is not a number.

    Settings
    --------
    The `candidates`, of the four above.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Fleet(), unfog.learn.EmpiricalBayes(), unfog.choose.RandUcb()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=3, features="per_arm", prior_cov=9.0, units=8)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=200, trials=20, seed=0)
    >>> result.agent.values.tolist()
    ['mine', 'naive']
    """

    candidates: tuple[str, ...] = ("read", "device", "person", "both")

    name = "fleet"
    note = "learns means and spreads from the readings of all units; weighs whose offset it is"
    cost = 2.0
    takes_gaps = True

    def __post_init__(self) -> None:
        """Check the candidates."""
        if not self.candidates or len(set(self.candidates)) < len(self.candidates):
            raise InputError("candidates", repr(self.candidates), f"one or more of {', '.join(SPLITS)}")
        for one in self.candidates:
            validation.one_of("candidates", one, tuple(SPLITS))

    @property
    def needs_moments(self) -> bool:
        """Not: it learns what it is not told."""
        return False

    @property
    def interpreted(self) -> str:
        """Its pool of units has no place in compiled programs so far."""
        return "what its denoiser pools over units is computed by the NumPy engine alone"

    @property
    def sees_context(self) -> bool:
        """Always: it takes them whenever they come."""
        return True

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Parameters:
        """The noise, by coordinate."""
        xp = known.noise_cov.__array_namespace__()
        parts = [float("nan") if SPLITS[one] is None else SPLITS[one] for one in self.candidates]
        noise, devices, variance = (
            xp.linalg.diagonal(cov) for cov in (known.noise_cov, known.bias_cov, known.context_cov)
        )
        persons = noise * xp.nan if known.person_cov is None else xp.linalg.diagonal(known.person_cov)
        within = variance - persons
        # Of readings without devices' errors, exact ones among them, the mean says nothing of an error.
        most = ROUNDING * xp.where(xp.isnan(variance), noise, variance)
        mean = xp.where((noise == 0) | (devices <= most), xp.nan, known.context_mean)
        assumed = mean, xp.where(within > 0, within, xp.nan), persons, devices
        parameters = Parameters(noise, xp.asarray(parts, dtype=noise.dtype), *assumed, *[noise] * 4)
        return self.with_noise(parameters, known.noise_cov)

    def with_noise(self, parameters: Parameters, noise: Array) -> Parameters:
        """The variances of a reading with this noise."""
        xp = noise.__array_namespace__()
        reading = xp.linalg.diagonal(noise)
        return parameters._replace(
            reading=reading,
            excess=reading - parameters.noise,
            weight=_weight(parameters, reading),
            precision=_ratio(
                parameters.noise,
                reading.__array_namespace__().maximum(reading, parameters.noise / MOST_WEIGHT),
            ),
        )

    def start(self, parameters: Parameters) -> Pooled:
        """The sums before the first reading."""
        zero = parameters.noise * 0
        none = Readings(*[zero] * len(Readings._fields))
        pool = Pool(*[zero] * len(Pool._fields))
        return Pooled(pool, Own(none, none, zero, zero, zero, zero, zero, zero, zero, zero, zero))

    def predict(self, parameters: Parameters, state: Pooled, noisy: Array) -> Context:
        """The belief of each candidate, (..., J, d), on the scale of readings."""
        xp, (pool, own) = noisy.__array_namespace__(), state
        is_read, noise = ~xp.isnan(noisy), parameters.noise
        pool = _with_origin(pool, noisy)
        value = xp.where(is_read, noisy - pool.origin, 0.0)
        fleet = moments(parameters, pool)
        part = _device_part(parameters, fleet)  # (..., J, d)
        is_kept = xp.isnan(part)
        context_var, _ = _split_within(fleet, noise)
        reading_var = context_var + parameters.reading
        offsets = _offsets(parameters, fleet, own, part)
        mean, gain_var = (x[..., None, :] for x in (fleet.mean, context_var))
        total = offsets.pp + 2 * offsets.pb + offsets.bb + reading_var[..., None, :]
        gain = _ratio(offsets.pp + offsets.pb + gain_var, total)
        surprise = value[..., None, :] - mean - offsets.p - offsets.b
        read = is_read[..., None, :]
        centre = mean + offsets.p + xp.where(read, gain * surprise, 0.0)
        variance = offsets.pp + gain_var
        variance = xp.where(read, variance - gain * (offsets.pp + offsets.pb + gain_var), variance)
        exact = ((noise == 0) & (parameters.reading == 0))[..., None, :] & read
        plain = xp.where(read, value[..., None, :], mean)
        centre = xp.where(is_kept | exact, plain, centre)
        variance = xp.where(is_kept | exact, 0.0, xp.maximum(variance, 0.0))
        return Context(centre + pool.origin[..., None, :], diagonal_matrix(variance))

    def origin(self, parameters: Parameters, state: Pooled) -> Array:
        """The first reading, and zero before."""
        return state.pool.origin

    def mean_error(self, parameters: Parameters, state: Pooled) -> Array:
        """The mean over units."""
        pool = state.pool
        return _mean_error_of_all(parameters, pool, _ratio(pool.total, pool.number))

    def bias(self, parameters: Parameters, state: Pooled) -> tuple[Array, Array]:
        """The mean error of readings and the device's offset; with readings taken as they are, none."""
        xp, fleet = parameters.noise.__array_namespace__(), moments(parameters, state.pool)
        part = _device_part(parameters, fleet)
        offsets = _offsets(parameters, fleet, state.own, part)
        is_kept = xp.isnan(part)
        mean = fleet.shift[..., None, :] + xp.where(is_kept, 0.0, offsets.b)
        return mean, diagonal_matrix(xp.where(is_kept, 0.0, xp.maximum(offsets.bb, 0.0)))

    def predict_reading(self, parameters: Parameters, state: Pooled) -> tuple[Array, Array]:
        """The unit's next reading, whoever's its offset is; not a number before there are five readings.

        What is not known of the mean of all readings counts as far as the unit's own do not stand for it.
        """
        xp, (pool, own) = parameters.noise.__array_namespace__(), state
        fleet = moments(parameters, pool)
        offsets = _offsets(parameters, fleet, own, fleet.device[..., None, :])
        p, b, pp, pb, bb = (x[..., 0, :] for x in offsets)
        offset_var = xp.maximum(pp + 2 * pb + bb, 0.0)
        context_var, usual_var = _split_within(fleet, parameters.noise)
        mean_var = _ratio(fleet.between, pool.units) + _ratio(usual_var, pool.number)
        variance = context_var + parameters.reading + offset_var
        variance = variance + _ratio(offset_var, fleet.between) ** 2 * mean_var
        is_known = (pool.number >= FEWEST) & (variance > 0)
        mean = pool.origin + fleet.mean + p + b
        return xp.where(is_known, mean, xp.nan), xp.where(is_known, variance, xp.nan)

    def spreads(self, parameters: Parameters, state: Pooled) -> Spreads:
        """The moments of the fleet; a candidate that takes readings as read has no devices."""
        xp, pool, noise = parameters.noise.__array_namespace__(), state.pool, parameters.noise
        fleet = moments(parameters, pool)
        part = _device_part(parameters, fleet)
        is_device = ~xp.isnan(part) & (noise > 0)
        return Spreads(
            mean=pool.origin + fleet.mean - fleet.shift,
            within=_split_within(fleet, noise)[0],
            between=fleet.between,
            devices=xp.where(is_device, part, 0.0) * fleet.between[..., None, :],
            bias=fleet.shift,
            noise=noise,
            is_cut=noise > MOST_NOISE * fleet.within,
            readings=pool.number,
            revealed=pool.paired,
        )

    def update(self, parameters: Parameters, state: Pooled, noisy: Array, context: Any) -> Pooled:
        """The sums with one more reading."""
        xp, pool = noisy.__array_namespace__(), _with_origin(state.pool, noisy)
        own, is_read = state.own, ~xp.isnan(noisy)
        value, weight = xp.where(is_read, noisy - pool.origin, 0.0), is_read * parameters.weight**2
        excess, square = parameters.excess, weight * weight
        before, after = own.readings, own.readings.plus(value, weight, excess)
        is_first, link = is_read & (before.number == 0), xp.sqrt(weight * own.last_weight)
        unit = own._replace(
            readings=after,
            alone=own.alone.plus(value, is_read * parameters.weight, excess),
            last=xp.where(is_read, value, own.last),
            last_weight=xp.where(is_read, weight, own.last_weight),
            product=own.product + link * value * own.last,
            neighbours=own.neighbours + link * (value + own.last),
            links=own.links + link,
        )
        pool = pool._replace(
            number=pool.number + weight,
            total=pool.total + weight * value,
            square=pool.square + weight * value * value,
            squares=pool.squares + square,
            excess=pool.excess + weight * excess,
            excesses=pool.excesses + square * excess,
            units=pool.units + is_first.astype(noisy.dtype),
            between=pool.between + (_by_number(after, after.total**2) - _by_number(before, before.total**2)),
            sizes=pool.sizes + (after.number**2 - before.number**2),
            means=pool.means + (_by_number(after, after.squares) - _by_number(before, before.squares)),
            mean_excess=pool.mean_excess
            + (_by_number(after, after.excess) - _by_number(before, before.excess)),
            lagged=pool.lagged + (_lagged(unit) - _lagged(own)),
            links=pool.links + link,
        )
        state = Pooled(pool, unit)
        return (
            state if context is None else self.correct(parameters, state, noisy, noisy * xp.nan, context)[0]
        )

    def correct(
        self, parameters: Parameters, state: Pooled, noisy: Array, before: Array, after: Array
    ) -> tuple[Pooled, Context]:
        """The sums with what is newly known of a true context, and what is known of it now."""
        xp, (pool, own) = noisy.__array_namespace__(), state
        is_new = xp.isnan(before) & ~xp.isnan(after) & (pool.number > 0) & (parameters.noise > 0)
        is_pair = is_new & ~xp.isnan(noisy)
        value, precision = xp.where(is_pair, noisy - pool.origin, 0.0), is_pair * parameters.precision
        new = own._replace(
            truths=own.truths + is_new,
            truth=own.truth + xp.where(is_new, after - pool.origin, 0.0),
            alone=own.alone.plus(value, is_pair * parameters.weight, parameters.excess, sign=-1),
            pairs=own.pairs + precision,
            error=own.error + xp.where(is_pair, precision * (noisy - after), 0.0),
        )
        pool = pool._replace(
            paired=pool.paired + (is_pair & (own.pairs == 0)),
            offset=pool.offset + (_mean_error(new) - _mean_error(own)),
            offset_square=pool.offset_square + (_mean_error(new) ** 2 - _mean_error(own) ** 2),
            offset_noise=pool.offset_noise + (_ratio(1.0, new.pairs) - _ratio(1.0, own.pairs)),
        )
        state = Pooled(pool, new)
        believed = self.predict(parameters, state, noisy)
        is_known = ~xp.isnan(after)[..., None, :]
        shift = moments(parameters, pool).shift
        mean = xp.where(is_known, (after + shift)[..., None, :], believed.mean)
        return state, Context(mean, xp.where(is_known[..., None], 0.0, believed.cov))


class _Offsets(NamedTuple):
    """The belief about the person's offset p and the device's b: means, variances, covariance."""

    p: Array
    b: Array
    pp: Array
    pb: Array
    bb: Array


def moments(parameters: Parameters, pool: Pool) -> Moments:
    """What the sums say of the fleet, and what is told of it."""
    xp, noise = pool.number.__array_namespace__(), parameters.noise
    number, units = pool.number, pool.units
    mean = _per_weight(pool.total, number)
    squares, excess = _per_weight(pool.squares, number), _per_weight(pool.excesses, number)
    about = xp.maximum(pool.square - number * mean**2 - (pool.excess - excess), 0.0)
    spread = (about + FIRST * 4 * noise) / (xp.maximum(number - squares, 0.0) + FIRST)
    within = xp.maximum(pool.square - pool.between - (pool.excess - pool.mean_excess), 0.0)
    free = xp.maximum(number - pool.means, 0.0)
    within_var = _prefer_known(parameters.within + noise, (within + WITHIN * spread) / (free + WITHIN))
    inflation = _inflation(pool, within, free)
    by_chance = xp.maximum(pool.means - squares, 0.0) * within_var * inflation + (pool.mean_excess - excess)
    apart = pool.between - number * mean**2 - by_chance
    estimate = xp.maximum(_ratio(apart, number - _per_weight(pool.sizes, number)), 0.0)
    is_estimated = (units >= FEWEST) & (number > 2 * units)
    raw = xp.where(is_estimated, estimate, ASSUMED * within_var)
    between = (xp.maximum(raw, 1e-6 * within_var) * units + ASSUMED * within_var * SPREAD) / (units + SPREAD)
    between = _prefer_known(parameters.persons + parameters.devices, between)
    error = _mean_error_of_all(parameters, pool, mean)
    # Devices whose spread is known are right on average: readings then have the mean of contexts.
    is_known = ~xp.isnan(parameters.devices)
    mean = xp.where(is_known, _prefer_known(parameters.mean - pool.origin + error, mean), mean)
    return Moments(mean, within_var, between, error, *_split(parameters, pool, between))


def _mean_error_of_all(parameters: Parameters, pool: Pool, mean: Array) -> Array:
    """The mean of readings less truth over units, and one more without an error.

    From pairs; without any, from the mean of readings, where that of contexts is known and the spread of
    devices is not.
    """
    xp = mean.__array_namespace__()
    apart = (mean + pool.origin - parameters.mean) * pool.units / (pool.units + 1.0)
    without = xp.where(xp.isnan(parameters.mean) | ~xp.isnan(parameters.devices), 0.0, apart)
    return xp.where(pool.paired > 0, pool.offset / (pool.paired + 1.0), without)


def _split(parameters: Parameters, pool: Pool, between: Array) -> tuple[Array, Array]:
    """The devices' part of the offsets' variance, and how many units it rests on: all there are, if told."""
    xp, noise, paired = between.__array_namespace__(), parameters.noise, pool.paired
    mean = _mean(pool.offset, paired)
    variance = _mean(pool.offset_square - paired * mean**2, paired - 1)
    devices = xp.maximum(variance - noise * _mean(pool.offset_noise, paired), 0.0)
    part = xp.where(paired > 1, xp.minimum(_ratio(devices, between), 1.0), 0.5)
    by_persons = 1 - xp.minimum(_ratio(parameters.persons, between), 1.0)
    known = _prefer_known(xp.minimum(_ratio(parameters.devices, between), 1.0), by_persons)
    is_known = ~xp.isnan(known)
    return _prefer_known(known, part), xp.where(is_known, xp.inf, xp.where(paired > 1, paired, 0.0))


def _prefer_known(known: Array, learnt: Array) -> Array:
    """What is told, and what is learnt where nothing is."""
    xp = learnt.__array_namespace__()
    return xp.where(xp.isnan(known), learnt, known)


def _inflation(pool: Pool, within: Array, free: Array) -> Array:
    """By how much persistence inflates the variance of a unit's mean: (1 + r) / (1 - r), at least 1."""
    xp = pool.number.__array_namespace__()
    size = _mean(pool.number, pool.units)
    raw = _ratio(pool.lagged * _ratio(free, pool.links), within)
    # The mean of the estimate for a series of n readings is about r - (1 + 4 r) / n.
    corrected = (raw + _ratio(1.0, size)) / xp.maximum(1 - 4 * _ratio(1.0, size), 0.2)
    correlation = xp.where(size >= FEWEST, xp.clip(corrected, 0.0, 0.99), 0.0)
    return xp.minimum((1 + correlation) / (1 - correlation), xp.maximum(size, 1.0))


def _device_part(parameters: Parameters, fleet: Moments) -> Array:
    """The devices' part of the offsets' variance, as each candidate has it, (..., J, d); NaN: as read."""
    weight = (1 - DEVICES / (fleet.paired + DEVICES))[..., None, :]
    return (1 - weight) * parameters.device[:, None] + weight * fleet.device[..., None, :]


def _share(part: Array) -> Array:
    """The part, and a little where it is nothing; anything where the reading is taken as it is."""
    xp = part.__array_namespace__()
    return xp.maximum(xp.where(xp.isnan(part), 0.5, part), LITTLE)


def _split_within(fleet: Moments, noise: Array) -> tuple[Array, Array]:
    """The variance within units of contexts, and of readings."""
    xp = noise.__array_namespace__()
    context_var = fleet.within - xp.minimum(noise, MOST_NOISE * fleet.within)
    return context_var, context_var + noise


def _offsets(parameters: Parameters, fleet: Moments, own: Own, part: Array) -> _Offsets:
    """The belief about a unit's two offsets, from its readings, its truths and its pairs, (..., J, d).

    `part` is the devices' part of the variance before, as each candidate has it.
    """
    xp, noise = parameters.noise.__array_namespace__(), parameters.noise
    prior_p, prior_b = (x * fleet.between[..., None, :] for x in (_share(1 - part), _share(part)))
    prior_p = xp.where(noise > 0, prior_p, fleet.between[..., None, :])  # exact: it is the person's
    prior_b = xp.where(noise > 0, prior_b, 0.0)
    context_var, reading_var = _split_within(fleet, noise)
    variance = xp.where(own.alone.number > ROUNDING, own.alone.variance(reading_var), 0.0)
    by_reading = _ratio(own.alone.number, variance)
    by_sum = _ratio(own.alone.total - own.alone.number * fleet.mean, variance)
    person = _ratio(own.truths, context_var)
    person_sum = _ratio(own.truth + own.truths * (fleet.shift - fleet.mean), context_var)
    device = _ratio(own.pairs, noise)
    device_sum = _ratio(own.error - own.pairs * fleet.shift, noise)
    # (p, b) ~ N((sums), information): solved as variances, so that a prior of zero is exact.
    aa, bb = (by_reading + person)[..., None, :], (by_reading + device)[..., None, :]
    ab = by_reading[..., None, :]
    first, second = (by_sum + person_sum)[..., None, :], (by_sum + device_sum)[..., None, :]
    # posterior covariance = (P^-1 + I)^-1 with P = diag(prior_p, prior_b): P (1 + I P)^-1.
    determinant = (1 + aa * prior_p) * (1 + bb * prior_b) - ab * ab * prior_p * prior_b
    var_p = prior_p * (1 + bb * prior_b) / determinant
    var_b = prior_b * (1 + aa * prior_p) / determinant
    cov = -prior_p * prior_b * ab / determinant
    return _Offsets(var_p * first + cov * second, cov * first + var_b * second, var_p, cov, var_b)


def _with_origin(pool: Pool, noisy: Array) -> Pool:
    xp = noisy.__array_namespace__()
    is_first = (pool.number == 0) & ~xp.isnan(noisy)
    return pool._replace(origin=xp.where(is_first, noisy, pool.origin))


def _weight(parameters: Parameters, reading: Array) -> Array:
    """What a reading counts, relative to one that is as noisy as told; always the same for the same noise."""
    xp, noise = reading.__array_namespace__(), parameters.noise
    context_var = _prefer_known(parameters.within, xp.where(noise > 0, 3 * noise, reading))
    usual, variance = context_var + noise, context_var + reading
    weight: Array = xp.where(usual == variance, 1.0, _ratio(usual, variance))
    return weight


def _by_number(readings: Readings, total: Array) -> Array:
    """A sum of one unit over the number of its readings."""
    return _per_weight(total, readings.number)


def _lagged(own: Own) -> Array:
    """The sum of products of neighbouring residuals about the unit's mean, by their weights."""
    mean = _per_weight(own.readings.total, own.readings.number)
    return own.product - mean * own.neighbours + own.links * mean**2


def _mean_error(own: Own) -> Array:
    return _per_weight(own.error, own.pairs)


def _mean(total: Array, number: Array) -> Array:
    """The mean of so many, and zero of none."""
    mean: Array = total / number.__array_namespace__().maximum(number, 1.0)
    return mean


def _per_weight(total: Array, number: Array) -> Array:
    """A sum over so much; both are zero where there is nothing."""
    share: Array = total / number.__array_namespace__().where(number == 0, 1.0, number)
    return share


def _ratio(above: Any, below: Any) -> Array:
    """The quotient, and zero where the divisor is."""
    xp = below.__array_namespace__()
    is_zero = below == 0
    quotient: Array = xp.where(is_zero, 0.0, above / xp.where(is_zero, 1.0, below))
    return quotient
