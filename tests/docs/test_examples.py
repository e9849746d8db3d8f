"""Every public name has an example, its own or its module's, and every example says what comes out."""

import doctest
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs._ext.public import MODULES, Name, every, module

from tests.serve.running import running

SERVED = "http://127.0.0.1:8000"
NAMES = [name for name in every() if not name.also]


@pytest.fixture(name="url", scope="module")
def _url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service with the problem that examples of clients ask for."""
    with running(tmp_path_factory.mktemp("served") / "walks.unfog") as found:
        found.make()
        yield found.url


@pytest.mark.parametrize("room", sorted({name.module for name in NAMES}))
@pytest.mark.slow
def test_examples_run(
    room: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every name of a module, in a folder of its own."""
    for name in NAMES:
        if name.module == room:
            (tmp_path / name.full).mkdir()
            monkeypatch.chdir(tmp_path / name.full)
            example_of(name, request)


def example_of(name: Name, request: pytest.FixtureRequest) -> None:
    """Run it."""
    text = name.said
    if ">>> " not in text:  # where one example shows a module's names together
        text = module(name.module).__doc__ or ""
        assert re.search(rf">>> .*\b{name.name}\b[(),]", text), f"{name.full} has no example"
    if SERVED in text:
        text = text.replace(SERVED, request.getfixturevalue("url"))
    run(name.full, text)


@pytest.mark.slow
def test_examples_of_modules_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    texts = {name: module(name).__doc__ or "" for name in MODULES}
    found = [name for name, text in texts.items() if ">>> " in text]
    assert "unfog.live" in found
    for name in found:
        run(name, texts[name])


def run(name: str, text: str) -> None:
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert "import" in test.examples[0].source, "an example says where its names are from"
    said: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        failed, _ = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert failed == 0, "".join(said)
