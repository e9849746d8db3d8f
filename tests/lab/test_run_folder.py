"""Finished folders: every byte is held against a hash, and other layouts are refused."""

import hashlib
import json
from pathlib import Path

import pytest

from tests.each import each
from unfog._io import DamagedError, seal, unseal
from unfog.cli import main
from unfog.lab import run_folder
from unfog.lab.baselines import folder as suites
from unfog.lab.prepare import prepare
from unfog.lab.run import keep, open_run
from unfog.lab.spec import parse
from unfog.validation import InputError

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    told = {"rounds": 3, "trials": 4, "agents": ["naive"]}
    plan = prepare(parse({"problem": {"kind": "gaussian", "dim": 1, "actions": 3}, "run": told}, "small"))
    return keep(plan, tmp_path / "run")


def said(capsys: Capture, *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as leaving:
        main(words)
    return int(leaving.value.code or 0), *capsys.readouterr()


def test_no_bit_of_run_json_or_timing_json_can_change(run: Path) -> None:
    for name in ("run.json", "timing.json"):
        whole = (run / name).read_bytes()
        for place in range(8 * len(whole)):
            hurt = bytearray(whole)
            hurt[place // 8] ^= 1 << place % 8
            with pytest.raises(DamagedError):
                run_folder.identity_in(run, bytes(hurt), finished=True)
        for place in range(len(whole)):
            for more in (whole[:place] + b" " + whole[place:], whole[:place] + whole[place + 1 :]):
                with pytest.raises(DamagedError):
                    run_folder.identity_in(run, more, finished=True)


def test_the_seal_is_the_hash_of_the_rest(run: Path) -> None:
    lines = (run / "run.json").read_text("utf-8").splitlines(keepends=True)
    assert lines[-2].startswith('  "sha256": "')
    rest = "".join(lines[:-3]) + lines[-3].rstrip(",\n") + "\n" + lines[-1]
    assert hashlib.sha256(rest.encode()).hexdigest() in lines[-2]


@each("content", [b"", b"[]", b"1", b'{"a": NaN}', b"{", b"[" * 100_000, b"\xff", b'{"sha256": 1}'])
def test_what_was_never_sealed_is_damaged(content: bytes) -> None:
    with pytest.raises(DamagedError):
        unseal(content)


def test_a_time_may_be_missing_but_not_wrong(run: Path, capsys: Capture) -> None:
    timing = run / "timing.json"
    whole, taken = timing.read_bytes(), run_folder.seconds(run)
    assert taken is not None
    assert taken > 0
    for wrong in (b"", b"{}", whole.replace(b"0", b"1", 1), seal({"run": "another", "seconds": taken})):
        timing.write_bytes(wrong)
        with pytest.raises(InputError, match=r"timing\.json' is damaged; allowed: .* remove it"):
            open_run(run)
    code, _, err = said(capsys, "show", str(run))
    assert (code, "timing.json" in err) == (2, True)
    timing.unlink()
    assert run_folder.seconds(run) is None
    assert said(capsys, "show", str(run))[0] == 0


@pytest.mark.parametrize("name", ["run.json", "spec.toml", "curves.nc", "timing.json"])
def test_what_is_no_file_is_refused(name: str, run: Path) -> None:
    (run / name).unlink()
    (run / name).mkdir()
    with pytest.raises(InputError, match=f"{name}' is a folder"):
        open_run(run)


@pytest.mark.parametrize("name", ["run.json", "spec.toml", "curves.nc"])
def test_what_is_missing_is_said(name: str, run: Path) -> None:
    (run / name).unlink()
    with pytest.raises(InputError, match=f"there is no file '.*{name}'; allowed: a folder made by"):
        open_run(run)


def test_a_newer_layout_is_refused_by_name(run: Path, capsys: Capture) -> None:
    facts = unseal((run / "run.json").read_bytes())
    assert facts["layout"] == run_folder.LAYOUT == 3
    (run / "run.json").write_bytes(seal({**facts, "layout": 4, "versions": {"unfog": "9.9"}}))
    for command in ("show", "plot"):
        code, out, err = said(capsys, command, str(run))
        assert (code, out) == (2, "")
        assert "was made by unfog 9.9, in layout 4; allowed: layout 3, or a newer unfog" in err


def test_an_older_layout_is_refused_by_name(run: Path, capsys: Capture) -> None:
    """The first one had neither a number nor a seal."""
    facts = {n: x for n, x in unseal((run / "run.json").read_bytes()).items() if n != "layout"}
    old = {**facts, "versions": {"unfog": "0.1.0"}}
    (run / "run.json").write_text(json.dumps(old, indent=2, sort_keys=True) + "\n")
    for command in ("show", "plot"):
        code, out, err = said(capsys, command, str(run))
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "was made by unfog 0.1.0, in layout 1; allowed: layout 3\n" in err


LAYOUTS: list[object] = ["x", None, [], {}, True, -1, 0, 2.0]
VERSIONS: list[object] = ["x", None, [], 1, {}]
ODD = [*({"layout": one} for one in LAYOUTS), *({"versions": one} for one in VERSIONS)]


def test_what_no_version_ever_wrote_is_damage_though_its_seal_is_right(run: Path, capsys: Capture) -> None:
    facts = unseal((run / "run.json").read_bytes())
    for odd in ODD:
        (run / "run.json").write_bytes(seal({**facts, **odd}))
        for command in ("show", "plot"):
            code, out, err = said(capsys, command, str(run))
            assert (code, out, err.count("\n")) == (2, "", 1), odd
            assert "run.json' is damaged" in err, odd


@each("versions", ["x", None, [], {}])
def test_what_a_newer_version_says_of_itself_may_be_anything(
    versions: object, run: Path, capsys: Capture
) -> None:
    (run / "run.json").write_bytes(seal({"layout": 4, "versions": versions}))
    code, out, err = said(capsys, "show", str(run))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "was made by unfog of another version, in layout 4; allowed: layout 3, or a newer" in err


@each("layout", ["x", None, True, -1])
def test_a_suite_of_no_layout_is_damaged(layout: object, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "suite.json").write_bytes(seal(dict.fromkeys(suites.ENTRIES, "") | {"layout": layout}))
    code, out, err = said(capsys, "show", str(tmp_path))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "suite.json' is damaged" in err


def test_a_damaged_folder_is_not_taken_for_an_older_one(run: Path) -> None:
    facts = unseal((run / "run.json").read_bytes())
    for lost in ({"layout"}, {"layout", "code"}):
        less = {name: value for name, value in facts.items() if name not in lost}
        (run / "run.json").write_text(json.dumps({**less, "sha256": "0" * 64}, indent=2) + "\n")
        with pytest.raises(InputError, match=r"run\.json' is damaged"):
            open_run(run)
