"""Which name was meant by one that is not known: the nearest of those that are allowed.

Whoever refuses a name may say which names there are. Where they do not, the refusal's own words list them.
"""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from itertools import islice
from math import nextafter

LONGEST = 80  # of names that are looked up: what is longer is no slip of the pen
CLOSE = 0.65  # of the letters of two names, those that they share: 'best' is no 'robust'
MOST = 2000  # names to compare with: a refusal takes no time
UNKNOWN = ("no such", "unknown ")  # a refusal that begins so is of the name of its field
NAME = re.compile(r"(?!.*:[A-Z]+$)[A-Za-z_][\w:./-]*(?<!/)")  # `always:ARM` is a form, and no name
BEFORE = re.compile(r"^(?:[a-z ]*(?:one of|with|among|the names|the arms|columns of the context|each of):? )")
BETWEEN = re.compile(r", |; | or ")
QUOTED = re.compile(r"'([^']+)'")
WORD = re.compile(r"[\w:./-]+")


def nearest(value: object, names: Iterable[str]) -> str:
    """The name that is most like this one, the first of several; empty where none is like it.

    Small and large letters are alike; the name itself is not news.
    """
    if not isinstance(value, str) or len(value) > LONGEST:
        return ""
    known = {name.lower(): name for name in islice(names, MOST) if name != value}
    matcher = SequenceMatcher(b=value.strip().lower(), autojunk=False)
    best, found = CLOSE, ""
    for word, name in known.items():
        matcher.set_seq1(word)
        # The quick ones are bounds on the last, which takes longer.
        if min(matcher.real_quick_ratio(), matcher.quick_ratio()) >= best and matcher.ratio() >= best:
            best, found = nextafter(matcher.ratio(), 2), name
    return found


def meant(field: str, value: str, allowed: str) -> str:
    """Likewise, from the words of a refusal: the name that was given, and those that it lists."""
    given = field.rpartition(".")[2] if value.startswith(UNKNOWN) and "'" not in value else _given(value)
    if not given or len(given) > LONGEST:
        return ""
    listed = BETWEEN.split(BEFORE.sub("", allowed))
    return "" if given in listed else nearest(given, filter(NAME.fullmatch, listed))


def _given(value: str) -> str:
    """The name that a value is, or the first that it quotes; a list or a table of names is none."""
    if value.startswith(("[", "{", "(")):
        return ""
    quoted = QUOTED.search(value)
    return quoted[1] if quoted else value if WORD.fullmatch(value) else ""
