"""Suggestions for mistyped names, in Python as on the command line."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import unfog
from tests.each import each
from unfog import _io
from unfog.validation import MOST, InputError, nearest, one_of


@each(
    "value, names, near",
    [
        ("stps", ["sleep", "steps"], "steps"),
        ("Ray", ["dask", "ray"], "ray"),
        ("algl", ["alg1", "alg2"], "alg1"),  # the first of several that are as near
        ("send", ["send", "wait"], ""),  # the name itself is not news
        ("zzzz", ["serial", "processes"], ""),
        ("best", ["robust"], ""),
        ("x" * 100, ["x" * 99], ""),
        (3, ["3"], ""),
    ],
)
def test_the_nearest_name(value: object, names: list[str], near: str) -> None:
    assert nearest(value, names) == near


def test_very_many_names_are_not_compared() -> None:
    assert nearest("stps", [*map(str, range(MOST)), "steps"]) == ""


@each(
    "error, near",
    [
        (InputError("on", "zzzz", "serial, processes"), ""),
        (InputError("arms", "'send'", "send, wait, sand"), ""),  # it is allowed, elsewhere
        (InputError("x", "always:ARN", "always:ARM, with one of send, wait"), ""),  # a form is no name
        (InputError("url", "ftp://a/b", "an address that begins with http:// or https://"), ""),
        (InputError("true", "['steqs']", "a column for each of steps, sleep"), ""),  # a list is no name
        (InputError("columns", "no column 'setps'", "one of: steps, sleep"), "steps"),
        (InputError("terms.agnt", "no such field", "agent, arms"), "agent"),
        (InputError("sensor", "speep", "all, or one of steps, sleep"), "sleep"),
        (InputError("arms", "'sned'", "send, wait", "wait"), "wait"),  # who refuses knows better
        (InputError("arms", "'sned'", "send, wait", ""), ""),
    ],
)
def test_it_is_found_in_the_words_of_a_refusal(error: InputError, near: str) -> None:
    assert error.near == near
    asks = f" (did you mean {near!r}?)" if near else ""
    assert str(error) == f"{error.field}: {error.value}{asks}; allowed: {error.allowed}"


def test_it_travels_with_the_refusal() -> None:
    with pytest.raises(InputError) as refused:
        one_of("law", "unifrm", ["uniform", "normal"])
    error = refused.value
    for copy in (
        deepcopy(error),
        error.renamed("x"),
        InputError.prefixed("problem", error),
    ):
        assert copy.near == "uniform"
        assert "(did you mean 'uniform'?)" in str(copy)


def channel(**more: Any) -> dict[str, Any]:
    return {"context_mean": [0], "context_cov": 1.0, "noise_cov": 1.0, "bias_cov": 1.0, **more}


def test_names_that_are_told_in_python(tmp_path: Path) -> None:
    with unfog.live.open(tmp_path / "w.unfog") as store:
        walks = store.problem("walks", context=["steps"], arms=["send", "wait"], channel=channel())
        walks.decide({"steps": 1}, unit="ann")
        tried: list[tuple[Any, str]] = [
            (lambda: store.problem("new", context=["a"], arms=["b", "c"], agnt="unfog"), "agent"),  # type: ignore[call-arg]
            (lambda: store.problem("new", context=["a"], arms=["b", "c"], channel=channel(bais=0)), "bias"),
            (lambda: store.problem("walsk"), "walks"),
            (lambda: walks.decide({"step": 1}), "steps"),
            (lambda: walks.decide({"steps": 1}, arms=["sned"]), "send"),
            (lambda: walks.belief("anm"), "ann"),
            (lambda: unfog.run("fig1-gausian"), "fig1-gaussian"),
            (lambda: unfog.run("fig1-gaussian", agents=["unfgo"], rounds=3, trials=2), "unfog"),
            (lambda: unfog.GaussianProblem(action_law="unifrm"), "uniform"),
        ]
        for call, near in tried:
            with pytest.raises(InputError, match=rf"\(did you mean {near!r}\?\); allowed: "):
                call()


def test_files_and_folders_that_are_like_it(tmp_path: Path) -> None:
    (tmp_path / "runs" / "fig1-001").mkdir(parents=True)
    for name in ("mine.toml", "b.csv", "runs/fig1-001/run.json"):
        (tmp_path / name).write_text("")
    for given, near in (
        ("mien.toml", "mine.toml"),
        ("mine.tmol", "mine.toml"),
        ("mine.unfog", ""),  # what is of another kind was not meant
        ("a.csv", ""),  # an ending in common is not enough
        ("rnus/fig-001/run.json", "runs/fig1-001/run.json"),
        ("rnus/fig1-001", "runs/fig1-001"),
        ("nowhere/at/all", ""),
        ("\0", ""),
    ):
        assert _io.near(tmp_path / given) == (str(tmp_path / near) if near else "")
