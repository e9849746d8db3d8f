"""Pages do without what others need: the styles of the gallery and, where one searches, those of code."""

from typing import Any

from sphinx.application import Sphinx

GALLERY = ("sg_", "sg-")
CODE = ("pygments",)


def _lean(app: Sphinx, name: str, template: str, context: dict[str, Any], tree: Any) -> None:  # noqa: ARG001
    idle = (() if name.startswith("examples/") else GALLERY) + (CODE if name == "search" else ())
    for kind in ("css_files", "script_files"):
        context[kind] = [one for one in context[kind] if not _name(one).startswith(idle)]


def _name(file: Any) -> str:
    return str(file.filename or "").rpartition("/")[2]


def setup(app: Sphinx) -> dict[str, bool]:
    """Say to Sphinx when."""
    app.connect("html-page-context", _lean, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
