"""Metrics for Prometheus: by problem and kind, never by decision, unit or arm.

A request only increments a count in a mapping; everything else is collected when Prometheus asks. Only
problems that exist have a label: unknown names are counted nowhere.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from unfog.live.inspection import Gauges

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Times:
    """A histogram of durations."""

    def __init__(self) -> None:
        """Nothing is counted yet."""
        self.counts, self.total = [0] * (len(SECONDS) + 1), 0.0

    def add(self, seconds: float) -> None:
        """Count a duration."""
        self.counts[bisect_left(SECONDS, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulative counts by upper bound, as Prometheus wants them."""
        buckets, below = [], 0
        for bound, count in zip((*map(str, SECONDS), "+Inf"), self.counts, strict=True):
            below += count
            buckets.append((bound, float(below)))
        return buckets


class Seen(NamedTuple):
    """The state of the service when Prometheus asks."""

    problems: Mapping[str, Gauges]
    events: Mapping[tuple[str, str, str], int]  # by problem, kind and outcome
    queue: int  # requests that wait for a store
    ready: bool


class Metrics:
    """The metrics of one service; used by the event loop alone."""

    def __init__(self) -> None:
        """Nothing is counted yet."""
        self._requests: Counter[tuple[str, int]] = Counter()
        self._answers: dict[str, Times] = {}
        self._commits = Times()

    def committed(self, seconds: float) -> None:
        """Count a commit that took so many seconds."""
        self._commits.add(seconds)

    def answered(self, operation: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self._requests[operation, status] += 1
        times = self._answers.get(operation)
        if times is None:
            times = self._answers[operation] = Times()
        times.add(seconds)

    def text(self, state: Seen) -> bytes:
        """All metrics in the text format of Prometheus."""
        registry = CollectorRegistry()
        registry.register(_Families(self._families(state)))
        return generate_latest(registry)

    def _families(self, state: Seen) -> Iterator[Metric]:
        requests = CounterMetricFamily("unfog_requests", "Requests.", labels=("operation", "status"))
        for (operation, status), count in self._requests.items():
            requests.add_metric((operation, str(status)), count)
        answers = HistogramMetricFamily("unfog_request_seconds", "How long they took.", labels=("operation",))
        for operation, times in self._answers.items():
            answers.add_metric((operation,), times.buckets(), times.total)
        yield from (requests, answers)
        decide = self._answers.get("decide", Times())
        yield _make_histogram("unfog_decide_seconds", "How long decisions took, in all.", decide)
        yield _make_histogram("unfog_commit_seconds", "How long commits took.", self._commits)
        events = CounterMetricFamily(
            "unfog_events", "Events written down.", labels=("problem", "kind", "outcome")
        )
        for labels, count in state.events.items():
            events.add_metric(labels, count)
        yield events
        yield from _make_gauges(state.problems)
        yield GaugeMetricFamily("unfog_queue_length", "Requests that wait for a store.", state.queue)
        yield GaugeMetricFamily("unfog_ready", "Whether it can decide.", float(state.ready))


class _Families(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self._families


def _make_histogram(name: str, text: str, times: Times) -> Metric:
    return HistogramMetricFamily(name, text, buckets=times.buckets(), sum_value=times.total)


def _make_gauges(problems: Mapping[str, Gauges]) -> Iterator[Metric]:
    gauges = (
        ("unfog_pending", "Decisions whose reward may still come."),
        ("unfog_oldest_pending_seconds", "How long the oldest of them waits."),
        ("unfog_innovation_chi2", "Mean square of readings in deviations, of late: 1 if all is as told."),
    )
    for i, (name, text) in enumerate(gauges):
        family = GaugeMetricFamily(name, text, labels=("problem",))
        for problem, values in problems.items():
            if values[i] is not None:
                family.add_metric((problem,), float(values[i] or 0))
        yield family
