"""Which study a calibration comes from: what it took for granted, and what no such study can know.

The four designs are those of the literature on measurement error (R. J. Carroll, D. Ruppert, L. A. Stefanski
and C. M. Crainiceanu, *Measurement Error in Nonlinear Models*, section 1.8; in R the package mecor, by
L. Nab): pairs for all, readings repeated, the truth for some, an estimate from elsewhere.
"""

from typing import NamedTuple

PAIRS, REPLICATES, SUBSET, EXTERNAL = DESIGNS = "pairs", "replicates", "subset", "external"

ASSUMED = {
    PAIRS: "The true contexts have no error. Errors do not depend on them. Each pair is a draw of its own"
    " (with groups: each group is), and pairs are like the decisions to come.",
    REPLICATES: "A context stays the same while it is read again. The errors of its readings do not depend on"
    " each other or on the context.",
    SUBSET: "Whose truth is known was decided at random, or by the noisy reading, and not by the truth."
    " The expected truth is a line of the reading. Each row is a draw of its own.",
    EXTERNAL: "The device errs here as it did in the study that the noise comes from. Errors do not depend on"
    " the contexts.",
}
UNKNOWN = {
    PAIRS: "Without groups: how far biases of other devices or times lie apart.",
    REPLICATES: "The bias. An error that all readings of a context share looks like a part of the context:"
    " context_mean and context_cov hold it.",
    SUBSET: "Whether rows without truth differ in more than their readings; how far biases of other devices"
    " lie apart.",
    EXTERNAL: "Whether noise and bias are what they were: readings alone do not tell noise from contexts that"
    " spread.",
}


class Design(NamedTuple):
    """A study in words."""

    name: str = PAIRS
    used: str = ""  # how many pairs, readings, contexts
    notes: tuple[str, ...] = ()  # of this study alone

    @property
    def assumed(self) -> str:
        """What must hold for the estimates to be right."""
        return ASSUMED[self.name]

    @property
    def unknown(self) -> str:
        """What cannot be known from such a study, however large."""
        return UNKNOWN[self.name]

    def __str__(self) -> str:
        lines = f"{self.name}: {self.used}", f"assumed: {self.assumed}", f"not known: {self.unknown}"
        return "\n".join([*lines, *self.notes])
