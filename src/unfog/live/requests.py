"""Requests for decisions, checked and in the form in which they are logged; and the answers of a problem.

A request is logged after it was checked and converted. So a replay reads the same numbers, and a second
request with the same key can be compared with the first.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from unfog import validation
from unfog._frames import read_row
from unfog.live.config import PreparedProblem, ProblemConfig, check_noise_sd
from unfog.live.errors import ConflictError
from unfog.maths.arrays import Array
from unfog.validation import LARGEST, InputError, check_keywords, display, is_missing

READING = ("measured_at", "noise_sd", "noise_cov")
ARGUMENTS = ("context", "unit", "arms", "key", *READING, "logged_arm", "probability")  # of `decide`
REQUEST = ("context", "unit", "arms", *READING, "logged_arm", "logged_probability")  # its fields in the log

MESSAGES = {
    "learnt": "learnt",
    "kept": "kept until the reward window is over",
    "waits": "kept until its true context is known",
    "late": "came too late: logged and counted, not learnt",
    "ignored": "logged, not learnt: the first reward counts",
    "noted": "logged: this agent does not learn from true contexts",
    "cancelled": "nothing will be learnt from this decision",
    "known": "known already: nothing was changed",
    "done": "done",
}


class DecisionRequest(NamedTuple):
    """A request for a decision."""

    request: dict[str, Any]  # as it is logged
    noisy: Array  # (1, d)  in the agent's units; the mean where it was lost
    mask: Array | None  # (1, d)  0 where the reading was lost; None if nothing was
    unit: str  # "" where none is named
    arms: list[str] | None  # those that may be chosen; None: all
    vectors: dict[str, Any] | None  # of arms that come with the decision
    measured_at: float | None
    noise_cov: Array | None  # (1, d, d)  in the agent's units


@check_keywords
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
    probability: float | None  # of this arm; None where somebody else chose it and no probability was told
    probabilities: dict[str, float]  # with which the agent takes each arm that might be chosen
    denoised: dict[str, Any]  # the context as it is believed to be; of a category, the chance of each level
    sd: dict[str, Any]  # how uncertain that is: standard deviations
    number: int  # of the decision, from 0
    shadows: dict[str, dict[str, Any]] = {}  # what other agents would have done  # noqa: RUF012


@check_keywords
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
    outcome: str  # learnt, kept, waits, late, ignored, noted, cancelled, known, done
    message: str  # the same in words

    @property
    def learnt(self) -> bool:
        """Whether the belief has changed by it already."""
        return self.outcome == "learnt"


def check_request(
    config: PreparedProblem,
    context: Any,
    unit: object = None,
    arms: Any = None,
    measured_at: object = None,
    noise_sd: Any = None,
    noise_cov: Any = None,
    logged_arm: object = None,
    probability: object = None,
    *,
    by_column: bool = False,
) -> DecisionRequest:
    """Check the arguments of a request; `by_column`: with a context as it is logged."""
    request: dict[str, Any] = {
        "context": context_of("context", context, config.terms.context)
        if by_column
        else read_reading("context", context, config.terms)
    }
    if not is_missing(unit):
        request["unit"] = validation.check_identifier("unit", unit)
    if arms is not None:
        request["arms"] = read_arms("arms", arms)
    if not is_missing(measured_at):
        request["measured_at"] = validation.check_time("measured_at", measured_at)
    request |= _check_noise(noise_sd, noise_cov, config.terms)
    if not is_missing(logged_arm):
        request["logged_arm"] = validation.check_identifier("logged_arm", logged_arm)
    if not is_missing(probability):
        request["logged_probability"] = _check_probability(probability, logged_arm)
    return read(config, request)


def read_reading(field: str, value: Any, terms: ProblemConfig, whole: bool = True) -> dict[str, float | None]:
    """A context as it is logged, by column; None for what was lost or is not known."""
    if terms.spec is None:
        return context_of(field, value, terms.context, whole)
    values = terms.spec.encode(value, field, partial=not whole).values.tolist()
    return {name: None if x != x else x for name, x in zip(terms.spec.columns, values, strict=True)}


def context_of(
    field: str, value: Any, coordinates: Sequence[str], whole: bool = True
) -> dict[str, float | None]:
    """A context by name; None for what was lost or is not known.

    It is read from a mapping, a row of a frame, a sequence or an array. With `whole`, every coordinate must
    be there.
    """
    raw = read_row(field, value, coordinates, partial=not whole)
    return {name: x if _is_plain_float(x) else _check_coordinate(field, name, x) for name, x in raw.items()}


def _is_plain_float(value: Any) -> bool:
    """Whether it is a float that needs no conversion, as most values are."""
    return type(value) is float and -LARGEST <= value <= LARGEST


def _check_coordinate(field: str, name: str, value: Any) -> float | None:
    allowed = "a finite number, or None where it was lost"
    return None if is_missing(value) else validation.number(f"{field}.{name}", value, allowed)


def read_arms(field: str, arms: Any) -> Any:
    """A list of names, or a mapping from names to vectors."""
    vectors = validation.check_arms(field, arms)
    return vectors if isinstance(arms, Mapping) else list(vectors)


def _check_noise(sd: Any, cov: Any, terms: ProblemConfig) -> dict[str, Any]:
    """The noise of a reading as it is logged, if it has its own: standard deviations, or a covariance."""
    if sd is not None and cov is not None:
        raise InputError("noise_cov", "given beside noise_sd", "one of the two")
    if cov is not None:
        d = len(terms.readings)
        return {"noise_cov": validation.covariance("noise_cov", cov, d, exact=True).tolist()}
    return {} if sd is None else {"noise_sd": _check_noise_sd(sd, terms)}


def _check_noise_sd(value: Any, terms: ProblemConfig) -> float | dict[str, float]:
    """A standard deviation for all coordinates that are not exact, or those of some by name."""
    coordinates = terms.readings
    if not isinstance(value, Mapping):
        sd = check_noise_sd("noise_sd", value)
        if terms.spec is None:
            return sd
        value = dict.fromkeys((name for name in coordinates if name not in terms.spec.exact), sd)
    for name in value:
        if name not in coordinates:
            raise InputError(f"noise_sd.{name}", "no such coordinate", ", ".join(coordinates))
    if not value:
        raise InputError("noise_sd", value, "a number, or numbers by the names of coordinates")
    return {name: check_noise_sd(f"noise_sd.{name}", value[name]) for name in coordinates if name in value}


def _check_probability(value: object, logged_arm: object) -> float:
    allowed = "a number above 0 and at most 1, and only with a logged_arm"
    chance = validation.number("probability", value, allowed)
    if is_missing(logged_arm) or not 0 < chance <= 1:
        raise InputError("probability", display(value), allowed)
    return chance


def read(config: PreparedProblem, request: dict[str, Any]) -> DecisionRequest:
    """The request as a round needs it, from its logged form."""
    context = request["context"]  # an imported one may have another order
    values = [context[name] for name in config.terms.context]
    lost = None in values
    raw = np.array([[np.nan if x is None else x for x in values]] if lost else [values])
    noisy, mask = config.units.read(raw), None
    if lost:
        if not config.knows_noise:
            missing = next(name for name, x in request["context"].items() if x is None)
            allowed = "a number: without a channel nothing says what it would have been"
            raise InputError(f"context.{missing}", None, allowed)
        present = ~np.isnan(raw)
        noisy, mask = np.where(present, noisy, 0.0), present.astype(np.float64)
    arms, noise_cov = request.get("arms"), _read_noise(config, request)
    return DecisionRequest(
        request,
        noisy,
        mask,
        request.get("unit", ""),
        None if arms is None else list(arms),
        arms if isinstance(arms, dict) else None,
        request.get("measured_at"),
        None if noise_cov is None else config.limit_noise(noise_cov[None]),
    )


def _read_noise(config: PreparedProblem, request: Mapping[str, Any]) -> Array | None:
    """The noise covariance of this reading alone, (d, d), in the caller's units.

    Coordinates whose standard deviation was not given keep the noise of the channel.
    """
    sd, own, names = request.get("noise_sd"), request.get("noise_cov"), config.terms.readings
    if sd is None and own is None:
        return None
    cov, columns = np.array(config.channel.noise_cov, float), config.terms.context.index
    if own is not None:
        indices = [columns(name) for name in names]
        cov[np.ix_(indices, indices)] = own
        return cov
    sds: dict[str, float] = sd if isinstance(sd, dict) else dict.fromkeys(names, sd or 0.0)
    for name, value in sds.items():
        i = columns(name)
        cov[i, :] = cov[:, i] = 0.0
        cov[i, i] = value**2
    return cov


def check_requests(field: str, batch: Any) -> list[dict[str, Any]]:
    """Check a list of requests, each a mapping of the arguments of `decide`."""
    items = validation.as_list(field, batch, "a list of mappings, one for each decision")
    for i, item in enumerate(items):
        if not isinstance(item, Mapping):
            raise InputError(f"{field}[{i}]", display(item), f"a mapping with {', '.join(ARGUMENTS)}")
        for name in item:
            if name not in ARGUMENTS:
                raise InputError(f"{field}[{i}].{name}", "no such field", ", ".join(ARGUMENTS))
        if "context" not in item:
            raise InputError(f"{field}[{i}].context", "missing", "the context of a decision")
    return [dict(item) for item in items]


@contextmanager
def in_place(field: str) -> Iterator[None]:
    """Prefix the field of an error, to say which of several requests it is about."""
    try:
        yield
    except InputError as error:
        raise type(error).prefixed(field, error) from None


def check_keys(field: str, keys: Sequence[object], asks: Sequence[DecisionRequest]) -> None:
    """Raise ConflictError if two different requests of a batch have the same key."""
    first: dict[object, DecisionRequest] = {}
    for i, (key, ask) in enumerate(zip(keys, asks, strict=True)):
        if key is not None and first.setdefault(key, ask).request != ask.request:
            raise ConflictError(f"{field}[{i}].key", display(key), "a key for each request of a batch")


def decision(
    terms: ProblemConfig,
    id_: str,
    body: Mapping[str, Any],
    probabilities: dict[str, float],
    shadows: dict[str, dict[str, Any]],
) -> Decision:
    """The answer to a request, from the event of its decision."""
    denoised, sd = body["denoised"], body["sd"]
    if terms.spec is not None:
        mean, sds = (np.array([part[name] for name in terms.context]) for part in (denoised, sd))
        denoised, sd = terms.spec.decode(mean, np.diag(sds**2))
    return Decision(
        id_,
        body["arm"],
        body["probability"],
        probabilities,
        denoised,
        sd,
        body["number"],
        shadows,
    )


def receipt(seq: int, outcome: str) -> Receipt:
    """The answer to a report, with its outcome in words."""
    return Receipt(seq, outcome, MESSAGES[outcome])
