"""What the verbs of a live problem answer."""

from collections.abc import Mapping
from typing import Any, NamedTuple

WORDS = {
    "learnt": "learnt",
    "kept": "kept until the wait is over",
    "waits": "kept until its true context is known",
    "late": "came too late: logged and counted, not learnt",
    "ignored": "logged, not learnt: the first reward counts",
    "noted": "logged: this agent does not learn from true contexts",
    "void": "void: nothing will be learnt from this decision",
    "known": "known already: nothing was changed",
    "done": "done",
}


class Decision(NamedTuple):
    """A decision, and what was believed when it was made.

    >>> import unfog
    >>> store = unfog.live.open("walks.unfog")
    >>> channel = {"context_mean": [7000], "context_cov": 4e6, "noise_cov": 1e6, "bias_cov": 4e6}
    >>> walks = store.problem("walks", context=["steps"], arms=["send", "wait"], channel=channel, seed=1)
    >>> d = walks.decide({"steps": 1648})
    >>> d.arm in ("send", "wait"), 0 < d.probability <= 1
    (True, True)
    >>> round(d.denoised["steps"])  # between the reading and what is usual
    4621
    >>> store.close()
    """

    id: str
    arm: str
    probability: float | None  # of this arm; None where it was forced and no probability was told
    probabilities: dict[str, float]  # with which the agent takes each arm that might be chosen
    denoised: dict[str, float]  # the context as it is believed to be
    sd: dict[str, float]  # how uncertain that is: standard deviations
    number: int  # of the decision, from 0
    shadow: dict[str, dict[str, Any]] = {}  # what other agents would have done  # noqa: RUF012


class Receipt(NamedTuple):
    """What became of something reported.

    >>> import unfog
    >>> store = unfog.live.open("walks.unfog")
    >>> channel = {"context_mean": [7000], "context_cov": 4e6, "noise_cov": 1e6, "bias_cov": 4e6}
    >>> walks = store.problem("walks", context=["steps"], arms=["send", "wait"], channel=channel, seed=1)
    >>> d = walks.decide({"steps": 1648})
    >>> walks.reward(d.id, 1.0).learnt
    True
    >>> store.close()
    """

    seq: int  # its number in the log
    outcome: str  # learnt, kept, waits, late, ignored, noted, void, done
    words: str  # the same in words

    @property
    def learnt(self) -> bool:
        """Whether the belief has changed by it already."""
        return self.outcome == "learnt"


def decision(
    id_: str, body: Mapping[str, Any], probabilities: dict[str, float], shadows: dict[str, dict[str, Any]]
) -> Decision:
    """From the event of a decision."""
    return Decision(
        id_,
        body["arm"],
        body["probability"],
        probabilities,
        body["denoised"],
        body["sd"],
        body["number"],
        shadows,
    )


def receipt(seq: int, outcome: str) -> Receipt:
    """With its words."""
    return Receipt(seq, outcome, WORDS[outcome])
