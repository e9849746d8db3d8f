"""Files of data sets: where they are looked for, whether one is the right one, and how to get one.

None comes with the package, because their licences do not allow it or ask to be read first. A file is taken
by its sha256 and nothing else, so that a result that names its data set means one sequence of bytes. With a
folder given, the file is looked for there alone; otherwise in $UNFOG_DATA, then in the user's cache, where
`unfog data fetch` puts it.

A downloaded archive stays in memory, and only the wanted file's bytes come out of it, to be checked against
their hash before anything is written: whatever breaks on the way, an interrupt included, the folder holds
what it held before. Names inside an archive are never used as paths.
"""

import hashlib
import http.client
import io
import lzma
import os
import struct
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from unfog._io import is_file, is_folder, write_atomically
from unfog.validation import InputError, one_of
from unfog.version import __version__

DAMAGED = (  # raised when a damaged or foreign archive is read
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
MOST_BYTES = 50_000_000  # ten times the archive we know of; the file in it may not have more either
SECONDS = 30.0  # timeout for the next bytes
CHUNK = 1 << 16
RETRY = "an address that answers with the archive: try again later, or name a mirror by --url"

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


class DatasetNotFoundError(InputError):
    """No file of a data set was found. A wrong file raises a plain InputError."""


class Dataset(NamedTuple):
    """One file, known by its hash."""

    name: str
    title: str
    file: str  # below a data folder; the last part alone is looked for as well
    sha256: str
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
            url=None,
            licence="made public by the International Warfarin Pharmacogenetics Consortium through PharmGKB, "
            "whose terms hold; cite the consortium's Estimation of the Warfarin Dose with Clinical and "
            "Pharmacogenetic Data, New England Journal of Medicine 360(8), 2009",
        ),
    )
}


class Way(NamedTuple):
    """Where a data set is, or how to get it."""

    status: str
    path: str | None  # of the right file
    problem: str | None  # what is wrong with the file, or that there is none
    fetch: str | None = None  # the command that gets it
    why: str | None = None  # why it cannot be fetched
    where: str | None = None  # where else to get it


_folder: Path | None = None


def look_in(folder: Path | None) -> None:
    """Look only in this folder from now on; commands call this with --data."""
    global _folder
    if folder is not None and not is_folder(folder):
        raise InputError("data", f"no folder {str(folder)!r}", "a folder that holds data sets")
    _folder = folder


def has_folder() -> bool:
    """Whether the user said where the data are, rightly or wrongly, so that they may not be left out."""
    path = os.environ.get("UNFOG_DATA")
    return _folder is not None or bool(path and not is_folder(Path(path)))


def locate(name: str, folder: Path | None = None) -> Path:
    """Find the file of a data set and check its hash; only the first file found is considered."""
    dataset = named(name)
    folders = _search_folders(folder)
    for candidate in folders:
        for path in (candidate / dataset.file, candidate / Path(dataset.file).name):
            if is_file(path):
                check(dataset, path)
                return path
            if path.name == Path(dataset.file).name and is_folder(path):
                raise InputError("data", f"{str(path)!r} is a folder", f"the file {dataset.file} there")
    searched = ", ".join(map(str, folders))
    problem = f"no file {dataset.file} of {dataset.title}"
    raise DatasetNotFoundError("data", problem, f"{_describe_ways(dataset)} (looked in {searched})")


def named(name: str) -> Dataset:
    """The data set of this name."""
    return DATASETS[one_of("data", name, list(DATASETS))]


def _search_folders(folder: Path | None) -> list[Path]:
    folder = folder or _folder
    if folder is not None:
        return [folder]
    path = os.environ.get("UNFOG_DATA")
    return [*([Path(path)] if path else []), cache("data")]


def cache(part: str) -> Path:
    """A folder of unfog in the user's cache; it need not exist."""
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a home
        problem = "not set, and there is no home folder"
        raise InputError("XDG_CACHE_HOME", problem, "a folder for caches") from None
    return home / "unfog" / part


def check(dataset: Dataset, path: Path) -> None:
    """Refuse a file with other bytes than the data set's."""
    try:
        status = path.stat()
        if _is_right(dataset, str(path), status.st_mtime_ns, status.st_size):
            return
        problem = f"differs from {dataset.title}"
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
    allowed = f"sha256 {dataset.sha256}: remove {path}, then {_describe_ways(dataset)}"
    raise InputError("data", f"{dataset.file} {problem}", allowed)


@lru_cache
def _is_right(dataset: Dataset, path: str, _mtime: int, _size: int) -> bool:
    """`is_right`, computed once per process for a file that has not changed."""
    return is_right(dataset, Path(path).read_bytes())


def is_right(dataset: Dataset, content: bytes) -> bool:
    """Whether these bytes are the data set's."""
    return hashlib.sha256(content).hexdigest() == dataset.sha256


def _describe_ways(dataset: Dataset) -> str:
    """How to get a file that is missing or wrong, and under which licence."""
    fetch_hint = (
        f", or `unfog data fetch {dataset.name}`, which puts it in the user's cache" if dataset.url else ""
    )
    return f"--data or UNFOG_DATA naming a folder that holds it{fetch_hint}; licence: {dataset.licence}"


def way(dataset: Dataset, folder: Path | None = None) -> Way:
    """Look for the file of a data set; say how to get it if it is missing or wrong."""
    try:
        return Way(HERE, str(locate(dataset.name, folder)), None)
    except InputError as error:
        problem, missing = str(error.value), isinstance(error, DatasetNotFoundError)
    if dataset.url is not None:
        return Way(FETCH if missing else WRONG, None, problem, f"unfog data fetch {dataset.name}")
    why, where = OTHER_FORM.get(dataset.name, WHY), WHERE.get(dataset.name, UNKNOWN)
    return Way(BRING if missing else WRONG, None, problem, None, why, where)


Progress = Callable[[int, int], None]  # bytes so far, bytes in all


def quiet(_done: int, _total: int) -> None:
    """Ignore the progress."""


def fetch(name: str, url: str | None = None, into: Path | None = None, progress: Progress = quiet) -> Path:
    """Download the file of a data set unless it is there already; a wrong file is replaced."""
    dataset = named(name)
    target = target_of(dataset, into)
    if is_there(dataset, target):
        return target
    source = source_of(dataset, url)
    content = _unpack(_download(source, progress), dataset, source)
    if not is_right(dataset, content):
        raise InputError(
            "url", f"{dataset.file} differs from {dataset.title}, in the archive {source}", RETRY
        )
    try:
        put(target, content)
    except OSError as error:
        problem = f"{dataset.file} cannot be written ({error.strerror})"
        raise InputError("into", problem, f"a folder that can be written, unlike {target.parent}") from None
    return target


def target_of(dataset: Dataset, into: Path | None = None) -> Path:
    """Where the file is stored: in the folder given, or in the user's cache."""
    return (cache("data") if into is None else into) / dataset.file


def is_there(dataset: Dataset, target: Path) -> bool:
    """Whether the right file is in place."""
    try:
        return is_right(dataset, target.read_bytes())
    except OSError:
        return False


def source_of(dataset: Dataset, url: str | None = None) -> str:
    """The URL of the archive: the one given, or the publisher's."""
    source = dataset.url if url is None else url
    if source is None:
        offered = ", ".join(row.name for row in DATASETS.values() if row.url)
        problem = f"{dataset.title} is not offered for download in the form used here"
        raise InputError("data", problem, f"{offered}; or the --url of an archive that holds {dataset.file}")
    try:
        one_of("url", urlsplit(source).scheme, ("http", "https"))
    except ValueError:  # of `one_of`, or of urlsplit
        raise InputError("url", source, "an address that begins with http:// or https://") from None
    return source


def _download(url: str, progress: Progress) -> bytes:
    """Download a URL; raise InputError if the response is incomplete."""
    try:
        request = urllib.request.Request(url, headers={"User-Agent": f"unfog/{__version__}"})
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return _read_body(url, answer, progress)
    except InputError:
        raise
    except urllib.error.HTTPError as error:
        with error:
            answer = f"{error.code} {http.client.responses.get(error.code, '')}".strip()
        raise InputError("url", f"the answer {answer} from {url}", RETRY) from None
    except urllib.error.URLError as error:
        raise InputError("url", f"no connection ({error.reason}) to {url}", RETRY) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        why = str(error) or type(error).__name__
        raise InputError("url", f"the transfer broke off ({why}) from {url}", RETRY) from None


def _read_body(url: str, response: http.client.HTTPResponse, progress: Progress) -> bytes:
    length = response.headers.get("Content-Length", "")
    expected = int(length) if length.isdecimal() else 0
    body = bytearray()
    while chunk := response.read(CHUNK):
        body += chunk
        if max(len(body), expected) > MOST_BYTES:
            raise InputError("url", f"more than {MOST_BYTES:,} bytes from {url}", RETRY)
        progress(len(body), max(len(body), expected))
    if len(body) < expected:  # http.client lets a short body pass
        problem = f"the transfer broke off after {len(body):,} of {expected:,} bytes from {url}"
        raise InputError("url", problem, RETRY)
    return bytes(body)


def _unpack(archive: bytes, dataset: Dataset, url: str) -> bytes:
    """The bytes of a data set's file in an archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as zip_file:
            members = {info.filename: info for info in zip_file.infolist()}
            name = members.get(dataset.file) or members.get(Path(dataset.file).name)
            if name is None:
                raise InputError("url", f"no {dataset.file} in the archive {url}", RETRY)
            with zip_file.open(name) as member:
                content = member.read(MOST_BYTES + 1)
    except InputError:
        raise
    except DAMAGED as error:
        raise InputError("url", f"no whole zip archive ({error}) from {url}", RETRY) from None
    if len(content) > MOST_BYTES:
        raise InputError("url", f"a {dataset.file} of over {MOST_BYTES:,} bytes from {url}", RETRY)
    return content


def put(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, also where two processes write the same one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)
