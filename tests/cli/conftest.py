"""Figures that are put together and not drawn: to draw one takes seconds."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unfog import plotting

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands write empty files where their figures would be."""

    def save(
        chart: "Figure", folder: Path, stem: str, formats: Sequence[str] = plotting.FORMATS, *, dpi: int = 0
    ) -> list[Path]:
        assert chart.axes
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"{stem}.{kind}" for kind in formats]
        for path in paths:
            path.touch()
        return paths

    monkeypatch.setattr(plotting, "save", save)
