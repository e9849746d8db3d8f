"""The site in a real browser, from the file system: it can be searched, and everybody can use it."""

from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from tests.docs.site import Site
from tests.serve.browser import Page

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("site")]
LOOK = """
const [rules, done] = arguments;
const runOnly = rules ? {runOnly: [rules]} : {};
axe.run(document, {resultTypes: ["violations"], ...runOnly}).then(done);
"""
AXE = resources.files("axe_core_python").joinpath("axe.min.js").read_text("utf-8")
LOOKED_AT = [
    "index.html",
    "guide/evaluation.html",
    "reference/generated/python-unfog-testing.html",
    "examples/index.html",
    "examples/plot_cost_of_noise.html",
]


def serious(page: Page, rules: str = "") -> list[str]:
    """What axe finds that keeps somebody out, by all of its rules or by one."""
    page.run(AXE)
    done: dict[str, Any] = page.driver.execute_async_script(
        LOOK,
        rules,
    )
    assert len(done["passes"]) > (0 if rules else 10)
    return [
        f"{one['id']}: {one['help']}: {[node['html'][:150] for node in one['nodes']][:3]}"
        for one in done["violations"]
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", LOOKED_AT)
def test_nobody_is_kept_out(site: Site, page: Page, name: str, scheme: str) -> None:
    page.scheme(scheme)
    page.open((site.folder / name).as_uri())
    shade = page.run("return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (max(shade[:3]) < 80) == (scheme == "dark")
    assert serious(page, "color-contrast" if scheme == "dark" else "") == []  # all else is the same
    assert page.errors() == []


def test_axe_would_complain(page: Page, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(
        '<html lang="en"><title>x</title><main><h1>x</h1><img src="a.png"><button></button>' + "<p>x</p>" * 9
    )
    page.open(bad.as_uri())
    assert any(one.startswith("image-alt") for one in serious(page))


def test_search_finds_a_page_from_the_file_system(site: Site, page: Page) -> None:
    page.open((site.folder / "search.html").as_uri() + "?q=calibration")
    page.wait("return document.querySelector('.search-summary')?.textContent.includes('finished')")
    links = page.run("return [...document.querySelectorAll('#search-results li a')].map((one) => one.href)")
    assert any("guide/calibration.html" in one for one in links)
    assert [one for one in page.requests() if not one.startswith(("file:", "data:", "about:"))] == []


def test_no_page_asks_for_anything_outside(site: Site, page: Page) -> None:
    for name in LOOKED_AT:
        page.open((site.folder / name).as_uri())
    asked = page.requests()
    assert len(asked) > 20
    assert [one for one in asked if not one.startswith(("file:", "data:", "about:"))] == []
