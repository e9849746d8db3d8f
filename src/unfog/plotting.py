"""The look of all figures: colours, dashes, type, sizes. Those of agents are in lab/labels.py."""

from typing import Any

# Okabe and Ito's colours, with a dash of its own each: curves stay apart for colour-blind readers and in grey
# print.
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
DPI = 300  # of pictures made of dots
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
