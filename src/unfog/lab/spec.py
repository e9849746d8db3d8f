"""An experiment as a TOML file, checked field by field.

    name = "mine"                    # optional: the file's name unless told
    title = "..."                    # optional
    [problem]                        # the fields of the world named by `kind`
    kind = "gaussian"
    [run]
    rounds = 1000
    trials = 100
    seed = 0
    agents = ["alg1", "oracle"]
    [sweep]                          # optional: the same run for several settings (lab/sweep.py)
    actions = [10, 20, 40, 80]

`load` takes such a file or a name of the catalog, `parse` plain data. Pydantic checks the shape; its errors
are raised as an InputError that names field, value and what is allowed.
"""

import dataclasses
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, SkipValidation, ValidationError

from unfog import _io
from unfog.lab import sweep as sweeps
from unfog.lab.datasets.airquality import AirQuality
from unfog.lab.datasets.heartsteps import HeartSteps
from unfog.lab.datasets.movielens import MovieLens
from unfog.lab.datasets.recorded import RecordedFile, beside
from unfog.lab.stopping import FEWEST, MOST, check_target
from unfog.simulation import MOST_SEED, MOST_TRIALS, engines
from unfog.simulation.job import precision_of
from unfog.simulation.plan import MOST_POINTS
from unfog.validation import LONGEST_LOOKED_UP, InputError, count, display, nearest
from unfog.worlds.composed import Composed
from unfog.worlds.contexts import UnitFields
from unfog.worlds.measurement import ChannelFields, KnowledgeFields
from unfog.worlds.problem import Problem
from unfog.worlds.synthetic import GaussianProblem, LogisticProblem, PostServingProblem
from unfog.worlds.temporal import TemporalProblem

KINDS: dict[str, type[Composed]] = {
    "gaussian": GaussianProblem,
    "logistic": LogisticProblem,
    "movielens": MovieLens,
    "airquality": AirQuality,
    "temporal": TemporalProblem,
    "recorded": RecordedFile,
    "heartsteps": HeartSteps,
    "post_serving": PostServingProblem,
}
SUITES = {  # several experiments in one: `unfog run` plays them, and their tables are their own
    "baselines": "Every baseline on ten problems: regret as a ratio to ours, paired (a suite of experiments)"
}
SHARED = {field.name for kind in (KnowledgeFields, ChannelFields) for field in dataclasses.fields(kind)}
UNITS = {field.name for field in dataclasses.fields(UnitFields)}
MOST_TITLE = 1000  # characters
WANTED = {  # what is expected, by the type of pydantic's error
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text in quotes",
    "list_type": 'a list of names, as in ["alg1"]',
}
TABLES = ("dict_type", "model_type")


def _field_rank(field: "dataclasses.Field[Any]") -> int:
    """The sort key of a field: a world's own fields first, then those of units, then those of every world."""
    return 2 * (field.name in SHARED) + (field.name in UNITS)


DEFAULTS = {
    kind: {
        field.name: field.default
        for field in sorted(dataclasses.fields(world), key=_field_rank)
        if field.init
    }
    for kind, world in KINDS.items()
}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class RunSpec(_Strict):
    """How many rounds and trials, with which seed, and which agents play."""

    rounds: int = 1000
    trials: int = 100
    seed: int = 0
    agents: list[str] = Field(default_factory=lambda: ["unfog", "alg1", "alg2", "naive", "oracle", "kk"])
    points: int | None = None
    decompose: bool = True
    engine: str = "numpy"
    precision: str | None = None
    target_se: float | None = None  # trials are then the budget: the most there will be
    reference: str | None = None


class Spec(_Strict):
    """An experiment."""

    name: str = "experiment"
    title: str = ""
    problem: dict[str, Any]
    run: RunSpec = RunSpec()
    sweep: Annotated[sweeps.Sweep, SkipValidation] = Field(default_factory=dict)  # by `sweeps.check`

    def settings(self) -> list[tuple[str, dict[str, Any]]]:
        """What is appended to the agents' names, and the fields of the problem, for each problem to run."""
        labelled_settings = zip(sweeps.labels(self.sweep), sweeps.settings(self.sweep), strict=True)
        return [(label, {**self.problem, **fields}) for label, fields in labelled_settings]


def load(source: str | Path, overrides: Mapping[str, Any] | None = None) -> Spec:
    """The spec of a catalog name or a TOML file, with fields of [run] overridden."""
    if not isinstance(source, str | Path):
        raise InputError("experiment", display(source), "a name of the catalog, or a .toml file")
    data, name = _find_tables(source)
    if "sweep" in data:
        sweeps.refuse_empty(data["sweep"])
    changes = {field: value for field, value in (overrides or {}).items() if value is not None}
    if changes:
        run = data.get("run", {})
        if not isinstance(run, dict):
            raise InputError("run", run, "a table: [run]")
        data = {**data, "run": {**run, **changes}}
    return parse(data, name)


def _find_tables(source: str | Path) -> tuple[dict[str, Any], str]:
    """The tables of an experiment and its name."""
    text, known = str(source), catalog()
    if text in known:
        return known[text].model_dump(exclude={"name"}, exclude_unset=True), text
    allowed = "a name from `unfog list experiments`, or a .toml file"
    if text in SUITES:
        allowed += "; unfog.compare_baselines() plays the suite"
        raise InputError("experiment", f"{text!r} is a suite of experiments", allowed)
    path = Path(source)
    if _io.is_file(path) or (path.suffix == ".toml" and not _io.is_missing(path)):
        return _read_tables(path)
    near = nearest(text, [*known, *SUITES]) or _io.near(path) or nearest(path.stem, known)
    raise InputError("experiment", f"{text!r} is neither known nor a file", allowed, near)


def _read_tables(path: Path) -> tuple[dict[str, Any], str]:
    """The tables of a file, with absolute paths to data beside it, and a name made from the file's."""
    data = _io.toml("experiment", path)
    if isinstance(data.get("problem"), dict):
        data["problem"] = beside(data["problem"], path.parent)
    return data, re.sub(r"[^A-Za-z0-9._-]", "-", path.stem).lstrip(".-")[:LONGEST_LOOKED_UP] or "spec"


def catalog() -> dict[str, Spec]:
    """The experiments that come with the package, by name. Their worlds are not built: that may take long."""
    files = resources.files("unfog.lab") / "catalog"
    entries = [file for file in files.iterdir() if file.name.endswith(".toml")]
    names = sorted((file.name.removesuffix(".toml"), file) for file in entries)
    return {
        name: Spec.model_validate({"name": name, **tomllib.loads(file.read_text("utf-8"))})
        for name, file in names
    }


def parse(data: Mapping[str, Any], name: str = "experiment") -> Spec:
    """A spec from plain data, its shape checked; one without a name takes the one given here.

    What needs the problem to be built, such as whether a matrix is a covariance, is checked by `prepare`.
    """
    if not isinstance(data, Mapping):
        raise InputError("experiment", display(data), "tables: problem, run, sweep")
    try:
        return checked(Spec.model_validate({"name": name, **data}))
    except ValidationError as error:
        raise explain_error(error, {"": Spec, "run": RunSpec}) from None


def explain_error(error: ValidationError, tables: Mapping[str, type[BaseModel]]) -> InputError:
    """Pydantic's first error as an InputError; `tables` are the models by table, "" being the spec itself.

    An unknown field is reported before a missing one: it may be the missing one, mistyped.
    """
    errors = error.errors()
    first = next((detail for detail in errors if detail["type"] == "extra_forbidden"), errors[0])
    where, kind = ".".join(map(str, first["loc"])), first["type"]
    if kind == "extra_forbidden":
        fields = tables.get(str(first["loc"][0]), tables[""]).model_fields
        return InputError(where, "unknown field", ", ".join(fields))
    if kind == "missing":
        return InputError(where, "missing", f"a table: [{where}]")
    expected = f"a table: [{where}]" if kind in TABLES else WANTED.get(kind)
    return InputError(
        where, display(first["input"]), expected or first["msg"].removeprefix("Input should be ")
    )


def checked(spec: Spec) -> Spec:
    """Check the values of a spec whose shape is right."""
    _check_problem(check_run(spec))
    return spec


def check_run(spec: Spec) -> Spec:
    """Check all but the problem."""
    if not re.fullmatch(rf"[A-Za-z0-9_][A-Za-z0-9._-]{{0,{LONGEST_LOOKED_UP - 1}}}", spec.name):
        allowed = f"letters, digits, '.', '_' and '-', at most {LONGEST_LOOKED_UP}, no leading '.' or '-'"
        raise InputError("name", repr(spec.name), allowed)
    if len(spec.title) > MOST_TITLE:
        raise InputError("title", repr(spec.title), f"at most {MOST_TITLE} characters")
    count("run.rounds", spec.run.rounds)
    count("run.trials", spec.run.trials, most=MOST_TRIALS)
    check_target(spec.run.target_se, spec.run.reference, spec.run.trials)
    count("run.seed", spec.run.seed, 0, MOST_SEED)
    if spec.run.points is not None:
        count("run.points", spec.run.points, most=MOST_POINTS)
    if spec.run.precision is not None:
        precision_of("run.precision", spec.run.precision)
    engines.check_name(spec.run.engine, "run.engine")
    return spec


def _check_problem(spec: Spec) -> None:
    kind = spec.problem.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError("problem.kind", "missing" if kind is None else display(kind), ", ".join(KINDS))
    for field, value in spec.problem.items():
        if field != "kind":
            _check_field("problem", kind, field, value)
    sweeps.check(spec.sweep, list(RunSpec.model_fields), list(DEFAULTS[kind]))
    for field, values in sweeps.values(spec.sweep).items():
        for value in values:
            _check_field("sweep", kind, field, value)


def _check_field(table: str, kind: str, field: str, value: Any) -> None:
    if field not in DEFAULTS[kind]:
        allowed = ["kind"] * (table == "problem") + list(DEFAULTS[kind])
        raise InputError(f"{table}.{field}", "unknown field", ", ".join(allowed))
    if isinstance(DEFAULTS[kind][field], str) and not isinstance(value, str):
        raise InputError(f"{table}.{field}", display(value), "a name in quotes")


def with_run(spec: Spec, changes: Mapping[str, Any]) -> Spec:
    """The spec with fields of [run] changed; None leaves a field as it is."""
    changed = {field: value for field, value in changes.items() if value is not None}
    return spec.model_copy(update={"run": spec.run.model_copy(update=changed)})


def with_target_se(
    spec: Spec, *, target_se: float | None, reference: str | None, max_trials: int | None, trials: int | None
) -> Spec:
    """The spec with a search for its number of trials, if one is requested; `trials` may not be given then.

    The budget is that of the spec if it has one, unless another is given.
    """
    searches = spec.run.target_se is not None
    if target_se is None and not searches:
        for field, value in (("reference", reference), ("max_trials", max_trials)):
            if value is not None:
                raise InputError(field, repr(value), "together with target_se alone")
        return spec
    if trials is not None:
        raise InputError(
            "trials", trials, "max_trials instead, where target_se has the number of trials found"
        )
    most = None if max_trials is None else count("max_trials", max_trials, FEWEST, MOST_TRIALS)
    most = most or (None if searches else MOST)
    return check_run(with_run(spec, {"target_se": target_se, "reference": reference, "trials": most}))


def build_problem(fields: Mapping[str, Any], swept: Sequence[str] = ()) -> Problem:
    """The world these fields describe; errors name the table that a field came from."""
    rest = dict(fields)
    try:
        return KINDS[rest.pop("kind")](**rest)
    except InputError as error:
        if error.field == "data":  # what is missing is a file, not a field
            raise
        raise InputError.prefixed("sweep" if error.field in swept else "problem", error) from None


def describe(problem: Problem) -> dict[str, Any] | None:
    """The fields that build this problem, or None where TOML cannot say them (features made in Python)."""
    for kind, world in KINDS.items():
        if type(problem) is world:
            fields = {name: getattr(problem, name) for name in DEFAULTS[kind]}
            plain = {
                name: np.asarray(value).tolist() for name, value in fields.items() if not callable(value)
            }
            return {"kind": kind, **plain} if len(plain) == len(fields) else None
    return None


def to_toml(spec: Spec) -> str:
    """The spec as a file that `unfog run` takes. JSON's numbers, strings and lists are TOML's too."""
    data = spec.model_dump(exclude_none=True)
    lines = [f"{field} = {_quote(data.pop(field))}" for field in ("name", "title")]
    for table, content in data.items():
        head, tables = (f"[[{table}]]", content) if isinstance(content, list) else (f"[{table}]", [content])
        for fields in filter(None, tables):
            lines += ["", head, *(f"{field} = {json.dumps(value)}" for field, value in fields.items())]
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    """A TOML string: JSON's, with the one control character that JSON leaves bare."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
