"""Sweeps: every setting is the run it would be by itself, wherever it lies in the result."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer

import unfog
from tests.each import each
from unfog.lab import figures, results, storage, sweep
from unfog.lab.datasets.movielens import MovieLens, Ratings
from unfog.lab.prepare import prepare
from unfog.lab.run import keep, open_run
from unfog.lab.spec import DEFAULTS, Spec, load, parse, to_toml
from unfog.simulation import Gathering
from unfog.simulation.engines import numpy as numpy_engine
from unfog.validation import InputError

AGENTS = ["alg1", "naive", "oracle"]
MATRIX = [[0.5, 0.1], [0.1, 1.0]]
GRID: dict[str, list[Any]] = {"actions": [4, 3], "noise_cov": [0.5, 1, MATRIX]}
LIST: list[dict[str, Any]] = [
    {"noise_cov": 0.5, "action_law": "normal", "actions": 3},
    {"noise_cov": 2, "action_law": "uniform", "actions": 4},
    {"noise_cov": 0.5, "action_law": "uniform", "actions": 3},
]
SWEEPS: dict[str, sweep.Sweep] = {"grid": GRID, "list": LIST}


def spec(swept: Any, agents: list[str] | None = None, **fields: Any) -> Spec:
    run = {"rounds": 12, "trials": 7, "seed": 3, "agents": agents or AGENTS}
    return parse({"problem": {"kind": "gaussian", "dim": 2, **fields}, "run": run, "sweep": swept}, "swept")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    return {name: keep(prepare(spec(swept)), folder / name) for name, swept in SWEEPS.items()}


def test_a_grid_is_every_combination_and_a_list_is_itself() -> None:
    found = sweep.settings(GRID)
    assert [tuple(one.values()) for one in found] == [(k, cov) for k in (4, 3) for cov in (0.5, 1, MATRIX)]
    assert sweep.settings(LIST) == LIST
    assert sweep.settings({}) == sweep.settings([]) == [{}]
    assert sweep.labels({}) == [""]
    assert sweep.labels(LIST)[1] == " noise_cov=2 action_law=uniform actions=4"


def test_a_grid_has_a_dimension_for_each_field(runs: dict[str, Path]) -> None:
    for data in (open_run(runs["grid"]), unfog.run(spec(GRID))):
        assert data["regret"].dims == ("actions", "noise_cov", "agent", "trial", "round")
        assert data["actions"].values.tolist() == [4, 3]
        assert data["noise_cov"].values.tolist() == ["0.5", "1", str(MATRIX)]
        assert list(data["agent"].values) == AGENTS


def test_a_list_has_its_fields_along_one_dimension(runs: dict[str, Path]) -> None:
    for data in (open_run(runs["list"]), unfog.run(spec(LIST))):
        assert data["regret"].dims == ("setting", "agent", "trial", "round")
        assert data["noise_cov"].values.tolist() == [0.5, 2.0, 0.5]
        assert data["action_law"].values.tolist() == ["normal", "uniform", "uniform"]
        assert data["actions"].dims == ("setting",)


def alone(**fields: Any) -> xr.Dataset:
    return unfog.run(spec({}, **fields)).drop_attrs()


def test_a_setting_is_the_run_it_would_be_alone_to_the_bit(runs: dict[str, Path]) -> None:
    grid, listed = open_run(runs["grid"]).drop_attrs(), open_run(runs["list"]).drop_attrs()
    for k in GRID["actions"]:
        for place, cov in enumerate(GRID["noise_cov"]):
            one = grid.sel(actions=k).isel(noise_cov=place, drop=True).drop_vars("actions")
            assert one.equals(alone(actions=k, noise_cov=cov))
    for place, fields in enumerate(LIST):
        assert listed.isel(setting=place).drop_vars(list(fields)).equals(alone(**fields))


@pytest.mark.parametrize("kind", SWEEPS)
def test_a_sweep_survives_the_round_trip_through_toml(kind: str, tmp_path: Path) -> None:
    (tmp_path / "again.toml").write_text(to_toml(spec(SWEEPS[kind])), "utf-8")
    assert load(tmp_path / "again.toml").sweep == SWEEPS[kind]
    assert Spec.model_validate_json(spec(SWEEPS[kind]).model_dump_json()).sweep == SWEEPS[kind]


@pytest.mark.parametrize("kind", SWEEPS)
def test_the_stored_spec_repeats_the_run_to_the_byte(
    kind: str, runs: dict[str, Path], tmp_path: Path
) -> None:
    again = keep(prepare(load(runs[kind] / "spec.toml")), tmp_path / "again")
    for name in ("curves.nc", "spec.toml", "run.json"):
        assert (again / name).read_bytes() == (runs[kind] / name).read_bytes()


@pytest.mark.parametrize("finished", [1, 3, 4])
def test_a_sweep_is_resumed_in_any_setting(
    finished: int, runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numpy_engine, "BATCH_TRIALS", (3, 3))
    save, saved = storage.Partial.save, list[Any]()

    def failing(self: storage.Partial, task: Any, parts: Any) -> None:
        if len(saved) == finished:
            raise OSError(28, "No space left on device")
        saved.append(task)
        save(self, task, parts)

    with monkeypatch.context() as trouble:
        trouble.setattr(storage.Partial, "save", failing)
        with pytest.raises(OSError, match="No space"):
            keep(prepare(spec(GRID)), tmp_path / "run")
    there, played = {piece for task in saved for piece in task}, list[Any]()
    engine = numpy_engine.Numpy.run

    def watched(self: Any, job: Any, trials: Any, tick: Any) -> Any:
        played.append(trials)
        return engine(self, job, trials, tick)

    monkeypatch.setattr(numpy_engine.Numpy, "run", watched)
    keep(prepare(spec(GRID)), tmp_path / "run")
    assert len(played) == 6 * 3 - len(there)
    assert (tmp_path / "run/curves.nc").read_bytes() == (runs["grid"] / "curves.nc").read_bytes()


@pytest.mark.slow
def test_workers_change_no_byte_of_a_sweep(runs: dict[str, Path], tmp_path: Path) -> None:
    keep(prepare(spec(LIST), workers=2), tmp_path / "two")
    assert (tmp_path / "two/curves.nc").read_bytes() == (runs["list"] / "curves.nc").read_bytes()


def test_rows_are_called_by_their_settings_and_paired_within_them(runs: dict[str, Path]) -> None:
    data = open_run(runs["list"])
    facts = unfog.summary(data)
    labels = sweep.labels(LIST)
    assert list(facts["agents"]) == [agent + label for label in labels for agent in AGENTS]
    keys = {tuple(row) for row in facts["agents"].values()}
    assert keys == {tuple(unfog.summary(unfog.run(spec({})))["agents"]["alg1"])}
    assert len(facts["pairs"]) == 3 * len(LIST)
    final = data["regret"].isel(round=-1)
    for place, label in enumerate(labels):
        own = final.isel(setting=place)
        gap = (own.sel(agent="naive") - own.sel(agent="oracle")).values
        pair = facts["pairs"][f"naive{label} - oracle{label}"]
        assert pair["mean"] == pytest.approx(gap.mean())
        assert pair["se"] == pytest.approx(gap.std(ddof=1) / np.sqrt(7))


def test_one_field_keeps_the_keys_it_had() -> None:
    facts = unfog.summary(unfog.run(spec({"noise_cov": [1, 2.5]}, ["alg1"])))
    assert list(facts["agents"]) == ["alg1 noise_cov=1", "alg1 noise_cov=2.5"]


@pytest.mark.parametrize("swept", [GRID, LIST, {"noise_cov": [[0.123456789, 1.5], [1.5, 2.123456789]]}])
def test_the_table_is_in_groups_and_fits(swept: Any) -> None:
    data = unfog.run(spec(swept))
    facts = unfog.summary(data)
    lines = unfog.table(data, 1.0, parts=True, tails=True).splitlines()
    assert max(map(len, lines)) <= 80
    count = len(sweep.settings(swept))
    assert lines[1] == f"{count} settings x 3 agents x 7 trials"
    first_of_all = lines[: lines.index("")]  # what does not fit stands below, after an empty line
    rows = [line for line in first_of_all if " ± " in line]
    assert len(rows) == 3 * count
    for place, label in enumerate(sweep.labels(swept)):
        first, naive, last = rows[3 * place : 3 * place + 3]
        assert [line.split(" ± ")[0].split()[-2] for line in (first, naive, last)] == AGENTS
        gap = facts["pairs"][f"naive{label} - oracle{label}"]["mean"]
        assert float(naive.split(" ± ")[1].split()[1]) == pytest.approx(gap, abs=0.0501)


def points(axes: Axes) -> list[list[Any]]:
    bars = [one.lines[0] for one in axes.containers if isinstance(one, ErrorbarContainer)]
    return [np.asarray(line.get_xydata()).tolist() for line in bars]


def styles(axes: Axes) -> set[str]:
    return {
        str(one.lines[0].get_linestyle()) for one in axes.containers if isinstance(one, ErrorbarContainer)
    }


def test_a_number_is_an_axis_and_its_points_are_final_regrets() -> None:
    data = unfog.run(spec({"actions": [4, 2, 3]}))
    chart = figures.figure(data)
    chart.draw_without_rendering()
    [axes] = chart.axes
    final = data["regret"].isel(round=-1).mean("trial")
    for agent, found in zip(AGENTS, points(axes), strict=True):
        assert [x for x, _ in found] == [2, 3, 4]
        right = [float(final.sel(agent=agent, actions=k)) for k in (2, 3, 4)]
        assert [y for _, y in found] == pytest.approx(right)
    assert styles(axes) != {"None"}
    assert chart.get_supxlabel().strip() == "number of arms"


@each(
    "values, scale",
    [([2, 3, 4], "linear"), ([0.5, 2.0], "linear"), ([1, 10, 100], "log"), ([0.0, 0.1, 1.0, 10.0], "symlog")],
)
def test_numbers_far_apart_are_on_a_logarithmic_axis(values: list[float], scale: str) -> None:
    chart = figures.figure(unfog.run(spec({"drift_cov" if 0.0 in values else "noise_cov": values})))
    [axes] = chart.axes
    assert axes.get_xscale() == scale
    assert ("logarithmic from" in chart.get_supxlabel()) == (scale == "symlog")
    assert [text.get_text() for text in axes.get_xticklabels()] == [str(value) for value in values]


PANELS: dict[str, tuple[Any, list[str], bool]] = {
    "category": ({"action_law": ["normal", "uniform"]}, [""], False),
    "two": (
        GRID,
        ["size of the noise = 0.5", "size of the noise = 1", f"size of the noise = {MATRIX}"],
        True,
    ),
    "three": (
        {"features": ["product", "quadratic"], "actions": [2, 3], "tails": [0, 3], "reveal_delay": [0]},
        [
            f"number of arms = {k}\ndegrees of freedom of the noise = {n}"
            for k in (2, 3)
            for n in ("Gaussian", 3)
        ],
        False,
    ),
    "list": (LIST, [""], False),
}


@each("case", PANELS)
def test_panels_are_the_other_fields_and_categories_are_not_joined(case: str) -> None:
    swept, titles, joined = PANELS[case]
    chart = figures.figure(unfog.run(spec(swept)))
    chart.draw_without_rendering()
    assert [axes.get_title("left").split() for axes in chart.axes] == [title.split() for title in titles]
    assert [len(points(axes)) for axes in chart.axes] == [3] * len(titles)
    assert all((styles(axes) == {"None"}) != joined for axes in chart.axes)


def test_panels_that_are_too_many_are_left_out_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "MOST_PANELS", 2)
    chart = figures.figure(unfog.run(spec(GRID)))
    assert len(chart.axes) == 2
    assert any("the first 2 of 3 panels" in text.get_text() for text in chart.texts)


def test_a_part_of_a_sweep_can_be_shown(runs: dict[str, Path]) -> None:
    part = open_run(runs["grid"]).sel(actions=3)
    assert next(iter(unfog.summary(part)["agents"])) == "alg1 noise_cov=0.5"
    assert unfog.table(part).splitlines()[1] == "3 settings x 3 agents x 7 trials"
    [axes] = figures.figure(part.sel(agent=["naive", "alg1"])).axes
    assert len(points(axes)) == 2
    one = part.isel(noise_cov=0)
    assert list(unfog.summary(one)["agents"]) == AGENTS
    [axes] = figures.figure(one).axes
    assert len(axes.get_lines()) == 3


def test_settings_may_have_different_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    few = Ratings(rng.normal(size=(9, 3)), rng.normal(size=(4, 3)), rng.uniform(0.2, 0.8, (4, 3)))
    monkeypatch.setattr(MovieLens, "_ratings", lambda _: few)
    problem = {"kind": "movielens", "ratings": "stand-in", "clusters": 4}
    run = {"rounds": 4, "trials": 2, "agents": ["unfog"]}
    data = unfog.run(parse({"problem": problem, "run": run, "sweep": {"contexts": ["users", "gaussian"]}}))
    users, drawn = unfog.summary(data)["agents"].values()
    assert set(users) - set(drawn) == {"regret_bayes", "regret_bayes_se"}
    json.dumps(unfog.summary(data), allow_nan=False)
    lines = unfog.table(data, parts=True).splitlines()
    head, row = (next(line for line in lines if word in line) for word in ("realised", "gaussian"))
    end = head.index("bayes") + len("bayes")
    assert row[:end].split()[-1] == "-"


def test_long_values_are_cut_and_stay_apart() -> None:
    first = np.eye(5).tolist()
    second = [[*row[:4], 0.5] for row in first]
    found = sweep.spelled([first, second, 1, "", first])
    assert found[0] == found[4] != found[1]
    assert max(map(len, found)) <= sweep.LONGEST
    assert found[2:4] == ["1", "''"]


def test_numbers_that_a_file_cannot_hold_as_integers_are_kept_as_numbers() -> None:
    [(_, found)] = sweep.axes({"actions": [1, 2**40]}).coords.values()
    assert found.dtype == float
    assert found.tolist() == [1, 2**40]


REFUSED: dict[str, tuple[Any, str]] = {
    "field of run": (
        {"seed": [1, 2]},
        r"^sweep\.seed: a field of \[run\].*allowed: fields of \[problem\]: dim",
    ),
    "unknown": ([{"action": 3}], r"^sweep\.action: unknown field \(did you mean 'actions'\?\); allowed: dim"),
    "no list": ({"actions": 3}, r"^sweep\.actions: 3; allowed: a list"),
    "no values": ({"actions": []}, r"^sweep\.actions: \[\]"),
    "the same twice": ({"noise_cov": [1, 2, 1.0]}, r"^sweep\.noise_cov: .*all different"),
    "matrix twice": ({"noise_cov": [MATRIX, [[0.5, 0.1], [0.1, 1]]]}, r"^sweep\.noise_cov: .*different"),
    "setting twice": ([LIST[0], LIST[1], {**LIST[0]}], r"^sweep\[3\]: is the same as sweep\[1\]"),
    "other fields": (
        [{"actions": 3}, {"actions": 4, "dim": 1}],
        r"^sweep\[2\]: has actions, dim; .*first: actions",
    ),
    "fields without end": (
        {f"field{number}": [1, 2] for number in range(60_000)},
        r"^sweep\.field0: unknown field",
    ),
    "settings without end": (
        {name: list(range(1, 3000)) for name in ("dim", "actions", "drift_rounds", "trouble_from")},
        r"^sweep: 2147483648 settings or more; allowed: at most 10000",
    ),
    "empty setting": ([{}], r"^sweep\[1\]: \{\}"),
    "no table": (3, r"^sweep: 3; allowed: a table"),
    "no tables": ([3], r"^sweep\[1\]: 3"),
    "too many": (
        {"actions": list(range(1, 102)), "dim": list(range(1, 101))},
        r"^sweep: 10100 settings; allowed: at most 10000",
    ),
    "no name": ({"action_law": ["normal", 3]}, r"^sweep\.action_law: 3"),
}


@each("case", REFUSED)
def test_what_is_no_sweep_is_refused_by_name(case: str) -> None:
    swept, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        spec(swept)


@each("written", ["[sweep]", "sweep = []"])
def test_a_sweep_of_nothing_is_refused_by_name(written: str, tmp_path: Path) -> None:
    (tmp_path / "empty.toml").write_text(f'{written}\n[problem]\nkind = "gaussian"\n')
    with pytest.raises(InputError, match=r"^sweep: is empty; allowed: fields of the problem"):
        load(tmp_path / "empty.toml")


def test_a_bad_value_of_a_list_is_refused_when_its_problem_is_built() -> None:
    with pytest.raises(InputError, match=r"^sweep\.noise_cov: -1"):
        prepare(spec([{"noise_cov": 1.0}, {"noise_cov": -1.0}]))


def test_true_is_not_one() -> None:
    found = sweep.axes({"observe_units": [True, False]}).coords["observe_units"]
    assert found == ("observe_units", ["True", "False"])
    sweep.check({"actions": [1, True]}, [], ["actions"])


def test_no_field_is_called_like_a_dimension_or_a_loss() -> None:
    data = unfog.run(spec({}))
    taken = {*results.OWN, sweep.SETTING, *map(str, data)}
    assert not taken & {name for fields in DEFAULTS.values() for name in fields}


def test_the_result_is_not_copied_into_a_dataset() -> None:
    plan = prepare(spec(GRID))
    gathered = Gathering(plan.work)
    for task, parts in plan.work.results(plan.work.pieces, lambda _: None):
        for piece, part in zip(task, parts, strict=True):
            gathered.add(piece, part)
    whole = gathered.together()
    data = results.dataset(whole, plan.spec.sweep)
    for name, values in whole.values.items():
        assert np.shares_memory(data[name].values, values)
        assert np.shares_memory(results.flat(data.assign_attrs(spec="{}")).losses[name], values)


def test_those_who_watch_are_told_of_every_setting() -> None:
    class Watching:
        def __init__(self) -> None:
            self.told: list[list[int]] = []

        def __call__(self, done: int, total: int) -> None:
            assert done <= total

        def settings(self, done: Any) -> None:
            self.told.append(list(done))

    watching = Watching()
    unfog.run(spec(LIST), progress=watching)
    assert watching.told[0] == [0, 0, 0]
    assert watching.told[-1] == [7, 7, 7]
    assert all((np.diff(watching.told, axis=0) >= 0).ravel())
