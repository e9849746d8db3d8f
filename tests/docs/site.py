"""The site as it was built: its pages, what they refer to, and what a browser would load for them."""

import re
from functools import cached_property
from html.parser import HTMLParser
from os.path import normpath
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {  # what a browser asks for by itself, by the attribute that says where
    "script": "src",
    "img": "src",
    "source": "src",
    "iframe": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
    "object": "data",
    "input": "src",
}
STYLES = re.compile(r"""(?:@import\s+|url\()\s*['"]?([^'")\s;]+)""")


class Page(HTMLParser):
    """A page: its anchors, its links, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.anchors, self.links, self.loads, self.pictures = (
            set[str](),
            list[str](),
            list[str](),
            list[str](),
        )
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, given: list[tuple[str, str | None]]) -> None:
        """Take down what matters of a tag."""
        told = {name: value or "" for name, value in given}
        self.anchors |= {told[name] for name in ("id", "name") if name in told}
        if tag == "link":
            kind = told.get("rel", "")
            wanted = ("stylesheet", "icon", "preload", "preconnect", "dns-prefetch", "manifest")
            (self.loads if any(one in kind for one in wanted) else self.links).append(told["href"])
        elif tag == "a" and "href" in told:
            self.links.append(told["href"])
        elif tag in LOADED and LOADED[tag] in told:
            (self.pictures if tag in ("img", "source") else self.loads).append(told[LOADED[tag]])


class Site:
    """All pages of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def pages(self) -> dict[Path, Page]:
        return {path: Page(path) for path in sorted(self.folder.rglob("*.html"))}

    def file(self, path: Path, address: str) -> Path:
        """The file that an address on a page means."""
        return Path(normpath(path.parent / unquote(urlsplit(address).path)))

    def loaded(self, page: Page) -> set[Path]:
        """What a page loads besides pictures: scripts and styles, and what these load."""
        waiting, found = [self.file(page.path, one) for one in page.loads], set[Path]()
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                text = one.read_text("utf-8") if one.suffix == ".css" else ""
                waiting += [self.file(one, to) for to in STYLES.findall(text) if not to.startswith("data:")]
        return found


def outside(address: str) -> bool:
    """Whether an address leads away from the site."""
    return address.startswith("//") or urlsplit(address).scheme not in ("", "data")
