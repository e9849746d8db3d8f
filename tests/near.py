"""The tests that stand beside what has changed since the last commit, and those of the maths (`make check`).

tests/ has the tree of src/unfog/: a module's tests are in the file of its name, or else in its folder's.
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


def beside(path: str) -> str | None:
    """The tests of a file; None where it has none, or is gone."""
    parts = PurePosixPath(path).parts
    if parts[0] == "tests":
        return path if parts[-1].startswith("test_") and (ROOT / path).exists() else None
    if parts[:2] != ("src", "unfog") or not path.endswith(".py"):
        return None
    places = [PurePosixPath("tests", *parts[2:-1], f"test_{parts[-1]}")]
    places += [PurePosixPath("tests", *parts[2:end]) for end in range(len(parts) - 1, 2, -1)]
    return next((str(place) for place in places if (ROOT / place).exists()), None)


def main() -> None:
    """All of them, each once."""
    found = [*ALWAYS, *filter(None, map(beside, changed()))]
    print(*dict.fromkeys(found))


if __name__ == "__main__":
    main()
