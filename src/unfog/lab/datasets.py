"""The data sets that experiments can use: where they are looked for, and whether a file is the right one.

None comes with the package, because their licences do not allow it or ask to be read first. A file is taken
by its sha256 and nothing else, so that a result that names its data set means one sequence of bytes. With a
folder given, the file is looked for there alone; otherwise in $UNFOG_DATA, then in the user's cache, where
`unfog data fetch` puts it.
"""

import hashlib
import lzma
import os
import struct
import tempfile
import zipfile
import zlib
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from unfog._io import is_file, is_folder, writing
from unfog.validation import InputError, one_of

DAMAGED = (  # what reading a damaged or foreign archive raises
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    KeyError,
    OSError,  # bz2's complaint
    TypeError,  # an array of no known type
    ValueError,  # positions outside the archive
    RuntimeError,  # encrypted, or packed in a way that zipfile does not know
)


class MissingError(InputError):
    """No file of a data set was found: a wrong one is another matter."""


class Dataset(NamedTuple):
    """One file, known by its hash."""

    name: str
    title: str
    file: str  # below a data folder; the last part alone is looked for as well
    sha256: str
    lines: int  # said when a file of another length turns up
    url: str | None  # an archive that holds the file, where its publisher offers one
    licence: str


DATASETS = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            name="movielens",
            title="MovieLens-100K",
            file="ml-100k/u.data",
            sha256="06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
            lines=100_000,
            url="https://files.grouplens.org/datasets/movielens/ml-100k.zip",
            licence="for research; not to be redistributed, and not for commercial use without permission of "
            "GroupLens, University of Minnesota; no endorsement is implied; cite F. M. Harper and "
            "J. A. Konstan, The MovieLens Datasets: History and Context, ACM TiiS 5(4), 2015",
        ),
        Dataset(
            name="airquality",
            title="Air Quality",
            file="airquality/AirQualityUCI.csv",
            sha256="bbbde91dbab2571bf307abcf720ff31257278ee15766882d65e144628f1bf4c3",
            lines=9_358,
            url=None,
            licence="from the UCI Machine Learning Repository, whose terms hold; cite S. De Vito et al., On "
            "field calibration of an electronic nose for benzene estimation in an urban pollution "
            "monitoring scenario, Sensors and Actuators B 129(2), 2008",
        ),
        Dataset(
            name="heartsteps",
            title="HeartSteps",
            file="heartsteps/HS1_cleaned_for_simulation.csv",
            sha256="9a36ff8e34950bff66d47e4e2d50e7d41c670fe97a3dc93312997f95c374c6be",
            lines=7_160,
            url=None,
            licence="made public by those who ran the trial, whose terms hold; cite P. Klasnja et al., "
            "Efficacy of Contextually Tailored Suggestions for Physical Activity: A Micro-randomized "
            "Optimization Trial of HeartSteps, Annals of Behavioral Medicine 53(6), 2019",
        ),
        Dataset(
            name="warfarin",
            title="IWPC warfarin",
            file="warfarin/warfarin_iwpc.csv",
            sha256="13c37c04d28bee5c02b2ff55afbc256b11aec74b2d2eea284744dce1af697810",
            lines=5_701,
            url=None,
            licence="made public by the International Warfarin Pharmacogenetics Consortium through PharmGKB, "
            "whose terms hold; cite the consortium's Estimation of the Warfarin Dose with Clinical and "
            "Pharmacogenetic Data, New England Journal of Medicine 360(8), 2009",
        ),
    )
}


def named(name: str) -> Dataset:
    """The data set of this name."""
    return DATASETS[one_of("data", name, list(DATASETS))]


def cache(part: str) -> Path:
    """A folder of ours in the user's cache; it need not exist."""
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a home
        problem = "not set, and there is no home folder"
        raise InputError("XDG_CACHE_HOME", problem, "a folder for caches") from None
    return home / "unfog" / part


_told: Path | None = None


def look_in(folder: Path | None) -> None:
    """Look in this folder alone from now on: what a command is told by --data."""
    global _told
    if folder is not None and not is_folder(folder):
        raise InputError("data", f"no folder {str(folder)!r}", "a folder that holds data sets")
    _told = folder


def told() -> bool:
    """Whether we were told where the data are, or told wrongly, and so must not do without them."""
    chosen = os.environ.get("UNFOG_DATA")
    return _told is not None or bool(chosen and not is_folder(Path(chosen)))


def locate(name: str, folder: Path | None = None) -> Path:
    """The file of a data set, its hash checked; the first one found decides, be it right or wrong."""
    dataset = named(name)
    places = _places(folder)
    for place in places:
        for path in (place / dataset.file, place / Path(dataset.file).name):
            if is_file(path):
                check(dataset, path)
                return path
            if path.name == Path(dataset.file).name and is_folder(path):
                raise InputError("data", f"{str(path)!r} is a folder", f"the file {dataset.file} there")
    looked = ", ".join(map(str, places))
    problem = f"no file {dataset.file} of {dataset.title}"
    raise MissingError("data", problem, f"{_ways(dataset)} (looked in {looked})")


def _places(folder: Path | None) -> list[Path]:
    folder = folder or _told
    if folder is not None:
        return [folder]
    chosen = os.environ.get("UNFOG_DATA")
    return [*([Path(chosen)] if chosen else []), cache("data")]


def _ways(dataset: Dataset) -> str:
    """How to come by a file that is missing or wrong, and on which terms."""
    got = f", or `unfog data fetch {dataset.name}`, which puts it in the user's cache" if dataset.url else ""
    return f"--data or UNFOG_DATA naming a folder that holds it{got}; licence: {dataset.licence}"


def check(dataset: Dataset, path: Path) -> None:
    """Refuse a file with other bytes than the data set's, saying what is wrong with it."""
    try:
        facts = path.stat()
        problem = _problem(dataset, str(path), facts.st_mtime_ns, facts.st_size)
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
    if problem is not None:
        allowed = f"sha256 {dataset.sha256}: remove {path}, then {_ways(dataset)}"
        raise InputError("data", f"{dataset.file} {problem}", allowed)


@lru_cache
def _problem(dataset: Dataset, path: str, _mtime: int, _size: int) -> str | None:
    """What is wrong with a file; asked once a process for a file that has not changed since."""
    return problem_of(dataset, Path(path).read_bytes())


def problem_of(dataset: Dataset, content: bytes) -> str | None:
    """What is wrong with these bytes, or None if they are the data set's."""
    if hashlib.sha256(content).hexdigest() == dataset.sha256:
        return None
    if not content:
        return "is empty"
    if is_html(content):
        return f"is a web page, not {dataset.title}"
    if content.startswith(b"PK"):
        return f"is a zip archive, not {dataset.title}: unpack it"
    lines = content.count(b"\n")
    if lines != dataset.lines:
        return f"differs from {dataset.title}: {lines:,} lines instead of {dataset.lines:,}"
    return f"differs from {dataset.title}: {lines:,} lines as it should have, but its bytes were altered"


def is_html(content: bytes) -> bool:
    """Whether a server sent a page where data were asked for."""
    return content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<"


def put(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, also where two processes write the same one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}-", suffix=".part", dir=path.parent)
    try:
        with writing(path), open(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.chmod(temporary, 0o644)  # a folder may be shared; temporary files are the owner's alone
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:  # an interrupt as well leaves nothing behind
        with suppress(OSError):
            os.unlink(temporary)
        raise
