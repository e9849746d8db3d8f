"""Write the generated pages into docs/reference/generated before Sphinx looks for pages."""

from pathlib import Path

from docs._ext import agents, commands, contributing, experiments, fields, interface, names, parts
from sphinx.application import Sphinx

GENERATORS = (names, agents, parts, experiments, fields, commands, interface, contributing)
ROOT = Path(__file__).parents[2]
FOLDER = "reference/generated"


def pages() -> dict[str, str]:
    """Every generated page by its name."""
    return {name: text for one in GENERATORS for name, text in one.pages().items()}


def write(app: Sphinx) -> None:
    """A page that has not changed is left alone, so that it need not be read again."""
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {f"{name}.md": text.rstrip() + "\n" for name, text in pages().items()}
    for path in folder.iterdir():
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Say to Sphinx when."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
