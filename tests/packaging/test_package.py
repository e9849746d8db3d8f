"""The package as users get it: built, installed where nothing else is, and used."""

import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_string
from importlib.metadata import requires, version
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.each import each
from unfog._extras import EXTRA_OF
from unfog.version import __version__

ROOT = Path(__file__).parents[2]

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
USED = [*SETTINGS["optional-dependencies"]]
KINDS = {".toml", ".html", ".js", ".css", ".svg", ".cu", ".typed"}  # of files that are no Python, and needed

# With the core alone: a decision that is kept, and a command that says what is missing.
FIRST = """
import unfog
CHANNEL = {"context_mean": [7000], "context_cov": [[4e6]], "noise_cov": [[8e5]], "bias_cov": [[1e6]]}
with unfog.live.open("first.unfog") as store:
    walks = store.problem("walks", context=["steps"], arms=["send", "wait"], channel=CHANNEL)
    decision = walks.decide({"steps": 1648})
    walks.reward(decision.id, 1.0)
    print(decision.arm in ("send", "wait"), len(list(walks.events())))
"""


def run(*command: str | Path, where: Path, ok: bool = True) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
    done = subprocess.run([*map(str, command)], cwd=where, env=kept, capture_output=True, text=True)
    assert (done.returncode == 0) is ok, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, where=out)
    return out


@pytest.fixture(scope="module")
def alone(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the core's pinned requirements and the wheel."""
    place = tmp_path_factory.mktemp("alone")
    run(sys.executable, "-m", "venv", "--without-pip", place / "venv", where=place)
    install = *pip(place), "install", "--quiet", "--no-compile"
    run(*install, "--require-hashes", "-r", ROOT / "requirements/core.txt", where=place)
    run(*install, "--no-deps", next(built.glob("*.whl")), where=place)
    return place


def pip(place: Path) -> tuple[str, ...]:
    """The pip that we have, at work on the environment of a place: one of its own would take seconds."""
    python = str(place / "venv/bin/python")
    return sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python


def test_the_wheel_has_what_runs_and_nothing_else(built: Path) -> None:
    names = zipfile.ZipFile(next(built.glob("*.whl"))).namelist()
    strangers = [n for n in names if not n.startswith(("unfog/", f"unfog-{__version__}.dist-info/"))]
    assert strangers == []
    assert sorted(n for n in names if n.startswith("unfog/")) == sorted(kept())


def kept() -> list[str]:
    """The files of the package that git has, as a wheel names them."""
    said = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "src/unfog"]
    listed = subprocess.run(said, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [name.removeprefix("src/") for name in listed if (ROOT / name).exists()]


def test_the_package_has_files_that_are_no_python() -> None:
    """Experiments, the page, a kernel and the mark of a typed package: none was lost in a move."""
    assert {Path(name).suffix for name in kept()} >= KINDS
    assert {Path(name).name for name in kept()} >= {
        "py.typed",
        "kernel.cu",
        "index.html",
        "fig1-gaussian.toml",
    }


def test_the_source_archive_builds_the_same_wheel(built: Path, tmp_path: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    [source] = tmp_path.iterdir()
    run(
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--wheel",
        "--outdir",
        tmp_path,
        source,
        where=tmp_path,
    )
    first, again = (zipfile.ZipFile(next(folder.glob("*.whl"))) for folder in (built, tmp_path))
    assert {i.filename: i.CRC for i in first.infolist()} == {i.filename: i.CRC for i in again.infolist()}


def test_the_metadata_says_who_it_is(built: Path) -> None:
    wheel = zipfile.ZipFile(next(built.glob("*.whl")))
    told = message_from_string(wheel.read(f"unfog-{__version__}.dist-info/METADATA").decode())
    assert (told["Name"], told["Version"], told["License-Expression"]) == ("unfog", __version__, "Apache-2.0")
    assert set(told.get_all("Provides-Extra", [])) == set(USED)
    assert "Typing :: Typed" in told.get_all("Classifier", [])
    assert "Good decisions from bad measurements" in str(told.get_payload())


def test_the_citation_and_the_changelog_are_of_this_version() -> None:
    assert f"version: {__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\n## {__version__} (" in (ROOT / "CHANGELOG.md").read_text("utf-8")


@pytest.mark.slow
def test_it_works_with_its_core_alone(alone: Path) -> None:
    binary = alone / "venv/bin"
    assert run(binary / "unfog", "--version", where=alone).stdout == f"unfog {__version__}\n"
    assert run(binary / "python", "-c", FIRST, where=alone).stdout == "True 3\n"
    run(*pip(alone), "check", where=alone)
    missing = run(binary / "unfog", "run", "fig1-gaussian", "--trials", "2", where=alone, ok=False)
    assert missing.returncode == 2
    assert missing.stderr.startswith("unfog: ")
    assert "pip install 'unfog[lab]'" in missing.stderr


@pytest.mark.slow
def test_a_second_type_checker_knows_every_type_that_a_user_meets(tmp_path: Path) -> None:
    (tmp_path / "consumer.py").write_bytes((Path(__file__).parent / "consumer.py").read_bytes())
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    binary = Path(sys.executable).parent
    environment = os.environ | {"VIRTUAL_ENV": str(binary.parent), "PATH": f"{binary}:{os.environ['PATH']}"}
    done = subprocess.run(
        [binary / "basedpyright", "--outputjson", "consumer.py"],
        cwd=tmp_path, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert [d["message"] for d in found["generalDiagnostics"] if d["severity"] == "error"] == []
    assert found["summary"]["filesAnalyzed"] == 1


@each("extra", USED)
def test_an_extra_brings_what_is_said_of_it(extra: str) -> None:
    """What is installed here has the versions asked for, and the modules that it is known by."""
    wanted = [Requirement(line) for line in requires("unfog") or []]
    own = [r for r in wanted if r.marker and r.marker.evaluate({"extra": extra}) and r.name != "unfog"]
    assert own or extra == "dev"
    for requirement in own:
        assert requirement.specifier.contains(version(requirement.name), prereleases=True), requirement
    for module, brings in EXTRA_OF.items():
        assert brings != extra or find_spec(module) is not None, module


@pytest.mark.soak
@pytest.mark.parametrize("extra", [extra for extra in USED if extra != "dev"])
def test_an_extra_installs_where_nothing_else_is(extra: str, built: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", "venv", where=tmp_path)
    wheel = next(built.glob("*.whl"))
    run(tmp_path / "venv/bin/pip", "install", "--quiet", f"{wheel}[{extra}]", where=tmp_path)
    run(tmp_path / "venv/bin/python", "-m", "pip", "check", where=tmp_path)
    modules = [module for module, brings in EXTRA_OF.items() if brings == extra]
    run(tmp_path / "venv/bin/python", "-c", f"import unfog, {', '.join([*modules, 'json'])}", where=tmp_path)
