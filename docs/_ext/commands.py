"""The Reference of the command line: every command with its options and examples, from the program."""

import re
from collections.abc import Iterator
from typing import Any

import typer
from docs._ext.tables import code, table

from unfog.cli.app import app

WORDS = {"str": "text", "int": "whole number", "float": "number", "Path": "path", "bool": ""}


def pages() -> dict[str, str]:
    """One page."""
    return {"commands": "\n".join(_page())}


def every() -> Iterator[tuple[str, Any]]:
    """Each command by what one types, groups among them."""
    yield from _below("unfog", typer.main.get_command(app))


def _below(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield words, command
    for name, one in getattr(command, "commands", {}).items():
        yield from _below(f"{words} {name}", one)


def _page() -> Iterator[str]:
    yield "# Every command\n"
    yield "What is wrong is said in one line, with what is allowed, and the exit code is 2."
    yield "`--help` after any command says what stands here.\n"
    for words, command in every():
        yield f"## {words}\n"
        yield _paragraphs(command.help) + "\n"
        yield from _below_it(words, command)
        rows = [_row(one) for one in command.params if not one.hidden]
        if rows:
            yield table(("argument or option", "takes", "default", "meaning"), rows)
        if examples := _examples(command.epilog):
            yield "```console\n" + "\n".join(f"$ {one}" for one in examples) + "\n```\n"


def _paragraphs(text: str | None) -> str:
    """Help texts wrap at line ends, and may show lines of their own."""
    return (text or "").replace("\b", "").replace("*", "\\*").strip()


def _below_it(words: str, command: Any) -> Iterator[str]:
    under = getattr(command, "commands", {})
    if under:
        links = ", ".join(f"[{name}](#{words.replace(' ', '-')}-{name})" for name in under)
        yield f"Its commands: {links}.\n"


def _row(one: Any) -> tuple[str, str, str, str]:
    argument = type(one).__name__ == "TyperArgument"
    name = code(one.name.upper()) if argument else ", ".join(map(code, [*one.opts, *one.secondary_opts]))
    flag = getattr(one, "is_flag", False)
    default = "required" if one.required else "" if flag or one.default in (None, []) else code(one.default)
    return name, "" if flag else _takes(one.type_descriptor.annotation), default, one.help or ""


def _takes(kind: Any) -> str:
    many = getattr(kind, "__args__", None)
    if many:
        return f"{_takes(many[0])}, again and again"
    name = getattr(kind, "__name__", str(kind))
    return WORDS.get(name, name)


def _examples(epilog: str | None) -> list[str]:
    """They stand in one line, with a bar between wide spaces."""
    text = re.sub(r"^Examples?: ", "", " ".join((epilog or "").split("\n")))
    return [one.strip() for one in re.split(r"\s\s+\|\s\s+|\s{2,}\|\s*|\s+\|\s{3,}", text) if one.strip()]
