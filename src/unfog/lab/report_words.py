"""What stands below a table of regret: what its columns mean, in plain words, in 80 columns."""

import textwrap
from collections.abc import Collection

from unfog.lab.terminal import WIDTH
from unfog.theory.regret import BAYES, LINEAR, PLAIN, REALISED, SPLIT

LEGEND = "mean total regret ± 95 % half-width; differences: same trials, same setting"
REGRET = "mean total regret ± 95 % half-width"  # where nobody is compared
SPREADS = (
    "q50, q99: quantiles over trials; linear: the share of trials whose regret in the\n"
    f"last quarter of the rounds is at least {LINEAR} of that in the quarter before"
)
PARTS = (
    "cb: cost of not knowing theta; ee1, ee2: of wrong contexts, < 0 where these help"  # their sum is regret
)
NO_PARTS = "the parts of regret were not kept: this run has decompose = false"
OTHERS = {
    REALISED: "realised: at the contexts drawn",
    BAYES: "bayes: against the best rule for this sample of contexts",
    PLAIN[1]: "true-context: against who sees it",
    PLAIN[2]: "plug-in: against who trusts the noisy one",
}


def below(compared: bool, reference: str, parts: Collection[str] | None, tails: bool) -> list[str]:
    """The lines below a table.

    `reference` is a name that did not fit above its column, `parts` are the further losses that are shown, or
    None where they were not asked for.
    """
    lines = [LEGEND if compared else REGRET]
    if reference:
        lines += textwrap.wrap(f"reference: {reference}", WIDTH, subsequent_indent="  ")
    if parts is not None:
        others = "; ".join(said for loss, said in OTHERS.items() if loss in parts)
        split = PARTS if SPLIT[0] in parts else NO_PARTS
        lines += [line for said in (split, others) for line in textwrap.wrap(said, WIDTH)]
    return lines + [SPREADS] * tails
