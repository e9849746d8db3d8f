"""The tests that stand beside what has changed since the last commit, and those of the maths (`make check`).

tests/ has the tree of src/unfog/: the tests of a module are in the file with `test_` before its name, and in
those whose names go on from there (`test_gaussian_blocks.py` for `gaussian.py`). A module without any has its
folder's.
"""

import subprocess
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
ALWAYS = ("tests/maths", "tests/features", "tests/test_house.py")


def changed() -> list[str]:
    """Files that differ from the last commit, new ones included."""
    commands = (["diff", "--name-only", "HEAD"], ["ls-files", "--others", "--exclude-standard"])
    said = [
        subprocess.run(["git", *one], cwd=ROOT, capture_output=True, text=True, check=True)
        for one in commands
    ]
    return [line for done in said for line in done.stdout.splitlines()]


def beside(path: str) -> list[str]:
    """The tests of a file: none where it has none, or is gone."""
    parts = PurePosixPath(path).parts
    if parts[0] == "tests":
        return [path] if parts[-1].startswith("test_") and (ROOT / path).exists() else []
    if parts[:2] != ("src", "unfog") or not path.endswith(".py"):
        return []
    folder, stem = ROOT.joinpath("tests", *parts[2:-1]), PurePosixPath(path).stem
    own = [folder / f"test_{stem}.py", *sorted(folder.glob(f"test_{stem}_*.py"))]
    found = [file for file in own if file.exists()]
    above = [ROOT.joinpath("tests", *parts[2:end]) for end in range(len(parts) - 1, 2, -1)]
    return [str(one.relative_to(ROOT)) for one in found or [one for one in above if one.exists()][:1]]


def main() -> None:
    """All of them, each once."""
    found = [*ALWAYS, *(test for path in changed() for test in beside(path))]
    print(*dict.fromkeys(found))


if __name__ == "__main__":
    main()
