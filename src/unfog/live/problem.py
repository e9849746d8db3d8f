"""A live problem: its verbs, changes to its arms and shadows, and its inspection.

Arguments are checked here. A verb is then passed on as a command (live/commands.py), which is answered once
its event is durable (live/processor.py). A request with a key that was used before gets the same answer as
before. Inspecting a problem logs which decisions have expired, and nothing else.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, overload

from unfog import validation
from unfog._frames import is_frame
from unfog.live import decision_table, history, inspection, requests, snapshot
from unfog.live.arms import Arms
from unfog.live.commands import (
    AddShadow,
    Cancel,
    Command,
    Decide,
    PinArm,
    RemoveShadow,
    Reveal,
    Reward,
    UpdateArms,
)
from unfog.live.errors import ConflictError, NotFoundError
from unfog.live.frames import Events, check_no_columns, decide_rows, reward_rows
from unfog.live.history import MOST, Around, HistoryQuery
from unfog.live.processor import Done, Processor
from unfog.live.requests import Decision, DecisionRequest, Receipt, check_keys, check_requests, in_place
from unfog.live.state import PRIMARY, State
from unfog.live.words import in_words
from unfog.validation import Identifier, InputError, check_keywords, count, display, nearest

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


@check_keywords
class Problem:
    """One problem of a store. Threads may share it.

    >>> import unfog
    >>> store = unfog.live.open("walks.unfog")
    >>> channel = {"context_mean": [7000], "context_cov": 4e6, "noise_cov": 1e6, "bias_cov": 4e6}
    >>> walks = store.problem("walks", context=["steps"], arms=["send", "wait"], channel=channel, seed=1)
    >>> d = walks.decide({"steps": 1648}, unit="ann")
    >>> walks.reveal(d.id, {"steps": 7065}).outcome
    'noted'
    >>> walks.reward(d.id, 1.0).outcome
    'learnt'
    >>> store.close()
    """

    def __init__(self, processor: Processor, name: str) -> None:
        """The problem must exist."""
        self.processor, self.name, self._config = processor, name, processor.made(name)
        self.terms, self.note = self._config.terms, self._config.note

    def __repr__(self) -> str:
        """Name, agent, and a note on its terms if there is one."""
        note = f": {self.note}" if self.note else ""
        return f"<live problem {self.name!r}, agent {self.terms.agent!r}{note}>"

    def __str__(self) -> str:
        """What was learnt, in words."""
        return in_words(self.describe())

    def decide(
        self,
        context: Any,
        *,
        unit: Identifier | None = None,
        arms: Any = None,
        key: str | None = None,
        measured_at: Any = None,
        noise_sd: Any = None,
        noise_cov: Any = None,
        logged_arm: Identifier | None = None,
        probability: float | None = None,
    ) -> Decision:
        """Choose an arm for a noisy context: a mapping by name, a sequence or an array; None: lost.

        `unit` says whose context it is; `arms` restricts the arms for this decision; `measured_at` is the
        time of the reading, for agents that use time. `noise_sd` is how far this reading alone may be off, as
        a standard deviation: a number for all coordinates that are not exact, or a mapping by name, where the
        others are as noisy as ever; `noise_cov` says the same as a covariance matrix. `logged_arm` is an arm
        that somebody else has chosen, with this `probability`. The same `key` gives the same answer.
        """
        ask = requests.check_request(
            self._config,
            context,
            unit=unit,
            arms=arms,
            measured_at=measured_at,
            noise_sd=noise_sd,
            noise_cov=noise_cov,
            logged_arm=logged_arm,
            probability=probability,
        )
        done = self._act(Decide(ask), key)
        all_arms = self._read_arms() if done.arms is None else done.arms
        chances, shadows = all_arms.probabilities(done.body), all_arms.shadows(done.body)
        return requests.decision(self.terms, done.decision or "", done.body, chances, shadows)

    @overload
    def decide_many(self, requests: Iterable[Mapping[str, Any]]) -> list[Decision]: ...

    @overload
    def decide_many(
        self,
        requests: Any,
        *,
        unit: str | None = None,
        key: str | None = None,
        measured_at: str | None = None,
    ) -> Any: ...

    def decide_many(
        self,
        requests: Any,
        *,
        unit: str | None = None,
        key: str | None = None,
        measured_at: str | None = None,
    ) -> Any:
        """Make several decisions with one commit; each request is a mapping of the arguments of `decide`.

        Or a row of a data frame: `unit`, `key` and `measured_at` then name columns, and the answer is a frame
        of the same kind. If one request is refused, none is carried out.
        """
        columns = {"unit": unit, "key": key, "measured_at": measured_at}
        if is_frame(requests):
            return decide_rows(requests, self.terms.coordinates, columns, self.decide_many)
        check_no_columns(columns)
        batch = check_requests("requests", requests)
        with self.processor.batch():
            asks = []
            for i, request in enumerate(batch):
                with in_place(f"requests[{i}]"):
                    asks.append(self._check_decide(**request))
            check_keys("requests", [request.get("key") for request in batch], asks)
            state = self.processor.cache.get(self.name)
            state.runners.check_batch("requests", asks, state.number)
            return [self.decide(**request) for request in batch]

    def _check_decide(self, context: Any, *, key: str | None = None, **arguments: Any) -> DecisionRequest:
        """Raise what `decide` would raise; a request that was answered before is always accepted."""
        ask = requests.check_request(self._config, context, **arguments)
        key = None if key is None else validation.check_name("key", key)
        self.processor.check(self.name, Decide(ask), key)
        return ask

    def reward(self, decision: str, value: float, *, key: str | None = None) -> Receipt:
        """Report the reward of a decision."""
        return self._report(self._build_reward(decision, value), key)

    def _build_reward(self, decision: object, value: object) -> Reward:
        decision = validation.check_decision(decision)
        return Reward(decision, self.terms.check_reward("value", value))

    @overload
    def reward_many(
        self, rewards: Mapping[str, float], *, keys: Mapping[str, str] | None = None
    ) -> dict[str, Receipt]: ...

    @overload
    def reward_many(self, rewards: Any) -> Any: ...

    def reward_many(self, rewards: Any, *, keys: Mapping[str, str] | None = None) -> Any:
        """Report the rewards of several decisions with one commit; if one is refused, none is learnt.

        `keys` are idempotency keys by decision: the same key gives the same receipt. A data frame has the
        columns `decision` and `reward`, and perhaps `key`; the answer is one of the same kind.
        """
        if is_frame(rewards):
            return reward_rows(rewards, lambda values, keys: self.reward_many(values, keys=keys))
        if not isinstance(rewards, Mapping):
            raise InputError("rewards", display(rewards), "a mapping from decisions to rewards")
        commands = {
            command.decision: command for command in map(self._build_reward, rewards, rewards.values())
        }
        with self.processor.batch():
            key_of = _check_keys(keys, commands)
            for decision, command in commands.items():
                self.processor.check(self.name, command, key_of.get(decision))
            return {
                decision: self._report(command, key_of.get(decision))
                for decision, command in commands.items()
            }

    def reveal(self, decision: str, context: Any, *, key: str | None = None) -> Receipt:
        """Reveal the true context of a decision, or some of its coordinates, when it becomes known."""
        decision = validation.check_decision(decision)
        coordinates = requests.read_reading("context", context, self.terms, whole=False)
        known = {name: value for name, value in coordinates.items() if value is not None}
        if not known:
            raise InputError("context", display(context), "one coordinate at least")
        return self._report(Reveal(decision, known), key)

    def cancel(self, decision: str, *, key: str | None = None) -> Receipt:
        """Report that a decision was never carried out, so that nothing is learnt from it."""
        return self._report(Cancel(validation.check_decision(decision)), key)

    def add_arm(self, arm: Identifier, vector: Any = None) -> Receipt:
        """Add an arm; with its vector, if arms have one."""
        name = validation.check_identifier("arm", arm)
        numbers = None if vector is None else validation.arm_vector("vector", vector)
        return self._report(UpdateArms({"add": {name: numbers}}))

    def retire_arm(self, arm: Identifier) -> Receipt:
        """Stop choosing an arm; what was learnt of it is kept."""
        return self._report(UpdateArms({"retire": [validation.check_identifier("arm", arm)]}))

    def restore_arm(self, arm: Identifier) -> Receipt:
        """Let an arm that was retired be chosen again."""
        return self._report(UpdateArms({"restore": [validation.check_identifier("arm", arm)]}))

    def update_arms(
        self,
        *,
        add: Mapping[Any, Any] | None = None,
        retire: Iterable[Identifier] = (),
        restore: Iterable[Identifier] = (),
    ) -> Receipt:
        """Make several changes of arms as one: all of them or, if one is impossible, none."""
        changes: dict[str, Any] = {"add": validation.check_arms("add", add) if add else {}}
        for change, arms in (("retire", retire), ("restore", restore)):
            changes[change] = validation.check_identifiers(change, arms) if arms else []
        if not any(changes.values()):
            raise InputError("arms", "nothing to do", "add, retire or restore")
        return self._report(UpdateArms({change: arms for change, arms in changes.items() if arms}))

    def pin_arm(self, arm: Identifier) -> Receipt:
        """Take one arm from now on, whatever the context, until `unpin_arm`."""
        return self._report(PinArm(validation.check_identifier("arm", arm)))

    def unpin_arm(self) -> Receipt:
        """Let the agent decide again, after `pin_arm`."""
        return self._report(PinArm(None))

    def add_shadow(self, agent: str) -> Receipt:
        """Add an agent that decides on the same readings from now on; its choices are not carried out."""
        return self._report(AddShadow(validation.check_name("agent", agent)))

    def remove_shadow(self, agent: str) -> Receipt:
        """Remove a shadow."""
        return self._report(RemoveShadow(validation.check_name("agent", agent)))

    def import_decisions(self, table: Any) -> int:
        """Import decisions that were made elsewhere, all or none; returns how many.

        The table is a data frame, or CSV: a file or its text. See `unfog.live.decision_table.from_table`.
        """
        return decision_table.from_table(self, table)

    def events(self, since: int = 0) -> Events:
        """The events after event number `since`: mappings with seq, kind, decision, time and more."""
        return Events(self.processor.events(self.name, since))

    def pending(self) -> list[str]:
        """Decisions whose reward may still come, oldest first."""
        with self._locked_state() as state:
            return [pending.id for pending in state.open.values() if not pending.settled]

    def describe(self) -> dict[str, Any]:
        """The problem itself, for JSON: its terms, arms, units, shadows, counts, and what was learnt.

        `print(problem)` says the same in words.
        """
        with self._locked_state() as state:
            return inspection.describe(state, self.name, self.processor.now(self.name))

    def belief(self, unit: Identifier | None = None) -> "xr.Dataset":
        """The beliefs: the bias of a unit by name with its standard deviation, theta, weights."""
        with self._locked_state() as state:
            return inspection.belief(state, _check_unit(state, unit))

    def predict_rewards(
        self,
        context: Any,
        *,
        unit: Identifier | None = None,
        arms: Any = None,
        measured_at: Any = None,
        noise_sd: Any = None,
        noise_cov: Any = None,
    ) -> "xr.Dataset":
        """The expected reward of each arm in this context; nothing is decided or learnt."""
        ask = requests.check_request(self._config, context, unit, arms, measured_at, noise_sd, noise_cov)
        with self._locked_state() as state:
            state.arms.check(ask)
            return inspection.predict_rewards(state, ask)

    def diagnostics(self) -> "xr.Dataset":
        """Whether it works: readings against the channel, rewards against predictions, arms, pending."""
        with self._locked_state() as state:
            return inspection.diagnosed(state, self.processor.now(self.name))

    def figure(self) -> "Figure":
        """The diagnostics as a picture."""
        from unfog.live.figure import figure

        return figure(self.diagnostics(), self.name)

    def history(self, unit: Identifier | None = None, points: int = 2000) -> dict[str, Any]:
        """The past of all units or of one, as plain values for JSON: see live/history.py."""
        points = count("points", points, 1, MOST)
        log = self.processor.log
        with self._locked_state() as state:
            name = None if unit is None else _check_unit(state, unit)
            query, around = self._build_query(state, name, points), self._around(state)
            decisions, upto, epoch = self.processor.recent_decisions(self.name), log.last, log.epoch
        log.commit(upto, epoch)
        with decisions.filled(around, upto) as recent:
            return history.summarise(query, recent)

    def state_hash(self) -> str:
        """A hash of the state: beliefs, pending decisions, and random streams."""
        with self.processor.lock:
            return snapshot.digest(self.processor.cache.get(self.name))

    def _act(self, command: Command, key: str | None) -> Done:
        key = None if key is None else validation.check_name("key", key)
        return self.processor.act(self.name, command, key)

    def _report(self, command: Command, key: str | None = None) -> Receipt:
        done = self._act(command, key)
        return requests.receipt(done.seq, done.body["outcome"])

    def _read_arms(self) -> Arms:
        with self.processor.lock:
            return self.processor.cache.get(self.name).arms

    @contextmanager
    def _locked_state(self) -> Iterator[State]:
        """The state, after all that has expired by now was logged; other threads wait meanwhile."""
        with self.processor.lock:
            yield self.processor.up_to_date(self.name)

    def _build_query(self, state: State, unit: str | None, points: int) -> HistoryQuery:
        watch, terms = state.watch, self.terms
        decisions: int | None = watch.tallies.counts.decisions
        track = watch.tracks.whole(watch.readings)
        if unit is not None:
            decisions, track = watch.tracks.decisions(unit), watch.tracks.of(unit, state.runner.bias(unit))
        shadows = [name for name in state.runners if name != PRIMARY]
        binary, units = terms.is_binary, state.made.units
        head = self.name, unit, points, terms.context, state.arms.order, shadows, binary
        return HistoryQuery(*head, decisions, track, units)

    def _around(self, state: State) -> Around:
        arms, terms = state.arms, self.terms
        return Around(state.number, terms.context, terms.epsilon, arms.place, tuple(arms.eras))


def _check_unit(state: State, unit: Identifier | None) -> str:
    """A unit that has readings; by default the only one, or readings without a unit if there are several."""
    units = list(state.runner.channels)
    if unit is None:
        return units[0] if len(units) == 1 else ""
    name = validation.check_identifier("unit", unit)
    if name not in units:
        raise NotFoundError("unit", repr(name), "a unit that decisions were made for", nearest(name, units))
    return name


def _check_keys(keys: Mapping[str, str] | None, decisions: Collection[str]) -> dict[str, str]:
    """The keys of rewards by decision; ConflictError if two rewards have the same key."""
    if keys is None:
        return {}
    if not isinstance(keys, Mapping):
        raise InputError("keys", display(keys), "a mapping from decisions to keys")
    key_of: dict[str, str] = {}
    for decision, key in keys.items():
        if decision not in decisions:
            raise InputError("keys", display(decision), "decisions that are rewarded")
        if validation.check_name(f"keys.{decision}", key) in key_of.values():
            raise ConflictError(f"keys.{decision}", display(key), "a key for each reward")
        key_of[decision] = key
    return key_of
