"""What is in deploy/: paths that are there, options that there are, an honest health check."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.serve.running import running
from unfog.cli import main

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "deploy" / "unfog.service"


def steps(word: str) -> list[str]:
    """What follows a word of the container file, line by line."""
    text = (ROOT / "deploy" / "Containerfile").read_text("utf-8")
    return re.findall(rf"^{word} (.*)$", text, re.M)


def listed(word: str) -> Any:
    """The list that such a line ends in."""
    [line] = steps(word)
    return json.loads(line[line.index("[") :])


def test_what_is_copied_is_there() -> None:
    named = [line.split()[:-1] for line in steps("COPY") if not line.startswith("--from")]
    sources = [source for line in named for source in line]
    assert {"requirements/serve.txt", "pyproject.toml", "src"} <= set(sources)
    for source in sources:
        assert (ROOT / source).exists(), source


def test_it_is_built_of_what_is_pinned_and_runs_as_nobody_special() -> None:
    assert {line.split()[0] for line in steps("FROM")} == {"python:3.11-slim"}
    installs = [line for line in steps("RUN") if "pip install" in line]
    assert [("--require-hashes" in line, "--no-deps" in line) for line in installs] == [
        (True, False),
        (True, False),
        (False, True),
    ]
    assert steps("USER") == ["unfog"]
    assert steps("VOLUME") == ["/var/lib/unfog"]
    pinned = (ROOT / "requirements/serve.txt").read_text("utf-8")
    for name in ("starlette", "uvicorn", "prometheus-client", "numpy", "psycopg"):
        assert re.search(rf"^{name}==", pinned, re.M), name


def test_it_is_built_in_the_format_that_has_health_checks() -> None:
    pages = ("docs/guide/service.md", "deploy/Containerfile")
    told = "".join((ROOT / page).read_text("utf-8") for page in pages)
    builds = re.findall(r"podman build .*", told)
    assert len(builds) == 2
    assert all("--format docker " in line for line in builds)


def options(words: list[str]) -> list[str]:
    return [word for word in words if word.startswith("--")]


def test_its_commands_are_ours(capsys: pytest.CaptureFixture[str]) -> None:
    [start] = re.findall(r"^ExecStart=(.*)$", UNIT.read_text("utf-8"), re.M)
    contained, unit = [*listed("ENTRYPOINT"), *listed("CMD")], shlex.split(start)
    assert [contained[0], contained[1], unit[1]] == ["unfog", "serve", "serve"]
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    known = re.findall(r"^  (--[\w-]+)", capsys.readouterr().out, re.M)
    wanted = options(contained) + options(unit)
    assert len(wanted) == 8
    assert set(wanted) <= set(known)


def test_the_health_check_tells_the_truth(tmp_path: Path) -> None:
    interpreter, *words = listed("HEALTHCHECK")
    assert interpreter == "python"
    with running(tmp_path / "a.unfog") as found:
        port = found.url.rsplit(":", 1)[1]
        here = [word.replace("8000", port) for word in words]
        assert here != words
        assert subprocess.run([sys.executable, *here]).returncode == 0
    assert subprocess.run([sys.executable, *here], capture_output=True).returncode == 1


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    """With a program and a user that are there: what this machine has is not what is tested."""
    text = UNIT.read_text("utf-8")
    assert "Restart=on-failure" in text
    text = text.replace("/opt/unfog/bin/unfog", sys.executable).replace("=unfog\n", "=root\n")
    copy = tmp_path / "unfog.service"
    copy.write_text(text.replace("StateDirectory=root", "StateDirectory=unfog"))
    done = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=20", str(copy)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-300:]
