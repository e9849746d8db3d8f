"""The part of the page of benchmarks that is about live decisions, from benchmarks/results/live.json."""

from typing import Any

from benchmarks.wording import Row, command, item, said, short, table, times

NAMES = {"quadratic": "quadratic features of vectors, m = 15", "per_arm": "features for each arm, m = 240"}


def live_section(live: Row | None) -> list[str]:
    """Decisions with a log, next to other libraries without one."""
    if live is None:
        return []
    where = live["machine"]
    return [
        "## Decisions for real, with a log",
        said(f"""`unfog.live`, d = 5, K = 40, the agent `unfog`: denoise, choose, say with which probability,
            watch the channel, write it down. One core of {where["processor"]}; load average
            {where["load"]:.2f} before the run. Microseconds, medians; "bare" is one commit of SQLite of a row
            of 500 bytes with nothing around it. `full` outlives a power cut, `normal` the death of the
            process."""),
        _calls(live["rows"]),
        _sizes(live["rows"]),
        *_peers(live),
        command("python benchmarks/live.py", "python benchmarks/page.py"),
    ]


def _calls(rows: list[Row]) -> str:
    head = ["features", "sync", "decide", "its 99 %", "reward", "bare commit"]

    def cells(row: Row, sync: str) -> list[str]:
        found = row[sync]
        times_ = [found["decide"]["median"], found["decide"]["p99"], found["reward"]["median"]]
        return [NAMES[row["features"]], sync, *map(short, times_), short(found["bare_commit"]["median"])]

    return table(head, [cells(row, sync) for row in rows for sync in ("normal", "full")], left=2)


def _sizes(rows: list[Row]) -> str:
    head = ["features", "events", "into the log, /s", "folded, /s", "replay, s", "start from a snapshot, s"]

    def cells(row: Row) -> list[str]:
        found = [row["imported_per_s"], row["folded_per_s"], row["replay_s"], row["start_s"]]
        return [NAMES[row["features"]], f"{row['events']:,}", *map(short, found), short(row["pending_mb"])]

    return table([*head, "MB for 10,000 pending"], map(cells, rows), left=1)


def _peers(live: Row) -> list[str]:
    """A step of the others, as they are: they keep no log, and know no noise."""
    if live["peers"] is None:
        return []
    ours = next(row for row in live["rows"] if row["features"] == "quadratic")
    step = ours["normal"]["decide"]["median"] + ours["normal"]["reward"]["median"]
    rows: list[Any] = [row for row in live["peers"]["rows"] if row["error"] is None]
    cells = [["**unfog.live**, `normal`", "with log, probabilities, denoising", short(step), "1×"]]
    cells += [
        [
            row["peer"] if row["peer"] != "unfog" else "unfog, learner and chooser alone",
            f"`{row['model']}`, {row['parameters']}",
            short(row["us_per_step"]["median"]),
            times(row["us_per_step"]["median"] / step),
        ]
        for row in rows
    ]
    failed = [item(f"`{row['peer']}`: {row['error']}") for row in live["peers"]["rows"] if row["error"]]
    return [
        said("""Beside it a step (choose, learn) of other libraries on the same number of features and arms,
            from the same run. Theirs is in memory alone: no log, no ids, and no noise."""),
        table(["row", "what is used", "µs a step", "× unfog.live"], cells, left=2),
        *failed,
    ]
