"""Wrappers for the five libraries whose bandits can be put behind a denoiser, none of which is imported.

For each there is a class with the methods of its library that take contexts, and a function that checks a
bandit and wraps it.
"""

# ruff: noqa: N802, N803 (names of the libraries)

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from unfog import validation
from unfog.adapters.wrap import Names, Table, Wrapped, readings
from unfog.validation import InputError, check_keywords

SEPARATORS = (" ", "|", ":", "\n")  # characters that end a name in the text format


@check_keywords
class BayesianBandits(Wrapped[Table]):
    """A contextual agent of bayesianbandits; `X` are rows of numbers.

    Its regressors have no intercept of their own: give them a column of ones, and name it in `as_is`. `decay`
    and the arms have no context, and are the agent's own.
    """

    def pull(self, X: Any, *, noise_cov: Any = None, groups: Any = None, **options: Any) -> Any:
        """The action of an arm for each row."""
        with self.way.deciding("X", X, noise_cov, groups) as rows:
            return self.bandit.pull(rows, **options)

    def select_for_update(self, token: Any) -> "BayesianBandits":
        """The arm to be updated next; the wrapped agent again, so that `update` is denoised too."""
        self.bandit.select_for_update(token)
        return self

    def update(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        noise_cov: Any = None,
        groups: Any = None,
    ) -> None:
        """Learn from rewards of the arm to be updated."""
        with self.way.learning("X", X, noise_cov, groups) as rows:
            self.bandit.update(rows, y, sample_weight=sample_weight)


def wrap_bayesianbandits(bandit: Any, table: Table) -> BayesianBandits:
    """Wrap a contextual agent."""
    if not {"ContextualAgent", "LipschitzContextualAgent"} & {kind.__name__ for kind in type(bandit).__mro__}:
        allowed = "bayesianbandits' ContextualAgent or LipschitzContextualAgent"
        raise InputError("bandit", validation.display(bandit), allowed)
    return BayesianBandits(bandit, table)


@check_keywords
class ContextualBandits(Wrapped[Table]):
    """A policy of contextualbandits that learns round by round; `X` are rows of numbers.

    It has `fit`, `partial_fit` and `predict`, and what else of it takes `X`. Its linear policies have an
    intercept of their own (`fit_intercept=True`).
    """

    def fit(
        self,
        X: Any,
        a: Any,
        r: Any,
        *args: Any,
        noise_cov: Any = None,
        groups: Any = None,
        **options: Any,
    ) -> "ContextualBandits":
        """Learn from these rounds, afresh unless told otherwise."""
        with self.way.learning("X", X, noise_cov, groups, afresh=True) as rows:
            self.bandit.fit(rows, a, r, *args, **options)
        return self

    def partial_fit(
        self,
        X: Any,
        a: Any,
        r: Any,
        *,
        noise_cov: Any = None,
        groups: Any = None,
    ) -> "ContextualBandits":
        """Learn from more rounds."""
        with self.way.learning("X", X, noise_cov, groups) as rows:
            self.bandit.partial_fit(rows, a, r)
        return self

    def predict(self, X: Any, *args: Any, noise_cov: Any = None, groups: Any = None, **options: Any) -> Any:
        """An arm for each row."""
        with self.way.deciding("X", X, noise_cov, groups) as rows:
            return self.bandit.predict(rows, *args, **options)

    def topN(self, X: Any, *args: Any, noise_cov: Any = None, groups: Any = None, **options: Any) -> Any:
        """The best arms for each row."""
        with self.way.deciding("X", X, noise_cov, groups) as rows:
            return self.bandit.topN(rows, *args, **options)

    # No further arguments by name: the policies do not agree on them.
    def decision_function(
        self, X: Any, *args: Any, noise_cov: Any = None, groups: Any = None, **options: Any
    ) -> Any:
        """The score of each arm for each row."""
        rows = self.way.asking("X", X, noise_cov, groups)
        return self.bandit.decision_function(rows, *args, **options)

    def decision_function_std(self, X: Any, *, noise_cov: Any = None, groups: Any = None) -> Any:
        """The scores of `SeparateClassifiers`, made comparable."""
        return self.bandit.decision_function_std(self.way.asking("X", X, noise_cov, groups))

    def predict_proba_separate(self, X: Any, *, noise_cov: Any = None, groups: Any = None) -> Any:
        """The probabilities of `SeparateClassifiers`."""
        return self.bandit.predict_proba_separate(self.way.asking("X", X, noise_cov, groups))


def wrap_contextualbandits(bandit: Any, table: Table) -> ContextualBandits:
    """Wrap a policy that learns; the library's estimators for logs are not policies, and are refused."""
    if "_BasePolicy" not in (kind.__name__ for kind in type(bandit).__mro__):
        allowed = "a policy of contextualbandits, such as LinTS or LinUCB"
        raise InputError("bandit", validation.display(bandit), allowed)
    return ContextualBandits(bandit, table)


@check_keywords
class Mabwiser(Wrapped[Table]):
    """A `MAB` of mabwiser whose policy is contextual; `contexts` are rows of numbers.

    Its linear policies have no intercept of their own: give them a column of ones, and name it in `as_is`.
    """

    def fit(
        self, decisions: Any, rewards: Any, contexts: Any = None, *, noise_cov: Any = None, groups: Any = None
    ) -> None:
        """Start afresh from these rounds."""
        if contexts is None:
            self.bandit.fit(decisions, rewards)  # the library says itself what is wrong
            return
        with self.way.learning("contexts", contexts, noise_cov, groups, afresh=True) as rows:
            self.bandit.fit(decisions, rewards, rows)

    def partial_fit(
        self, decisions: Any, rewards: Any, contexts: Any = None, *, noise_cov: Any = None, groups: Any = None
    ) -> None:
        """Learn from more rounds."""
        if contexts is None:
            self.bandit.partial_fit(decisions, rewards)
            return
        with self.way.learning("contexts", contexts, noise_cov, groups) as rows:
            self.bandit.partial_fit(decisions, rewards, rows)

    def predict(self, contexts: Any = None, *, noise_cov: Any = None, groups: Any = None) -> Any:
        """An arm for each row: one where there is one row, a list where there are more."""
        if contexts is None:
            return self.bandit.predict()
        with self.way.deciding("contexts", contexts, noise_cov, groups) as rows:
            return self.bandit.predict(rows)

    def predict_expectations(self, contexts: Any = None, *, noise_cov: Any = None, groups: Any = None) -> Any:
        """A dictionary from arms to expected rewards for each row."""
        if contexts is None:
            return self.bandit.predict_expectations()
        return self.bandit.predict_expectations(self.way.asking("contexts", contexts, noise_cov, groups))


def wrap_mabwiser(bandit: Any, table: Table) -> Mabwiser:
    """Wrap a `MAB` with a contextual policy."""
    if not vars(bandit).get("is_contextual", False):
        allowed = "a mabwiser.mab.MAB with a contextual policy, such as LearningPolicy.LinTS"
        raise InputError("bandit", validation.display(bandit), allowed)
    return Mabwiser(bandit, table)


@check_keywords
class River(Wrapped[Names]):
    """A contextual policy of river; contexts are numbers by name.

    `LinUCBDisjoint` has no intercept of its own: add a name that is always 1, and put it in `as_is`.

    A wrapped policy is a contextual policy to river (`isinstance` says so), and plays in its
    `evaluate_offline`. Its clone starts anew, as river has it: a policy that has learnt nothing, behind the
    denoiser as it was before the first decision.
    """

    takes_gaps = True  # a name that is missing was lost: `unfog.adapters.river.evaluate` asks

    def __init__(self, bandit: Any, way: Names) -> None:
        """Wrap a policy; its first state is copied at the first context: the denoiser may be fitted late."""
        super().__init__(bandit, way)
        self._first: Names | None = None

    def pull(self, arm_ids: Any, context: Any, *, noise_cov: Any = None, group: Any = None) -> Any:
        """One of the arms."""
        self._begin()
        with self.way.deciding(context, noise_cov, group) as denoised:
            return self.bandit.pull(arm_ids, context=denoised)

    def update(
        self,
        arm_id: Any,
        context: Any,
        *reward_args: Any,
        noise_cov: Any = None,
        group: Any = None,
        **reward_kwargs: Any,
    ) -> None:
        """Learn from a reward."""
        self._begin()
        with self.way.learning(context, noise_cov, group) as denoised:
            self.bandit.update(arm_id, denoised, *reward_args, **reward_kwargs)

    def clone(self, *args: Any, **options: Any) -> "River":
        """A policy as before the first decision; what river's `clone` takes is for the policy."""
        first = self.way if self._first is None else self._first
        return River(self.bandit.clone(*args, **options), copy.deepcopy(first))

    def _begin(self) -> None:
        if self._first is None:
            self._first = copy.deepcopy(self.way)


def wrap_river(bandit: Any, names: Names) -> River:
    """Wrap a contextual policy."""
    kinds: dict[str, Any] = {kind.__name__: kind for kind in type(bandit).__mro__}
    if "ContextualPolicy" not in kinds:
        allowed = "a contextual policy of river, such as river.bandit.LinUCBDisjoint"
        raise InputError("bandit", type(bandit).__name__, allowed)
    kinds["ContextualPolicy"].register(River)
    return River(bandit, names)


@check_keywords
class VowpalWabbit(Wrapped[Names]):
    """A `Workspace` of Vowpal Wabbit made with `--cb_explore_adf`; contexts are numbers by name.

    It says how likely each action should be, and learns from the cost of one. Its examples are lines of text.
    The numbers of the context stand in the namespace c of the shared line, each action in the namespace a of
    a line of its own:

        shared |c temperature:21.5 rain:0.2
        0:-0.7:0.25 |a heat
        |a wait

    so `-q ca` gives every action an intercept and slopes of its own. The actions are told to `wrap`, once.
    """

    def __init__(self, bandit: Any, names: Names, actions: Sequence[str | int]) -> None:
        """Keep the workspace, the way in, and the actions in their order."""
        super().__init__(bandit, names)
        self.actions = [_word("actions", action) for action in actions]
        if len(set(self.actions)) < max(len(self.actions), 1):
            raise InputError("actions", validation.display(actions), "one or more names, no name twice")

    def predict(self, context: Any, *, noise_cov: Any = None, group: Any = None) -> list[float]:
        """The probability of each action, in the order they were told."""
        with self.way.deciding(_by_name(context), noise_cov, group) as denoised:
            return list(self.bandit.predict(self._text(denoised)))

    def learn(
        self,
        context: Any,
        action: str | int,
        cost: float,
        probability: float,
        *,
        noise_cov: Any = None,
        group: Any = None,
    ) -> None:
        """Learn the cost (minus the reward) of an action that had been drawn with this probability."""
        name = validation.one_of("action", str(action), self.actions)
        price = float(validation.numbers("cost", cost, "a number"))
        chance = validation.positive("probability", probability)
        if chance > 1:
            raise InputError("probability", probability, "a probability above 0")
        with self.way.learning(_by_name(context), noise_cov, group) as denoised:
            self.bandit.learn(self._text(denoised, name, f"0:{price!r}:{chance!r} "))

    def _text(self, context: Mapping[Any, Any], labelled: str | None = None, label: str = "") -> str:
        numbers = " ".join(
            f"{_word('context', feature)}:{float(value)!r}" for feature, value in context.items()
        )
        lines = [f"{label if action == labelled else ''}|a {action}" for action in self.actions]
        return "\n".join([f"shared |c {numbers}", *lines])


def _by_name(context: Any) -> Any:
    """A context by name; numbers in a row are called 0, 1, 2."""
    if isinstance(context, Mapping | str):
        return context
    rows = readings("context", context)
    if len(rows) > 1:
        raise InputError(
            "context", f"{len(rows)} rows", "the numbers of one context: it decides one at a time"
        )
    return dict(enumerate(rows[0].tolist()))


def _word(field: str, name: object) -> str:
    word = str(name)
    if not word or any(mark in word for mark in SEPARATORS):
        raise InputError(field, validation.display(name), "names without blanks, '|' and ':'")
    return word


def wrap_vowpalwabbit(bandit: Any, names: Names, actions: Sequence[str | int]) -> VowpalWabbit:
    """Wrap a workspace that explores among actions."""
    words = bandit.get_arguments().split()
    # --cb_explore, which takes one line, sets the other too.
    if "--cb_explore_adf" not in words or "--cb_explore" in words:
        allowed = "a vowpalwabbit.Workspace made with --cb_explore_adf"
        raise InputError("bandit", f"a Workspace made with {bandit.get_arguments()!r}", allowed)
    return VowpalWabbit(bandit, names, actions)


WRAPPERS: dict[str, Callable[[Any, Any], Any]] = {  # Vowpal Wabbit is told its actions, too
    "bayesianbandits": wrap_bayesianbandits,
    "contextualbandits": wrap_contextualbandits,
    "mabwiser": wrap_mabwiser,
    "river": wrap_river,
}
