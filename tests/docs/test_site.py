"""The site builds without a warning, its links lead somewhere, and it loads nothing from elsewhere."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from docs._ext import commands, interface
from docs._ext.contributing import linked
from docs._ext.order import kept
from docs._ext.public import every

from tests.docs.conftest import COMMAND, ROOT
from tests.docs.site import STYLES, Site, outside
from unfog.agents.catalogue import EVERY
from unfog.lab.spec import DEFAULTS, RunSpec, Spec
from unfog.serve.openapi import document

pytestmark = pytest.mark.slow
HEAVIEST = 310_000  # bytes, of a page with all that it loads but for pictures
SECTIONS = ["Guide", "Gallery", "Science", "Reference", "Notebook", "Decisions"]


def text(site: Site, name: str) -> str:
    return (site.folder / name).read_text("utf-8")


def test_it_has_a_page_for_every_page_of_the_documentation(site: Site) -> None:
    said = re.findall(
        r'<p class="caption" role="heading" aria-level="2"><span class="caption-text">(.*?)<',
        text(site, "index.html"),
    )
    assert said == SECTIONS
    written = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").glob("*/*.md")]
    assert len(written) > 45
    for path in written:
        assert (site.folder / path.with_suffix(".html")).exists(), path


def test_make_docs_builds_it_in_the_same_way() -> None:
    (line,) = re.findall(r"-m sphinx .*", (ROOT / "Makefile").read_text("utf-8"))
    assert line == f"{' '.join(COMMAND)} -d docs/_build/doctrees docs docs/_build/html"


def test_internal_links_and_anchors_lead_somewhere(site: Site) -> None:
    lost, seen = [], 0
    for path, page in site.pages.items():
        for link in page.links + page.pictures:
            if outside(link):
                continue
            seen += 1
            target = site.file(path, link) if urlsplit(link).path else path
            anchor = unquote(urlsplit(link).fragment)
            known = site.pages.get(target)
            if not target.exists() or (anchor and known and anchor not in known.anchors):
                lost.append((str(path.relative_to(site.folder)), link))
    assert seen > 5000
    assert lost == []


def test_nothing_is_loaded_from_elsewhere(site: Site) -> None:
    for path, page in site.pages.items():
        assert page.loads, path
        assert [one for one in page.loads + page.pictures if outside(one)] == [], path
        assert "style" not in page.loads
    styles = [*site.folder.rglob("*.css")]
    assert len(styles) > 5
    for path in styles:
        assert [one for one in STYLES.findall(path.read_text("utf-8")) if outside(one)] == [], path


def test_pages_are_light(site: Site) -> None:
    heavy = {}
    for path, page in site.pages.items():
        weight = path.stat().st_size + sum(one.stat().st_size for one in site.loaded(page))
        assert weight > 50_000, "furo's styles are counted"
        if weight > HEAVIEST:
            heavy[str(path.relative_to(site.folder))] = weight
    assert heavy == {}
    search = site.pages[site.folder / "search.html"]
    assert site.folder / "searchindex.js" in site.loaded(search), "the words of all pages are counted"


def test_every_public_name_is_documented(site: Site) -> None:
    anchors = {one for page in site.pages.values() for one in page.anchors}
    names = [name.full for name in every()]
    assert len(names) > 180
    assert [name for name in names if name not in anchors] == []


def test_the_reference_has_every_agent_field_command_and_operation(site: Site) -> None:
    folder = site.folder / "reference" / "generated"
    headings = {
        path.stem: {
            re.sub("<.*?>", "", one) for one in re.findall(r"<h[23]>(.*?)<a class", path.read_text("utf-8"))
        }
        for path in folder.glob("*.html")
    }
    assert set(EVERY) <= headings["agents"] | headings["baselines"]
    assert {words for words, _ in commands.every()} <= headings["commands"]
    told = {f"{method} {path}" for method, path, _ in interface.operations(document())}
    assert told <= headings["http"]
    rows = set(
        re.findall(
            r'<td><p><code class="docutils.*?">(.*?)</code></p></td>',
            (folder / "fields.html").read_text("utf-8"),
        )
    )
    cells = {re.sub("<.*?>", "", row) for row in rows}
    fields = {name for kind in DEFAULTS.values() for name in kind} | {
        *RunSpec.model_fields,
        *Spec.model_fields,
    }
    assert fields <= cells


def test_the_gallery_shows_its_pictures(site: Site) -> None:
    for script in (ROOT / "docs" / "gallery").glob("plot_*.py"):
        assert site.folder / "examples" / f"{script.stem}.html" in site.pages
    page = site.pages[site.folder / "examples" / "plot_cost_of_noise.html"]
    pictures = [site.file(page.path, one) for one in page.pictures]
    assert any("plot_cost_of_noise" in one.name and one.stat().st_size > 5000 for one in pictures)


def test_links_to_pages_beside_the_documentation_stay_in_the_site(site: Site) -> None:
    text = "[a](../../CONTRIBUTING.md#architecture) [b](../../README.md)"
    assert linked(text) == "[a](../reference/generated/contributing.md#architecture) [b](../index.md)"
    page = site.pages[site.folder / "reference" / "generated" / "contributing.html"]
    assert sum("_downloads" in link and link.endswith(".py") for link in page.links) == 5


def test_pages_that_are_not_written_are_left_out_of_the_order(tmp_path: Path) -> None:
    (tmp_path / "guide").mkdir()
    for name in ("lab", "more"):
        (tmp_path / "guide" / f"{name}.md").write_text("")
    assert kept("guide/start\nguide/lab\nguide/*\n\nscience/*\n", tmp_path) == "guide/lab\nguide/*\n\n"
    assert kept("guide/lab\nguide/more\nguide/*\n", tmp_path) == "guide/lab\nguide/more\n"
