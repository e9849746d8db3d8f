"""What scrolls sideways can be reached by the keyboard: code, output, wide tables."""

from typing import Any

from sphinx.application import Sphinx


def _reachable(app: Sphinx, name: str, template: str, context: dict[str, Any], tree: Any) -> None:  # noqa: ARG001
    body = context.get("body", "")
    body = body.replace("<pre>", '<pre tabindex="0">')
    context["body"] = body.replace('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')


def setup(app: Sphinx) -> dict[str, bool]:
    """Say to Sphinx when: after furo has wrapped tables."""
    app.connect("html-page-context", _reachable, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
