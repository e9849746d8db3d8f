"""The page in use, in a real browser over a real service: keyboard, updates, trouble, keys, many points."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selenium.webdriver.common.keys import Keys

from tests.serve.browser import Page
from tests.serve.clinic import DECISIONS
from tests.serve.running import Running, running
from unfog.serve import auth
from unfog.serve.auth import Keyed
from unfog.serve.key_storage import KeyFile
from unfog.serve.operations import Operation
from unfog.serve.responses import Call


@pytest.mark.slow
def test_it_is_used_by_keyboard_alone(clinic: Running, page: Page) -> None:
    page.open(f"{clinic.url}/")
    page.shown()
    page.press(Keys.TAB)
    assert "Skip" in page.focused()
    page.press(Keys.ENTER)
    assert page.focused().startswith("main#main")
    _tab_to(page, "a# clinic")
    assert page.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.press(Keys.ENTER)
    page.wait("return document.activeElement.tagName === 'H1'")
    page.shown()
    assert page.focused() == "h1# clinic"
    _tab_to(page, "select#unit")
    page.press(Keys.ARROW_DOWN)
    page.wait("return location.hash.includes('unit=')")
    page.wait("return document.getElementById('bias').textContent.includes('Unit patient')")
    assert page.focused().startswith("select#unit")
    _tab_to(page, "summary# Numbers of: Rewards")
    page.press(Keys.ENTER)
    assert page.run("return document.activeElement.parentElement.open")
    _tab_to(page, "div#")
    assert page.run("return document.activeElement.className") == "sheet"


def _tab_to(page: Page, wanted: str) -> None:
    for _ in range(60):
        page.press(Keys.TAB)
        if page.focused().startswith(wanted):
            return
    pytest.fail(f"never reached {wanted!r}; at {page.focused()!r}")


@pytest.mark.slow
def test_it_updates_by_itself_and_leaves_everything_in_place(tmp_path: Path, page: Page) -> None:
    with running(tmp_path / "a.unfog") as found:
        found.make()
        _decide(found, 12)
        page.open(f"{found.url}/#/problem/walks")
        page.shown()
        page.unfold()
        page.run("window.same = true; scrollTo(0, 700); document.querySelector('#arms summary').focus()")
        before = page.run("return [scrollY, document.activeElement.parentElement.parentElement.id]")
        canvases = page.run(
            "window.canvases = [...document.querySelectorAll('canvas')]; return window.canvases.length"
        )
        _decide(found, 1)
        page.wait("return document.querySelector('[data-from=\"problem/decisions\"]').dataset.value === '13'")
        page.wait("return document.querySelector('[data-from=\"history/kept\"]').dataset.value === '13'")
        assert page.run("return [scrollY, document.activeElement.parentElement.parentElement.id]") == before
        assert before[1] == "arms"
        assert page.run(
            "return window.same && [...document.querySelectorAll('details')].every((one) => one.open)"
        )
        kept = "return window.canvases.filter((one) => one.isConnected).length"
        assert page.run(kept) == canvases > 3
        assert page.errors() == []


def _decide(found: Running, times: int) -> None:
    rng = np.random.default_rng(times)
    for reading in rng.normal([1.0, -2.0], 1.0, (times, 2)).tolist():
        made = found.http.post("/v1/problems/walks/decide", json={"context": reading}).json()
        at = f"/v1/problems/walks/decisions/{made['id']}"
        found.http.post(f"{at}/reward", json={"value": 0.5}).raise_for_status()
        found.http.post(f"{at}/reveal", json={"context": {"steps": reading[0] + 1}}).raise_for_status()


@pytest.mark.slow
def test_it_says_when_the_service_is_lost_and_comes_back(tmp_path: Path, page: Page) -> None:
    with running(tmp_path / "a.unfog") as found:
        found.make()
        _decide(found, 1)
        port = int(found.url.rsplit(":", 1)[1])
        page.open(f"{found.url}/#/problem/walks")
        page.shown()
    page.run("document.dispatchEvent(new Event('visibilitychange'))")  # sooner than by itself
    page.wait(
        "return /does not answer, last answer \\d+ s ago/.test(document.getElementById('status').textContent)"
    )
    assert page.run("return document.querySelector('h1').textContent") == "walks"
    assert page.run("return document.querySelectorAll('main .number').length") > 20
    with running(tmp_path / "a.unfog", port=port) as found:
        _decide(found, 1)
        page.wait("return document.querySelector('.status.lives')")
        page.wait("return document.querySelector('[data-from=\"problem/decisions\"]').dataset.value === '2'")


@pytest.mark.slow
def test_with_keys_it_asks_for_one_and_keeps_it_in_the_tab(tmp_path: Path, page: Page) -> None:
    ring = KeyFile(tmp_path / "a.unfog")
    texts = {}
    for scope in ("admin", "read", "decide"):
        key, texts[scope] = auth.made([scope], [], "", 0.0)
        ring.add(key)
    with running(tmp_path / "a.unfog", auth=Keyed(ring)) as found:
        found.http.headers["Authorization"] = f"Bearer {texts['admin']}"
        found.make()
        page.open(f"{found.url}/#/problem/walks")
        _offer(page, "unfog_0_wrong")
        page.wait("return document.getElementById('door-word').textContent.includes('does not know')")
        assert page.run("return sessionStorage.length") == 0
        _offer(page, texts["decide"])
        page.wait(
            "return document.getElementById('trouble').textContent.includes('This key may not read here')"
        )
        page.run("document.getElementById('forget').click()")
        _offer(page, texts["read"])
        page.wait("return document.querySelector('main .number') && !document.getElementById('door').open")
        assert page.run("return document.getElementById('key').value") == ""
        page.driver.refresh()
        page.wait("return document.querySelector('main .number')")
        assert not page.run("return document.getElementById('door').open")
        assert not any(texts["read"] in url for url in page.requests())
        assert page.run("return [localStorage.length, document.cookie]") == [0, ""]


def _offer(page: Page, key: str) -> None:
    """Type a key into the form that asks for one; the form has the focus."""
    page.wait("return document.getElementById('door').open && document.activeElement.id === 'key'")
    page.press(key, Keys.ENTER)


def test_a_cloud_of_200_000_points_is_cells_and_not_elements(clinic: Running, page: Page) -> None:
    page.open(f"{clinic.url}/#/problem/clinic")
    page.shown()
    drawn = page.script("cloud")
    assert drawn["nodes"] < 100
    assert 1000 < drawn["strokes"] < 100_000
    assert drawn["said"] == "cloud. dot: 200,000 points."
    assert 0.03 < drawn["filled"][0] < 0.2  # a band about the diagonal
    assert 0.3 < drawn["filled"][1] < 0.9  # up and down all over


def test_the_switch_asks_for_all_points(clinic: Running, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, do = [], clinic.service.do

    def noted(operation: Operation, call: Call) -> Any:
        asked.append(call.query.get("points"))
        return do(operation, call)

    monkeypatch.setattr(clinic.service, "do", noted)
    page.open(f"{clinic.url}/#/problem/clinic")
    page.shown()
    assert {*asked} == {None, "2000"}
    page.run("document.getElementById('all').click()")
    page.until(lambda: "200000" in asked)
    page.wait("return location.hash.includes('points=all')")
    drawn = f"{DECISIONS} of {DECISIONS} drawn"
    page.wait("return document.querySelector('.kept').textContent === arguments[0]", drawn)


def test_what_there_is_not_is_said_in_words(clinic: Running, page: Page) -> None:
    for place, said in (("nothing", "name: 'nothing'"), ("clinic?unit=nobody", "unit: 'nobody'")):
        page.open(f"{clinic.url}/#/problem/{place}")
        page.wait("return document.getElementById('trouble')?.textContent.includes(arguments[0])", said)
        assert page.run("return document.querySelector('.status').className") == "status lives"
    page.run("document.querySelector('.crumb a').click()")
    page.wait("return document.querySelector('.problems') && !document.getElementById('trouble').textContent")
