"""Modules that are named by text, or imported when they are needed, are there: no import would say so."""

import ast
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import unfog
from tests.each import each
from unfog.adapters import libraries
from unfog.adapters.wrap import WAYS
from unfog.simulation import engines, executors

ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
SOURCES = [
    path
    for folder in ("src", "tests", "benchmarks", "docs")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if not {"_build", "generated", "out"} & {*path.parts}
]


def lacking(module: str, name: str = "") -> str:
    """What is not there: a module of ours, or a name in it; empty where all is."""
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "unfog":
            pytest.fail(f"{module} needs {error.name}, which tests have")
        return error.name or module
    there = not name or hasattr(found, name) or (hasattr(found, "__path__") and find_spec(f"{module}.{name}"))
    return "" if there else f"{module}.{name}"


def test_public_names_are_where_the_tables_say() -> None:
    assert {*unfog._HOME, *unfog._ROOMS, "__version__"} == {*unfog.__all__}
    homes = [lacking(f"unfog.{home}", name) for name, home in unfog._HOME.items()]
    rooms = [lacking(f"unfog.{room}") for room in unfog._ROOMS.values()]
    assert [one for one in homes + rooms if one] == []


def test_every_library_that_is_wrapped_has_its_function() -> None:
    assert [name for name in WAYS if not hasattr(libraries, f"wrap_{name}")] == []
    assert {*libraries.WRAPPERS, "vowpalwabbit"} == {*WAYS}


@each("name", engines.NAMES)
def test_every_engine_is_found_by_its_name(name: str) -> None:
    assert engines.engine(name).name == name


def test_every_executor_is_found_by_its_name() -> None:
    """Those of clusters are imported in a function: `test_imports_of_ours_are_of_what_is_there` sees them."""
    assert {*executors.NAMES} == {"serial", "processes", *executors.CLUSTERS}
    for name in executors.CLUSTERS:
        assert lacking(f"{executors.__name__}.{name}", name.capitalize()) == ""


def test_every_command_is_imported() -> None:
    [entry] = SETTINGS["project"]["scripts"].values()
    assert lacking(*entry.split(":")) == ""
    assert lacking("unfog.cli.app", "app") == ""


@pytest.mark.slow
def test_imports_of_ours_are_of_what_is_there() -> None:
    """Also those inside functions, those for types alone, and those of files that nobody imports."""
    wanted = set[tuple[str, str]]()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                wanted |= {(name.name, "") for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                wanted |= {(node.module, name.name) for name in node.names}
    ours = sorted((module, name) for module, name in wanted if module.partition(".")[0] == "unfog")
    assert len(ours) > 1000
    assert [one for one in (lacking(*both) for both in ours) if one] == []


def test_modules_that_are_written_as_text_are_there() -> None:
    """Such as "unfog.lab", whose data are read."""
    wanted = {
        node.value
        for path in SOURCES
        if path.is_relative_to(ROOT / "src") or path.is_relative_to(ROOT / "docs/_ext")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and dotted(node.value)
    }
    assert len(wanted) > 30
    public = {name for name in wanted if name.split(".")[1] in unfog.__all__}
    assert [one for one in (lacking(*name.rsplit(".", 1)) for name in sorted(wanted - public)) if one] == []


def dotted(text: str) -> bool:
    """Whether it is the name of a module of ours, or of something in one."""
    parts = text.split(".")
    return len(parts) > 1 and parts[0] == "unfog" and all(part.isidentifier() for part in parts)


def test_settings_of_tools_are_of_files_that_are_there() -> None:
    """Exceptions for a file that has moved would be silently lost."""
    lint = SETTINGS["tool"]["ruff"]["lint"]["per-file-ignores"]
    assert [one for one in lint if not any(ROOT.glob(one))] == []
    hatch = SETTINGS["tool"]["hatch"]
    paths = [hatch["version"]["path"], *hatch["build"]["targets"]["wheel"]["packages"]]
    assert [path for path in paths if not (ROOT / path).exists()] == []
