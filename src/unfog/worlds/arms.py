"""The arms of a world: their actions, given or drawn once a trial, and the map that makes features."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

import numpy as np

from unfog import _memory, validation
from unfog.features import FeatureMap, MapBuilder
from unfog.features.linear import product
from unfog.features.quadratic import quadratic
from unfog.features.registry import BUILT_IN, builder, check_map
from unfog.maths.arrays import Array
from unfog.validation import InputError
from unfog.worlds.problem import Draws

ActionLaw = Literal["normal", "uniform", "folded"]
ACTION_LAWS: tuple[ActionLaw, ...] = get_args(ActionLaw)
MOST_ACTIONS = 10**6
FEW = 2  # actions that stand for all where a map is looked at that is the same for any number of them
ALIKE = (quadratic, product)
BARE = ("per_arm", "slopes", "own")  # maps whose arms are told apart by their place alone


class Arms(NamedTuple):
    """Actions and their map."""

    build: MapBuilder
    shape: tuple[int, ...]  # (K, ...) of the actions of one trial
    given: Array | None  # the actions where they are not drawn
    law: ActionLaw  # uniform: on [-1, 1]; folded: the absolute value of a normal

    def one(self) -> FeatureMap:
        """The features of one set of actions: those given, or all zero; a few where they stand for all."""
        return self.build(np.zeros((self.looked_at, *self.shape[1:])) if self.given is None else self.given)

    @property
    def looked_at(self) -> int:
        """How many actions `one` has: of a map that does not hang on their number a few, however many."""
        return min(FEW, self.shape[0]) if self.build in ALIKE and self.given is None else self.shape[0]

    def cells(self) -> int:
        """Numbers that one design keeps in memory for a moment, beyond a few for each arm."""
        return self.one().cells

    def table(self) -> int:
        """Numbers that the map of one trial keeps; actions that are given are there already."""
        made, given = self.one(), np.empty(0) if self.given is None else self.given
        held = made if isinstance(made, tuple) else vars(made).values()
        own = [x for x in held if isinstance(x, np.ndarray) and not np.may_share_memory(x, given)]
        return sum(x.size for x in own) * self.shape[0] // self.looked_at

    def draws(self) -> dict[str, Draws]:
        """What actions are made of, where they are drawn."""
        law: Literal["normal", "uniform"] = "uniform" if self.law == "uniform" else "normal"
        return {} if self.given is not None else {"actions": Draws(law, self.shape)}

    def features(self, draws: Mapping[str, Array]) -> FeatureMap:
        """The features of every trial."""
        if self.given is None:
            return self.build(_drawn(self.law, draws["actions"]))
        xp = draws["theta"].__array_namespace__()
        trials = draws["theta"].shape[:-1]
        return self.build(xp.broadcast_to(xp.asarray(self.given), (*trials, *self.given.shape)))


def _drawn(law: ActionLaw, draws: Array) -> Array:
    """Actions that follow this law, from its standard draws."""
    if law == "uniform":
        return 2 * draws - 1
    return draws if law == "normal" else abs(draws)


def arms(actions: object, law: str, features: str | MapBuilder, dim: int) -> Arms:
    """The arms that these fields describe, checked.

    >>> from unfog.worlds.arms import arms
    >>> made = arms(10, "normal", "quadratic", dim=2)
    >>> made.shape, made.one().size
    ((10, 2), 6)
    """
    build, named = builder(features), isinstance(features, str) and features in BUILT_IN
    found = next(one for one in ACTION_LAWS if one == validation.one_of("action_law", law, ACTION_LAWS))
    if isinstance(actions, bool | int | float | np.number | str) and features != "matrix":
        shape = validation.count("actions", actions, most=MOST_ACTIONS), dim
        # An arm that has features of its own needs no action: zeros stand for it.
        made = Arms(build, shape, np.zeros(shape) if features in BARE else None, found)
        if build not in ALIKE:  # all of them are looked at below
            _memory.refuse(("actions", "dim"), f"{shape[0]}, {dim}: they take", 16 * shape[0] * dim)
    else:
        given = _given(actions, dim, features if named else None)
        made = Arms(build, given.shape, given, found)
    check_map(made.one, made.looked_at, dim)
    return made


def _given(actions: object, dim: int, name: object) -> Array:
    """The actions where they are given rather than counted; maps made in Python may want any shape."""
    if name in BARE:
        raise InputError("actions", actions, f"a whole number: with {name} an arm has no numbers of its own")
    if name == "matrix":
        allowed = f"K matrices of m rows of {dim} numbers"
        found = validation.rows("actions", actions, None, allowed)
        if found.ndim != 3 or found.shape[2] != dim:
            raise InputError("actions", f"an array of shape {found.shape}", allowed)
        return found
    width = None if name is None else dim
    return validation.rows("actions", actions, width, f"a whole number, or K rows of {dim} numbers")
