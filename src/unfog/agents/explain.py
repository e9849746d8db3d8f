"""An agent in words: its three parts with their formulas and settings, and when to use it.

Everything is taken from where it stands already: notes and settings from the parts, ideas and formulas from
the docstrings of their classes, references from the catalogue. Such a docstring says, in this order: the idea
in one paragraph; the formula, its lines indented; whatever else there is to say, and references; the section
`Settings`; examples.

`SYMBOLS` has the letters that all formulas share. A part explains letters of its own in a line of its formula
like `v: the variance of rewards;   s, t: two scales`.
"""

import re
from collections.abc import Iterable
from inspect import cleandoc
from typing import Any, NamedTuple

from unfog.agents.agent import PLACES, Agent
from unfog.agents.baselines import BASELINES
from unfog.agents.catalogue import WHEN, Catalogue, row_of, select_rows, settings_in
from unfog.features.link import KINDS
from unfog.validation import InputError, one_of

SYMBOLS = {
    "t": "the number of the round",
    "c_t": "the true context of round t",
    "chat_t": "the reading of round t",
    "gamma": "the bias",
    "g": "the mean of the bias, as it is believed to be",
    "S": "the covariance of the bias, as it is believed to be",
    "Sigma_gamma": "the covariance of the bias to begin with",
    "mu_c": "the mean of contexts",
    "Sigma_c": "the covariance of contexts",
    "Sigma_n": "the covariance of the noise",
    "theta": "the reward parameter",
    "prior_mean": "the mean of theta to begin with",
    "prior_cov": "the covariance of theta to begin with",
    "a": "an arm",
    "phi": "the features of an arm in a context",
    "psi": "the features expected of an arm, given the reading",
    "x": "the features of the arm that was played, as far as they are known",
    "r": "a reward",
    "sigma": "the deviation of rewards from their mean",
    "N": "N(m, V) is the Gaussian law of mean m and covariance V",
}
TOKEN = re.compile(r"[A-Za-z]+(?:_(?:\{[^}]*\}|[A-Za-z]+))?")
EXPLAINS = re.compile(r"([^\s,:]+(?:, [^\s,:]+)*): (.+)")
BETWEEN = re.compile(r";\s{2,}")
STEPS = {"denoiser": "denoise", "learner": "learn", "chooser": "choose"}
PAGE = re.compile(r"unfog, (docs/[\w/-]+\.md)")
PAGES = {  # by their titles
    "docs/guide/agents.md": "Which agent should I use",
    "docs/science/denoising.md": "Denoising: from a reading to a belief",
    "docs/science/contexts.md": "Contexts that are not Gaussian",
}
FORMULA = re.compile(r"(?:^ {4}.*\n?)+", re.M)  # the first indented lines of a docstring
SETTINGS = re.compile(r"^Settings\n-+\n", re.M)  # the heading of their section


class Part(NamedTuple):
    """One of the three parts of an agent."""

    step: str  # denoise, learn or choose
    name: str
    note: str
    idea: str  # the first paragraph of its class docstring
    formula: list[str]  # lines; none where the class has no formula
    letters: dict[str, str]  # the letters that the part explains itself
    settings: dict[str, str]  # their values in this agent
    meaning: str  # how its class docstring explains the settings


class Explained(NamedTuple):
    """An agent in words."""

    agent: str
    summary: str
    when: str  # to use it; empty for one of your own
    rewards: str  # gaussian or bernoulli
    parts: list[Part]
    reference: str
    letters: dict[str, str]  # the letters that all agents share


def explain(name: str, rewards: str | None = None) -> Explained:
    """The agent of this name for this kind of rewards; for Gaussian ones unless told, if it learns these."""
    agent, kind = _find_agent(name, rewards)
    parts = [_explain_part(role, vars(agent)[role]) for role in PLACES]
    shared = letters_used(
        text for part in parts for text in (part.idea, *part.formula, *part.letters.values())
    )
    return Explained(name, agent.summary, _when_to_use(name), kind, parts, _find_reference(agent), shared)


def _find_agent(name: str, rewards: str | None) -> tuple[Agent, str]:
    """The agent, and the kind of rewards; if no kind has it, the error of the first kind is raised."""
    kinds = list(KINDS) if rewards is None else [one_of("rewards", rewards, list(KINDS))]
    errors = list[InputError]()
    for kind in kinds:
        try:
            return select_rows([name], rows=Catalogue(kind), field="agent")[0], kind
        except InputError as error:
            errors.append(error)
    raise errors[0]


def _find_reference(agent: Agent) -> str:
    """Where it is from; pages of ours by title, since an installed unfog does not include the files."""
    return PAGE.sub(lambda match: f"the page {PAGES[match[1]]!r} of the site of unfog", agent.reference)


def _when_to_use(name: str) -> str:
    """The row's advice; none for a name that is spelled out of parts, for which it need not hold."""
    row = row_of(name)
    if name != row:
        return ""
    if row in BASELINES:
        baseline = BASELINES[row]
        home = f" `unfog run {baseline.home}` is its paper's own problem." if baseline.home else ""
        facts = f"It is told: {baseline.needs}. It sees: {baseline.sees}."
        return f"To compare with a published system. {facts}{home}"
    return WHEN.get(row, "")


def _explain_part(role: str, part: Any) -> Part:
    doc, meaning = part_text(type(part))
    formula = FORMULA.search(doc)
    lines = [line.strip().rstrip(",.") for line in formula[0].splitlines()] if formula else []
    settings = dict(setting.split("=", 1) for setting in settings_in(part))
    return Part(
        STEPS[role],
        str(part.name),
        str(part.note),
        _on_one_line(doc.partition("\n\n")[0]),
        [line for line in lines if not explains_a_letter(line)],
        letters_explained(lines),
        settings,
        _on_one_line(meaning) if settings else "",
    )


def part_text(kind: type) -> tuple[str, str]:
    """The docstring of a part's class without its examples: how it works, and what its settings mean."""
    doc = kind.__doc__ or ""
    if doc.startswith(f"{kind.__name__}("):  # a dataclass without a docstring: Python shows its signature
        return "", ""
    works, *settings = SETTINGS.split(cleandoc(doc.partition(">>>")[0]), maxsplit=1)
    return works.strip(), "".join(settings).strip()


def _on_one_line(text: str) -> str:
    """The text on one line."""
    return " ".join(text.split())


def letters_explained(lines: Iterable[str]) -> dict[str, str]:
    """The letters that these lines explain, and what they stand for."""
    letters = dict[str, str]()
    for line in lines:
        for piece in BETWEEN.split(line):
            match = EXPLAINS.fullmatch(piece)
            if match is not None:
                letters[match[1]] = match[2]
    return letters


def explains_a_letter(line: str) -> bool:
    """Whether a line explains letters."""
    return all(EXPLAINS.fullmatch(piece) for piece in BETWEEN.split(line))


def letters_used(texts: Iterable[str]) -> dict[str, str]:
    """The common letters that occur in these formulas."""
    tokens = {token for text in texts for token in TOKEN.findall(text)}
    inside = {piece for token in tokens - {*SYMBOLS} for piece in token.split("_", 1)}
    return {symbol: words for symbol, words in SYMBOLS.items() if symbol in tokens | inside}
