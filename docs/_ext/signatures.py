"""How a thing is called, as its source writes it: the names of types are those that its author used."""

import ast
import dataclasses
import inspect
import re
import textwrap
from typing import Any


def of(found: Any) -> str:
    """The arguments in brackets, with what comes back; nothing for what is not called."""
    if inspect.isclass(found):
        return _of_class(found)
    return _of_function(found) if inspect.isfunction(found) or inspect.ismethod(found) else ""


def _of_class(found: type) -> str:
    if getattr(found, "_is_protocol", False) or issubclass(found, Exception):
        return ""
    if dataclasses.is_dataclass(found):
        return str(_bare(inspect.signature(found.__init__)))
    fields = getattr(found, "_fields", None)
    if fields is not None:
        return f"({', '.join(fields)})"
    made = vars(found).get("__init__")
    return "()" if made is None else _of_function(made).removesuffix(" -> None")


def _bare(signature: inspect.Signature) -> inspect.Signature:
    """Without types: a part or a problem has many settings, and what each is its page says."""
    kept = [one for name, one in signature.parameters.items() if name != "self"]
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in kept]
    return signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)


def _of_function(found: Any) -> str:
    own = vars(found).get("__signature__")  # of keywords that a table has
    if own is not None:
        kept = [one for name, one in own.parameters.items() if name != "self"]
        return re.sub(r"\b(?:[a-z_]\w*\.)+(?=\w)", "", str(own.replace(parameters=kept)))
    node = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(found)))).body[0]
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    named = node.args.posonlyargs or node.args.args
    if named and named[0].arg in ("self", "cls"):
        named.pop(0)
    back = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    return f"({ast.unparse(node.args)}){back}"
