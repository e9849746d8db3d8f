"""Mend what keeps somebody out of the pages that Sphinx and furo write.

Code and wide tables scroll sideways, and the keyboard must get there. The captions of the sidebar are
headings of a level. The arguments of a long signature are lines, not definitions without a term.
"""

import re
from typing import Any

from docutils import nodes  # type: ignore[import-untyped]
from sphinx import addnodes
from sphinx.application import Sphinx

_ARGUMENTS = re.compile(r'(<span class="sig-paren">\(</span>)\s*<dl>(.*?)</dl>', re.S)
_CAPTION = '<p class="caption" role="heading">'


def mended(html: str) -> str:
    """The same, for everybody."""
    html = html.replace("<pre>", '<pre tabindex="0">')
    html = html.replace('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')
    html = html.replace(_CAPTION, _CAPTION.replace(">", ' aria-level="2">'))
    return _ARGUMENTS.sub(lambda found: found[1] + _lines(found[2]), html)


def _lines(arguments: str) -> str:
    return arguments.replace("<dd>", '<span class="sig-line">').replace("</dd>", "</span>")


def _page(app: Sphinx, name: str, template: str, context: dict[str, Any], tree: Any) -> None:  # noqa: ARG001
    for part in ("body", "furo_navigation_tree"):
        context[part] = mended(context.get(part, ""))


def _types(app: Sphinx, tree: nodes.document) -> None:  # noqa: ARG001
    """A type in a signature is text: Sphinx would link it to anything that has the same last name."""
    for signature in tree.findall(addnodes.desc_signature):
        for one in [*signature.findall(addnodes.pending_xref)]:
            one.replace_self(one.children)


def setup(app: Sphinx) -> dict[str, bool]:
    """Say to Sphinx when: after furo."""
    app.connect("html-page-context", _page, priority=900)
    app.connect("doctree-read", _types)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
