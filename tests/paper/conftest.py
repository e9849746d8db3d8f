"""The record of the patients, where this machine has it."""

import os
from pathlib import Path

import pytest

from unfog.lab.datasets.files import DATASETS

FILE = DATASETS["warfarin"].file


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data set's file on this machine; without one a test is skipped, with a wrong one it fails."""
    folder = Path(os.environ.get("UNFOG_DATA") or Path(__file__).parents[3] / "shared/data")
    if not (folder / FILE).exists():
        pytest.skip("no IWPC warfarin on this machine: neither in UNFOG_DATA nor in ../shared/data")
    monkeypatch.setenv("UNFOG_DATA", str(folder))
    return folder / FILE
