"""The page with 200,000 decisions, rewarded and in part revealed: it is never stopped for long."""

from pathlib import Path

import numpy as np
import pytest

import unfog
from tests.serve.browser import Page, browser, page
from tests.serve.running import TERMS, running

__all__ = ["browser", "page"]
DECISIONS, TOGETHER, REVEALED = 200_000, 1000, 300
LONGEST = 1000  # milliseconds in which nothing else can be done on the page
WATCHED = """
window.long = [0];
const keep = (list) => list.getEntries().forEach((one) => window.long.push(one.duration));
const watch = new PerformanceObserver(keep);
watch.observe({ type: "longtask" });
"""


class Clock:
    """A minute passes between two calls."""

    now = 1.8e9

    def __call__(self) -> float:
        return self.now


def _decided(path: Path, clock: Clock) -> None:
    rng = np.random.default_rng(5)
    with unfog.live.open(path, sync="normal", clock=clock) as store:
        walks = store.problem("walks", **TERMS)
        for _ in range(DECISIONS // TOGETHER):
            clock.now += 60.0
            true = rng.normal([1.0, -2.0], [1.4, 1.0], (TOGETHER, 2))
            noisy = true + 0.4 + 0.8 * rng.standard_normal(true.shape)
            made = walks.decide_many([{"context": row} for row in noisy.tolist()])
            walks.reward_many({one.id: float(x) for one, x in zip(made, true[:, 0], strict=True)})
            with store.batch():
                for one, row in zip(made[:REVEALED], true.tolist(), strict=False):
                    walks.reveal(one.id, row)


@pytest.mark.soak
def test_the_page_with_200_000_points(tmp_path: Path, page: Page) -> None:
    clock = Clock()
    _decided(tmp_path / "many.unfog", clock)
    with running(tmp_path / "many.unfog", clock=clock) as found:
        found.http.timeout = 300
        found.http.get(
            "/v1/problems/walks/history"
        ).raise_for_status()  # the first time the log is read for it
        page.open(f"{found.url}/#/problem/walks")
        page.shown()
        page.run(WATCHED)
        nodes = page.run("return document.querySelectorAll('*').length")
        page.run("document.getElementById('all').click()")
        page.wait("return document.querySelector('.kept').textContent === '200,000 of 200,000 drawn'")
        page.run("const one = document.getElementById('along'); one.value = 'time'")
        page.run("document.getElementById('along').dispatchEvent(new Event('change'))")
        page.wait("return location.hash.includes('along=time')")
        page.wait("return new Promise((done) => setTimeout(() => done(true), 3000))")
        assert page.run("return document.querySelectorAll('*').length") < 2 * nodes
        assert page.run("return Math.max(...window.long)") < LONGEST
        assert page.errors() == []
