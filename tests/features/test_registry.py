"""Maps by name: the same in specs and in Python, aliases, importable builders, and what is refused."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import unfog
from unfog.features.base import MapBuilder
from unfog.features.linear import Matrix, Product
from unfog.features.per_arm import PerArm
from unfog.features.quadratic import Quadratic, QuadraticDesign, quadratic
from unfog.features.quadrature import Quadrature
from unfog.features.registry import BUILT_IN, builder
from unfog.maths.arrays import Array
from unfog.validation import InputError

WAVES: MapBuilder = unfog.features.quadrature(np.multiply, 2)
NUMBER = 3


def test_a_name_is_a_builder() -> None:
    for name, kind, shape in [
        ("quadratic", Quadratic, (4, 2)),
        ("product", Product, (4, 2)),
        ("per_arm", PerArm, (4, 2)),
        ("matrix", Matrix, (4, 3, 2)),
        (f"{__name__}:WAVES", Quadrature, (4, 2)),
    ]:
        check_a_name_is_a_builder(name, kind, shape)


def check_a_name_is_a_builder(name: str, kind: type, shape: tuple[int, ...]) -> None:
    found = builder(name)(np.ones(shape))
    assert isinstance(found, kind)
    assert found.arms == 4


def test_names_are_those_of_the_functions() -> None:
    for name, build in BUILT_IN.items():
        assert getattr(unfog.features, name) is build
        assert pickle.loads(pickle.dumps(build)) is build  # noqa: S301
    assert unfog.features.quadratic is quadratic
    assert isinstance(quadratic(np.ones((3, 2))).at(np.ones(2)), QuadraticDesign)
    assert builder(quadratic) is quadratic


REFUSED = {
    "cubic": "'cubic'; allowed: {}, or module:name of a function".format(", ".join(BUILT_IN)),
    "quadrature": r"'quadrature' alone .*; allowed: unfog\.features\.quadrature\(phi, dim\) in Python, or",
    "no.such:thing": r"cannot import no\.such: No module named 'no'; allowed: module:name",
    f"{__name__}:nothing": "there is no 'nothing' in .*test_registry; allowed: module:name",
    f"{__name__}:NUMBER": ".* is 3; allowed: module:name",
    ".named:builder": ".*; allowed: quadratic, product",
}


def test_other_names_are_refused() -> None:
    for name in REFUSED:
        check_other_names_are_refused(name)


def check_other_names_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"^features: {REFUSED[name]}"):
        builder(name)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise RuntimeError('no licence')", r"RuntimeError\('no licence'\)"),
        ("{}['key']", r"KeyError\('key'\)"),
        ("raise SystemExit(3)", r"SystemExit\(3\)"),
        ("def", "invalid syntax"),
    ],
)
def test_a_module_that_fails_is_refused_by_name(
    code: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_failing_features.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=f"^features: cannot import test_failing_features: {said}"):
        builder("test_failing_features:any")


def unlike(_: Array) -> int:
    return 1


def test_an_imported_builder_that_builds_no_map_is_refused_by_a_world() -> None:
    with pytest.raises(InputError, match=r"^features: fail on 3 actions"):
        unfog.GaussianProblem(dim=2, actions=3, features=f"{__name__}:unlike")
