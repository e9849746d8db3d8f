"""The MovieLens world in a spec: which ratings it is made of, said everywhere, and what agents make of it.

Factors are found once for all tests of a session: they stay in the cache that conftest.py sets up, and in the
process.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import unfog
from tests.each import each
from unfog.lab import figures, storage
from unfog.lab.datasets import files, movielens
from unfog.lab.datasets.files import DATASETS, look_in
from unfog.lab.datasets.movielens import CONTEXTS, STAND_IN, MovieLens, RatingsProblem
from unfog.lab.prepare import prepare
from unfog.lab.run import keep, open_run
from unfog.lab.spec import Spec, catalog, describe, load, parse
from unfog.maths.arrays import Array
from unfog.maths.statistics import estimate
from unfog.plotting import save
from unfog.simulation import play
from unfog.simulation.engines import numpy as numpy_engine
from unfog.validation import InputError

FOLDER = Path(os.environ.get("UNFOG_DATA") or Path(__file__).parents[4] / "shared/data")
WRONG = b"1\t2\t3\t4\n" * 100_000


def here() -> bool:
    file = Path(DATASETS["movielens"].file)
    return (FOLDER / file).exists() or (FOLDER / file.name).exists()


needs_data = pytest.mark.skipif(
    not here(), reason="no MovieLens-100K on this machine: neither in UNFOG_DATA nor in ../shared/data"
)


@pytest.fixture(scope="module", autouse=True)
def _factors() -> None:
    """In the session's cache, before a test looks into another one."""
    MovieLens(ratings="stand-in")


@pytest.fixture(autouse=True)
def _no_data(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A user without data; whatever a test looks in is forgotten."""
    monkeypatch.delenv("UNFOG_DATA", raising=False)
    assert not files.cache("data").exists()
    yield
    look_in(None)


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with data."""
    monkeypatch.setenv("UNFOG_DATA", str(FOLDER))
    return FOLDER


def spec(run: dict[str, Any] | None = None, sweep: dict[str, Any] | None = None, **problem: Any) -> Spec:
    """Complete."""
    short = {"rounds": 12, "trials": 6, "agents": ["alg1", "naive"], **(run or {})}
    fields = {"kind": "movielens", **problem}
    told = {"title": "Films", "problem": fields, "run": short, "sweep": sweep or {}}
    return prepare(parse(told, "films")).spec


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "timing.json"}


def heading(data: xr.Dataset, title: str | None = None) -> list[str]:
    return figures.figure(data, title).get_suptitle().split("\n")


# Which ratings


def test_without_data_auto_is_the_stand_in_and_says_so_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    made = spec(ratings="auto")
    assert made.problem["ratings"] == "stand-in"
    folder = keep(prepare(made), tmp_path / "run")
    assert 'ratings = "stand-in"\n' in (folder / "spec.toml").read_text()
    for found in (open_run(folder), unfog.run(made), unfog.run(MovieLens(), rounds=2, trials=2)):
        assert found.attrs["note"] == STAND_IN
        assert json.loads(found.attrs["spec"])["problem"]["ratings"] == "stand-in"
        assert unfog.table(found).splitlines()[1] == f"note: {STAND_IN}"
        assert json.loads(json.dumps(unfog.summary(found)))["note"] == STAND_IN
        assert heading(found)[0] == heading(found, "Mine")[0] == STAND_IN
    assert heading(open_run(folder)) == [STAND_IN, "Films"]
    chart, told = figures.figure(open_run(folder)), STAND_IN.encode()
    assert told in save(chart, tmp_path, "films", ("svg",))[0].read_bytes()


def test_without_data_movielens_is_refused_with_file_and_licence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    with pytest.raises(InputError) as refused:
        spec(ratings="movielens")
    said = str(refused.value)
    assert said.startswith("data: no file ml-100k/u.data of MovieLens-100K; allowed: ")
    for word in ("--data", "UNFOG_DATA", "unfog data fetch movielens", "licence: for research", "GroupLens"):
        assert word in said
    assert "\n" not in said
    assert list(tmp_path.iterdir()) == []


@needs_data
def test_with_data_auto_is_movielens_and_there_is_nothing_to_say(data: Path, tmp_path: Path) -> None:
    made = spec(ratings="auto")
    assert made.problem["ratings"] == "movielens"
    found = open_run(keep(prepare(made), tmp_path / "run"))
    assert json.loads(found.attrs["spec"])["problem"]["ratings"] == "movielens"
    assert "note" not in found.attrs
    assert "note" not in unfog.summary(found)
    assert STAND_IN not in unfog.table(found)
    assert heading(found) == ["Films"]
    other = unfog.run(spec(ratings="stand-in"))
    assert not np.any(other["regret"].values[..., -1] == found["regret"].values[..., -1])


@needs_data
def test_the_data_decide_nothing_where_the_stand_in_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(prepare(spec(ratings="auto")), tmp_path / "before")
    monkeypatch.setenv("UNFOG_DATA", str(FOLDER))
    again = load(tmp_path / "before/spec.toml")
    assert again.problem["ratings"] == "stand-in"
    keep(prepare(again), tmp_path / "after")
    assert contents(tmp_path / "before") == contents(tmp_path / "after")
    assert open_run(tmp_path / "after").attrs["note"] == STAND_IN


@needs_data
def test_a_stored_run_of_movielens_needs_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as there:
        there.setenv("UNFOG_DATA", str(FOLDER))
        keep(prepare(spec(ratings="auto")), tmp_path / "run")
    assert open_run(tmp_path / "run").attrs["experiment"] == "films"  # to look at it needs no data
    with pytest.raises(InputError, match=r"^data: no file"):
        prepare(load(tmp_path / "run/spec.toml"))


@pytest.mark.parametrize("wanted", ["auto", "movielens"])
@pytest.mark.parametrize("where", ["variable", "cache", "folder"])
def test_a_wrong_file_is_refused_even_by_auto(
    where: str, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = {"cache": files.cache("data")}.get(where, tmp_path / where)
    (place / "ml-100k").mkdir(parents=True)
    (place / "ml-100k/u.data").write_bytes(WRONG)
    if where == "variable":
        monkeypatch.setenv("UNFOG_DATA", str(place))
    if where == "folder":
        look_in(place)
    with pytest.raises(InputError, match=r"^data: ml-100k/u\.data differs from MovieLens-100K"):
        spec(ratings=wanted)
    assert spec(ratings="stand-in").problem["ratings"] == "stand-in"


def test_a_folder_that_was_named_must_hold_the_data(tmp_path: Path) -> None:
    look_in(tmp_path)
    assert files.has_folder()
    for wanted in ("auto", "movielens"):
        with pytest.raises(InputError, match=r"^data: no file ml-100k/u\.data.*licence") as refused:
            spec(ratings=wanted)
        assert f"(looked in {tmp_path})" in str(refused.value)
    assert MovieLens(ratings="stand-in").note == STAND_IN
    look_in(None)
    assert not files.has_folder()
    assert spec(ratings="auto").problem["ratings"] == "stand-in"


def test_a_variable_may_name_a_folder_without_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNFOG_DATA", str(tmp_path))
    assert spec(ratings="auto").problem["ratings"] == "stand-in"


@needs_data
def test_a_folder_that_was_named_goes_before_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNFOG_DATA", str(tmp_path))
    look_in(FOLDER)
    assert spec(ratings="auto").problem["ratings"] == "movielens"


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "afile").write_text("here")
    for name in ("nowhere", "afile"):
        with pytest.raises(InputError, match=rf"^data: no folder '.*{name}'; allowed: a folder"):
            look_in(tmp_path / name)
    assert not files.has_folder()


# The fields


def test_defaults_are_the_papers() -> None:
    found = spec(ratings="stand-in").problem
    right = {
        "kind": "movielens",
        "ratings": "stand-in",
        "clusters": 20,
        "factors": 3,
        "contexts": "users",
        "noise_cov": 0.1,
        "bias_cov": 0.6,
        "reward_var": 0.01,
        "assumed_noise_cov": 0.0,
        "tails": 0,
        "missing": 0.0,
        "drift_cov": 0.0,
        "drift_rounds": 1000,
        "trouble_from": 0,
        "revealed": 1.0,
        "reveal": "random",
        "reveal_share": 1.0,
        "reveal_delay": 0,
        "prior_contexts": 0,
        "prior_noisy_contexts": 0,
    }
    assert found == right
    paper = catalog()["fig1-movielens"]
    assert {**right, **paper.problem} == {**right, "ratings": "auto", "contexts": "gaussian"}
    assert paper.run.agents == ["unfog", "alg1", "alg2", "naive", "oracle", "kk"]


@pytest.mark.slow
def test_the_world_is_made_of_the_factors() -> None:
    problem = MovieLens(ratings="stand-in")
    found, known = movielens.cached(movielens.stand_in()), problem.knowledge()
    assert found.users.shape == (943, 3)
    np.testing.assert_allclose(known.context_mean, found.users.mean(0), rtol=1e-12)
    np.testing.assert_allclose(known.context_cov, np.cov(found.users.T), rtol=1e-12)
    assert np.array_equal(known.prior_mean.reshape(20, 3), found.centroids)
    assert np.array_equal(np.diagonal(known.prior_cov, axis1=1, axis2=2), found.variances)
    assert describe(problem) == spec(ratings="stand-in").problem


@pytest.mark.slow
def test_thirty_clusters() -> None:
    made = spec(ratings="stand-in", clusters=30)
    [problem] = prepare(made).problems
    assert problem.arms() == 30
    assert problem.knowledge().prior_mean.shape == (90,)
    found = unfog.run(made)
    assert json.loads(found.attrs["spec"])["problem"]["clusters"] == 30
    assert np.all(found["regret"].values[..., -1] > 0)


BAD = [  # two for what this world checks itself: the least or most, and what is no number
    *(("clusters", value) for value in (1, "20", 1683)),
    *(("factors", value) for value in (1, 3.0, 51)),
    *(("ratings", value) for value in ("netflix", None)),
    ("contexts", "x"),
    ("noise_cov", [[1, 2, 0], [2, 1, 0], [0, 0, 1]]),
    ("bias_cov", [0.1, 0.2]),
    ("reward_var", 0),
]


@each("field, value", BAD)
def test_bad_fields_are_refused_by_name(field: str, value: Any) -> None:
    fields = {"ratings": "stand-in", field: value}
    with pytest.raises(InputError, match=rf"^problem\.{field}: .*; allowed: ") as refused:
        spec(**fields)
    assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_odd_fields_and_sweeps_are_refused_by_name() -> None:
    with pytest.raises(
        InputError, match=r"^problem\.actions: unknown field.*; allowed: kind, contexts, .*clus"
    ):
        spec(ratings="stand-in", actions=20)
    with pytest.raises(InputError, match=r"^sweep\.clusters: 1; allowed: a whole number, at least 2"):
        spec(ratings="stand-in", clusters=2, sweep={"clusters": [2, 1]})
    with pytest.raises(InputError, match=r"^problem\.note: unknown field"):
        spec(ratings="stand-in", note="MovieLens")
    for field in ("ratings", "contexts"):
        fields: Any = {"ratings": "stand-in", field: 3}
        with pytest.raises(InputError, match=rf"^problem\.{field}: 3; allowed: a name in quotes"):
            spec(**fields)


@pytest.mark.slow
def test_a_sweep_over_clusters_has_as_many_arms() -> None:
    values = [2, 4]
    made = spec(ratings="auto", clusters=2, sweep={"clusters": values})
    plan = prepare(made)
    assert plan.labels == tuple(f" clusters={value}" for value in values)
    assert [problem.arms() for problem in plan.problems] == values
    found = unfog.run(made)
    assert found.attrs["note"] == STAND_IN
    assert list(found["agent"].values) == ["alg1", "naive"]
    assert list(found["clusters"].values) == values
    alone = unfog.run(spec(ratings="stand-in", clusters=4))
    assert np.array_equal(found["regret"].sel(clusters=4).values, alone["regret"].values)
    chart = figures.figure(found)
    assert chart.get_suptitle().startswith(STAND_IN)
    legends: list[Any] = [*chart.legends, *(axes.get_legend() for axes in chart.axes)]
    [legend] = filter(None, legends)
    assert {text.get_text() for text in legend.get_texts()} == {"alg1 (Algorithm 1)", "naive"}


def test_the_catalog_is_read_without_building_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    def costly(*_: object) -> None:
        raise AssertionError("a world was built")

    monkeypatch.setattr(RatingsProblem, "__post_init__", costly)
    assert "fig1-movielens" in catalog()
    assert catalog()["fig1-movielens"].title == "MovieLens-100K (Fig. 1 right)"
    assert load("fig1-gaussian").problem["kind"] == "gaussian"
    films = load("fig1-movielens")
    with pytest.raises(AssertionError, match="a world was built"):
        prepare(films)


# Run folders


@pytest.mark.slow
def test_the_same_run_has_the_same_bytes_alone_or_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = spec(ratings="auto", contexts="users", run={"agents": ["alg1", "alg2", "oracle"]})
    keep(prepare(made), tmp_path / "once")
    keep(prepare(made), tmp_path / "twice")
    monkeypatch.setattr(numpy_engine, "BATCH_TRIALS", (1, 2))
    keep(prepare(made, workers=2), tmp_path / "shared")
    assert contents(tmp_path / "once") == contents(tmp_path / "twice") == contents(tmp_path / "shared")


def test_an_interrupted_run_ends_with_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(prepare(spec(ratings="auto")), tmp_path / "whole")
    monkeypatch.setattr(numpy_engine, "BATCH_TRIALS", (1, 2))
    save, saved = storage.Partial.save, iter(range(10**6))

    def failing(self: storage.Partial, *given: Any) -> None:
        if next(saved) >= 2:
            raise OSError(28, "No space left on device")
        save(self, *given)

    with monkeypatch.context() as trouble:
        trouble.setattr(storage.Partial, "save", failing)
        with pytest.raises(OSError, match="No space"):
            keep(prepare(spec(ratings="auto")), tmp_path / "broken")
    assert len(list((tmp_path / "broken.partial").glob("block-*"))) == 2
    keep(prepare(spec(ratings="auto")), tmp_path / "broken")
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")
    assert open_run(tmp_path / "broken").attrs["note"] == STAND_IN


# What the paper claims


@pytest.fixture(scope="module", params=CONTEXTS)
def finals(request: pytest.FixtureRequest) -> dict[str, Array]:
    """Final regret of the paper's agents, on MovieLens where it is here and on the stand-in elsewhere."""
    with pytest.MonkeyPatch.context() as there:
        there.setenv("UNFOG_DATA", str(FOLDER))
        problem = MovieLens(ratings="movielens" if here() else "stand-in", contexts=request.param)
    curves = play(problem, rounds=300, trials=100, seed=1, decompose=False)
    return dict(zip(curves.agents, curves.values["regret"][:, :, -1], strict=True))


def errors(gap: Array) -> float:
    """How many of its standard errors a mean paired difference is above zero."""
    mean, se = estimate(gap)
    return mean / se


@pytest.mark.slow
def test_denoising_pays(finals: dict[str, Array]) -> None:
    # Measured: 8 to 12 standard errors. Equal agents would pass with probability 3e-5, by the normal law.
    assert errors(finals["naive"] - finals["alg1"]) > 4
    assert errors(finals["kk"] - finals["alg1"]) > 4


@pytest.mark.slow
def test_learning_the_bias_is_no_better_than_knowing_it(finals: dict[str, Array]) -> None:
    # Measured: 3 standard errors worse. Equal agents would fail with probability 3e-5.
    assert errors(finals["alg1"] - finals["oracle"]) > -4


@pytest.mark.slow
def test_true_contexts_shown_late_are_worth_most(finals: dict[str, Array]) -> None:
    # Measured: at least 12 standard errors below, and 0.12 to 0.15 of the next.
    others = [finals[name] for name in ("alg1", "naive", "oracle", "kk")]
    assert min(errors(other - finals["alg2"]) for other in others) > 6
    assert finals["alg2"].mean() < 0.3 * min(other.mean() for other in others)
