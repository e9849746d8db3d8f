"""A misspelt keyword of a public function gets an answer that says which was meant, and no bare TypeError."""

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

from tests.each import each
from unfog.adapters.gymnasium import make
from unfog.adapters.obp import to_obp
from unfog.adapters.sklearn import Denoiser
from unfog.live.problem import Problem
from unfog.serve.client import RemoteProblem
from unfog.validation import InputError, check_keywords

MODULES = "unfog", "unfog.live", "unfog.features", "unfog.serve", "unfog.worlds", "unfog.adapters.wrap"
CLASSES = {  # public, in modules without a list of public names
    "unfog.adapters.coba": ["CobaEnvironment", "CobaRegret", "CobaLog", "CobaLearner"],
    "unfog.adapters.gymnasium": ["Env", "make"],
    "unfog.adapters.libraries": ["BayesianBandits", "ContextualBandits", "Mabwiser", "River", "VowpalWabbit"],
    "unfog.adapters.obp": ["to_obp"],
    "unfog.adapters.river": ["RiverPolicy", "evaluate"],
    "unfog.adapters.simulation": ["Decider", "Episode", "features_of"],
    "unfog.adapters.sklearn": ["Denoiser"],
    "unfog.adapters.wrap": ["wrap"],
    "unfog.channel.calibration": ["Affine", "affine"],
    "unfog.worlds.calibrated": ["Calibrated"],
    "unfog.worlds.synthetic": ["PostServingProblem"],
}
CONTRACTS = {"Context", "Design", "FeatureMap", "Linear", "MapBuilder"}  # for those who write a part


def public_calls() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Functions, constructors, and methods, to be called without an object."""
    listed = [(module, getattr(import_module(module), "__all__", ())) for module in MODULES]
    for module, names in [*listed, *CLASSES.items()]:
        for name in names:
            member = getattr(import_module(module), name)
            if callable(member) and name not in CONTRACTS:
                yield from calls_of(name, member)
    for kind in (Problem, RemoteProblem):
        yield from calls_of(kind.__name__, kind)


def calls_of(name: str, member: Callable[..., Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The function itself; of a class its constructor and the methods that it has of us."""
    if not isinstance(member, type):
        yield name, member
    elif not issubclass(member, BaseException):
        yield name, member
        for method in dir(member):
            value = inspect.getattr_static(member, method)
            function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            ours = inspect.isfunction(function) and function.__module__.startswith("unfog")
            if method[0] != "_" and ours:
                yield f"{name}.{method}", function


def parameters_of(call: Callable[..., Any]) -> tuple[list[str], bool]:
    """The parameters that have names, without self; and whether others are passed on."""
    parameters = inspect.signature(call).parameters.values()
    names = [one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    others = any(one.kind is one.VAR_KEYWORD for one in parameters)
    return [name for name in names if name not in ("self", "cls")], others


def test_every_public_call_refuses_a_misspelt_keyword() -> None:
    wrong, tried = [], 0
    for name, call in public_calls():
        names, passes_on = parameters_of(call)
        if passes_on:  # test_keywords_that_are_passed_on
            continue
        tried += 1
        keyword = f"{names[-1]}x" if names else "misspelt"
        asks = f" (did you mean '{names[-1]}'?)" if names and len(names[-1]) > 1 else ""
        with pytest.raises(Exception) as caught:  # noqa: PT011  # which one is looked at below
            call(**{keyword: 1})
        label = name.rpartition(".")[2]
        said = f"{keyword}: no such argument of {label}(){asks}; allowed: {', '.join(names) or 'none'}"
        as_term = f"{keyword}: no such field"  # of a call that takes the terms of a problem
        if type(caught.value) is not InputError or not str(caught.value).startswith((said, as_term)):
            wrong.append(f"{name}: {caught.value!r}, and not {said}")
    assert not wrong, "\n".join(wrong)
    assert tried > 150


CHANNEL = {"context_mean": [0.0], "context_cov": 1.0, "noise_cov": 1.0, "bias_cov": 1.0}
PASSED_ON: dict[str, tuple[Callable[[], object], str]] = {
    "to_obp": (
        lambda: to_obp({}, coulmns={}),
        "coulmns: no such argument of read() (did you mean 'columns'?)",
    ),
    "make": (lambda: make("gaussian", actionz=3), "problem.actionz: "),
    "Denoiser.from_channel": (
        lambda: Denoiser.from_channel(CHANNEL, drwas=1),
        "drwas: no such argument of Denoiser() (did you mean 'draws'?)",
    ),
}


@each("name", PASSED_ON)
def test_keywords_that_are_passed_on(name: str) -> None:
    call, said = PASSED_ON[name]
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(said)


def test_a_mistake_inside_is_no_misspelt_keyword() -> None:
    @check_keywords
    def inner(value: Any, **options: Any) -> Any:
        return len(value, **options)

    with pytest.raises(TypeError, match="has no len"):
        inner(value=3)
    with pytest.raises(TypeError, match="missing 1 required"):
        inner()  # type: ignore[call-arg]


def test_signatures_stay_as_they_are_written() -> None:
    assert list(inspect.signature(Problem.decide).parameters)[:2] == ["self", "context"]
    assert Problem.decide.__doc__
