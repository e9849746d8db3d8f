"""The clinic of `unfog live demo`: played through the store, told in words, drawn."""

from pathlib import Path

import numpy as np
import pytest

from unfog import live
from unfog.lab import demo
from unfog.lab.demo import best, chances, earned, figure, story, values, worth
from unfog.validation import InputError

DECISIONS = 480


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clinic") / "clinic.unfog"


@pytest.fixture(scope="module")
def found(store: Path) -> demo.Played:
    return demo.played(store, decisions=DECISIONS, seed=2)


@pytest.mark.slow
def test_the_seed_decides_everything(found: demo.Played) -> None:
    again = demo.played(decisions=DECISIONS, seed=2)
    for one, other in zip(found.rows, again.rows, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(found.tracks, again.tracks)
    assert story(found) == story(again)
    assert not np.array_equal(
        found.rows.sent[: DECISIONS // 4], demo.played(decisions=DECISIONS // 4, seed=3).rows.sent
    )


def test_the_log_has_what_was_played(found: demo.Played, store: Path) -> None:
    with live.open(store) as opened:
        events = opened.problem(demo.NAME).events()
        assert opened.replay(verify=True)[demo.NAME].verified == DECISIONS
    decided = {one["decision"]: one for one in events if one["kind"] == "decide"}
    assert [one["arm"] == "send" for one in decided.values()] == [bool(x) for x in found.rows.sent]
    learnt = {
        one["decision"]: one["value"]
        for one in events
        if one["kind"] == "reward" and one["outcome"] == "learnt"
    }
    paid = [learnt.get(name, np.nan) for name in decided]
    np.testing.assert_array_equal(found.rows.paid, paid)
    kinds = {one["kind"] for one in events}
    assert kinds == {"problem", "shadow", "decide", "reward", "reveal", "cancel", "expire"}
    assert any(one["context"]["sleep"] is None for one in decided.values())
    assert any(one.get("outcome") == "late" for one in events)


def test_biases_of_devices_are_learnt(found: demo.Played) -> None:
    off, error = (np.sqrt((x[:, 0] ** 2).mean()) for x in (found.bias, found.believed - found.bias))
    assert error < off / 4
    assert found.tracks.shape == (DECISIONS // demo.A_DAY, demo.FOLLOWED, 2)
    assert (found.tracks[-1, :, 1] < found.tracks[0, :, 1]).all()
    np.testing.assert_array_equal(found.tracks[-1, :, 0], found.believed[found.followed, 0])


def test_values_by_the_log_and_in_truth(found: demo.Played) -> None:
    rows = found.rows
    came = np.isfinite(rows.paid)
    np.testing.assert_allclose(earned(rows, rows.send)[came], rows.paid[came], rtol=1e-12)
    always = earned(rows, np.ones(DECISIONS))[came]
    np.testing.assert_allclose(always, np.where(rows.sent, rows.paid / rows.probability, 0.0)[came])
    np.testing.assert_array_equal(worth(rows, np.ones(DECISIONS)), rows.worth[:, 0])
    told = values(found)
    assert list(told) == [*chances(found), "difference"]
    assert told["difference"].truth == pytest.approx(told["late"].truth - told["naive"].truth)
    assert told["difference"].mean == pytest.approx(told["late"].mean - told["naive"].mean)
    assert best(found) > told["late"].truth > told["a coin"].truth
    for one in told.values():
        assert abs(one.mean - one.truth) < 2 * one.half_width  # four standard errors


def test_naive_has_the_chances_that_it_had(found: demo.Played, store: Path) -> None:
    with live.open(store) as opened:
        events = [one for one in opened.problem(demo.NAME).events() if one["kind"] == "decide"]
    for event, chance in zip(events, found.rows.baseline, strict=True):
        beside = event["shadows"]["naive"]
        assert (chance if beside["arm"] == "send" else 1 - chance) == pytest.approx(beside["probability"])


def test_the_story_is_plain_and_has_the_numbers(found: demo.Played) -> None:
    text = story(found)
    assert text.startswith("A clinic of 20 patients: 480 decisions in 8 days, seed 2, ")
    for name, one in values(found).items():
        if name != "difference":
            assert f"{one.mean:.3f} ± {one.half_width:.3f}" in text
        assert f"{one.truth:.3f}" in text
    assert "Readings are as the channel says." in text
    assert f"{found.diagnostics.attrs['pending']} rewards are still awaited." in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_picture_has_four_panels(found: demo.Played) -> None:
    panels = figure(found).axes
    assert [axes.get_xlabel() for axes in panels] == [
        "day",
        "day",
        "what a suggestion is worth more than waiting",
        "",
    ]
    legend = panels[1].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [
        "late",
        "naive",
        "a coin",
        "the best there is",
    ]
    last = panels[1].get_lines()[0].get_ydata()
    assert np.asarray(last)[-1] == pytest.approx(values(found)["late"].truth)
    heights = [bar.get_path().get_extents(bar.get_patch_transform()).height for bar in panels[3].patches]
    assert sum(heights) == found.diagnostics.attrs["pending"]


def test_what_cannot_be_played_is_refused(store: Path, found: demo.Played) -> None:
    with pytest.raises(InputError, match="decisions: 59; allowed: a whole number, at least 60"):
        demo.played(decisions=59)
    with pytest.raises(InputError, match=r"clinic.unfog is there already; allowed: a new file"):
        demo.played(store)
    assert found.seed == 2
