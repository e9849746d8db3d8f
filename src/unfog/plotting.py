"""What all figures share: colours, fonts, sizes, how to start and save one. Styles of agents: lab/labels.py.

matplotlib is imported when a figure is drawn.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unfog._io import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, each with its own dashes: curves can be told apart by colour-blind readers and in
# grey print.
COLOURS = ["#0072B2", "#E69F00", "#000000", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7F7F7F"]
DASHES: list[Any] = [
    "-",
    (0, (5, 1.5)),
    (0, (1, 1)),
    (0, (6, 1.5, 1, 1.5)),
    (0, (3, 1, 1, 1, 1, 1)),
    (0, (10, 2)),
    (0, (2, 2)),
    (0, (8, 1, 2, 1)),
    (0, (4, 3)),
    (0, (1, 2.5)),
    (0, (5, 1, 5, 1, 1, 1)),
    (0, (12, 2, 2, 2)),
]
MARKERS = "osD^vPX*<>phd"
COLUMN, PAGE = 3.4, 7.0  # inches: one column and two columns of a printed page
DPI = 300  # of raster images
STYLE: dict[Any, Any] = {
    "font.size": 8.5,
    "axes.labelsize": 8.5,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "unfog",
    "pdf.fonttype": 42,
}
FORMATS = ("svg", "pdf", "png")
_UNDATED = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
_TITLE: dict[str, Any] = {"ha": "left", "x": 0.01, "parse_math": False}
_NOTE: dict[str, Any] = {"fontsize": 7, "color": "0.35", "x": 0.99, "ha": "right"}


def check_installed() -> None:
    """Import matplotlib now, so that a missing package is reported before long work."""
    import matplotlib.figure  # noqa: F401


@contextmanager
def new_figure(width: float, height: float, *, dpi: int | None = DPI) -> Iterator["Figure"]:
    """An empty figure, its size in inches; our style applies to what is drawn in the block."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        yield Figure(figsize=(width, height), dpi=dpi, layout="constrained")


def add_title(chart: "Figure", text: str, size: float = 8.5) -> None:
    """Add a title above the figure, on the left."""
    chart.suptitle(text, fontsize=size, **_TITLE)


def add_note(chart: "Figure", text: str) -> None:
    """Add a small note below the figure, on the right, such as what error bars show."""
    chart.supxlabel(text, **_NOTE)


def title_panel(axes: "Axes", text: str, size: float = 8.5) -> None:
    """Add a title above a panel, on the left."""
    axes.set_title(text, fontsize=size, loc="left", parse_math=False)


def save(
    chart: "Figure", folder: Path, stem: str, formats: Sequence[str] = FORMATS, *, dpi: int = DPI
) -> list[Path]:
    """Save a figure in each format, atomically; equal data give equal bytes."""
    import matplotlib as mpl

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{stem}.{kind}" for kind in formats]
    for kind, path in zip(formats, paths, strict=True):
        content = BytesIO()
        with mpl.rc_context(STYLE):
            chart.savefig(content, format=kind, dpi=dpi, metadata=_UNDATED.get(kind))
        write_atomically(path, content.getvalue())
    return paths
