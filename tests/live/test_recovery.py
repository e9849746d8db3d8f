"""What is believed after a start is what was believed before: from the log, from a snapshot, to the bit."""

import random
import sqlite3
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import unfog
from tests.live.faults import Disk
from tests.live.played import VECTORS, Player, copied, terms
from unfog.live import snapshot
from unfog.live.errors import StoreError
from unfog.live.log import Log

ROWS = [name for name, row in unfog.AGENTS.items() if row.privileged is None]
BINARY = ["alg1", "alg1-pg", "alg1-laplace", "unfog", "unfog-delayed", "late", "temporal"]
MORE = ["unfog-thompson", "unfog-toptwo", "unfog-ids", "alg1-exact-smoothing", "alg1-exact-joint"]

ONE_UNIT = ["coupled", "alg1-exact-smoothing", "alg1-exact-joint"]  # these denoise past rounds with one bias


def recovered(folder: Path, given: dict[str, Any], calls: int, copies: int, **how: Any) -> Player:
    """A problem that is played, closed and opened, and whose files are copied now and then: each copy is
    played on as the store itself is, and must come to the same answers and the same state.
    """
    player, points = Player(3, given["agent"] not in ONE_UNIT, **how), random.Random(4)
    path = folder / "store" / "walks.unfog"
    path.parent.mkdir(parents=True)
    store = player.open(path)
    store.problem("walks", **given)
    left, others = calls, []
    for part in range(copies):
        now = min(left, points.randrange(2 * calls // (copies + 1)))
        player.play(store.problem("walks"), now)
        left -= now
        if part % 3 == 1:
            store.close()
            store = player.open(path)
        elif part % 3 == 2:
            store.snapshot()
            player.play(store.problem("walks"), min(left, 7))
            left -= min(left, 7)
        others.append((copied(store, folder / f"copy {part}"), player.again(), left))
    player.play(store.problem("walks"), left)
    found = store.problem("walks").fingerprint()
    for replayed in (store.replay()["walks"], store.replay(verify=True)["walks"]):
        assert replayed.same
    assert store.problem("walks").fingerprint() == found
    store.close()
    for path_, other, rest in others:
        with other.open(path_) as again:
            other.play(again.problem("walks"), rest)
            assert other.answers == player.answers
            assert again.problem("walks").fingerprint() == found
    return player


def check(player: Player, **least: int) -> None:
    """Enough of everything happened."""
    wanted = {"decide": 20, "reward": 8, "reveal": 3, "void": 1, "retire_arm": 1, "restore_arm": 1} | least
    assert all(player.done[verb] >= number for verb, number in wanted.items()), player.done


@pytest.mark.slow
@pytest.mark.parametrize("agent", [*ROWS, *MORE])
def test_every_row(tmp_path: Path, agent: str) -> None:
    check(recovered(tmp_path, terms(agent), 150, 3))


@pytest.mark.slow
@pytest.mark.parametrize("agent", BINARY)
def test_rewards_of_0_or_1(tmp_path: Path, agent: str) -> None:
    """Chains go on where they were."""
    check(recovered(tmp_path, terms(agent, "bernoulli"), 120, 3))


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["unfog", "late", "alg2", "coupled", "temporal"])
def test_rewards_that_are_kept_until_the_wait_is_over(tmp_path: Path, agent: str) -> None:
    given = terms(agent, wait=20, reveal_within=60, default_reward=0.25, combine="mean")
    check(recovered(tmp_path, given, 150, 3))


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["unfog", "late", "naive"])
def test_arms_with_vectors_that_are_added(tmp_path: Path, agent: str) -> None:
    given = terms(agent, arms=VECTORS, features="product")
    check(recovered(tmp_path, given, 150, 3, grows=True), add_arm=1)


@pytest.mark.parametrize("agent", ["unfog", "alg1"])
def test_no_channel(tmp_path: Path, agent: str) -> None:
    check(recovered(tmp_path, terms(agent, channel=None), 150, 3))
