"""Figures are begun in one style and kept whole; equal data give equal files."""

import errno
import os
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from unfog.plotting import DPI, STYLE, add_note, add_title, new_figure, save, title_panel


def drawn() -> Figure:
    with new_figure(3.0, 2.0) as chart:
        axes = chart.subplots()
        axes.plot([1, 2], [3, 4])
        title_panel(axes, "a panel: $5")
        add_title(chart, "all of it: $5")
        add_note(chart, "a mean")
    return chart


def test_the_style_is_that_of_the_block() -> None:
    before = mpl.rcParams["axes.spines.top"]
    with new_figure(3.0, 2.0) as chart:
        assert mpl.rcParams["axes.spines.top"] is STYLE["axes.spines.top"]
    assert mpl.rcParams["axes.spines.top"] == before
    assert (chart.get_size_inches().tolist(), chart.dpi) == ([3.0, 2.0], DPI)
    texts = drawn()
    assert texts.get_suptitle() == "all of it: $5"
    assert (texts.axes[0].get_title("left"), texts.get_supxlabel()) == ("a panel: $5", "a mean")


def test_equal_data_give_equal_files(tmp_path: Path) -> None:
    first, second = (save(drawn(), tmp_path / name, "x") for name in "ab")
    assert [path.name for path in first] == ["x.svg", "x.pdf", "x.png"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_a_full_disk_is_named_and_nothing_is_half_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*x\.png'"):
        save(drawn(), tmp_path, "x", ("png",))
    assert not list(tmp_path.iterdir())
