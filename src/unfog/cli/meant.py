"""Which name was meant: the last word on a mistyped one, wherever the complaint of it comes from.

Most complaints say it themselves. Others only list the names that are allowed: for these it is found here.
"""

import re

from unfog.inputs import InputError, nearest

ASKS = "did you mean"
FIELDS = (
    "no such field",
    "unknown field",
    "no such coordinate",
    "no such setting",
)  # of the name
NAME = re.compile(r"(?!.*:[A-Z]+$)[A-Za-z][\w:./-]*")  # `always:ARM` is a form, and no name
QUOTED = re.compile(r"'([^']+)'")


def said(error: InputError) -> str:
    """The complaint, in the end with the name that was meant, where one is like what was given."""
    whole = str(error)
    if ASKS in whole:
        return whole
    value = str(error.value)
    quoted = QUOTED.findall(value)
    given = error.field.rpartition(".")[2] if value in FIELDS else quoted[0] if quoted else value
    listed = error.allowed.removeprefix("one of: ")
    names = [one for one in re.split(r", |; | or ", listed) if NAME.fullmatch(one)]
    return whole + nearest(given, [name for name in names if name != given])
