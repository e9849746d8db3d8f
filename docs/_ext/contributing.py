"""CONTRIBUTING.md as a page of the site, and links to it from other pages."""

from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
FOLDER = "docs/skeletons"


def pages() -> dict[str, str]:
    """One page; a link to the folder of skeletons is one to each of them."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    skeletons = sorted(path.name for path in (ROOT / FOLDER).glob("*.py"))
    each = ", ".join(f"[{name}](../../skeletons/{name})" for name in skeletons)
    return {"contributing": text.replace(f"[{FOLDER}/]({FOLDER}/)", each).replace("](docs/", "](../../")}


def linked(text: str) -> str:
    """The pages beside the documentation are written for a code host: here they are these."""
    text = text.replace("](../../CONTRIBUTING.md", "](../reference/generated/contributing.md")
    return text.replace("](../../README.md", "](../index.md")


def _read(app: Sphinx, name: str, content: list[str]) -> None:  # noqa: ARG001
    content[0] = linked(content[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Say to Sphinx when."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
