"""What pydantic finds wrong with a spec, in our words."""

from collections.abc import Mapping

from pydantic import BaseModel, ValidationError

from unfog.validation import InputError, shown

WANTED = {  # by the type of pydantic's complaint
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text in quotes",
    "list_type": 'a list of names, as in ["alg1"]',
}
TABLES = ("dict_type", "model_type")


def explained(error: ValidationError, tables: Mapping[str, type[BaseModel]]) -> InputError:
    """The first complaint, in one line; fields are those of these tables, "" being the spec itself.

    What is unknown comes before what is missing: it may be that, mistyped.
    """
    found = error.errors()
    first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])
    where, kind = ".".join(map(str, first["loc"])), first["type"]
    if kind == "extra_forbidden":
        fields = tables.get(str(first["loc"][0]), tables[""]).model_fields
        return InputError(where, "unknown field", ", ".join(fields))
    if kind == "missing":
        return InputError(where, "missing", f"a table: [{where}]")
    wanted = f"a table: [{where}]" if kind in TABLES else WANTED.get(kind)
    return InputError(where, shown(first["input"]), wanted or first["msg"].removeprefix("Input should be "))
