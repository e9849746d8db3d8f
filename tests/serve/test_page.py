"""The page in a real browser, over a real service: what it says, how it is used, and what it does in trouble."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
from selenium.webdriver.common.keys import Keys

import unfog
from tests.serve.browser import Page, browser, page
from tests.serve.running import Running, running
from unfog.lab import demo

__all__ = ["browser", "page"]
DECISIONS = 240
PHONE = 360
SMALLEST = "return [...document.querySelectorAll('main *')].filter((e) => e.checkVisibility() && e.childNodes.length && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())).map((e) => parseFloat(getComputedStyle(e).fontSize)).sort((a, b) => a - b)[0]"


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The demo's clinic, and a sensor that is noisier than told, with an agent that weighs models."""
    path, now = tmp_path_factory.mktemp("page") / "clinic.unfog", demo.START + 5 * demo.DAY
    demo.played(path, decisions=DECISIONS)
    with unfog.live.open(path, sync="normal", clock=lambda: now) as store:
        _noisy_sensor(store)
    with running(path, clock=lambda: now) as found:
        yield found


def _noisy_sensor(store: unfog.live.Store) -> None:
    rng = np.random.default_rng(3)
    channel = {"context_mean": [20.0], "context_cov": [9.0], "noise_cov": [1.0], "bias_cov": [4.0]}
    air = store.problem(
        "air", context=["no2"], arms=["open", "shut"], channel=channel, agent="adaptive", rewards="bernoulli"
    )
    for value in 20 + 9 * rng.standard_normal(60):
        made = air.decide([float(value)])
        if made.number % 4:
            air.reward(made.id, int(rng.random() < 0.5))


def told(found: Running, name: str | None, unit: str | None = None) -> dict[str, Any]:
    """The answers that a view is made of."""
    if name is None:
        return {"problems": found.http.get("/v1/problems").json()}
    at, query = f"/v1/problems/{name}", {} if unit is None else {"unit": unit}
    asked = {"belief": query, "diagnostics": {}, "history": query | {"points": 2000}}
    answers = {part: found.http.get(f"{at}/{part}", params=given).json() for part, given in asked.items()}
    return answers | {"problem": found.http.get(at).json()}


def value_at(answers: Any, where: str) -> Any:
    """What stands at a path of the answers; `count` is how many there are."""
    steps = [unquote(step) for step in where.split("/")]
    count, steps = steps[0] == "count", steps[1:] if steps[0] == "count" else steps
    if steps == ["problems"]:
        steps = ["problems", "problems"]
    for step in steps:
        answers = answers[int(step)] if isinstance(answers, list) else answers.get(step)
    return len(answers) if count else answers


def read(text: str, scale: float) -> float:
    """A number as it is written."""
    return float(text.replace("\N{MINUS SIGN}", "-").replace(",", "").removesuffix(" %")) / scale


VIEWS = {
    "overview": (None, None, ""),
    "clinic": ("clinic", None, "#/problem/clinic"),
    "a unit, along time": ("clinic", "patient-03", "#/problem/clinic?unit=patient-03&along=time"),
    "air": ("air", None, "#/problem/air"),
}


@pytest.mark.parametrize("view", VIEWS)
def test_every_number_is_what_the_service_said(clinic: Running, page: Page, view: str) -> None:
    name, unit, place = VIEWS[view]
    page.open(f"{clinic.url}/{place}")
    page.shown()
    page.unfold()
    answers, found = told(clinic, name, unit), page.numbers()
    assert len(found) >= (7 if name is None else 150)
    for one in found:
        wanted = value_at(answers, one["from"])
        if wanted is None:
            assert (one["value"], one["text"]) == ("null", "–"), one
            continue
        assert float(one["value"]) == pytest.approx(wanted, rel=1e-12), one
        if not one["time"]:
            assert read(one["text"], one["scale"]) == pytest.approx(
                wanted, rel=5e-6 if one["table"] else 5e-3
            ), one
    said = json.dumps(answers)
    stray = [token for text in page.words() for token in re.findall(r"\d[\d.,]*", text.replace(",", ""))]
    assert [token for token in stray if token.rstrip(".") not in said] == []


def test_nothing_is_complained_of_and_nothing_comes_from_elsewhere(clinic: Running, page: Page) -> None:
    for place in ("", "#/problem/clinic", "#/problem/air"):
        page.open(f"{clinic.url}/{place}")
        page.shown()
    page.open(f"{clinic.url}/docs")
    page.wait("return document.querySelectorAll('.operation').length > 10")
    asked = page.requests()
    assert len(asked) > 50
    assert [url for url in asked if not url.startswith((f"{clinic.url}/", "about:"))] == []
    assert page.errors() == []


def test_every_panel_says_what_to_look_for_and_each_plot_is_described(clinic: Running, page: Page) -> None:
    page.open(f"{clinic.url}/#/problem/air")
    page.shown()
    panels = page.run(
        "return [...document.querySelectorAll('.panel')].map((one) => [one.id, one.querySelector('.look').textContent])"
    )
    wanted = {
        "denoising",
        "bias",
        "innovations",
        "bank",
        "waiting",
        "rewards",
        "shadows",
        "arms",
        "calibration",
    }
    assert {name for name, _ in panels} == wanted
    assert all(len(said) > 60 for _, said in panels)
    drawings = page.run("return [...document.querySelectorAll('.drawing')].map((one) => one.ariaLabel)")
    assert len(drawings) >= 7
    assert all(said and re.search(r"now|points", said) for said in drawings)
    alarm = clinic.http.get("/v1/problems/air/diagnostics").json()["alarm"]
    assert (
        page.run("return [...document.querySelectorAll('.banner.alarm li')].map((e) => e.textContent)")
        == alarm
    )
    assert alarm
    page.open(f"{clinic.url}/#/problem/clinic")
    page.shown()
    assert not page.run("return document.getElementById('bank').checkVisibility()")
    assert "denoising leaves 0." in page.run("return document.getElementById('denoising').textContent")


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
    page.shown()
    assert page.focused() == "h1# clinic"
    _tab_to(page, "select#unit")
    page.press(Keys.ARROW_DOWN)
    page.wait(
        "return location.hash.includes('unit=') && document.querySelector('#bias').textContent.includes('unit patient')"
    )
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


def test_a_phone_needs_no_scrolling_sideways(clinic: Running, page: Page) -> None:
    page.wide(PHONE, 740)
    for place in ("", "#/problem/clinic", "#/problem/air", "docs"):
        page.open(f"{clinic.url}/{place}")
        page.wait("return document.querySelector('main .number, main .operation')")
        page.unfold()
        assert page.run("return document.scrollingElement.scrollWidth") <= PHONE, place
        assert page.run(SMALLEST) >= 12
    page.open(f"{clinic.url}/#/problem/clinic")
    page.shown()
    widths = page.run(
        "return [...document.querySelectorAll('.drawing canvas')].map((one) => one.clientWidth)"
    )
    assert min(widths) > 200
    assert max(widths) < PHONE


BLUE = """
const canvas = document.querySelector("#denoising canvas");
const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
const found = new Set();
for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 150) found.add(`${data[i]} ${data[i + 1]} ${data[i + 2]}`);
return [[...found], getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color];
"""


def test_at_night_page_and_plots_are_dark(clinic: Running, page: Page) -> None:
    page.open(f"{clinic.url}/#/problem/clinic")
    page.shown()
    drawn, ground, ink = page.run(BLUE)
    page.scheme("dark")
    page.wait("return getComputedStyle(document.body).backgroundColor !== arguments[0]", ground)
    page.run("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    redrawn, dark_ground, dark_ink = page.run(BLUE)
    assert _contrast(ground, ink) > 10
    assert _contrast(dark_ground, dark_ink) > 10
    assert _luminance(dark_ground) < 0.02 < 0.8 < _luminance(ground)
    assert drawn
    assert not set(drawn) & set(redrawn)


def _luminance(colour: str) -> float:
    parts = [int(x) / 255 for x in re.findall(r"\d+", colour)[:3]]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


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
        page.run("location.hash = '#/'")
        page.wait(
            "return document.querySelector('[data-from=\"problems/problems/0/decisions\"]')?.dataset.value === '13'"
        )
        _decide(found, 1)
        page.wait(
            "return document.querySelector('[data-from=\"problems/problems/0/decisions\"]').dataset.value === '14'"
        )
        assert page.errors() == []


def _decide(found: Running, times: int) -> None:
    rng = np.random.default_rng(times)
    for reading in rng.normal([1.0, -2.0], 1.0, (times, 2)).tolist():
        made = found.http.post("/v1/problems/walks/decide", json={"context": reading}).json()
        at = f"/v1/problems/walks/decisions/{made['id']}"
        found.http.post(f"{at}/reward", json={"value": 0.5}).raise_for_status()
        found.http.post(f"{at}/reveal", json={"context": {"steps": reading[0] + 1}}).raise_for_status()


def test_it_says_when_the_service_is_lost_and_comes_back(tmp_path: Path, page: Page) -> None:
    with running(tmp_path / "a.unfog") as found:
        found.make()
        _decide(found, 1)
        port = int(found.url.rsplit(":", 1)[1])
        page.open(f"{found.url}/#/problem/walks")
        page.shown()
    page.wait(
        "return /does not answer, last answer \\d+ s ago/.test(document.getElementById('status').textContent)"
    )
    assert page.run("return document.querySelector('h1').textContent") == "walks"
    assert page.run("return document.querySelectorAll('main .number').length") > 20
    with running(tmp_path / "a.unfog", port=port) as found:
        _decide(found, 1)
        page.wait("return document.querySelector('.status.lives')")
        page.wait("return document.querySelector('[data-from=\"problem/decisions\"]').dataset.value === '2'")
