"""The suite: the numbers are those of runs by themselves, tuning is on other seeds, and it goes on."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unfog
from tests.each import each
from unfog._io import seal, unseal
from unfog.lab.baselines import folder, report, suite
from unfog.lab.baselines.problems import BENCHMARKS, PACES, build
from unfog.lab.baselines.report import Comparison, plain, ratio
from unfog.lab.baselines.suite import compare_baselines
from unfog.lab.prepare import ExperimentPlan
from unfog.lab.run import Progress, keep
from unfog.simulation import play
from unfog.validation import InputError

FEW: dict[str, Any] = {"rounds": 20, "trials": 5}
SOME = ["gaussian-correlated", "missing"]


@pytest.fixture(autouse=True)
def _no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a round takes is measured in one test alone."""
    monkeypatch.setattr(report, "seconds", lambda *_, **__: 1e-6)


def test_ratios_are_those_of_a_run_by_itself() -> None:
    found = unfog.compare_baselines(SOME, agents=["linucb", "alg2", "oracle"], seed=3, **FEW)
    assert [one.problem for one in found.outcomes] == SOME
    for one in found.outcomes:
        names = ["unfog", "unfog-delayed", "unfog-oracle", "linucb", "alg2", "oracle"]
        played = play(build(BENCHMARKS[one.problem]), names, **FEW, seed=3).values["regret"][:, :, -1]
        regret = dict(zip(names, played, strict=True))
        assert one.ours == pytest.approx({name: regret[name].mean() for name in names[:3]})
        for row in one.rows[:4]:
            assert row.ratio == pytest.approx(ratio(regret[row.agent], regret[row.reference]))
            assert row.regret == pytest.approx(regret[row.agent].mean())
        assert [(row.agent, row.reference, row.information) for row in one.rows[:4]] == [
            ("linucb", "unfog", "same"),
            ("alg2", "unfog-delayed", "same"),
            ("oracle", "unfog", "more"),
            ("oracle", "unfog-oracle", "same"),
        ]
    assert [row.agent for row in found.outcomes[1].rows if row.information == "ours"] == [
        "unfog-delayed",
        "unfog-oracle",
        "gaps",
    ]


def test_settings_are_chosen_on_one_seed_and_reported_on_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(suite.TRIALS, "quick", 4)
    [one] = compare_baselines(["gaussian-correlated"], agents=["linucb"], tuned=True, **FEW).outcomes
    problem = build(BENCHMARKS["gaussian-correlated"])
    best = {}
    for name in ("unfog", "linucb"):
        tried = suite.candidates(name)
        played = play(problem, tried, rounds=20, trials=4, seed=suite.SEED).values["regret"]
        best[name] = tried[int(played[:, :, -1].mean(1).argmin())]
    assert best["linucb"] != "linucb"
    mine, other = play(problem, [best["unfog"], best["linucb"]], **FEW).values["regret"][:, :, -1]
    [row] = one.tuned
    assert row.ratio == pytest.approx(ratio(other, mine))
    assert row.setting == best["linucb"].removeprefix("linucb:")


def test_agents_that_take_long_play_the_first_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    place = BENCHMARKS["fig1-logistic"]._replace(trials=6)
    monkeypatch.setitem(BENCHMARKS, "fig1-logistic", place)
    monkeypatch.setitem(PACES, "slow", 2)
    [one] = compare_baselines(["fig1-logistic"], agents=["alg1", "linucb"], rounds=10).outcomes
    assert {row.agent: row.trials for row in one.rows} == {"alg1": 2, "linucb": 6}
    names = ["alg1", "unfog"]
    played = play(build(place), names, rounds=10, trials=2).values["regret"][:, :, -1]
    assert one.rows[0].ratio == pytest.approx(ratio(*played))


def test_baselines_that_are_the_same_for_some_rewards_play_once() -> None:
    [one] = compare_baselines(["drift"], agents=["alg1", "alg1-conjugate"], **FEW).outcomes
    first, second = one.rows[:2]
    assert (first.agent, second.agent) == ("alg1", "alg1-conjugate")
    assert first.ratio == second.ratio


def test_the_slowest_are_tuned_on_fewer_rounds() -> None:
    place = BENCHMARKS["drift"]
    told = suite.SuiteRequest(("drift",), ("linucb",), tuned=True, scale=2.0)
    assert told.run_of(place)["trials"] == 2 * place.trials
    tuned = {pace: told.run_of(place, pace, other_seed=True) for pace in suite.TRIALS}
    assert {pace: one["rounds"] for pace, one in tuned.items()} == {"quick": None, "slow": None, "dear": 250}
    assert {pace: one["trials"] for pace, one in tuned.items()} == suite.TRIALS
    assert {one["seed"] for one in tuned.values()} == {suite.SEED}


def test_an_interrupted_suite_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = suite.check_request(SOME, ["linucb"], 20, 5, 0, None, None)._asdict()
    whole = compare_baselines(SOME, agents=["linucb"], **FEW)
    calls = list[str]()

    def broken(plan: ExperimentPlan, target: Path, *, progress: Progress) -> Path:
        calls.append(plan.spec.name)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return keep(plan, target, progress=progress)

    monkeypatch.setattr(folder, "keep", broken)
    out = tmp_path / "kept"
    with pytest.raises(KeyboardInterrupt):
        compare_baselines(SOME, agents=["linucb"], out=out, **FEW)
    assert calls == SOME
    assert folder.claim(told, None, tmp_path) == tmp_path / "baselines-001"
    assert compare_baselines(SOME, agents=["linucb"], out=out, **FEW) == whole
    assert calls == [*SOME, "missing"]
    assert json.loads((out / "table.json").read_text())["left_out"] == {}
    with pytest.raises(InputError, match="exists already"):
        compare_baselines(SOME, agents=["linucb"], out=out, **FEW)


def test_folders_are_numbered_and_only_an_unfinished_one_of_the_same_is_taken(tmp_path: Path) -> None:
    told = {"rounds": 3}
    first = folder.claim(told, None, tmp_path)
    assert (first.name, folder.claim(told, None, tmp_path)) == ("baselines-001", first)
    assert folder.claim({"rounds": 4}, None, tmp_path).name == "baselines-002"
    folder.finish(first, Comparison((), {}))
    assert folder.claim(told, None, tmp_path).name == "baselines-003"
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="exists already"):
        folder.claim(told, tmp_path / "file")
    with pytest.raises(InputError, match="cannot be made"):
        folder.claim(told, tmp_path / "file" / "below")


def test_another_run_in_the_place_of_ours_is_refused(tmp_path: Path) -> None:
    told = suite.SuiteRequest(("missing",), ("linucb",), 20, 5)
    suite.compare(told, folder.claim(told._asdict(), tmp_path / "kept"))
    with pytest.raises(InputError, match="holds another run"):
        suite.compare(told._replace(seed=1), tmp_path / "kept")


def test_suites_of_other_layouts(tmp_path: Path) -> None:
    old = {"suite": "baselines", "request": {}, "unfog": "0.1.0", "code": "of then"}
    (tmp_path / "suite.json").write_text(json.dumps(old, indent=1) + "\n")
    (tmp_path / "table.json").write_text(json.dumps(plain(Comparison((), {})), indent=1) + "\n")
    with pytest.raises(InputError, match=r"made by unfog 0\.1\.0, in layout 1; allowed: layout 3$"):
        folder.read(tmp_path)
    with pytest.raises(InputError, match="exists already"):
        folder.claim({}, tmp_path)
    (tmp_path / "suite.json").write_bytes(seal({**old, "layout": 4}))
    with pytest.raises(
        InputError, match=r"made by unfog 0\.1\.0, in layout 4; allowed: layout 3, or a newer"
    ):
        folder.read(tmp_path)


def test_a_damaged_table_is_made_anew(tmp_path: Path) -> None:
    told = suite.SuiteRequest(("missing",), ("linucb",), 5, 2)
    whole = suite.compare(told, folder.claim(told._asdict(), tmp_path / "kept"))
    assert folder.read(tmp_path / "kept") == whole
    another = seal(unseal((tmp_path / "kept/table.json").read_bytes()) | {"suite": "0" * 64})
    wrong_ones = [("table.json", b"{}"), ("table.json", another), ("table.txt", b"{}")]
    for name, wrong in wrong_ones:
        (tmp_path / "kept" / name).write_bytes(wrong)
        with pytest.raises(InputError, match=f"{name}' is damaged"):
            folder.read(tmp_path / "kept")
        assert suite.compare(told, folder.claim(told._asdict(), tmp_path / "kept")) == whole
        assert folder.read(tmp_path / "kept") == whole


def test_a_damaged_suite_json_is_refused(tmp_path: Path) -> None:
    told = suite.SuiteRequest(("missing",), ("linucb",), 5, 2)
    suite.compare(told, folder.claim(told._asdict(), tmp_path / "kept"))
    (tmp_path / "kept/suite.json").write_bytes(b"{}")
    with pytest.raises(InputError, match=r"suite\.json' is damaged"):
        folder.read(tmp_path / "kept")
    with pytest.raises(InputError, match="exists already"):
        folder.claim(told._asdict(), tmp_path / "kept")


@pytest.mark.parametrize("name", ["run.json", "spec.toml", "curves.nc", "timing.json"])
def test_a_damaged_run_of_a_suite_is_named_and_played_again(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With the table and without it; interrupted on the way, it is gone on with."""
    told, kept = suite.SuiteRequest(("missing", "drift"), ("linucb",), 5, 2), tmp_path / "kept"
    whole = suite.compare(told, folder.claim(told._asdict(), kept))
    for table in (True, False):
        hurt = bytearray((kept / "drift" / name).read_bytes())
        hurt[len(hurt) // 2] ^= 1
        (kept / "drift" / name).write_bytes(hurt)
        with pytest.raises(InputError, match=f"{name}' is damaged.*plays this one again"):
            folder.read(kept)
        if not table:
            (kept / folder.TABLE).unlink()
        folder.claim(told._asdict(), kept)
        assert not (kept / folder.TABLE).exists()
        assert suite.compare(told, folder.claim(told._asdict(), kept)) == whole
        assert "drift is damaged and is played again" in caplog.text
        assert folder.read(kept) == whole


def test_data_that_are_missing_leave_their_problem_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNFOG_DATA", str(tmp_path))
    said = list[str]()
    told = suite.SuiteRequest(("airquality-none", "fig1-movielens", "drift"), ("linucb",), 5, 2)
    found = suite.compare(told, None, on_message=said.append)
    assert [one.problem for one in found.outcomes] == ["drift"]
    assert list(found.left_out) == ["airquality-none", "fig1-movielens"]
    assert said[0].startswith("airquality-none is left out: no file airquality/AirQualityUCI.csv")
    assert "fig1-movielens was not played: no file ml-100k/u.data" in " ".join(str(found).split())


@each("changes", [{"engine": "cuda"}, {"workers": 0}])
def test_what_cannot_be_played_leaves_no_folder(changes: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=next(iter(changes))):
        compare_baselines(["drift"], agents=["linucb"], out=tmp_path / "kept", **FEW, **changes)
    assert not list(tmp_path.iterdir())


def test_one_who_cannot_play_is_left_out_beside_others() -> None:
    [one] = compare_baselines(["drift"], agents=["linucb", "polinucb:before=3"], **FEW).outcomes
    assert one.left_out == {"polinucb:before=3": "before: 3; allowed: less than 3, the dimension of contexts"}
    assert one.rows[0].agent == "linucb"


@each(
    "changes, complaint",
    [
        ({"problems": ["nowhere"]}, "problems: 'nowhere'"),
        ({"problems": []}, "problems: none named"),
        ({"agents": ["alg9"]}, "agents: no agent is called 'alg9'"),
        ({"agents": []}, "agents: none named"),
        ({"agents": ["unfog"]}, "'unfog' is what others are held against"),
        ({"rounds": 0}, "rounds: 0"),
        ({"trials": 0}, "trials: 0"),
        ({"seed": -1}, "seed: -1"),
        ({"seed": 1000, "tuned": True}, "seed: 1000"),
        ({"engine": "steam"}, "engine: 'steam'"),
        ({"precision": "float16"}, "precision: 'float16'"),
        ({"workers": 0}, "workers: 0"),
    ],
)
def test_nonsense_is_refused(changes: dict[str, object], complaint: str) -> None:
    told: dict[str, object] = {"problems": ["drift"], **FEW}
    with pytest.raises(InputError, match=complaint):
        compare_baselines(**told | changes)  # type: ignore[arg-type]


def test_time_counts_what_the_agent_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    problem = build(BENCHMARKS["missing"])
    slow, quick = (
        report.seconds(unfog.AGENTS[name], problem, rounds=5, trials=20) for name in ("temporal", "naive")
    )
    assert 0 < quick < slow < 0.1
    assert np.isfinite(slow)
