"""Pages outside the gallery do without the gallery's styles and scripts."""

from typing import Any

from sphinx.application import Sphinx

GALLERY = ("sg_", "sg-")


def _lean(app: Sphinx, name: str, template: str, context: dict[str, Any], tree: Any) -> None:  # noqa: ARG001
    if name.startswith("examples/"):
        return
    for kind in ("css_files", "script_files"):
        context[kind] = [one for one in context[kind] if not _of_gallery(str(one.filename or ""))]


def _of_gallery(path: str) -> bool:
    return path.rpartition("/")[2].startswith(GALLERY)


def setup(app: Sphinx) -> dict[str, bool]:
    """Say to Sphinx when."""
    app.connect("html-page-context", _lean, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
