"""As many trials as needed: the standard error is right, the stop obeys it, and nothing else moves it."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unfog
from tests.each import each
from unfog.cli import main
from unfog.lab import search, storage
from unfog.lab.prepare import prepare
from unfog.lab.run import keep, open_run
from unfog.lab.spec import Spec, load, parse, to_toml
from unfog.lab.stopping import Checkpoint, checkpoints, choose_reference
from unfog.maths.statistics import Quotient, quotient
from unfog.paper import bounds as studies
from unfog.simulation import Gathering
from unfog.validation import InputError

AGENTS = ["alg1", "naive", "oracle"]
FIELDS: dict[str, Any] = {"kind": "gaussian", "dim": 2, "actions": 4}


def small(sweep: dict[str, Any] | None = None, **changes: Any) -> Spec:
    """Ends after 300 of 2,000 trials."""
    run = {
        "rounds": 10,
        "trials": 2000,
        "agents": AGENTS,
        "target_se": 0.02,
        "reference": "oracle",
        **changes,
    }
    told = {"problem": FIELDS, "run": {k: v for k, v in run.items() if v is not None}}
    return parse(told | ({"sweep": sweep} if sweep else {}), "small")


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "timing.json"}


def errors(data: Any, trials: int) -> list[float]:
    """The standard errors by the formula, from single trials."""
    x = data["regret"].isel(round=-1, trial=slice(trials)).transpose("agent", "trial").values
    y = x[AGENTS.index("oracle")]
    gaps = [one - one.mean() / y.mean() * y for one in x[: len(AGENTS) - 1]]
    return [float(np.sqrt(np.var(gap, ddof=1) / trials) / y.mean()) for gap in gaps]


@pytest.fixture(scope="module", name="whole")
def _whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing interrupted."""
    return keep(prepare(small()), tmp_path_factory.mktemp("search") / "whole")


def test_it_ends_at_the_first_look_at_which_every_error_is_small_enough(whole: Path) -> None:
    found = open_run(whole)
    looks = checkpoints(2000, 100)
    ended = looks.index(found.sizes["trial"])
    assert 0 < ended < len(looks) - 1, "a test of nothing"
    assert [max(errors(found, n)) <= 0.02 for n in looks[: ended + 1]] == [False] * ended + [True]
    assert found.attrs["trials_found"] == looks[ended]
    told = json.loads(found.attrs["search"])
    assert {name: told[name] for name in ("target_se", "reference", "max_trials")} == {
        "target_se": 0.02,
        "reference": "oracle",
        "max_trials": 2000,
    }
    assert [one["se"] for one in told["ratios"].values()] == pytest.approx(errors(found, looks[ended]))


def test_the_trials_are_those_of_a_run_of_so_many(whole: Path) -> None:
    found = open_run(whole)
    told = unfog.run(small(trials=found.sizes["trial"], target_se=None, reference=None))
    assert found.drop_attrs().equals(told.drop_attrs())


def test_means_over_trials_are_of_those_found_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the budget leaves few rounds of single trials, moments are kept; pieces beyond may be there."""
    monkeypatch.setattr(import_module("unfog.simulation.plan"), "MOST_CELLS", 8 * 2000 * 3 * 4)
    work = prepare(small()).work
    gathered = Gathering(work)
    for task, parts in work.results(work.pieces[:4], lambda _: None):
        for piece, part in zip(task, parts, strict=True):
            gathered.add(piece, part)
    found = gathered.curves(0, 200)
    assert (len(found.rounds), len(found.curve), found.values["regret"].shape[1]) == (4, 10, 200)
    at = np.searchsorted(found.curve, found.rounds)
    trials = found.values["regret"]
    np.testing.assert_allclose(found.mean["regret"][:, at], trials.mean(1), rtol=1e-12)
    np.testing.assert_allclose(found.se["regret"][:, at], trials.std(1, ddof=1) / np.sqrt(200), rtol=1e-12)
    np.testing.assert_array_equal(gathered.final(0, "regret", 200), trials[..., -1])


@pytest.mark.slow
def test_workers_do_not_change_a_byte(tmp_path: Path) -> None:
    for workers in (1, 2):
        keep(prepare(small({"actions": [3, 5]}), workers=workers), tmp_path / str(workers))
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def interrupt_after(tasks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a run save so many tasks, then fail as a full disk would."""
    save, count = storage.Partial.save, iter(range(10**6))

    def failing(self: storage.Partial, *given: Any) -> None:
        if next(count) >= tasks:
            raise OSError(28, "No space left on device")
        save(self, *given)

    monkeypatch.setattr(storage.Partial, "save", failing)


@pytest.mark.parametrize("finished", [0, 1, 2])
def test_an_interrupted_run_ends_with_the_same_bytes(
    finished: int, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as trouble:
        interrupt_after(finished, trouble)
        with pytest.raises(OSError, match="No space"):
            keep(prepare(small()), tmp_path / "broken")
    keep(prepare(small()), tmp_path / "broken")
    assert contents(tmp_path / "broken") == contents(whole)


def test_trials_beyond_the_end_do_not_move_it(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With workers, some of the next trials are there before the last look: they are not looked at."""
    with monkeypatch.context() as trouble:
        trouble.setattr("unfog.lab.search.Search.ended", lambda _: False)
        interrupt_after(6, trouble)
        with pytest.raises(OSError, match="No space"):
            keep(prepare(small()), tmp_path / "broken")
    beyond = open_run(whole).sizes["trial"]
    blocks = [path.name for path in (tmp_path / "broken.partial").glob("block-*")]
    assert any(int(name.split("-")[2]) >= beyond for name in blocks), "a test of nothing"
    keep(prepare(small()), tmp_path / "broken")
    assert contents(tmp_path / "broken") == contents(whole)


def test_a_stored_spec_repeats_it(whole: Path, tmp_path: Path) -> None:
    again = load(whole / "spec.toml")
    assert (again.run.target_se, again.run.reference, again.run.trials) == (0.02, "oracle", 2000)
    keep(prepare(again), tmp_path / "again")
    assert contents(tmp_path / "again") == contents(whole)
    run = json.loads((whole / "run.json").read_bytes())
    assert run["trials_found"] == open_run(whole).sizes["trial"]


def test_every_setting_of_a_sweep_is_precise_enough() -> None:
    alone = [unfog.run(_with(k)).sizes["trial"] for k in (3, 5)]
    data = unfog.run(small({"actions": [3, 5]}))
    assert data.sizes["trial"] == max(alone) > min(alone), "a test of nothing unless they differ"
    assert set(json.loads(data.attrs["search"])["ratios"]) == {
        f"{name} actions={k}" for name in ("alg1", "naive") for k in (3, 5)
    }


def _with(actions: int) -> Spec:
    return small().model_copy(update={"problem": {**FIELDS, "actions": actions}})


def test_the_budget_is_the_end(tmp_path: Path) -> None:
    said: list[str] = []
    data = unfog.run(
        small(target_se=None, reference=None, trials=5),
        target_se=0.001,
        max_trials=250,
        on_message=said.append,
    )
    assert data.sizes["trial"] == data.attrs["trials_found"] == 250
    worst = max(errors(data, 250))
    assert said[-1].startswith(
        f"the budget of 250 trials was reached; the largest standard error is {worst:.3g}"
    )
    assert "trials: 250, the budget; the largest standard error of a ratio to oracle" in unfog.table(data)


def test_it_says_what_it_will_cost_before_and_on_the_way() -> None:
    said: list[str] = []
    progress: list[tuple[int, int]] = []
    data = unfog.run(
        small(), on_message=said.append, progress=lambda now, total: progress.append((now, total))
    )
    assert said[0] == "first 100 trials of 10 rounds: less than a second; 2,000 trials at most"
    assert "trials of 10 rounds for every standard error below 0.02 (the hardest: naive, now 0." in said[1]
    assert said[-1].startswith(f"{data.sizes['trial']} trials: the largest standard error is 0.0")
    assert progress[-1] == (data.sizes["trial"] * 10 * 3,) * 2


def test_words_of_what_is_left() -> None:
    now = Checkpoint(100, {"kk": Quotient(1.0, 0.031), "alg1": Quotient(1.0, 0.01)})
    assert now.needed(0.02) == 241
    asked = (
        "about 1,100 trials of 1000 rounds for every standard error below 0.01 (the hardest: kk, now 0.031)"
    )
    assert search.first(now, 0.01, 961, 1139, 1000, 120.0) == f"{asked}; about 2.0 min"
    short = search.first(now, 0.001, 96_100, 400, 1000, None)
    assert short.endswith("(the hardest: kk, now 0.031); the budget is 400, for about 0.015")
    assert search.again(now, 961, 1139, 5.0).endswith("about 1,100 in all; about 5 s left")
    assert [search.duration(s) for s in (0.2, 89.0, 900.0, 7200.0, 10**6)] == [
        "less than a second",
        "about 89 s",
        "about 15 min",
        "about 2.0 h",
        "about 278 h",
    ]


def test_looks_are_at_whole_pieces_and_end_at_the_budget() -> None:
    assert checkpoints(1000, 100) == [100, 200, 300, 400, 600, 800, 1000]
    assert checkpoints(1000, 40) == [120, 160, 240, 360, 520, 760, 1000]
    assert checkpoints(5000, 1000) == [1000, 2000, 3000, 4000, 5000]
    assert checkpoints(100, 7) == [100]
    assert len(checkpoints(10**8, 1)) < 50


def test_agents_that_never_differ_are_known_at_once() -> None:
    data = unfog.run(small(agents=["oracle", "alg1"], rounds=1, reference="alg1"))
    assert data.sizes["trial"] >= 100
    assert quotient(np.full(100, 4.0), np.full(100, 2.0)) == (2.0, 0.0)


def test_a_reference_that_loses_nothing_is_refused() -> None:
    problem = unfog.GaussianProblem(dim=1, actions=1)  # one arm: nobody loses
    with pytest.raises(InputError, match=r"run.reference: the mean regret of 'oracle' in 100 trials is 0"):
        unfog.run(problem, agents=AGENTS, rounds=3, target_se=0.1)


def test_a_run_that_is_refused_on_its_way_leaves_nothing(tmp_path: Path) -> None:
    problem = unfog.GaussianProblem(dim=1, actions=1)
    told: dict[str, Any] = {"agents": AGENTS, "rounds": 3, "target_se": 0.1}
    with pytest.raises(InputError, match="mean regret"):
        unfog.run(problem, **told, out=tmp_path / "runs/refused")
    assert not any(tmp_path.iterdir())
    (tmp_path / "begun.partial").mkdir()  # by another one, however little it came to
    with pytest.raises(InputError, match="mean regret"):
        unfog.run(problem, **told, out=tmp_path / "begun")
    assert (tmp_path / "begun.partial").exists()


def test_the_reference_is_the_oracle_or_the_first() -> None:
    assert choose_reference(AGENTS, None) == "oracle"
    assert choose_reference(["alg1", "naive"], None) == "alg1"
    assert choose_reference(AGENTS, "naive") == "naive"


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "zero": ({"target_se": 0.0}, "run.target_se: 0.0"),
    "negative": ({"target_se": -0.1}, "run.target_se: -0.1"),
    "nan": ({"target_se": float("nan")}, "run.target_se: nan"),
    "infinite": ({"target_se": float("inf")}, "run.target_se: inf"),
    "huge": ({"target_se": 1001.0}, "run.target_se: 1001.0; allowed: a positive number, at most 1000"),
    "true": ({"target_se": True}, "run.target_se: True"),
    "words": ({"target_se": "small"}, "run.target_se: 'small'; allowed"),
    "nobody": (
        {"target_se": 0.1, "reference": "orcale"},
        "'orcale' does not play (did you mean 'oracle'?); allowed: ",
    ),
    "one agent": ({"target_se": 0.1, "agents": ["alg1"]}, "run.agents: alg1; allowed: two or more"),
    "few": ({"target_se": 0.1, "max_trials": 99}, "max_trials: 99; allowed: a whole number, at least 100"),
    "both": ({"target_se": 0.1, "trials": 200}, "trials: 200; allowed: max_trials instead"),
    "reference alone": (
        {"reference": "oracle"},
        "reference: 'oracle'; allowed: together with target_se alone",
    ),
    "max_trials alone": ({"max_trials": 200}, "max_trials: 200; allowed: together with target_se alone"),
}


@each("case", BAD)
def test_nonsense_is_refused_by_name(case: str) -> None:
    changes, words = BAD[case]
    with pytest.raises(InputError) as refused:
        unfog.run(unfog.GaussianProblem(dim=2), **{"agents": AGENTS, "rounds": 3, **changes})
    assert words in str(refused.value)


def test_a_spec_is_held_to_the_same() -> None:
    with pytest.raises(InputError, match=r"run.reference: 'oracle'; allowed: together with run.target_se"):
        small(target_se=None)
    with pytest.raises(InputError, match=r"run.trials: 50; allowed: a whole number, at least 100"):
        small(trials=50)
    with pytest.raises(InputError, match=r"trials: 300; allowed: max_trials instead"):
        unfog.run(small(), trials=300)
    assert prepare(small(reference=None)).spec == prepare(small()).spec
    with pytest.raises(InputError, match=r"run.target_se: 0.02; allowed: nothing where bounds are looked at"):
        studies.plan_runs(small())
    assert "target_se" not in to_toml(small(target_se=None, reference=None))


def test_the_command_keeps_stdout_pure_and_show_says_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(to_toml(small(target_se=None, reference=None, trials=5)))
    words = ["run", "small.toml", "--target-se", "0.02", "--max-trials", "2000", "--workers", "1", "--json"]
    with pytest.raises(SystemExit):
        main(words)
    out, err = capsys.readouterr()
    facts = json.loads(out)
    assert facts["trials"] == facts["trials_found"]
    assert facts["search"]["ratios"].keys() == {"alg1", "naive"}
    assert err.splitlines()[0].startswith("first 100 trials of 10 rounds: ")
    assert err.splitlines()[-1] == "kept in runs/small-001"
    with pytest.raises(SystemExit):
        main(["show", "runs/small-001"])
    shown = capsys.readouterr().out
    line = f"trials: {facts['trials']} found for a standard error of 0.02 of each ratio to oracle"
    assert line in shown.splitlines()
    assert f"ratio to oracle: alg1 {facts['search']['ratios']['alg1']['value']:.3f} ± 0." in shown
    with pytest.raises(SystemExit) as ended:
        main(["run", "baselines", "--target-se", "0.1"])
    assert ended.value.code == 2
    assert "--target-se: 0.1; allowed: for one experiment" in capsys.readouterr().err
