"""A smaller index for the page that searches, which has to load all of it.

Left out are words that mean nothing by themselves, which are then left out of what is typed, too. Sphinx does
so as well, but not where such a word begins a sentence, and it knows fewer of them. What names of Python are
called stands in a list of its own: entries of the general index, titles of their sections and the code of
their examples say it again. The code of the gallery is the same everywhere.
"""

import re
from pathlib import Path

from docutils import nodes  # type: ignore[import-untyped]
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

COMMON = frozenset((Path(__file__).parent / "common.txt").read_text("utf-8").split())
_NUMBER = re.compile(r"_*\d[\d_]*[a-z]?\d*")  # 100_000, 1e6, 3f: parts of numbers, of keys
CODE = ("examples/", "reference/generated/")
NAMES = "reference/generated/python-"


class Words(SearchEnglish):
    """English, with more words that are left out."""

    lang = "en-GB"
    stopwords = frozenset({*SearchEnglish.stopwords, *COMMON})

    def split(self, text: str) -> list[str]:
        """The words of a text: what is left out must be left out before it is reduced to its stem."""
        found = super().split(text)
        return [
            one for one in found if len(one) > 1 and one.lower() not in self.stopwords and not _number(one)
        ]


def _number(word: str) -> bool:
    return _NUMBER.fullmatch(word) is not None


def _said_again(app: Sphinx, tree: nodes.document) -> None:
    """Mark it before sphinx-gallery makes other nodes of code."""
    name = app.env.docname
    found = [*tree.findall(nodes.literal_block)] if name.startswith(CODE) else []
    if name.startswith(NAMES):
        found += [*tree.findall(nodes.title)][1:]
    for one in found:
        one["classes"].append("no-search")


def _without_entries(app: Sphinx, tree: nodes.document, name: str) -> None:  # noqa: ARG001
    """The general index has been written down by now."""
    for one in [*tree.findall(addnodes.index)]:
        one.parent.remove(one)


def setup(app: Sphinx) -> dict[str, bool]:
    """Say to Sphinx when."""
    app.add_search_language(Words)
    app.connect("doctree-read", _said_again)
    app.connect("doctree-resolved", _without_entries)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
