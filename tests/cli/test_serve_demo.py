"""`unfog serve --demo`: served within seconds, alive, and gone in the end."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from unfog.cli import main
from unfog.serve import Client


@pytest.mark.slow
def test_the_demo_is_alive_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    code = "from unfog.cli import main; main()"
    words = [sys.executable, "-c", code, "serve", "--demo", "--port", "0"]
    service = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert service.stdout is not None
    said = service.stdout.readline()
    store, url = re.findall(r"^unfog serves (\S+) at (\S+) \(page\), 4 problems", said)[0]
    assert Path(store).parent.parent == tmp_path
    with Client(url) as client:
        first = [one["decisions"] for one in client.problems()]
        while [one["decisions"] for one in client.problems()] == first:
            time.sleep(0.05)
    service.terminate()
    assert service.wait() == 0
    service.stdout.close()
    assert list(tmp_path.iterdir()) == []


def test_the_demo_wants_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["serve", "--demo", "--store", "postgresql://unfog:secret@nowhere/unfog"])
    said = capsys.readouterr().err
    assert (left.value.code, "secret" in said) == (2, False)
    assert "a file that does not exist yet" in said
