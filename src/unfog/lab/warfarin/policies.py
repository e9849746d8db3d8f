"""Ways to dose the same patients: agents that differ in what they make of noisy contexts, and fixed rules.

Each order of the patients is one trial. Its first patients are set apart: pairs of noisy and recorded
contexts, without doses, tell of the channel (told.py). All others come one by one; an agent gives a dose and
is shown the reward of that dose alone. Agents see the same patients in the same order with the same errors,
so that differences are paired, and have an intercept and slopes for each arm, the same learner and chooser.

    naive      takes a noisy value for the true one, and the average for a missing one
    denoised   `gaps` of the catalogue: knows what is missing, and how the rest hangs together with it
    complete   naive, for patients who lack nothing; the others get the medium dose and teach it nothing
    medium     35 mg a week for everybody
    clinical, pharmacogenetic   the published algorithms (rules.py), fed with the noisy contexts
    pharmacogenetic-denoised    the latter, fed with the means of the true contexts given the noisy ones
    line-naive, line-denoised, line-record   for every arm the line that fits the rewards of all patients
               best in hindsight, of contexts as `naive` or `denoised` has them, or of the record without
               errors: what is left to such agents when they have nothing more to learn
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from unfog.agents import round as rounds
from unfog.agents.catalogue import named
from unfog.channel.knowledge import Knowledge
from unfog.features.per_arm import PerArm
from unfog.features.registry import prior
from unfog.lab.warfarin import doses, rules
from unfog.lab.warfarin.errors import Errors
from unfog.lab.warfarin.record import COORDINATES, Patients
from unfog.lab.warfarin.told import Told, stacked, told
from unfog.maths.arrays import Array, Ints, pick
from unfog.maths.random import RoundDraws, generator

D, K = len(COORDINATES), len(doses.ARMS)
NAIVE = "naive-scaled-randucb"
DENOISED = "gaps:limit=1000"  # an indicator of what is rare is many deviations away, and no outlier
VARIANCE = {"bucket": 0.2, "graded": 0.1}  # of rewards, as agents are told: about what a line leaves
INTERCEPT, SLOPE = 1.0, 0.01  # prior variances
RIDGE = 1e-6


class Scene(NamedTuple):
    """Some orders of the patients side by side, those set apart taken away: B orders, n patients."""

    record: Array  # (B, n, d)
    noisy: Array  # (B, n, d)
    dose: Array  # (B, n)
    paid: Array  # (B, n, K)
    told: Told
    reward: str
    seed: int

    def face_value(self) -> Array:
        """Noisy contexts as the naive see them: in deviations, zero where they are missing."""
        return np.nan_to_num(self.told.face_value.inside(self.noisy), nan=0.0)


def scene(patients: Patients, errors: Errors, *, orders: int, apart: int, reward: str, seed: int) -> Scene:
    """The orders 0, 1, ... of a seed; errors are drawn anew for each."""
    found, channels = [], []
    for order in range(orders):
        source = generator(seed, order, "warfarin")
        shuffled = patients.rows(source.permutation(len(patients.dose)))
        noisy = errors.noisy(shuffled.contexts, source)
        channels.append(told(shuffled.contexts[:apart], noisy[:apart]))
        found.append((shuffled.contexts[apart:], noisy[apart:], shuffled.dose[apart:]))
    record, noisy, dose = (np.stack(part) for part in zip(*found, strict=True))
    return Scene(record, noisy, dose, doses.rewards(dose, reward), stacked(channels), reward, seed)


class Shown(NamedTuple):
    """What an agent meets."""

    contexts: Array  # (B, n, d)  not a number where they are missing
    paid: Array  # (B, n, K)  of which it is shown the arm's that it gave
    channel: tuple[Array, Array, Array, Array]  # the first four fields of `Knowledge`


def _dosed(scene: Scene, name: str, shown: Shown) -> Ints:
    """The arms (B, n) that an agent gives, patient after patient."""
    [agent], features = named([name]), PerArm(K, D)
    theta = prior(features, 0.0, np.array([INTERCEPT] + [SLOPE] * D))
    known = Knowledge(*shown.channel, *theta, reward_var=np.asarray(VARIANCE[scene.reward]))
    setup, memory = rounds.begin(agent, known)
    orders, patients = shown.contexts.shape[:2]
    draws = RoundDraws(scene.seed, range(orders), "agent", agent.chooser.normals(known)).next(patients)
    arms = []
    for t in range(patients):

        def pay(arm: Ints, t: int = t) -> Array:
            return pick(shown.paid[:, t], arm)

        offer = rounds.Offer(shown.contexts[:, t], time=np.asarray(t))
        memory, decision = rounds.play(agent, setup, memory, features, offer, draws[:, t], pay)
        arms.append(decision.arm)
    return np.stack(arms, 1)


# One who takes contexts at face value is told of no channel; something must stand there.
NOTHING = np.zeros(D), np.eye(D), np.eye(D), np.eye(D)


def _naive(scene: Scene) -> Ints:
    return _dosed(scene, NAIVE, Shown(scene.face_value(), scene.paid, NOTHING))


def _denoised(scene: Scene) -> Ints:
    known = scene.told
    channel = known.context_mean, known.context_cov, known.noise_cov, known.bias_cov
    return _dosed(scene, DENOISED, Shown(known.noisy.inside(scene.noisy), scene.paid, channel))


def _complete(scene: Scene) -> Ints:
    """In each order those who lack nothing move up; orders have not equally many, and ends go unused."""
    lacks = np.isnan(scene.noisy).any(-1)
    places = np.argsort(lacks, axis=1, kind="stable")[:, : (~lacks).sum(1).max()]
    rows = np.arange(len(places))[:, None]
    shown = Shown(scene.face_value()[rows, places], scene.paid[rows, places], NOTHING)
    arms = np.full(lacks.shape, doses.MEDIUM)
    np.put_along_axis(arms, places, _dosed(scene, NAIVE, shown), 1)
    return np.where(lacks, doses.MEDIUM, arms)


def _pharmacogenetic_denoised(scene: Scene) -> Ints:
    contexts = scene.told.record.outside(scene.told.denoised(scene.noisy))
    return doses.bucket(rules.weekly_dose(rules.PHARMACOGENETIC, contexts))


def _line(scene: Scene, contexts: Array) -> Ints:
    """The best by the lines that fit each arm's rewards in hindsight: contexts (B, n, d)."""
    design = np.concat([np.ones((*contexts.shape[:-1], 1)), contexts], -1)
    gram = design.mT @ design + RIDGE * np.eye(D + 1)
    return np.argmax(design @ np.linalg.solve(gram, design.mT @ scene.paid), -1)


def _line_record(scene: Scene) -> Ints:
    nothing = np.zeros_like(scene.told.noise_cov)
    return _line(scene, scene.told.filled(scene.told.record.inside(scene.record), nothing))


POLICIES: Mapping[str, Callable[[Scene], Ints]] = {
    "naive": _naive,
    "denoised": _denoised,
    "complete": _complete,
    "medium": lambda scene: doses.bucket(np.full(scene.dose.shape, rules.FIXED)),
    "clinical": lambda scene: doses.bucket(rules.weekly_dose(rules.CLINICAL, scene.noisy)),
    "pharmacogenetic": lambda scene: doses.bucket(rules.weekly_dose(rules.PHARMACOGENETIC, scene.noisy)),
    "pharmacogenetic-denoised": _pharmacogenetic_denoised,
    "line-naive": lambda scene: _line(scene, scene.face_value()),
    "line-denoised": lambda scene: _line(scene, scene.told.denoised(scene.noisy)),
    "line-record": _line_record,
}
