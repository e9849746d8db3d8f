"""Warfarin: patients and their right doses, errors in their contexts, and what agents are told.

Patients: the International Warfarin Pharmacogenetics Consortium (IWPC), *Estimation of the Warfarin Dose with
Clinical and Pharmacogenetic Data*. The right dose is the weekly one that turned out to be stable. Patients
without one are left out: nobody knows what would have been right for them. A context has eleven numbers. Not
a number stands where the record says nothing.

    age                  in decades, as recorded: 60 to 69 is 6
    height, weight       in cm and kg
    male, asian, black   1 or 0; race is not a number where it is unknown or mixed
    vkorc1               how many A alleles at VKORC1 -1639: 0, 1 or 2
    cyp2c9_2, cyp2c9_3   how many alleles *2 and *3 of CYP2C9
    amiodarone, inducer  1 or 0; what is not recorded was not taken, as the paper's algorithms have it

A missing VKORC1 genotype is read off a neighbour on the same gene where the paper's supplement does so: off
1173 for everybody, off 2255 and 1542 for those whose race is known and not black. That is part of reading the
record and no denoising: the neighbours are inherited together. Without `neighbours` -1639 is read alone, and
more than a quarter of the patients lack it.

Errors: what a busier clinic would have written down. The record stays the truth where it says something, so
noisy = record + error:

    height, weight       as patients say them: too tall by 1 cm, too light by 1 kg on average, with a standard
                         deviation of 3 cm and 4 kg around that, all times `reported`
    vkorc1, cyp2c9_*     miscalled in the share `miscalled` of tests: one allele too many or too few
    lost                 in that share of patients, each of height, weight and the two genotypes is missing

People say they are taller than they are: by 0.9 cm (men) and 2.2 cm (women) in M. R. G. Peixoto, M. H. D.
Benicio and P. C. B. V. Jardim, *Validity of self-reported weight and height: the Goiania study, Brazil*. The
spreads are ours. The record's own second genotyping differs from the first in 9 of 313 patients for VKORC1
and in 17 of 473 for CYP2C9 (`repeat_rate`): `miscalled` = 0.03 is what a test of that quality does.

Doses are three arms: less than 21, 21 to 49, and more than 49 mg a week, as in the bandit that H. Bastani and
M. Bayati made of this record (docs/notebook/warfarin.md). There are two rewards, each a stated function of
the stable dose s:

    bucket   0 if the arm is the one that s falls into, -1 if not: as they have it
    graded   -|ln(dose of the arm / s)|, with 2, 5 and 8 mg a day for the three arms: 14, 35 and 56 a week

A patient is paid for every arm, so that any policy can be judged; a bandit is shown one arm's reward. A
mistake is severe if a patient who needs less than 21 mg is given more than 49, or the other way round: the
first may bleed, the second may clot.

What agents are told of contexts and errors comes from patients set apart, none of whose doses anybody sees.
True contexts are counted in standard deviations from their mean. Of each coordinate the pairs at hand, record
and noisy, then give a line noisy = gain c + offset + e and the variance of e; it is turned around, (noisy -
offset) / gain. That is `unfog.channel.calibration.affine`, coordinate by coordinate, each from the patients
who have it: among those who lack nothing a rare indicator may be constant, and would be refused.

The law of contexts is a Gaussian, whose moments are found from rows with gaps by EM: each step fills what is
missing of row i with its mean given the rest, and adds what is left of its covariance,

    b_i = u + H E_i (x_i - u),   B_i = H - H E_i H,   u <- mean_i b_i,   H <- mean_i ((b_i - u)(..)' + B_i),

E_i being the inverse of the observed part of H and zero elsewhere (A. P. Dempster, N. M. Laird and D. B.
Rubin, *Maximum Likelihood from Incomplete Data via the EM Algorithm*).
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from unfog.channel.calibration import affine
from unfog.channel.knowledge import masked_inverse, masked_shrinkage, posterior_mean
from unfog.lab.datasets.files import locate
from unfog.maths.arrays import Array, Bools, Ints, matvec
from unfog.validation import InputError, not_negative, one_of
from unfog.worlds.measurement import check_share

COORDINATES = (
    "age",
    "height",
    "weight",
    "male",
    "asian",
    "black",
    "vkorc1",
    "cyp2c9_2",
    "cyp2c9_3",
    "amiodarone",
    "inducer",
)
PATIENTS = 5410  # with a stable dose
DOSE, STABLE = "Therapeutic Dose of Warfarin", "Subject Reached Stable Dose of Warfarin"
INDUCERS = ("Carbamazepine (Tegretol)", "Phenytoin (Dilantin)", "Rifampin or Rifampicin")
RACES = {"White": (0.0, 0.0), "Asian": (1.0, 0.0), "Black or African American": (0.0, 1.0)}
UNKNOWN = {"Unknown", "NA", ""}
# Each neighbour, the genotypes of it that go with 0, 1 and 2 alleles A, and whether race matters.
NEIGHBOURS = (
    ("VKORC1 -1639 consensus", ("G/G", "A/G", "A/A"), False),
    ("VKORC1 2255 consensus", ("C/C", "C/T", "T/T"), True),
    ("VKORC1 1173 consensus", ("C/C", "C/T", "T/T"), False),
    ("VKORC1 1542 consensus", ("G/G", "C/G", "C/C"), True),
)
CALLED = (
    ("vkorc1", "VKORC1 {}genotype: -1639 G>A (3673); chr16:31015190; rs9923231; C/T", ("", "QC ")),
    ("cyp2c9", "{}", ("Cyp2C9 genotypes", "Combined QC CYP2C9")),
)

MEANS = {"height": 1.0, "weight": -1.0}
SPREADS = {"height": 3.0, "weight": 4.0}
GENOTYPES = ("vkorc1", "cyp2c9_2", "cyp2c9_3")
TESTS = (("height",), ("weight",), ("vkorc1",), ("cyp2c9_2", "cyp2c9_3"))  # missing together
MOST = 2  # alleles of a gene

ARMS = ("low", "medium", "high")
LOW, MEDIUM, HIGH = range(3)
EDGES = (21.0, 49.0)  # mg a week; both are medium
TYPICAL = (14.0, 35.0, 56.0)  # mg a week
REWARDS = ("bucket", "graded")

STEPS = 60  # of EM: the record's gaps need about 30
LEAST = 1e-6  # variance of an error, or share of a variance that no other coordinate explains

Row = Mapping[str, str]
Marker = tuple[str, tuple[str, str, str], bool]


class Patients(NamedTuple):
    """n patients in the order of the file, which is that of the hospitals.

    >>> import numpy as np
    >>> from unfog.paper import warfarin
    >>> rng = np.random.default_rng(0)
    >>> contexts = rng.normal(size=(600, len(warfarin.COORDINATES)))
    >>> people = warfarin.Patients(contexts, dose=rng.uniform(10, 70, 600))
    >>> people.rows(slice(0, 3)).dose.round().tolist()
    [40.0, 53.0, 46.0]
    """

    contexts: Array  # (n, d)  not a number where the record has a gap
    dose: Array  # (n,)  stable, in mg a week

    def rows(self, indices: Ints | slice) -> "Patients":
        """The patients at these indices."""
        return Patients(self.contexts[indices], self.dose[indices])


def patients(*, neighbours: bool = True) -> Patients:
    """All patients with a stable dose, from the data set `warfarin`."""
    return read(locate("warfarin"), neighbours=neighbours)


def read(path: Path, *, neighbours: bool = True) -> Patients:
    """The patients of a file with a stable dose."""
    with_dose = [
        row for row in _read_table(path) if _read_number(row, STABLE) == 1 and _read_number(row, DOSE) > 0
    ]
    if not with_dose:
        raise InputError("data", f"{path.name} has no patient with a stable dose", "some")
    contexts = np.array(
        [_read_context(row, NEIGHBOURS if neighbours else NEIGHBOURS[:1]) for row in with_dose]
    )
    return Patients(contexts, np.array([_read_number(row, DOSE) for row in with_dose]))


def _read_table(path: Path) -> list[dict[str, str]]:
    needed = (
        DOSE,
        STABLE,
        "Age",
        "Race",
        "CYP2C9 consensus",
        *INDUCERS,
        *(name for name, _, _ in NEIGHBOURS),
    )
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    missing = [name for name in needed if rows and rows[0].get(name) is None]
    if missing or not rows:
        problem = f"{path.name} has no column {missing[0]!r}" if missing else f"{path.name} has no rows"
        raise InputError("data", problem, f"a table with the columns {', '.join(needed)}")
    return rows


def _read_context(row: Row, markers: Sequence[Marker]) -> tuple[float, ...]:
    alleles = _read_alleles(row)
    return (
        _read_age(row),
        _read_number(row, "Height (cm)"),
        _read_number(row, "Weight (kg)"),
        {"male": 1.0, "female": 0.0}.get(row["Gender"], np.nan),
        *RACES.get(row["Race"], (np.nan, np.nan)),
        _read_vkorc1(row, markers),
        *(float(alleles.count(name)) if alleles else np.nan for name in ("*2", "*3")),
        float(_read_number(row, "Amiodarone (Cordarone)") == 1),
        float(any(_read_number(row, name) == 1 for name in INDUCERS)),
    )


def _read_number(row: Row, name: str) -> float:
    text = row[name]
    try:
        return np.nan if text in UNKNOWN else float(text)
    except ValueError:
        problem = f"{name} is {text!r} for patient {row['PharmGKB Subject ID']}"
        raise InputError("data", problem, "a number, NA or nothing") from None


def _read_age(row: Row) -> float:
    """The decade: the first digit of 60 - 69, or of 90+."""
    return np.nan if row["Age"] in UNKNOWN else float(row["Age"][0])


def _read_alleles(row: Row) -> list[str]:
    """The two alleles of CYP2C9; those other than *2 and *3 are rare here, and count as neither."""
    genotype = row["CYP2C9 consensus"]
    return [] if genotype in UNKNOWN else genotype.split("/")


def _read_vkorc1(row: Row, markers: Sequence[Marker]) -> float:
    by_race = row["Race"] in ("White", "Asian")
    for name, genotypes, needs_race in markers:
        if row[name] in genotypes and (by_race or not needs_race):
            return float(genotypes.index(row[name]))
    return np.nan


class Repeated(NamedTuple):
    """How many genotypes were determined twice, and how many of them differ."""

    twice: int
    differ: int

    @property
    def rate(self) -> float:
        """The share of pairs that differ: about the sum of both error rates."""
        return self.differ / self.twice


def repeat_rate(path: Path | None = None) -> dict[str, Repeated]:
    """How often a second genotyping, done to check the first, gave a different result."""
    rows = _read_table(locate("warfarin") if path is None else path)
    results = {}
    for name, column, names in CALLED:
        pairs = [(row[column.format(names[0])], row[column.format(names[1])]) for row in rows]
        known = [pair for pair in pairs if not UNKNOWN & {*pair}]
        results[name] = Repeated(len(known), sum(first != second for first, second in known))
    return results


@dataclass(frozen=True, kw_only=True)
class Errors:
    """Errors of the noisy contexts; by default there are none, and only the record's own gaps are missing.

    >>> import numpy as np
    >>> from unfog.paper import warfarin
    >>> whole = np.ones((4, len(warfarin.COORDINATES)))
    >>> seen = warfarin.Errors(lost=0.5).noisy(whole, np.random.default_rng(0))
    >>> int(np.isnan(seen).sum()) > 0
    True
    """

    reported: float = 0.0
    miscalled: float = 0.0
    lost: float = 0.0

    def __post_init__(self) -> None:
        """Check every field."""
        not_negative("reported", self.reported)
        check_share("miscalled", self.miscalled, 0.5)
        check_share("lost", self.lost, 0.99)

    def noisy(self, contexts: Array, source: np.random.Generator) -> Array:
        """The record (n, d) with errors; what is missing stays missing."""
        noisy = contexts.copy()
        for name in MEANS:
            misreport = MEANS[name] + SPREADS[name] * source.standard_normal(len(noisy))
            noisy[:, COORDINATES.index(name)] += self.reported * misreport
        for name in GENOTYPES:
            column, draws = COORDINATES.index(name), source.random((2, len(noisy)))
            noisy[:, column] = _miscall(noisy[:, column], draws[0] < self.miscalled, draws[1] < 0.5)
        for names in TESTS:
            is_lost = source.random(len(noisy)) < self.lost
            for name in names:
                noisy[is_lost, COORDINATES.index(name)] = np.nan
        return noisy


def _miscall(alleles: Array, is_wrong: Bools, goes_up: Bools) -> Array:
    """Add or remove an allele where the call is wrong; 0 can only go up, and 2 only down."""
    step = np.where(alleles == 0, 1.0, np.where(alleles == MOST, -1.0, np.where(goes_up, 1.0, -1.0)))
    return np.where(is_wrong, alleles + step, alleles)


def bucket(dose: Array) -> Ints:
    """The arm that a weekly dose (...,) falls into."""
    arm: Ints = (dose >= EDGES[0]).astype(np.intp) + (dose > EDGES[1])
    return arm


def rewards(dose: Array, kind: str = "bucket") -> Array:
    """The reward of every arm, (..., K), for patients with these stable doses (...,)."""
    if one_of("reward", kind, REWARDS) == "graded":
        return -np.abs(np.log(np.array(TYPICAL) / dose[..., None]))
    return np.where(bucket(dose)[..., None] == np.arange(len(ARMS)), 0.0, -1.0)


class Mistakes(NamedTuple):
    """What is wrong with each decision, (...,)."""

    wrong: Bools  # not the arm that the stable dose falls into
    severe: Bools  # low for high, or high for low


def mistakes(dose: Array, arm: Ints) -> Mistakes:
    """The mistakes in giving these arms (...,) to patients with these stable doses (...,)."""
    distance = np.abs(bucket(dose) - arm)
    return Mistakes(distance > 0, distance > 1)


class Lines(NamedTuple):
    """value = scale * inside + centre, coordinate by coordinate."""

    centre: Array  # (..., d)
    scale: Array  # (..., d)

    def inside(self, values: Array) -> Array:
        """Values (..., n, d) in these units."""
        return (values - self.centre[..., None, :]) / self.scale[..., None, :]

    def outside(self, inside: Array) -> Array:
        """Values (..., n, d) from these units."""
        return inside * self.scale[..., None, :] + self.centre[..., None, :]


class AssumedChannel(NamedTuple):
    """The channel, in deviations of true contexts, and the lines that convert to them."""

    context_mean: Array  # (..., d)
    context_cov: Array  # (..., d, d)
    noise_cov: Array  # (..., d, d)
    bias_cov: Array  # (..., d, d)
    record: Lines  # from true contexts
    noisy: Lines  # from noisy ones
    face_value: Lines  # from noisy ones to deviations of noisy ones, for agents that take them for true

    def filled(self, contexts: Array, noise: Array) -> Array:
        """The mean of the true context given what is not missing: (..., n, d) in deviations."""
        mean, cov = self.context_mean[..., None, :], self.context_cov[..., None, :, :]
        gaps = np.isnan(contexts)
        shrunk = masked_shrinkage(mean, cov, noise[..., None, :, :], (~gaps).astype(np.float64))
        return posterior_mean(shrunk, np.where(gaps, mean, contexts), np.zeros_like(mean))

    def denoised(self, noisy: Array) -> Array:
        """The mean of the true context given noisy contexts (..., n, d)."""
        return self.filled(self.noisy.inside(noisy), self.noise_cov)


def estimate_channel(record: Array, noisy: Array) -> AssumedChannel:
    """Estimate what agents are told from pairs (n, d) with gaps."""
    units, face_value = (
        Lines(np.nanmean(contexts, 0), np.nanstd(contexts, 0)) for contexts in (record, noisy)
    )
    standard = units.inside(record)
    pairs = [_fit_line(*pair) for pair in zip(standard.T, noisy.T, strict=True)]
    gain, offset, variance, count = np.array(pairs).T
    noise = np.maximum(variance / gain**2, LEAST)
    covs = np.diag(noise), np.diag(np.maximum(noise / count, LEAST))
    return AssumedChannel(*moments(standard), *covs, units, Lines(offset, gain), face_value)


def _fit_line(true: Array, noisy: Array) -> tuple[float, float, float, int]:
    """The gain, offset, residual variance and number of pairs of a coordinate."""
    known = ~np.isnan(true + noisy)
    x, y = true[known, None], noisy[known, None]
    line = affine(y, x)
    residuals = y - line.offset - line.gain * x
    return line.gain.item(), line.offset.item(), float(np.mean(residuals**2)), len(residuals)


def moments(rows: Array, steps: int = STEPS) -> tuple[Array, Array]:
    """Mean (d,) and covariance (d, d) of rows (n, d) with gaps, by maximum likelihood."""
    gaps = np.isnan(rows)
    patterns, pattern_of, counts = np.unique(gaps, axis=0, return_inverse=True, return_counts=True)
    mean, cov = np.nanmean(rows, 0), np.diag(np.nanvar(rows, 0))
    floor = LEAST * cov
    for _ in range(steps):
        precision = masked_inverse(cov, (~patterns).astype(np.float64))  # one for each pattern of gaps
        gain = cov @ precision
        filled = mean + matvec(gain[pattern_of], np.where(gaps, 0.0, rows - mean))
        unexplained = np.tensordot(counts / len(rows), cov - gain @ cov, 1)
        mean = filled.mean(0)
        cov = (filled - mean).T @ (filled - mean) / len(rows) + unexplained + floor
    return mean, (cov + cov.T) / 2


def stack_channels(channels: Sequence[AssumedChannel]) -> AssumedChannel:
    """Stack what agents are told in several orders of the patients, on a leading axis."""
    return AssumedChannel(
        np.stack([x.context_mean for x in channels]),
        np.stack([x.context_cov for x in channels]),
        np.stack([x.noise_cov for x in channels]),
        np.stack([x.bias_cov for x in channels]),
        _stack_lines([x.record for x in channels]),
        _stack_lines([x.noisy for x in channels]),
        _stack_lines([x.face_value for x in channels]),
    )


def _stack_lines(lines: Sequence[Lines]) -> Lines:
    return Lines(np.stack([line.centre for line in lines]), np.stack([line.scale for line in lines]))
