"""How much memory there is: read from the files of a made-up machine, or told."""

from pathlib import Path

import pytest

from tests.each import each
from unfog import _memory
from unfog.validation import InputError

GIB = 2**30


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


MEMINFO = "MemTotal: 16777216 kB\nMemFree: 1 kB\nMemAvailable: 8388608 kB\n"


@pytest.fixture(autouse=True)
def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(_memory.VARIABLE, raising=False)


def test_what_the_kernel_says_is_available(tmp_path: Path) -> None:
    write(tmp_path, {"proc/meminfo": MEMINFO})
    assert _memory.available(tmp_path) == 8 * GIB
    assert _memory.limit(tmp_path) == int(0.9 * 8 * GIB)


def test_the_second_version_of_control_groups(tmp_path: Path) -> None:
    """The least that any group on the way up leaves; idle pages of files are not lost."""
    write(
        tmp_path,
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "0::/outer/inner\n",
            "sys/fs/cgroup/outer/memory.max": f"{4 * GIB}\n",
            "sys/fs/cgroup/outer/memory.current": f"{2 * GIB}\n",
            "sys/fs/cgroup/outer/memory.stat": f"anon 5\ninactive_file {GIB}\n",
            "sys/fs/cgroup/outer/inner/memory.max": "max\n",
        },
    )
    assert _memory.available(tmp_path) == 3 * GIB


def test_the_first_version_of_control_groups(tmp_path: Path) -> None:
    """Inside a container the path is often not there, and the root of the mount has the limit."""
    write(
        tmp_path,
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "5:cpu,cpuacct:/a\n4:memory:/docker/0123\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{2 * GIB}\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{GIB}\n",
        },
    )
    assert _memory.available(tmp_path) == GIB


def test_a_group_without_a_limit_takes_nothing_away(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "4:memory:/\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    }
    write(tmp_path, files)
    assert _memory.available(tmp_path) == 8 * GIB


def test_a_machine_without_such_files_says_how_much_it_has(tmp_path: Path) -> None:
    found = _memory.available(tmp_path)
    assert found is None or found > 2**20


@each("text, bytes_", [("8GB", 8 * 10**9), ("1.5 gib", 3 * 2**29), ("123", 123), ("512mb", 512 * 10**6)])
def test_it_can_be_told(text: str, bytes_: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_memory.VARIABLE, text)
    assert _memory.limit() == bytes_


@each("text", ["much", "-1GB", "0", "8 apples", "1e9", "GB"])
def test_what_is_no_amount_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_memory.VARIABLE, text)
    with pytest.raises(InputError, match=rf"^UNFOG_MEMORY: '{text}'; allowed: an amount of memory"):
        _memory.limit()


def test_amounts_in_words() -> None:
    assert _memory.format_bytes(20_700_000_000) == "20.7 GB"
    assert _memory.format_bytes(64_000) == "64 kB"
    assert [_memory.format_bytes(amount) for amount in (1, 999, 1000)] == ["1 byte", "999 bytes", "1 kB"]
