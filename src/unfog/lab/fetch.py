"""Download a data set's archive and keep the one file of it that is wanted.

The archive stays in memory, and only the file's bytes come out of it, to be checked against their hash before
anything is written: whatever breaks on the way, an interrupt included, the folder holds what it held before.
Names inside an archive are never used as paths.
"""

import http.client
import io
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from unfog.lab.datasets import DAMAGED, DATASETS, Dataset, cache, is_html, named, problem_of, put
from unfog.validation import InputError, one_of
from unfog.version import __version__

MOST_BYTES = 50_000_000  # ten times the archive we know of; the file in it may not have more either
SECONDS = 30.0  # to wait for the next bytes
CHUNK = 1 << 16
RETRY = "an address that answers with the archive: try again later, or name a mirror by --url"

Progress = Callable[[int, int], None]  # bytes so far, bytes in all


def quiet(_done: int, _total: int) -> None:
    """Say nothing."""


def source_of(dataset: Dataset, url: str | None = None) -> str:
    """Where the archive comes from: an address given, or the publisher's."""
    source = dataset.url if url is None else url
    if source is None:
        offered = ", ".join(row.name for row in DATASETS.values() if row.url)
        problem = f"{dataset.title} is not offered for download in the form used here"
        raise InputError("data", problem, f"{offered}; or the --url of an archive that holds {dataset.file}")
    try:
        one_of("url", urlsplit(source).scheme, ("http", "https"))
    except ValueError:  # ours, or urlsplit's own
        raise InputError("url", source, "an address that begins with http:// or https://") from None
    return source


def target_of(dataset: Dataset, into: Path | None = None) -> Path:
    """Where the file goes: a data folder given, or the user's cache."""
    return (cache("data") if into is None else into) / dataset.file


def is_there(dataset: Dataset, target: Path) -> bool:
    """Whether the right file is in place."""
    try:
        return problem_of(dataset, target.read_bytes()) is None
    except OSError:
        return False


def fetch(name: str, url: str | None = None, into: Path | None = None, progress: Progress = quiet) -> Path:
    """The data set's file, downloaded unless it is there already; a wrong file in its place is replaced."""
    dataset = named(name)
    target = target_of(dataset, into)
    if is_there(dataset, target):
        return target
    source = source_of(dataset, url)
    content = _unpack(_download(source, progress), dataset, source)
    problem = problem_of(dataset, content)
    if problem is not None:
        raise InputError("url", f"{dataset.file} {problem}, in the archive {source}", RETRY)
    try:
        put(target, content)
    except OSError as error:
        problem = f"{dataset.file} cannot be written ({error.strerror})"
        raise InputError("into", problem, f"a folder that can be written, unlike {target.parent}") from None
    return target


def _download(url: str, progress: Progress) -> bytes:
    """The body of an answer, whole, or a complaint in one line."""
    try:
        request = urllib.request.Request(url, headers={"User-Agent": f"unfog/{__version__}"})
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return _read(url, answer, progress)
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


def _read(url: str, answer: http.client.HTTPResponse, progress: Progress) -> bytes:
    said = answer.headers.get("Content-Length", "")
    expected = int(said) if said.isdecimal() else 0
    body = bytearray()
    while chunk := answer.read(CHUNK):
        body += chunk
        if max(len(body), expected) > MOST_BYTES:
            raise InputError("url", f"more than {MOST_BYTES:,} bytes from {url}", RETRY)
        progress(len(body), max(len(body), expected))
    if len(body) < expected:  # http.client lets a short body pass
        problem = f"the transfer broke off after {len(body):,} of {expected:,} bytes from {url}"
        raise InputError("url", problem, RETRY)
    return bytes(body)


def _unpack(archive: bytes, dataset: Dataset, url: str) -> bytes:
    """The bytes of the one member that is wanted."""
    if is_html(archive):
        raise InputError("url", f"a web page instead of an archive from {url}", RETRY)
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            members = {info.filename: info for info in opened.infolist()}
            found = members.get(dataset.file) or members.get(Path(dataset.file).name)
            if found is None:
                raise InputError("url", f"no {dataset.file} in the archive {url}", RETRY)
            with opened.open(found) as member:
                content = member.read(MOST_BYTES + 1)
    except InputError:
        raise
    except DAMAGED as error:
        raise InputError("url", f"no whole zip archive ({error}) from {url}", RETRY) from None
    if len(content) > MOST_BYTES:
        raise InputError("url", f"a {dataset.file} of over {MOST_BYTES:,} bytes from {url}", RETRY)
    return content
