"""A log that another processor wrote: its decisions come out as logged, but for rounding."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import kernels
from tests.live import elsewhere
from tests.live.ground import opened, problem
from unfog.live import snapshot
from unfog.live.errors import ReplayMismatchError


def done(path: Path, what: str, kernel: str) -> str:
    """What a process under that kernel says."""
    command = [sys.executable, elsewhere.__file__, str(path), what]
    told: Any = {"check": True, "capture_output": True, "text": True}
    return str(subprocess.run(command, env=kernels.environment(kernel), **told).stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("here", "there"),
    [("haswell-no-avx512", "sandybridge"), ("haswell", "skylakex")],
)
def test_another_processor_takes_the_same_of_arms_that_tie(tmp_path: Path, here: str, there: str) -> None:
    if not (kernels.available(here) and kernels.available(there)):
        pytest.skip(f"this processor cannot play both {here} and {there}")
    path = tmp_path / "tied.unfog"
    done(path, "write", here)
    found = [json.loads(line) for line in done(path, "verify", there).splitlines()]
    assert found == [[name, elsewhere.DECISIONS, elsewhere.DECISIONS, True] for name in elsewhere.AGENTS]


def test_a_decision_may_differ_by_rounding_alone(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        live = problem(store, agent="unfog", epsilon=0.1)
        live.add_shadow("naive")
        for reading in ([1.0, -2.0], [0.5, 1.0]):
            live.reward(live.decide(reading).id, 1.0)
        made = store.processor.made("p")
        row = [row for row in store.processor.log.read("p") if row.kind == "decide"][-1]
        now = json.loads(row.body)
        scale = dict(zip(made.terms.context, made.units.scale, strict=True))

        def check(part: str, value: Any) -> None:
            snapshot._compare(made, row, now | {part: value}, now)

        chances = now["agent_probabilities"]
        assert len(chances) > 1
        for size, refused in ((1e-12, False), (1e-6, True)):
            changed: dict[str, Any] = {
                "probability": now["probability"] - size,
                "agent_probabilities": {arm: chance + size for arm, chance in chances.items()},
                "denoised": {name: x + size * scale[name] for name, x in now["denoised"].items()},
                "sd": {name: x + size * scale[name] for name, x in now["sd"].items()},
                "shadows": {"naive": now["shadows"]["naive"] | {"probability": size}},
            }
            if not refused:
                changed["shadows"]["naive"]["probability"] = now["shadows"]["naive"]["probability"] + size
                changed["agent_probabilities"] |= {"d": size}  # of an arm that hardly leads
            for part, value in changed.items():
                if refused:
                    with pytest.raises(ReplayMismatchError, match=rf"{part} = .* and would have"):
                        check(part, value)
                else:
                    check(part, value)
        other = next(arm for arm in ("a", "b", "c") if arm != now["arm"])
        for part, value in (
            ("arm", other),
            ("number", 7),
            ("agent_probabilities", {other: 1.0}),
            ("denoised", None),
        ):
            with pytest.raises(ReplayMismatchError, match=f"has {part} = "):
                check(part, value)


def test_a_snapshot_of_another_processor_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as store:
        problem(store)
        made = store.processor.made("p")
        own = snapshot.snapshot_key(made)
        assert snapshot.snapshot_key(made) == own
        monkeypatch.setattr(snapshot, "_rounding", lambda: "other last bits")
        assert snapshot.snapshot_key(made) != own
