"""Arms that come and go, are pinned, or are chosen by others; shadows."""

import pytest

from tests.live.conformance.places import (
    SHOWN,
    Place,
    refused,
    unchanged,
)
from tests.live.ground import ARMS
from unfog.live import NotFoundError
from unfog.validation import InputError


def check_arms_come_and_go(place: Place) -> None:
    live = place.made(epsilon=0.5)
    assert live.retire_arm("b")[1:] == ("done", "done")
    assert [*live.decide(SHOWN).probabilities] == ["a", "c"]
    live.restore_arm("b")
    live.add_arm("d")
    assert [*live.decide(SHOWN).probabilities] == [*ARMS, "d"]
    live.update_arms(add={"e": None}, retire=["a", "c"])
    assert [*live.decide(SHOWN).probabilities] == ["b", "d", "e"]
    live.update_arms(retire=["b", "d"], restore=["c"])
    about = live.describe()
    assert (about["arms"], about["retired"]) == (["c", "e"], ["a", "b", "d"])
    said = "add: 'a'; allowed: a new name; an arm that was retired is restored"
    refused(live, lambda: live.add_arm("a"), said)
    refused(live, lambda: live.retire_arm("a"), "retire: 'a'; allowed: c, e")
    refused(live, lambda: live.restore_arm("c"), "restore: 'c'; allowed: a, b, d")
    refused(live, lambda: live.update_arms(add={"f": None}, retire=["a"]), "retire: 'a'; allowed: c, e")
    refused(live, lambda: live.update_arms(), "arms: nothing to do; allowed: add, retire or restore")
    live.update_arms(retire=["c", "e"])
    said = "arms: none are left; allowed: arms that may be chosen: add some, or restore some"
    refused(live, lambda: live.decide(SHOWN), said)


def check_an_arm_comes_with_its_vector(place: Place) -> None:
    live = place.made(features="product", arms={"a": [1.0, 0.5], "b": [-0.5, 1.0]}, epsilon=0.5)
    live.add_arm("c", [5.0, 5.0])
    assert [*live.decide(SHOWN).probabilities] == ARMS
    assert live.events()[1]["add"] == {"c": [5.0, 5.0]}
    for vector in (None, [1.0], [[1.0, 2.0]]):
        with unchanged(live), pytest.raises(InputError, match=r"^(arms\.d|vector|add)"):
            live.add_arm("d", vector)


def check_what_was_learnt_of_an_arm_is_kept_while_it_is_retired(place: Place) -> None:
    live = place.made()
    for _ in range(5):
        live.reward(live.decide(SHOWN, logged_arm="b").id, 3.0)
    before = live.predict_rewards(SHOWN)["mean"].sel(arm="b").item()
    live.retire_arm("b")
    assert live.predict_rewards(SHOWN)["arm"].values.tolist() == ["a", "c"]
    live.restore_arm("b")
    assert live.predict_rewards(SHOWN)["mean"].sel(arm="b").item() == before > 0.5


def check_one_arm_until_it_is_unpinned(place: Place) -> None:
    live = place.made(epsilon=0.5)
    live.pin_arm("b")
    assert live.describe()["pinned"] == "b"
    made = live.decide(SHOWN)
    assert (made.arm, made.probability, made.probabilities) == ("b", 1.0, {"a": 0.0, "b": 1.0, "c": 0.0})
    assert live.reward(made.id, 1.0).learnt
    refused(live, lambda: live.pin_arm("z"), "arm: 'z'; allowed: a, b, c")
    refused(live, lambda: live.retire_arm("b"), "retire: 'b'; allowed: other arms: this one is pinned")
    said = "arms: ['a', 'c']; allowed: 'b' among them: it is pinned"
    refused(live, lambda: live.decide(SHOWN, arms=["a", "c"]), said)
    live.unpin_arm()
    assert live.describe()["pinned"] is None
    assert min(live.decide(SHOWN).probabilities.values()) > 0.1


def check_shadows_decide_and_are_not_obeyed(place: Place) -> None:
    watched, alone, other = place.made(), place.made(), place.made(agent="naive")
    watched.add_shadow("naive")
    for i in range(8):
        context = [i / 2 - 2, (i % 3) - 3.0]
        made, own = watched.decide(context), alone.decide(context)
        third = other.decide(context, logged_arm=made.arm)
        assert made[1:7] == own[1:7]
        shadow = made.shadows["naive"]
        assert shadow["probabilities"] == third.probabilities
        assert shadow["probability"] == third.probabilities[shadow["arm"]]
        for live, one in ((watched, made), (alone, own), (other, third)):
            live.reward(one.id, i / 4)
    assert watched.describe()["shadows"] == ["naive"]
    said = "agent: 'naive'; allowed: one that is not a shadow already"
    refused(watched, lambda: watched.add_shadow("naive"), said)
    for agent in ("nobody", "oracle"):
        with unchanged(watched), pytest.raises(InputError, match=r"^agent: "):
            watched.add_shadow(agent)
    watched.remove_shadow("naive")
    assert watched.decide(SHOWN).shadows == {}
    said = "agent: 'naive'; allowed: none: there are no shadows"
    refused(watched, lambda: watched.remove_shadow("naive"), said, NotFoundError)
