"""What is said of a sweep while it runs, by a clock of its own."""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import unfog
from tests.each import each
from unfog.lab import progress
from unfog.lab.prepare import ExperimentPlan, prepare
from unfog.lab.progress import Tally, spell
from unfog.lab.run import play
from unfog.lab.spec import parse


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def planned(count: int = 4) -> ExperimentPlan:
    run = {"rounds": 5, "trials": 10, "agents": ["alg1"]}
    swept = {"noise_cov": [1.0 + i for i in range(count)]}
    return prepare(parse({"problem": {"kind": "gaussian", "dim": 1}, "run": run, "sweep": swept}, "mine"))


def tallied(count: int = 4) -> tuple[Tally, Clock, int]:
    clock, plan = Clock(), planned(count)
    return Tally(plan, clock), clock, plan.work.total


def test_time_left_is_that_of_what_was_played_not_of_what_was_found() -> None:
    tally, clock, total = tallied()
    tally(total // 4, total)
    tally.settings([10, 0, 0, 0])
    assert tally.left() is None
    clock.now += 6.0
    tally(total // 2, total)
    tally.settings([10, 10, 0, 0])
    assert tally.left() == pytest.approx(12.0)
    assert [row.left for row in tally.rows(4)] == pytest.approx([6.0, 12.0, 0.0, 0.0])
    assert tally.line() == "mine: 50% done, 2 of 4 settings, 12 s left"


def test_what_is_under_way_counts_before_it_is_finished() -> None:
    tally, clock, total = tallied()
    tally.settings([0, 0, 0, 0])
    clock.now += 3.0
    tally(total // 4, total)
    assert tally.left() == pytest.approx(9.0)


def test_those_under_way_come_first_and_finished_ones_last() -> None:
    tally, _, _ = tallied()
    tally.settings([10, 0, 3, 10])
    assert [row.label for row in tally.rows(9)] == [f"noise_cov={n}" for n in (3.0, 2.0, 4.0, 1.0)]
    assert [row.done for row in tally.rows(2)] == [3, 0]
    assert tally.finished == 2


def test_the_board_is_short_and_says_how_many_more_there_are() -> None:
    tally, clock, total = tallied(107)
    tally.settings([10, 4] + [0] * 105)
    tally(10, total)
    clock.now += 1
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(progress.board(tally, 20))
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert len(lines) == 1 + 20 + 2
    assert lines[1].split()[:2] == ["noise_cov=2.0", "4/10"]
    assert lines[-2] == "and 87 more"
    assert lines[-1].startswith("mine: ")


def test_without_a_terminal_a_line_comes_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress.watching(planned()) as told:
        play(planned(), told)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "EVERY", 0.0)
    with progress.watching(planned()) as told:
        play(planned(), told)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("mine: 100% done, ")
    assert all(line.startswith("mine: ") for line in lines)


@pytest.mark.parametrize("count", [1, 3])
def test_on_a_terminal_it_is_drawn(
    count: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress.watching(planned(count)) as told:
        play(planned(count), told)
    found = capsys.readouterr().err
    assert "mine" in found
    assert ("noise_cov=2.0" in found) == (count > 1)


def test_lengths_of_time() -> None:
    assert [spell(x) for x in (4.4, 89, 100, 3600, 9000)] == ["4 s", "89 s", "2 min", "60 min", "2.5 h"]


SMALL: dict[str, Any] = {"rounds": 5, "trials": 6, "agents": ["alg1", "naive"], "seed": 3}


def test_a_function_is_told_up_to_the_end_and_changes_nothing() -> None:
    told = list[tuple[int, int]]()
    data = unfog.run("fig1-gaussian", **SMALL, progress=lambda done, total: told.append((done, total)))
    assert told[0] == (0, 2 * 6 * 5)
    assert told[-1] == (2 * 6 * 5, 2 * 6 * 5)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert data.equals(unfog.run("fig1-gaussian", **SMALL))


def test_true_shows_it_on_stderr_and_false_shows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.0)
    unfog.run("fig1-gaussian", **SMALL, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1].startswith("fig1-gaussian: 100% done")
    unfog.run("fig1-gaussian", **SMALL, progress=True, out=tmp_path / "run")
    assert "fig1-gaussian: 100% done" in capsys.readouterr().err
    unfog.run("fig1-gaussian", **SMALL, progress=False)
    unfog.run("fig1-gaussian", **SMALL)
    assert capsys.readouterr() == ("", "")


@each("wrong", [3, "yes", None])
def test_what_is_no_progress_is_refused(wrong: Any) -> None:
    with pytest.raises(unfog.InputError, match=r"^progress: .*; allowed: True, False, or a function"):
        unfog.run("fig1-gaussian", **SMALL, progress=wrong)
