"""The look of all figures: colours, dashes, type."""

from typing import Any

# Okabe and Ito's colours, with a dash of its own each: curves stay apart for colour-blind readers and in grey
# print. The first agents of the catalogue have the same style in every figure.
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
]
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "unfog",
    "pdf.fonttype": 42,
}
