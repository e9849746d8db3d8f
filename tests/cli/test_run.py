"""`unfog reproduce` and the MovieLens panel: runs, tables, figures, and what is said of a stand-in."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from unfog import plotting
from unfog.cli import main
from unfog.lab import figures, report
from unfog.lab.datasets import files
from unfog.lab.datasets.movielens import STAND_IN
from unfog.lab.labels import called
from unfog.lab.run import open_run
from unfog.lab.spec import catalog

Capture = pytest.CaptureFixture[str]
FOLDER = Path(os.environ.get("UNFOG_DATA") or Path(__file__).parents[3] / "shared/data").resolve()
SMALL = ("--rounds", "5", "--trials", "2", "--workers", "1")
FIG1 = ("fig1-gaussian", "fig1-logistic", "fig1-movielens")
FORMATS = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A user without data, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("UNFOG_DATA", raising=False)
    assert not files.cache("data").exists()
    yield
    files.look_in(None)


def unfog(capsys: Capture, *words: str) -> tuple[int, str, str]:
    """Run a command; its exit code, stdout and stderr."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def names_in(folder: str) -> set[str]:
    return {path.name for path in Path(folder).iterdir()}


def files_of(*stems: str) -> set[str]:
    return {f"{stem}.{kind}" for stem in stems for kind in FORMATS}


def said_of(data: Any) -> list[str]:
    """A panel's title, line by line."""
    spec = catalog()[data.attrs["experiment"]]
    return [*([data.attrs["note"]] if "note" in data.attrs else []), spec.title]


@pytest.mark.slow
def test_fig1_makes_three_runs_and_four_figures(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, Figure] = {}
    save = plotting.save

    def watched(chart: Figure, folder: Path, stem: str) -> list[Path]:
        drawn[stem] = chart
        return save(chart, folder, stem)

    monkeypatch.setattr(plotting, "save", watched)
    code, out, err = unfog(capsys, "reproduce", "fig1", *SMALL, "--out", "pictures")
    assert (code, err) == (0, "")
    assert names_in("runs") == {f"{name}-001" for name in FIG1}
    assert names_in("pictures") == files_of("fig1", *FIG1)
    for name in ("fig1", *FIG1):
        for kind, magic in FORMATS.items():
            assert Path(f"pictures/{name}.{kind}").read_bytes().startswith(magic)
    runs = [open_run(f"runs/{name}-001") for name in FIG1]
    for name, data in zip(FIG1, runs, strict=True):
        assert dict(data.sizes) == {"agent": 6, "trial": 2, "round": 5}
        assert f"{name}: 2 trials, 5 rounds, seed 0" in out
        assert "\n".join(report.table(data).splitlines()[1:]) in out
        assert f"kept in runs/{name}-001\nfigure:" in out
    assert out.count(f"note: {STAND_IN}") == 1
    assert out.splitlines()[-1] == "fig1: pictures/fig1.svg, pictures/fig1.pdf, pictures/fig1.png"

    assert list(drawn) == [*FIG1, "fig1"]
    panels = drawn["fig1"].axes
    assert len(panels) == 3
    for axes, data in zip(panels, runs, strict=True):
        assert axes.get_title(loc="left").split() == " ".join(said_of(data)).split()
        assert axes.get_xlabel().split("\n") == ["round", "mean of 2 trials, seed 0"]
        found: Any = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        tops = [
            np.asarray(path.vertices)[:, 1].max() for bars in axes.collections for path in bars.get_paths()
        ]
        for curve in report.curves(data):
            assert np.array_equal(found[called(curve.label)].get_ydata(), curve.mean)
        highest = [(curve.mean + curve.half_width).max() for curve in report.curves(data)]
        assert max(tops) == pytest.approx(max(highest))
    assert [STAND_IN in axes.get_title(loc="left") for axes in panels] == [False, False, True]
    assert "Fig. 1 right" in panels[2].get_title(loc="left")
    for stem in drawn:
        told = STAND_IN in Path(f"pictures/{stem}.svg").read_text("utf-8")
        assert told == (stem in ("fig1", "fig1-movielens"))


@pytest.fixture
def unsaved(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of figures that were drawn, and that no time was spent on saving."""
    drawn: list[str] = []

    def remembered(chart: Figure, folder: Path, stem: str) -> list[Path]:
        drawn.append(stem)
        return []

    monkeypatch.setattr(plotting, "save", remembered)
    return drawn


def test_the_published_figures_are_the_default(capsys: Capture, unsaved: list[str]) -> None:
    code, out, _ = unfog(capsys, "reproduce", *SMALL, "--runs", "kept")
    assert code == 0
    assert names_in("kept") == {f"{name}-001" for name in (*FIG1, "fig-actions")}
    assert unsaved == [*FIG1, "fig-actions", "fig1"]
    tables = [line.split(":")[0] for line in out.splitlines() if ": 2 trials, 5 rounds" in line]
    assert tables == [*FIG1, "fig-actions"]


def test_what_is_named_twice_is_run_once(capsys: Capture, unsaved: list[str]) -> None:
    assert unfog(capsys, "reproduce", "fig1-movielens", "fig1", "fig1-gaussian", *SMALL)[0] == 0
    assert names_in("runs") == {f"{name}-001" for name in FIG1}
    assert unsaved == ["fig1-movielens", "fig1-gaussian", "fig1-logistic", "fig1"]


def test_an_unknown_name_beside_fig1_is_refused_before_anything_runs(capsys: Capture) -> None:
    code, out, err = unfog(capsys, "reproduce", "fig1", "fig9", *SMALL)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "'fig9'" in err
    assert not any(Path().iterdir())


@pytest.mark.slow
def test_json_says_what_the_ratings_are(capsys: Capture) -> None:
    code, out, err = unfog(capsys, "run", "fig1-movielens", *SMALL, "--json")
    assert (code, err.strip()) == (0, "kept in runs/fig1-movielens-001")
    facts = json.loads(out)
    assert list(facts)[:2] == ["experiment", "note"]
    assert facts["note"] == STAND_IN
    assert (facts["rounds"], facts["trials"], list(facts["agents"])) == (
        5,
        2,
        ["unfog", "alg1", "alg2", "naive", "oracle", "kk"],
    )
    assert all(row["regret"] >= 0 for row in facts["agents"].values())
    shown = unfog(capsys, "show", "runs/fig1-movielens-001", "--json")[1]
    assert json.loads(shown) == facts
    table = unfog(capsys, "show", "runs/fig1-movielens-001")[1]
    assert table.splitlines()[1] == f"note: {STAND_IN}"
    assert unfog(capsys, "plot", "runs/fig1-movielens-001")[0] == 0
    [picture] = Path().rglob("*.svg")
    assert STAND_IN in picture.read_text("utf-8")


@pytest.mark.parametrize("command", [("run", "fig1-movielens"), ("reproduce", "fig1"), ("reproduce",)])
def test_a_folder_without_the_data_is_refused(command: tuple[str, ...], capsys: Capture) -> None:
    Path("empty").mkdir()
    code, out, err = unfog(capsys, *command, *SMALL, "--data", "empty")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("unfog: data: no file ml-100k/u.data of MovieLens-100K; allowed: ")
    assert "(looked in empty)" in err
    assert "licence: for research" in err
    assert [path.name for path in Path().iterdir()] == ["empty"]
    code, out, err = unfog(capsys, *command, *SMALL, "--data", "nowhere")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("unfog: data: no folder 'nowhere'; allowed: ")


@pytest.mark.slow
def test_a_folder_is_named_for_one_command_alone(capsys: Capture) -> None:
    Path("empty").mkdir()
    assert unfog(capsys, "run", "fig1-movielens", *SMALL, "--data", "empty")[0] == 2
    code, out, _ = unfog(capsys, "run", "fig1-movielens", *SMALL)
    assert code == 0
    assert f"note: {STAND_IN}" in out


def test_where_no_data_are_needed_any_folder_will_do(capsys: Capture) -> None:
    Path("empty").mkdir()
    assert unfog(capsys, "run", "fig1-gaussian", *SMALL, "--data", "empty")[0] == 0


@pytest.mark.skipif(
    not any((FOLDER / name).exists() for name in ("ml-100k/u.data", "u.data")),
    reason="no MovieLens-100K on this machine: neither in UNFOG_DATA nor in ../shared/data",
)
@pytest.mark.slow
def test_with_the_data_nothing_needs_to_be_said(capsys: Capture) -> None:
    code, out, err = unfog(capsys, "run", "fig1-movielens", *SMALL, "--json", "--data", str(FOLDER))
    assert (code, err.strip()) == (0, "kept in runs/fig1-movielens-001")
    assert "note" not in json.loads(out)
    stored = Path("runs/fig1-movielens-001/spec.toml").read_text("utf-8")
    assert 'ratings = "movielens"' in stored
    assert str(FOLDER) not in stored
    [axes] = figures.panels([open_run("runs/fig1-movielens-001")]).axes
    assert axes.get_title(loc="left").split() == catalog()["fig1-movielens"].title.split()
