"""`unfog live make`: a new problem, from a file with its terms."""

import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from unfog.cli.live.common import Name, StoreFile, Sync, opened, parsed, read_file, say, text_of

EXAMPLE = (
    "Examples: unfog live make walks.unfog walks --terms walks.toml   |"
    """   echo '{"context": ["steps"], "arms": ["send", "wait"]}' |"""
    " unfog live make walks.unfog walks --terms -"
)
SIMPLE = '{"context": ["steps", "sleep"], "arms": ["send", "wait"]}'


def command(
    store: StoreFile,
    name: Name,
    terms: Annotated[
        str,
        typer.Option(
            metavar="FILE|-",
            help="FILE.toml, FILE.json, or - for JSON on stdin: context, arms, features, rewards, reward_var,"
            " reward_range, prior_mean, prior_cov, channel, standardise, agent, seed, floor, wait,"
            " default_reward, learn, combine, reveal_within, arm_size. Only the context is a must. The"
            " channel is a table: context_mean, context_cov, noise_cov, bias_cov, bias.",
        ),
    ],
    sync: Sync = "full",
) -> None:
    """Make a problem, and the store where there is none. Again with the same terms changes nothing."""
    given = read(terms)
    if not store.remote and not store.path.exists():
        _check(name, given)
    with opened(store, sync, create=True) as found:
        there = name in found.names()
        problem = found.problem(name, **given)
        told = problem.terms
        said = {
            "store": str(store),
            "problem": name,
            "made": not there,
            "words": "it is there, with these terms: nothing was changed" if there else "made",
            "context": list(told.context),
            "arms": told.arms if any(told.arms.values()) else list(told.arms),
            "agent": told.agent,
            "seed": told.seed,
            "note": problem.note or None,
        }
    say(said)


def read(source: str) -> dict[str, Any]:
    """The terms, as keywords."""
    from unfog.validation import InputError

    path = Path(source)
    text = text_of("terms", source) if source == "-" else read_file("terms", path)
    if source != "-" and path.suffix == ".toml":
        try:
            return tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError("terms", f"{source} is not TOML ({error})", "a file of TOML or JSON") from None
    found = parsed("terms", text, SIMPLE)
    if not isinstance(found, dict) or not found:
        raise InputError("terms", text, f"a JSON object such as {SIMPLE}")
    return found


def _check(name: str, given: dict[str, Any]) -> None:
    """Refuse terms before a store is made for them."""
    from unfog import validation
    from unfog.live import config
    from unfog.live.config import Made

    validation.check_name("name", name)
    Made(config.Terms.read(config.written(given)))
