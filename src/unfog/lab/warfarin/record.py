"""Patients on warfarin: what was recorded of each, and the weekly dose that turned out to be right.

Data: the International Warfarin Pharmacogenetics Consortium (IWPC), *Estimation of the Warfarin Dose with
Clinical and Pharmacogenetic Data*. Patients without a stable dose are left out: nobody knows what would have
been right for them. A context has eleven numbers. Not a number stands where the record says nothing.

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
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from unfog.lab.datasets import locate
from unfog.maths.arrays import Array, Ints
from unfog.validation import InputError

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

Row = Mapping[str, str]
Marker = tuple[str, tuple[str, str, str], bool]


class Patients(NamedTuple):
    """n patients in the order of the file, which is that of the hospitals.

    >>> import numpy as np
    >>> from unfog.lab import warfarin
    >>> rng = np.random.default_rng(0)
    >>> contexts = rng.normal(size=(600, len(warfarin.COORDINATES)))
    >>> people = warfarin.Patients(contexts, dose=rng.uniform(10, 70, 600))
    >>> people.rows(slice(0, 3)).dose.round().tolist()
    [40.0, 53.0, 46.0]
    """

    contexts: Array  # (n, d)  not a number where the record has a gap
    dose: Array  # (n,)  stable, in mg a week

    def rows(self, places: Ints | slice) -> "Patients":
        """Some of them."""
        return Patients(self.contexts[places], self.dose[places])


def patients(*, neighbours: bool = True) -> Patients:
    """All with a stable dose; the file is looked for as every data set is."""
    return read(locate("warfarin"), neighbours=neighbours)


def read(path: Path, *, neighbours: bool = True) -> Patients:
    """The patients of a file with a stable dose."""
    with_dose = [row for row in _table(path) if _number(row, STABLE) == 1 and _number(row, DOSE) > 0]
    if not with_dose:
        raise InputError("data", f"{path.name} has no patient with a stable dose", "some")
    contexts = np.array([_context(row, NEIGHBOURS if neighbours else NEIGHBOURS[:1]) for row in with_dose])
    return Patients(contexts, np.array([_number(row, DOSE) for row in with_dose]))


class Repeated(NamedTuple):
    """Genotypes that were determined twice."""

    twice: int
    differ: int

    @property
    def rate(self) -> float:
        """The share of pairs that differ: about the sum of both error rates."""
        return self.differ / self.twice


def repeated(path: Path | None = None) -> dict[str, Repeated]:
    """How often a second genotyping, done to check the first, came to another result."""
    rows = _table(locate("warfarin") if path is None else path)
    found = {}
    for name, column, names in CALLED:
        pairs = [(row[column.format(names[0])], row[column.format(names[1])]) for row in rows]
        known = [pair for pair in pairs if not UNKNOWN & {*pair}]
        found[name] = Repeated(len(known), sum(first != second for first, second in known))
    return found


def _table(path: Path) -> list[dict[str, str]]:
    needed = (DOSE, STABLE, "Age", "Race", "CYP2C9 consensus", *INDUCERS, *(one[0] for one in NEIGHBOURS))
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    missing = [name for name in needed if rows and rows[0].get(name) is None]
    if missing or not rows:
        problem = f"{path.name} has no column {missing[0]!r}" if missing else f"{path.name} has no rows"
        raise InputError("data", problem, f"a table with the columns {', '.join(needed)}")
    return rows


def _context(row: Row, markers: Sequence[Marker]) -> tuple[float, ...]:
    alleles = _alleles(row)
    return (
        _age(row),
        _number(row, "Height (cm)"),
        _number(row, "Weight (kg)"),
        {"male": 1.0, "female": 0.0}.get(row["Gender"], np.nan),
        *RACES.get(row["Race"], (np.nan, np.nan)),
        _vkorc1(row, markers),
        *(float(alleles.count(name)) if alleles else np.nan for name in ("*2", "*3")),
        float(_number(row, "Amiodarone (Cordarone)") == 1),
        float(any(_number(row, name) == 1 for name in INDUCERS)),
    )


def _number(row: Row, name: str) -> float:
    text = row[name]
    try:
        return np.nan if text in UNKNOWN else float(text)
    except ValueError:
        problem = f"{name} is {text!r} for patient {row['PharmGKB Subject ID']}"
        raise InputError("data", problem, "a number, NA or nothing") from None


def _age(row: Row) -> float:
    """The decade: the first digit of 60 - 69, or of 90+."""
    return np.nan if row["Age"] in UNKNOWN else float(row["Age"][0])


def _alleles(row: Row) -> list[str]:
    """The two of CYP2C9; others than *2 and *3 are rare here, and count as neither."""
    genotype = row["CYP2C9 consensus"]
    return [] if genotype in UNKNOWN else genotype.split("/")


def _vkorc1(row: Row, markers: Sequence[Marker]) -> float:
    by_race = row["Race"] in ("White", "Asian")
    for name, genotypes, needs_race in markers:
        if row[name] in genotypes and (by_race or not needs_race):
            return float(genotypes.index(row[name]))
    return np.nan
