"""The page in a real browser, over a real service: is every number right, is it seen by everybody?"""

import json
import re
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest

from tests.serve.browser import Page
from tests.serve.running import Running

PHONE = 360  # pixels
READY = "return document.querySelector('.problems, .operation, .panel .look:not(:empty)')"
PANELS = {"denoising", "bias", "innovations", "bank", "waiting", "rewards", "shadows", "arms", "calibration"}


def told(found: Running, name: str | None, unit: str | None = None) -> dict[str, Any]:
    """The answers that a view is made of."""
    if name is None:
        return {"problems": found.http.get("/v1/problems").json()}
    at, query = f"/v1/problems/{name}", {} if unit is None else {"unit": unit}
    asked: dict[str, dict[str, Any]] = {
        "belief": query,
        "diagnostics": {},
        "history": query | {"points": 2000},
    }
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
    words = [re.sub(r"9[05] % interval", "", text) for text in page.words()]
    stray = [token for text in words for token in re.findall(r"\d[\d.,]*", text.replace(",", ""))]
    assert [token for token in stray if token.rstrip(".") not in said] == []


@pytest.mark.slow
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
    # What the thread asks for that reads the past is not in the browser's log; the policy holds for it, too.
    policy = clinic.http.get("/page/reader.js").headers["content-security-policy"]
    assert policy.startswith("default-src 'self';")
    assert "connect-src" not in policy


@pytest.mark.slow
def test_every_panel_says_what_to_look_for_and_each_plot_is_described(clinic: Running, page: Page) -> None:
    page.open(f"{clinic.url}/#/problem/air")
    page.shown()
    each = "[...document.querySelectorAll('.panel')]"
    panels = page.run(f"return {each}.map((one) => [one.id, one.querySelector('.look').textContent])")
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


@pytest.mark.slow
def test_a_phone_needs_no_scrolling_sideways(clinic: Running, page: Page) -> None:
    page.wide(PHONE, 740)
    for place in ("", "docs", "#/problem/air", "#/problem/clinic"):
        page.open(f"{clinic.url}/{place}")
        page.wait(READY)
        page.unfold()
        assert page.run("return document.scrollingElement.scrollWidth") <= PHONE, place
        assert page.script("smallest") >= 12
    widths = page.run(
        "return [...document.querySelectorAll('.drawing canvas')].map((one) => one.clientWidth)"
    )
    assert min(widths) > 200
    assert max(widths) < PHONE


def test_at_night_page_and_plots_are_dark(clinic: Running, page: Page) -> None:
    page.open(f"{clinic.url}/#/problem/clinic")
    page.shown()
    drawn, ground, ink = page.script("colours")
    page.scheme("dark")
    page.wait("return getComputedStyle(document.body).backgroundColor !== arguments[0]", ground)
    page.run("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    redrawn, dark_ground, dark_ink = page.script("colours")
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


CUT = """
window.cut = [];
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, ...rest) {
  const width = this.measureText(text).width;
  const at = this.getTransform().transformPoint({ x, y: 0 }).x;
  const left = { left: 0, start: 0, center: width / 2, right: width, end: width }[this.textAlign];
  const upright = this.getTransform().b === 0;
  if (upright && (at - left < 0 || at - left + width > this.canvas.width)) window.cut.push(text);
  return write.call(this, text, x, ...rest);
};
"""


@pytest.mark.slow
def test_no_tick_is_cut_off_and_intervals_say_their_level(clinic: Running, page: Page) -> None:
    page.driver.get("about:blank")
    added: Any = page.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": CUT})
    try:
        for name in ("clinic", "air"):
            page.open(f"{clinic.url}/#/problem/{name}")
            page.shown()
            assert page.run("return window.cut") == []
            for panel in ("rewards", "bias", "shadows") if name == "clinic" else ("rewards",):
                assert "95 % interval" in page.run(f"return document.getElementById('{panel}').textContent")
    finally:
        page.tell("Page.removeScriptToEvaluateOnNewDocument", added)


@pytest.mark.slow
def test_an_unknown_address_says_so(clinic: Running, page: Page) -> None:
    page.open(f"{clinic.url}/#/nonsense")
    page.wait("return document.querySelector('h1')?.textContent === 'No such page'")
    assert "#/nonsense" in page.run("return document.getElementById('main').textContent")
    page.run("document.querySelector('main a').click()")
    page.wait("return document.querySelector('h1')?.textContent === 'Problems'")
    assert page.errors() == []
