"""The verbs of a decision: decide, reward, reveal, void. Each is done by the writer of its store."""

from typing import Any

from unfog.live import Decision, Receipt
from unfog.serve.bodies import Ask, Asks, Reveal, Reward, Rewards, Void
from unfog.serve.calls import Call
from unfog.validation import InputError


def decided(found: Decision) -> dict[str, Any]:
    """A decision as JSON; shadows where there are any."""
    told = found._asdict()
    return told if found.shadow else {name: x for name, x in told.items() if name != "shadow"}


def received(found: Receipt) -> dict[str, Any]:
    """What became of a report."""
    return found._asdict()


def decide(call: Call) -> dict[str, Any]:
    """Choose an arm for a noisy context, or for several."""
    if isinstance(call.body, Asks):
        if call.key is not None:
            raise InputError("Idempotency-Key", repr(call.key), "a `key` in each decision of a batch")
        asked = [one.model_dump(exclude_unset=True) for one in call.body.asked]
        return {"decisions": [decided(one) for one in call.problem.decide_many(asked)]}
    ask: Ask = call.body
    found = call.problem.decide(
        ask.context,
        unit=ask.unit,
        arms=ask.arms,
        key=call.once(ask.key),
        at=ask.at,
        noise=ask.noise,
        forced=ask.forced,
        probability=ask.probability,
    )
    return decided(found)


def reward(call: Call) -> dict[str, Any]:
    """Report what a decision earned."""
    body: Reward = call.body
    return received(call.problem.reward(call.decision, body.value, key=call.once(body.key)))


def reward_many(call: Call) -> dict[str, Any]:
    """Report what several decisions earned, with one commit; where one is refused, so are all."""
    body: Rewards = call.body
    found = call.problem.reward_many(body.rewards, keys=body.keys)
    return {"receipts": {decision: received(one) for decision, one in found.items()}}


def reveal(call: Call) -> dict[str, Any]:
    """Tell the true context of a decision, whole or in part."""
    body: Reveal = call.body
    return received(call.problem.reveal(call.decision, body.context, key=call.once(body.key)))


def void(call: Call) -> dict[str, Any]:
    """A decision was never shown: learn nothing from it."""
    body: Void = call.body
    return received(call.problem.void(call.decision, key=call.once(body.key)))
