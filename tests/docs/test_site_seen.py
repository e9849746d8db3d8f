"""The site in a real browser, from the file system: it can be searched, and everybody can use it."""

from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.docs.site import Site
from tests.serve.browser import Page

pytestmark = pytest.mark.slow
LOOK = """
const done = arguments[1];
axe.run(document, {resultTypes: ["violations"], ...arguments[0]}).then(done);
"""
COLOURS = {"runOnly": ["color-contrast"]}  # all that hangs on the scheme
FINISHED = "return document.querySelector('.search-summary')?.textContent.includes('finished')"
AXE = resources.files("axe_core_python").joinpath("axe.min.js").read_text("utf-8")
LOOKED_AT = [  # some of every kind
    "index.html",
    "guide/treatments.html",
    "examples/index.html",
    "examples/plot_cost_of_noise.html",
    "science/theory.html",
    "reference/spec.html",
    "reference/generated/agents.html",
    "reference/generated/http.html",
    "reference/generated/python-unfog-channel.html",
    "search.html?q=calibration",
]


FOUND = {  # what one may type, and a page that must be among those found
    "calibration": "guide/calibration.html",
    "which agent is for drifting sensors": "guide/sensor.html",
    "The readings": "guide/",
    "heavy-tails": "reference/generated/experiments.html#heavy-tails",
    "theorem_1": "python-unfog-theory.html#unfog.theory.bounds.theorem_1",
    "GaussianProblem": "python-unfog-problems.html#unfog.GaussianProblem",
}


def violations(page: Page, **told: Any) -> list[str]:
    """All that axe finds, however little it weighs."""
    page.run(AXE)
    done: dict[str, Any] = page.driver.execute_async_script(LOOK, told)
    assert len(done["passes"]) > (0 if told else 10)
    return [
        f"{one['id']} ({one['impact']}): {one['help']}: {[node['html'][:150] for node in one['nodes']][:3]}"
        for one in done["violations"]
    ]


def address(site: Site, name: str) -> str:
    """Of a page as a file, with what is asked of it."""
    path, _, asked = name.partition("?")
    return (site.folder / path).as_uri() + (f"?{asked}" if asked else "")


@pytest.mark.parametrize("name", LOOKED_AT)
def test_nobody_is_kept_out(site: Site, page: Page, name: str) -> None:
    """On a light ground, and what hangs on it on a dark one."""
    for scheme, told in (("light", {}), ("dark", COLOURS)):
        page.scheme(scheme)
        page.open(address(site, name))
        searches = "?q=" in name
        if searches:
            page.wait(FINISHED)
        shade = page.run("return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
        assert (max(shade[:3]) < 80) == (scheme == "dark")
        assert violations(page, **told) == [], scheme
        # Lines of the pages found are asked for: not for files, browsers say.
        assert searches or page.errors() == [], scheme


def test_axe_would_complain(page: Page, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    faint = '<p style="color: #999">words that are faint</p>'
    bad.write_text(
        f'<html lang="en"><title>x</title><main><h1>x</h1><img src="a.png"><button></button>{faint}'
        + "<p>x</p>" * 9
    )
    page.open(bad.as_uri())
    assert any(one.startswith("image-alt") for one in violations(page))
    assert [one.partition(" ")[0] for one in violations(page, **COLOURS)] == ["color-contrast"]


@pytest.mark.parametrize("asked", FOUND)
def test_search_finds_a_page_from_the_file_system(site: Site, page: Page, asked: str) -> None:
    page.open(address(site, f"search.html?q={quote(asked)}"))
    page.wait(FINISHED)
    links = page.run("return [...document.querySelectorAll('#search-results li a')].map((one) => one.href)")
    assert any(FOUND[asked] in one for one in links)
    assert [one for one in page.requests() if not one.startswith(("file:", "data:", "about:"))] == []


def test_no_page_asks_for_anything_outside(site: Site, page: Page) -> None:
    for name in LOOKED_AT:
        page.open(address(site, name))
    asked = page.requests()
    assert len(asked) > 20
    assert [one for one in asked if not one.startswith(("file:", "data:", "about:"))] == []
