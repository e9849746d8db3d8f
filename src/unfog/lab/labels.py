"""Fields in words, and the colours and names of agents: what all figures and tables share.

One agent has one name, one colour, one dash and one mark in every figure: `LOOKS` is the only place that says
which. A name that is not there (a row of one's own, a row with settings) gets a look derived from the
name alone. Only where two such names of one figure fall on the same colour does the later one in the alphabet
take the next.

The fields of a problem have words for axes and the titles of panels. Some values do not mean what they say:
an assumed size of the noise of 0 says that agents assume the truth. They have words of their own in
figures and tables, and are never drawn at zero.
"""

import re
import textwrap
import zlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from unfog.lab.spec import Spec
from unfog.plotting import DASHES, MARKERS

if TYPE_CHECKING:
    import xarray as xr

WORDS = {
    "action_law": "how arms are drawn",
    "actions": "number of arms",
    "assumed_noise_cov": "size of the noise that agents assume",
    "after": "numbers seen after the decision",
    "after_var": "size of the noise of what is seen after",
    "before": "numbers seen before the decision",
    "bias": "size of the bias",
    "bias_cov": "size of the bias",
    "bias_walk": "size of a step of the bias",
    "calibration": "rounds used for calibration",
    "channel": "where the noise comes from",
    "clusters": "number of clusters",
    "context_cov": "spread of contexts",
    "context_law": "law of contexts",
    "context_mean": "mean of contexts",
    "contexts": "where contexts come from",
    "dim": "numbers in a context",
    "drift_cov": "size of a step of the bias",
    "drift_rounds": "rounds that the bias walks",
    "error_cov": "size of errors that persist",
    "error_time": "rounds that errors persist",
    "factors": "number of factors",
    "fast_cov": "spread of what moves fast",
    "fast_time": "rounds that fast moves last",
    "features": "features of a reward",
    "gaps": "share of readings lost",
    "reveal_delay": "rounds until the true context is shown",
    "level_cov": "spread of the level",
    "level_walk": "size of a step of the level",
    "lost": "share of readings lost",
    "missing": "share of readings lost",
    "noise_cov": "size of the noise",
    "prior_cov": "spread of what rewards depend on",
    "reveal": "which true contexts are shown",
    "revealed": "share of true contexts shown",
    "reward_outlier": "size of outliers of rewards",
    "reward_outliers": "share of outliers among rewards",
    "reward_var": "size of the noise of rewards",
    "scale": "scale of readings",
    "tails": "degrees of freedom of the noise",
    "prior_contexts": "true contexts known in advance",
    "prior_noisy_contexts": "noisy contexts known in advance",
    "trouble_from": "round that the trouble starts in",
    "under": "share of steps not counted",
    "units": "number of sensors",
    "white": "size of fresh noise",
}
APART = {"assumed_noise_cov": "the truth", "tails": "Gaussian", "prior_contexts": "all"}  # what 0 means
TRUE_FIELDS = {"assumed_noise_cov": "noise_cov"}  # the field with the true value

PAPER = {"alg1": "Algorithm 1", "alg2": "Algorithm 2"}
FIRST = "unfog"  # the agent that is recommended: in front, and first in every legend
SO_FAR, IN_ALL = "reward lost so far (regret)", "reward lost in all (regret)"  # labels of axes of regret
MOST_ABOVE, LONGEST = 6, 20  # names over axes of one column, and their letters


class Look(NamedTuple):
    """The style of a line: colour, dash, mark, width in points, and its z-order."""

    colour: str
    dash: Any
    mark: str
    width: float = 1.3
    above: float = 2.0  # matplotlib's own lines are at 2

    def line(self) -> dict[str, Any]:
        """The style as keyword arguments of matplotlib's `plot`."""
        return {
            "color": self.colour,
            "linestyle": self.dash,
            "linewidth": self.width,
            "zorder": self.above,
        }


# Strong colours for our agents, pale ones for the paper's and for baselines. Agents of one experiment differ
# in colour, dash and mark.
_AGENTS: dict[str, tuple[str, int, str]] = {
    "unfog": ("#BC3C00", 0, "o"),
    "unfog-delayed": ("#7F2704", 5, "h"),
    "unfog-oracle": ("#F0A07A", 9, "p"),
    "alg1": ("#3480BC", 1, "s"),
    "alg2": ("#B39DD6", 7, "D"),
    "naive": ("#A8842C", 2, "X"),
    "oracle": ("#969696", 3, "^"),
    "kk": ("#C0C0C0", 4, "v"),
    "alg1-exact": ("#1F5F99", 8, "P"),
    "alg2-exact": ("#41106E", 10, "d"),
    "adaptive": ("#008F68", 5, "D"),
    "adaptive-delayed": ("#00573F", 11, "<"),
    "adaptive-temporal": ("#66C2A4", 10, ">"),
    "coupled": ("#8C7A00", 11, "d"),
    "gaps": ("#332288", 6, "p"),
    "late": ("#882255", 6, "<"),
    "unknown-noise": ("#44AA99", 9, "D"),
    "temporal": ("#0A5C2A", 11, "*"),
    "hedged": ("#D1495B", 3, "P"),
    "drift": ("#0F6E84", 5, "*"),
    "robust": ("#AA3377", 1, "h"),
    "empirical": ("#004488", 8, "D"),
    "mixture": ("#3FA8D8", 6, ">"),
    "bayes-oracle": ("#3B3B3B", 10, "v"),
    # the experiments `learners` and `choosers`
    "alg1-exact-hetero": ("#0B1F3A", 8, "*"),
    "alg1-exact-ucb": ("#55B4DE", 8, "s"),
    "alg1-exact-hetero-ucb": ("#E377C2", 1, ">"),
    "alg1-exact-hetero-ids": ("#2B8A4B", 5, "D"),
    "alg1-exact-hetero-greedy": ("#C9A84E", 2, "v"),
    "alg1-exact-hetero-epsilon": ("#8A3B16", 6, "d"),
    "alg1-exact-hetero-toptwo": ("#7FD6CC", 10, "X"),
    "alg1-exact-smoothing-ucb": ("#7FB800", 9, "p"),
    "alg1-exact-joint-ucb": ("#40309A", 4, "v"),
}
_BASELINES: dict[str, tuple[str, int, str]] = {
    "linucb": ("#8FB3CF", 1, "s"),
    "suplinucb": ("#6E9DC4", 2, "D"),
    "linrel": ("#4F86B5", 4, "v"),
    "oful": ("#B8A36B", 3, "^"),
    "ag-ts": ("#8FB996", 6, "P"),
    "rvr-ts": ("#4C8058", 7, "X"),
    "kk-hidden": ("#C9A0B8", 1, "s"),
    "kk-observed": ("#9C6B8C", 3, "^"),
    "kk-sampled": ("#B58AA5", 2, "D"),
    "kk-exact": ("#7D4C70", 4, "v"),
    "kk-learnt": ("#D8B9CC", 6, "P"),
    "yang-bundle": ("#A3A3C2", 8, "<"),
    "maxmin": ("#8A8AB0", 9, ">"),
    "minwd": ("#70709C", 10, "p"),
    "samplinucb": ("#93B5A0", 5, "h"),
    "clbbf": ("#B59A7A", 1, "s"),
    "clbbf-oful": ("#957A5C", 2, "D"),
    "meb": ("#7FAFAF", 1, "s"),
    "meb-naive": ("#BFB07A", 2, "X"),
    "meb-ts": ("#5E9494", 4, "v"),
    "meb-optimist": ("#A0C8C8", 6, "P"),
    "park-faradonbeh": ("#BFA98C", 4, "v"),
    "park-faradonbeh-arms": ("#71839B", 7, "D"),
    "polinucb": ("#9EB07F", 6, "P"),
    "lmcts": ("#A8BF8A", 5, "h"),
    "feelgood": ("#869F66", 8, "<"),
    "ulmcts": ("#C4B48F", 9, ">"),
    "pgts": ("#A8A8A8", 10, "d"),
    "laplacets": ("#787878", 11, "*"),
}
LOOKS = {
    name: Look(colour, DASHES[dash], mark) for name, (colour, dash, mark) in (_AGENTS | _BASELINES).items()
}
LOOKS[FIRST] = LOOKS[FIRST]._replace(width=2.6, above=3.0)
# For names without a look of their own: no colour in `LOOKS` is one of these.
_SPARE_COLOURS = (
    "#4477AA", "#228B44", "#B8860B", "#AA4499", "#5A4A42", "#2AA5A0",
    "#7A52C7", "#8FA31E", "#C06C84", "#355C7D", "#9A7B4F", "#607D8B",
)  # fmt: skip


def plain(field: str) -> str:
    """A field in words."""
    return WORDS.get(field, field.replace("_", " "))


def value(field: str, text: str) -> str:
    """A value in words: `the truth` for an assumed size of the noise of 0."""
    return APART[field] if apart(field, text) else text


def values(setting: Mapping[str, str]) -> dict[str, str]:
    """A setting with its values in words."""
    return {field: value(field, text) for field, text in setting.items()}


def labelled(name: str) -> str:
    """A name with a setting after it, in words: `alg1 tails=Gaussian` for `alg1 tails=0`."""
    for field, words in APART.items():
        name = re.sub(rf"(?<= {field}=)0(\.0)?(?= |$)", words, name)
    return name


def apart(field: str, text: str) -> bool:
    """Whether a value, as text, has a special meaning and is not a number of the axis."""
    return field in APART and text in {"0", "0.0"}


def assumed_value(field: str, problem: Mapping[str, Any]) -> float | None:
    """The number that a special value stands for: what agents assume, if that is a number."""
    value = problem.get(TRUE_FIELDS.get(field, ""))
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def looks(names: Iterable[str]) -> dict[str, Look]:
    """The look of each of these agents, which does not depend on their order."""
    requested = list(names)
    by_name = {name: LOOKS[name] for name in requested if name in LOOKS}
    used = set[int]()
    for name in sorted({*requested} - {*LOOKS}):
        number = zlib.crc32(name.encode())  # the same on every machine, unlike `hash`
        indices = [(number + step) % len(_SPARE_COLOURS) for step in range(len(_SPARE_COLOURS))]
        index = next((i for i in indices if i not in used), indices[0])
        used = {*used, index}
        dash, mark = DASHES[1:][(number // 12) % (len(DASHES) - 1)], MARKERS[1:][(number // 144) % 12]
        by_name[name] = Look(_SPARE_COLOURS[index], dash, mark)
    return {name: by_name[name] for name in requested}


def ordered(names: Iterable[str]) -> list[str]:
    """Names in the order of a legend: the recommended agent first, the others as they come."""
    return sorted(names, key=lambda name: name != FIRST)


def called(name: str) -> str:
    """An agent's name in a legend: that of tables and specs, with the paper's in brackets."""
    return f"{name} ({PAPER[name]})" if name in PAPER else name


def narrow(names: Iterable[str]) -> bool:
    """Whether a legend of these names fits over axes of one column of a printed page, two names a line."""
    texts = [called(name) for name in names]
    return len(texts) <= MOST_ABOVE and max(map(len, texts)) <= LONGEST


def heading(data: "xr.Dataset", title: str, width: int = 70) -> str:
    """A title, below the note that the data require."""
    note = [textwrap.fill(data.attrs["note"], width)] if "note" in data.attrs else []
    return "\n".join([*note, textwrap.fill(title, width)])


def averaged(data: "xr.Dataset", spec: Spec) -> str:
    """How many trials were averaged, and their seed."""
    trials = data.sizes["trial"]
    return f"mean of {trials:,} trial{'s'[: trials > 1]}, seed {spec.run.seed}"
