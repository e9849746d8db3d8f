"""Whether a data set is here, can be fetched, or must be brought: and then why, and where it is to be had."""

from pathlib import Path
from typing import NamedTuple

from unfog.lab.datasets import Dataset, MissingError, locate
from unfog.validation import InputError

HERE, FETCH, BRING, WRONG = "here", "not here, can be fetched", "not here, cannot be fetched", "wrong file"
WHY = "it is not offered for download in the form used here"
OTHER_FORM = {"airquality": "the archive of its repository has the table in another form"}
WHERE = {
    "airquality": "the UCI Machine Learning Repository, data set Air Quality; saved with commas, a byte-order"
    " mark and dates like 2004-03-10",
    "heartsteps": "those who ran the trial HeartSteps (P. Klasnja and others) and made its data public",
    "warfarin": "PharmGKB, data of the International Warfarin Pharmacogenetics Consortium; saved with commas,"
    " a byte-order mark and the column names of the publication's data file",
}
UNKNOWN = "whoever published it"


class Way(NamedTuple):
    """How one comes by a data set."""

    status: str
    path: str | None  # of the right file
    problem: str | None  # with the file that is there, or that there is none
    fetch: str | None = None  # the command that gets it
    why: str | None = None  # it cannot be fetched
    where: str | None = None  # it is to be had, then


def way(dataset: Dataset, folder: Path | None = None) -> Way:
    """Look for the file; what to do where it is not there, or is not the right one."""
    try:
        return Way(HERE, str(locate(dataset.name, folder)), None)
    except InputError as error:
        problem, missing = str(error.value), isinstance(error, MissingError)
    if dataset.url is not None:
        return Way(FETCH if missing else WRONG, None, problem, f"unfog data fetch {dataset.name}")
    why, where = OTHER_FORM.get(dataset.name, WHY), WHERE.get(dataset.name, UNKNOWN)
    return Way(BRING if missing else WRONG, None, problem, None, why, where)
