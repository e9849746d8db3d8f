"""What `make docs` is doing: a line for each phase, since Sphinx itself is told to be quiet."""

from typing import Any

from sphinx.application import Sphinx


def _say(phase: str) -> None:
    print(f"docs: {phase}", flush=True)


def _begin(app: Sphinx) -> None:  # noqa: ARG001
    _say("running the examples of the gallery and writing the pages of the reference (a minute or two)")


def _read(app: Sphinx, env: Any, names: list[str]) -> None:  # noqa: ARG001
    _say(f"reading {len(names)} of {len(env.found_docs)} pages that are new or have changed")


def _write(app: Sphinx, env: Any) -> list[str]:  # noqa: ARG001
    _say("resolving references and writing pages")
    return []


def _end(app: Sphinx, error: Exception | None) -> None:  # noqa: ARG001
    _say("copying styles and writing the search index" if error is None else "stopped by an error")


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect each phase, before what else is done in it."""
    app.connect("builder-inited", _begin, priority=0)
    app.connect("env-before-read-docs", _read, priority=0)
    app.connect("env-updated", _write, priority=0)
    app.connect("build-finished", _end, priority=0)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
