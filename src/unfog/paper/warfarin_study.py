"""A comparison of ways to dose the same patients: agents that treat noise differently, and fixed rules.

Each order of the patients is one trial. Its first patients are set apart: their pairs of noisy and recorded
contexts, without doses, calibrate the channel (paper/warfarin.py). All others come one by one; an agent gives
a dose and sees only the reward of that dose. Agents see the same patients in the same order with the same
errors, so that differences are paired, and have an intercept and slopes for each arm, the same learner and
chooser.

    naive      takes a noisy value for the true one, and the average for a missing one
    denoised   `gaps` of the catalogue: knows what is missing, and how the rest hangs together with it
    complete   naive, for patients who lack nothing; the others get the medium dose and teach it nothing
    medium     35 mg a week for everybody
    clinical, pharmacogenetic   the published algorithms, fed with the noisy contexts
    pharmacogenetic-denoised    the latter, fed with the means of the true contexts given the noisy ones
    line-naive, line-denoised, line-record   for every arm the line that fits the rewards of all patients
               best in hindsight, of contexts as `naive` or `denoised` has them, or of the record without
               errors: what is left to such agents when they have nothing more to learn

The published algorithms are the IWPC's. The square root of the weekly dose is a sum over what is known of a
patient (IWPC, *Estimation of the Warfarin Dose with Clinical and Pharmacogenetic Data*, supplementary
appendix): `CLINICAL` without genotypes and `PHARMACOGENETIC` with them. Both were fitted to four fifths of
the patients recorded here. So they are not competitors but an upper reference: what a line can do that was
fitted to the right doses of thousands of patients.

The algorithms have terms for an unknown genotype and an unknown race. Ages, heights and weights they must be
told: where these are missing, the averages of the record stand in for them. An expected number of alleles
need not be whole. Between whole numbers the terms of a gene are interpolated, so that the square root of the
dose is a mean over the genotypes that are possible. A patient has two alleles: pairs such as two *2 and one
*3 are met in interpolating alone, and get the sum of their terms.

Intervals are over orders: they say how sure a difference is for these patients, whoever comes first and
whatever the errors are. They do not say how much another hospital's patients would differ.

`log` has the doses that a cautious clinic would have logged. With probability `epsilon` the arm is drawn
evenly, else it is the one of the clinical algorithm, fed with the noisy context: every arm has at least
epsilon / K. With an epsilon of 1 the log is a randomised trial. As the right dose of every patient is known,
so is the value of any policy on the same patients: what an estimate from such a log can be held against.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from unfog import validation
from unfog.agents import round as rounds
from unfog.agents.catalogue import select_rows
from unfog.channel.knowledge import Knowledge
from unfog.evaluation.log import DecisionLog
from unfog.features.per_arm import PerArm
from unfog.features.registry import prior
from unfog.maths.arrays import Array, Ints, pick
from unfog.maths.random import RoundDraws, generator
from unfog.maths.statistics import estimate
from unfog.paper.warfarin import (
    ARMS,
    COORDINATES,
    MEDIUM,
    MOST,
    AssumedChannel,
    Errors,
    Patients,
    bucket,
    estimate_channel,
    mistakes,
    patients,
    rewards,
    stack_channels,
)
from unfog.validation import InputError, one_of, positive

FIXED = 35.0  # mg a week: what the paper compares with
AVERAGE = {"age": 6.0, "height": 168.0, "weight": 78.0}

D, K = len(COORDINATES), len(ARMS)
NAIVE = "naive-scaled-randucb"
DENOISED = "gaps:clip_sd=1000"  # an indicator of what is rare is many deviations away, and no outlier
VARIANCE = {"bucket": 0.2, "graded": 0.1}  # of rewards, as agents are told: about what a line leaves
INTERCEPT, SLOPE = 1.0, 0.01  # prior variances
RIDGE = 1e-6
# A placeholder channel for agents that take contexts at face value.
NOTHING = np.zeros(D), np.eye(D), np.eye(D), np.eye(D)
LAST = 1000  # the last patients, before whom an agent has learnt most of what it will
NO_ERRORS = Errors()


class Algorithm(NamedTuple):
    """Coefficients of the square root of the weekly dose in mg."""

    constant: float
    plain: dict[str, float]  # of numbers and indicators, per unit
    unknown_race: float
    vkorc1: tuple[float, float, float] = (0.0,) * 3  # of 0, 1 and 2 alleles A
    unknown_vkorc1: float = 0.0
    cyp2c9: tuple[tuple[float, float, float], ...] = ((0.0,) * 3,) * 3  # [alleles *2][alleles *3]
    unknown_cyp2c9: float = 0.0


CLINICAL = Algorithm(
    constant=4.0376,
    plain={
        "age": -0.2546,
        "height": 0.0118,
        "weight": 0.0134,
        "asian": -0.6752,
        "black": 0.4060,
        "inducer": 1.2799,
        "amiodarone": -0.5695,
    },
    unknown_race=0.0443,
)
PHARMACOGENETIC = Algorithm(
    constant=5.6044,
    plain={
        "age": -0.2614,
        "height": 0.0087,
        "weight": 0.0128,
        "asian": -0.1092,
        "black": -0.2760,
        "inducer": 1.1816,
        "amiodarone": -0.5503,
    },
    unknown_race=-0.1032,
    vkorc1=(0.0, -0.8677, -1.6974),
    unknown_vkorc1=-0.4854,
    cyp2c9=(
        (0.0, -0.9357, -2.3312),
        (-0.5211, -1.9206, -0.5211 - 2.3312),
        (-1.0616, -1.0616 - 0.9357, -1.0616 - 2.3312),
    ),
    unknown_cyp2c9=-0.2188,
)


def weekly_dose(algorithm: Algorithm, contexts: Array) -> Array:
    """The dose that an algorithm gives, in mg a week, for contexts (..., d) with gaps."""
    column = {name: contexts[..., i] for i, name in enumerate(COORDINATES)}
    root = np.full(contexts.shape[:-1], algorithm.constant)
    for name, weight in algorithm.plain.items():
        root += weight * np.nan_to_num(column[name], nan=AVERAGE.get(name, 0.0))
    root += np.where(np.isnan(column["asian"]), algorithm.unknown_race, 0.0)
    first = _allele_shares(column["vkorc1"]) @ np.array(algorithm.vkorc1)
    root += np.where(np.isnan(column["vkorc1"]), algorithm.unknown_vkorc1, first)
    two, three = (_allele_shares(column[name]) for name in ("cyp2c9_2", "cyp2c9_3"))
    second = np.vecdot(two @ np.array(algorithm.cyp2c9), three)
    unknown = np.isnan(column["cyp2c9_2"] + column["cyp2c9_3"])
    root += np.where(unknown, algorithm.unknown_cyp2c9, second)
    dose: Array = root**2
    return dose


def _allele_shares(alleles: Array) -> Array:
    """Weights (..., 3) of 0, 1 and 2 alleles that interpolate an expected number (...,)."""
    within = np.clip(np.nan_to_num(alleles), 0, MOST)
    return np.maximum(0.0, 1 - np.abs(within[..., None] - np.arange(MOST + 1)))


class Cohort(NamedTuple):
    """B orders of the n patients that are left after some were set apart for calibration."""

    record: Array  # (B, n, d)
    noisy: Array  # (B, n, d)
    dose: Array  # (B, n)
    paid: Array  # (B, n, K)
    assumed: AssumedChannel
    reward: str
    seed: int

    def face_value(self) -> Array:
        """Noisy contexts as naive agents see them: in deviations, zero where missing."""
        return np.nan_to_num(self.assumed.face_value.inside(self.noisy), nan=0.0)


def draw_cohort(
    patients: Patients, errors: Errors, *, orders: int, apart: int, reward: str, seed: int
) -> Cohort:
    """Draw the orders 0, 1, ... of a seed, each with its own errors."""
    remaining, channels = [], []
    for order in range(orders):
        rng = generator(seed, order, "warfarin")
        shuffled = patients.rows(rng.permutation(len(patients.dose)))
        noisy = errors.noisy(shuffled.contexts, rng)
        channels.append(estimate_channel(shuffled.contexts[:apart], noisy[:apart]))
        remaining.append((shuffled.contexts[apart:], noisy[apart:], shuffled.dose[apart:]))
    record, noisy, dose = (np.stack(part) for part in zip(*remaining, strict=True))
    return Cohort(record, noisy, dose, rewards(dose, reward), stack_channels(channels), reward, seed)


class Inputs(NamedTuple):
    """The contexts, rewards and channel that an agent is given."""

    contexts: Array  # (B, n, d)  not a number where they are missing
    paid: Array  # (B, n, K)  the agent sees only that of the arm it gave
    channel: tuple[Array, Array, Array, Array]  # the first four fields of `Knowledge`


def _play_agent(cohort: Cohort, name: str, inputs: Inputs) -> Ints:
    """Play an agent patient by patient; return its arms (B, n)."""
    [agent], features = select_rows([name]), PerArm(K, D)
    theta = prior(features, 0.0, np.array([INTERCEPT] + [SLOPE] * D))
    known = Knowledge(*inputs.channel, *theta, reward_var=np.asarray(VARIANCE[cohort.reward]))
    setup, memory = rounds.start(agent, known)
    orders, patients = inputs.contexts.shape[:2]
    draws = RoundDraws(cohort.seed, range(orders), "agent", agent.chooser.normals(known)).next(patients)
    arms = []
    for t in range(patients):

        def pay(arm: Ints, t: int = t) -> Array:
            return pick(inputs.paid[:, t], arm)

        observation = rounds.Observation(inputs.contexts[:, t], round=np.asarray(t))
        memory, decision = rounds.play(agent, setup, memory, features, observation, draws[:, t], pay)
        arms.append(decision.arm)
    return np.stack(arms, 1)


def _naive(cohort: Cohort) -> Ints:
    return _play_agent(cohort, NAIVE, Inputs(cohort.face_value(), cohort.paid, NOTHING))


def _denoise(cohort: Cohort) -> Ints:
    known = cohort.assumed
    channel = known.context_mean, known.context_cov, known.noise_cov, known.bias_cov
    return _play_agent(cohort, DENOISED, Inputs(known.noisy.inside(cohort.noisy), cohort.paid, channel))


def _complete(cohort: Cohort) -> Ints:
    """Play `naive` on the complete contexts, moved to the front of each order; arms after them are unused."""
    is_incomplete = np.isnan(cohort.noisy).any(-1)
    indices = np.argsort(is_incomplete, axis=1, kind="stable")[:, : (~is_incomplete).sum(1).max()]
    rows = np.arange(len(indices))[:, None]
    inputs = Inputs(cohort.face_value()[rows, indices], cohort.paid[rows, indices], NOTHING)
    arms = np.full(is_incomplete.shape, MEDIUM)
    np.put_along_axis(arms, indices, _play_agent(cohort, NAIVE, inputs), 1)
    return np.where(is_incomplete, MEDIUM, arms)


def _pharmacogenetic_denoised(cohort: Cohort) -> Ints:
    contexts = cohort.assumed.record.outside(cohort.assumed.denoised(cohort.noisy))
    return bucket(weekly_dose(PHARMACOGENETIC, contexts))


def _hindsight_arms(cohort: Cohort, contexts: Array) -> Ints:
    """The best arms by lines fitted to each arm's rewards in hindsight; contexts are (B, n, d)."""
    design = np.concat([np.ones((*contexts.shape[:-1], 1)), contexts], -1)
    gram = design.mT @ design + RIDGE * np.eye(D + 1)
    return np.argmax(design @ np.linalg.solve(gram, design.mT @ cohort.paid), -1)


def _hindsight_arms_of_record(cohort: Cohort) -> Ints:
    nothing = np.zeros_like(cohort.assumed.noise_cov)
    return _hindsight_arms(
        cohort, cohort.assumed.filled(cohort.assumed.record.inside(cohort.record), nothing)
    )


POLICIES: Mapping[str, Callable[[Cohort], Ints]] = {
    "naive": _naive,
    "denoised": _denoise,
    "complete": _complete,
    "medium": lambda cohort: bucket(np.full(cohort.dose.shape, FIXED)),
    "clinical": lambda cohort: bucket(weekly_dose(CLINICAL, cohort.noisy)),
    "pharmacogenetic": lambda cohort: bucket(weekly_dose(PHARMACOGENETIC, cohort.noisy)),
    "pharmacogenetic-denoised": _pharmacogenetic_denoised,
    "line-naive": lambda cohort: _hindsight_arms(cohort, cohort.face_value()),
    "line-denoised": lambda cohort: _hindsight_arms(cohort, cohort.assumed.denoised(cohort.noisy)),
    "line-record": _hindsight_arms_of_record,
}


class Outcome(NamedTuple):
    """The outcome of one way to dose, a number for each order (B,).

    >>> import numpy as np
    >>> from unfog.paper import warfarin, warfarin_study
    >>> rng = np.random.default_rng(0)
    >>> contexts = rng.normal(size=(600, len(warfarin.COORDINATES)))
    >>> people = warfarin.Patients(contexts, dose=rng.uniform(10, 70, 600))
    >>> found = warfarin_study.compare(people, policies=["naive"], orders=4, apart=200)["naive"]
    >>> found.wrong.shape, float(found.less(found).wrong.sum())
    ((4,), 0.0)
    """

    wrong: Array  # share of patients given another arm than their own
    severe: Array  # share given low for high, or high for low
    reward: Array  # mean
    wrong_late: Array  # share of `wrong` among the last patients

    def less(self, other: "Outcome") -> "Outcome":
        """The difference to another outcome, order by order."""
        return Outcome(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


def compare(
    patients: Patients,
    errors: Errors = NO_ERRORS,
    *,
    policies: Sequence[str] = tuple(POLICIES),
    orders: int = 50,
    apart: int = 1000,
    reward: str = "bucket",
    seed: int = 0,
) -> dict[str, Outcome]:
    """The outcome of each policy over random orders of these patients, `apart` of whom calibrate.

    >>> import numpy as np
    >>> from unfog.paper import warfarin, warfarin_study
    >>> rng = np.random.default_rng(0)
    >>> contexts = rng.normal(size=(600, len(warfarin.COORDINATES)))
    >>> people = warfarin.Patients(contexts, dose=rng.uniform(10, 70, 600))
    >>> found = warfarin_study.compare(people, policies=["naive", "denoised"], orders=4, apart=200)
    >>> sorted(found)
    ['denoised', 'naive']
    """
    validation.count("orders", orders, 2)
    validation.count("apart", apart, 10 * D)
    if apart >= len(patients.dose):
        raise InputError("apart", apart, f"fewer than the {len(patients.dose)} patients")
    for name in policies:
        one_of("policies", name, list(POLICIES))
    cohort = draw_cohort(patients, errors, orders=orders, apart=apart, reward=reward, seed=seed)
    return {name: outcome(cohort, POLICIES[name](cohort)) for name in policies}


def outcome(cohort: Cohort, arm: Ints) -> Outcome:
    """The outcome of giving these arms (B, n)."""
    wrong, severe = mistakes(cohort.dose, arm)
    late = wrong[:, -LAST:].mean(1)
    return Outcome(wrong.mean(1), severe.mean(1), pick(cohort.paid, arm).mean(1), late)


class Interval(NamedTuple):
    """A mean over orders, and half the width of its 95 % interval."""

    mean: float
    half: float

    def __str__(self) -> str:
        return f"{self.mean:.4f} ± {self.half:.4f}"


def interval(values: Array) -> Interval:
    """The 95 % interval of the mean of a number for each order (B,).

    >>> import numpy as np
    >>> from unfog.paper import warfarin_study
    >>> print(warfarin_study.interval(np.array([0.31, 0.29, 0.30, 0.32])))
    0.3050 ± 0.0127
    """
    estimated = estimate(values)
    return Interval(estimated.mean, estimated.half_width())


def log(
    people: Patients | None = None,
    errors: Errors | None = None,
    *,
    epsilon: float = 1.0,
    reward: str = "bucket",
    seed: int = 0,
) -> DecisionLog:
    """Patients, all unless told, in a random order, with one dose each; the true context is the record.

    >>> import numpy as np
    >>> from unfog.paper import warfarin, warfarin_study
    >>> rng = np.random.default_rng(0)
    >>> contexts = rng.normal(size=(600, len(warfarin.COORDINATES)))
    >>> people = warfarin.Patients(contexts, dose=rng.uniform(10, 70, 600))
    >>> found = warfarin_study.log(people, epsilon=0.2)
    >>> found.arms, found.noisy.shape
    (('low', 'medium', 'high'), (600, 11))
    """
    if positive("epsilon", epsilon) > 1:
        raise InputError("epsilon", epsilon, "a number greater than 0 and at most 1")
    rng, people = generator(seed, 0, "warfarin-log"), patients() if people is None else people
    people = people.rows(rng.permutation(len(people.dose)))
    noisy = (errors or Errors()).noisy(people.contexts, rng)
    arms = len(ARMS)
    clinical_arm = bucket(weekly_dose(CLINICAL, noisy))
    probabilities = epsilon / arms + (1 - epsilon) * (clinical_arm[:, None] == np.arange(arms))
    arm = np.where(
        rng.random(len(clinical_arm)) < epsilon, rng.integers(arms, size=len(clinical_arm)), clinical_arm
    )
    paid = pick(rewards(people.dose, reward), arm)
    return DecisionLog(
        coordinates=COORDINATES,
        arms=ARMS,
        noisy=noisy,
        arm=arm,
        reward=paid,
        probability=pick(probabilities, arm),
        probabilities=probabilities,
        true=people.contexts,
        source="warfarin, IWPC",
    )
