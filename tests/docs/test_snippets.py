"""Every snippet of the documentation runs as printed."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.each import each
from tests.serve.running import running
from unfog.agents.catalogue import Catalogue, select_rows
from unfog.cli import main
from unfog.lab.spec import build_problem, parse
from unfog.live.config import PreparedProblem, ProblemConfig, written

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(
        str(p.relative_to(ROOT))
        for p in ROOT.glob("docs/**/*.md")
        if not {"decisions", "_build", "generated"} & {*p.parts}
    ),
]

ELSEWHERE = ["docs/guide/service.md"]  # it needs a service: tests/docs/test_serve.py
MARK = "-- the end of a block --"
SHOWN = {
    "docs/guide/live.md": "same=True"
}  # what a page prints in the end, where that is no table with intervals


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.S | re.M)


def outputs(page: str) -> list[str | None]:
    """For each Python block the text block right below it: what it prints, or lines of it. None: no block."""
    fences = re.findall(
        r"^```python\n.*?^```(?:\n\n```text\n(.*?)^```)?", (ROOT / page).read_text("utf-8"), re.S | re.M
    )
    return [found or None for found in fences]


@pytest.mark.slow
def test_python_runs_and_prints_what_stands_below(tmp_path: Path) -> None:
    """Every page in a process and a folder of its own, beside a service."""
    pages = [page for page in PAGES if blocks(page, "python") and page not in ELSEWHERE]
    assert len(pages) > 20
    jobs = [
        {
            "code": f"\nprint({MARK!r})\n".join(blocks(page, "python")),
            "folder": str(tmp_path / page.replace("/", "-")),
        }
        for page in pages
    ]
    for job in jobs:
        Path(job["folder"]).mkdir()
    runner = Path(__file__).with_name("snippet_runner.py")
    with running(tmp_path / "served.unfog") as service:
        text = json.dumps(jobs).replace("http://127.0.0.1:8000", service.url)
        words = [sys.executable, "-W", "error", str(runner)]
        done = subprocess.run(words, input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for page, ran in zip(pages, json.loads(done.stdout), strict=True):
        assert ran["status"] == 0, f"{page}: {ran['err']}"
        assert SHOWN.get(page, "±") in ran["out"], page
        printed = ran["out"].split(f"{MARK}\n")
        for below, found in zip(outputs(page), printed, strict=True):
            assert below is None or below in found, page


@pytest.mark.slow
def test_commands_of_the_page_of_logs_print_what_stands_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command works on the table that the page's first Python block writes."""
    text = (ROOT / "docs/guide/evaluation.md").read_text("utf-8")
    ((command, below),) = re.findall(r"^```sh\n(.*?)^```\n\n```text\n(.*?)^```", text, re.S | re.M)
    code, _, _ = blocks("docs/guide/evaluation.md", "python")[0].partition(
        "\ncolumns = "
    )  # the table is enough
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(command.replace("\\\n", ""))[1:])
    assert ended.value.code in (0, None)
    assert below in capsys.readouterr().out


@pytest.mark.slow
def test_the_errors_of_the_tutorial_are_those_printed(tmp_path: Path) -> None:
    [printed] = re.findall(r"# (noise_cov: .*?); allowed", (ROOT / "docs/guide/lab.md").read_text("utf-8"))
    code = "\n".join(blocks("docs/guide/lab.md", "python")[:5])
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert printed in done.stdout


@pytest.mark.slow
def test_shell_commands_of_the_readme_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    seen = set()
    for line in "".join(blocks("README.md", "sh")).splitlines():
        words = shlex.split(line, comments=True)
        seen.add(words[0])
        if words[0] == "make":
            assert words[1] in targets
        elif words[0] == "unfog":
            with pytest.raises(SystemExit) as ended:
                main(words[1:])
            assert ended.value.code in (0, None), capsys.readouterr().err
        else:
            assert words[:2] == ["pip", "install"]
    assert seen == {"make", "unfog", "pip"}
    assert (tmp_path / "figures/fig1-gaussian-001.png").stat().st_size > 10_000


@each("page", [page for page in PAGES if blocks(page, "toml")])
def test_toml_is_a_valid_spec(page: str) -> None:
    for block in blocks(page, "toml"):
        content = tomllib.loads(block)
        live = [table for table in content.get("problem", {}).values() if isinstance(table, dict)]
        for table in live:  # [problem.NAME], as `unfog live create` takes them
            PreparedProblem(ProblemConfig.read(written(table)))
        if live:
            continue
        spec = parse(content)
        for _, fields in spec.settings():
            select_rows(spec.run.agents, rows=Catalogue(build_problem(fields).rewards.kind))


@each("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text("utf-8")):
        assert ((ROOT / page).parent / target).exists(), f"{page} links to {target}"


def test_named_tests_exist() -> None:
    for target in re.findall(
        r"`(tests/[\w/]+\.py)`", (ROOT / "docs/science/denoising.md").read_text("utf-8")
    ):
        assert (ROOT / target).is_file(), target


@each("page", [page for page in PAGES if page != "CONTRIBUTING.md"])
def test_pages_say_the_words_of_today(page: str) -> None:
    words = r"-online\b|`online[`:]|\btapes?\b|\bodds\b|\bledgers?\b|\bwalkers?\b"
    retired = re.compile(rf"{words}|features ?= ?.linear|unfog\.linear")
    assert retired.findall((ROOT / page).read_text("utf-8")) == []
