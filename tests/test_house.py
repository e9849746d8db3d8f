"""Rules of the house that the source shows: abilities are declared, not probed; a word means one thing."""

import ast
import re
from functools import cache
from pathlib import Path

import unfog
from tests import house_map
from tests.conftest import LONGEST
from tests.each import each

SOURCE = Path(unfog.__file__).parent
CATALOG = SOURCE / "lab" / "catalog"

# Words that misled, and the lines that may still say them.
RETIRED: dict[str, list[str]] = {
    "amend": [],
    "chip": [],
    "context_pull": [],
    "ledger": [],
    "odds": [],
    "online": [
        "*Online Learning in Bandits with Predicted Context*,",  # a title
        'PAPER = "Guo, Xu and Murphy, Online Learning in Bandits with Predicted Context"',
    ],
    "pull": [  # the verb of river and of bayesianbandits
        "def pull(self, X: Any, *, noise_cov: Any = None, groups: Any = None, **options: Any) -> Any:",
        "return self.bandit.pull(rows, **options)",
        "def pull(self, arm_ids: Any, context: Any, *, noise_cov: Any = None, group: Any = None) -> Any:",
        "return self.bandit.pull(arm_ids, context=denoised)",
        "def _pull(self, arm_ids: list[ArmID], context: dict[Any, Any]) -> ArmID:  # type: ignore[override]",
        "arm = player.pull(list(range(world.action_space.n)), context)",
    ],
    "reveals": [],
    "take_in": [],
    "tape": [],
    "thaw": [],
    "think": [],
    "unshadow": [],
    "vital": [],
    "voided": [],
    "walker": [],
}

# Words that say nothing of what they name, and what may still be called so, at most thirty.
VAGUE = {
    "clockwork",
    "crew",
    "desk",
    "doors",
    "found",
    "leftover",
    "leftovers",
    "meant",
    "mind",
    "minds",
    "plainly",
    "pupil",
    "said",
    "scene",
    "seat",
    "seldom",
    "shelf",
    "shown",
    "thaw",
    "told",
    "unshadow",
}
VAGUE_ALLOWED: dict[str, str] = {
    "DatasetNotFoundError": "ends as Python's FileNotFoundError does",
    "FileNotFoundError": "Python's own",
    "ModuleNotFoundError": "Python's own",
    "NotFoundError": "HTTP says Not Found",
    "PackageNotFoundError": "Python's own",
}


@cache
def lines(*rooms: str, ending: str = "py") -> list[tuple[str, str]]:
    """Every line of the source of these rooms, or of all, with where it stands."""
    roots = [SOURCE / room for room in rooms] or [SOURCE]
    return [
        (f"{path.relative_to(SOURCE)}:{number}", line.strip())
        for root in roots
        for path in sorted(root.rglob(f"*.{ending}"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
    ]


@each("room", ["agents", "simulation"])
def test_nothing_is_asked_whether_it_has_an_attribute(room: str) -> None:
    """An ability is declared, and checked once, when an agent is put together."""
    found = lines(room)
    assert len(found) > 500
    probes = re.compile(r"\b(?:getattr|hasattr)\(")
    assert [(where, line) for where, line in found if probes.search(line)] == []


@each("word", RETIRED)
def test_retired_words_stay_retired(word: str) -> None:
    pattern = re.compile(rf"(?<![a-z]){word}s?(?![a-z])", re.IGNORECASE)
    found = [(where, line) for where, line in lines() + lines(ending="toml") if pattern.search(line)]
    assert [(where, line) for where, line in found if line not in RETIRED[word]] == []
    assert len(found) == len(RETIRED[word])


def names(path: Path) -> set[str]:
    """Everything that a module defines, imports or uses by name."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        for field in ("id", "attr", "arg", "name", "asname"):
            name = getattr(node, field, None)
            found |= {name} if isinstance(name, str) else set()
    return found


def words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def test_names_say_what_they_hold() -> None:
    assert words("_check_toldFields") & VAGUE == {"told"}
    used = set[str]().union(*map(names, SOURCE.rglob("*.py")))
    assert len(used) > 5000
    vague = {name for name in used if words(name) & VAGUE or "take_in" in name}
    assert vague == set(VAGUE_ALLOWED)
    assert len(VAGUE_ALLOWED) <= 30


def test_the_catalog_says_product_where_it_means_it() -> None:
    assert [where for where, line in lines("lab/catalog", ending="toml") if '"linear"' in line] == []
    assert len(list(CATALOG.glob("*.toml"))) > 10


def test_the_files_that_take_longest_are_there() -> None:
    assert [name for name in LONGEST if not (SOURCE.parents[1] / "tests" / name).is_file()] == []


def test_the_map_of_the_house_is_that_of_the_tree() -> None:
    assert house_map.PAGE.read_text("utf-8") == house_map.render(), "run python tests/house_map.py"
