"""Two processes on one database: the owner of a problem is killed, or stopped and woken, again and again."""

import contextlib
import random
import time
from collections.abc import Callable, Iterator

import pytest

from tests.live.takeovers import Pair

KILLS = 50
STOPS = 20


@contextlib.contextmanager
def pair(dsn: str) -> Iterator[Pair]:
    found = Pair(dsn)
    try:
        yield found
    finally:
        found.end()


@pytest.mark.soak
@pytest.mark.parametrize(("do", "times"), [(Pair.kill, KILLS), (Pair.stop_and_wake, STOPS)])
def test_an_owner_that_is_gone_is_taken_over(
    postgres: str, do: Callable[[Pair], float], times: int, capsys: pytest.CaptureFixture[str]
) -> None:
    chance, taken = random.Random(5), []
    with pair(postgres) as two:
        two.served_again(time.monotonic())
        for _ in range(times):
            time.sleep(chance.uniform(0.05, 0.5))
            taken.append(do(two))
    assert max(taken) < 5
    rows = two.check()
    assert rows > len(two.kept) > 20 * times
    with capsys.disabled():
        said = f"{times} times, taken over within {max(taken):.1f} s"
        print(f"\n{said}; {len(two.kept)} acknowledged, {rows} rows")
