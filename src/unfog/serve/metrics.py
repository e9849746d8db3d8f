"""What is counted for Prometheus: by problem and kind, never by decision, unit or arm."""

from functools import cache

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """Of one service."""

    def __init__(self) -> None:
        """Nothing was counted yet."""
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "unfog_requests", "Requests.", ("operation", "status"), registry=self.registry
        )
        self._commits = Histogram(
            "unfog_commit_seconds", "How long commits took.", registry=self.registry, buckets=SECONDS
        )
        self._answers = Histogram(
            "unfog_request_seconds",
            "How long answers took.",
            ("operation",),
            registry=self.registry,
            buckets=SECONDS,
        )
        self._of = cache(self._named)  # to find one by its names takes longer than to count

    def committed(self, seconds: float) -> None:
        """A commit took so long."""
        self._commits.observe(seconds)

    def answered(self, operation: str, status: int, seconds: float) -> None:
        """A request was answered."""
        counter, times = self._of(operation, status)
        counter.inc()
        times.observe(seconds)

    def _named(self, operation: str, status: int) -> tuple[Counter, Histogram]:
        return self._requests.labels(operation, status), self._answers.labels(operation)

    def text(self) -> bytes:
        """As Prometheus reads it."""
        return generate_latest(self.registry)
