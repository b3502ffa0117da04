"""What is counted, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from crossgaze.errors import MissingExtraError

try:
    from prometheus_client import (
        CollectorRegistry,
        Counter,
        Gauge,
        Histogram,
        ProcessCollector,
        generate_latest,
    )
except ImportError:
    raise MissingExtraError("the service", "prometheus-client", "serve") from None

KIND = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))


class Metrics:
    """One service's counters, apart from any other's in the process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "crossgaze_requests",
            "Requests answered",
            ("route", "method", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "crossgaze_request_seconds",
            "From a request's arrival to the end of its answer",
            ("route",),
            registry=self.registry,
            buckets=SECONDS,
        )
        self._steps = Histogram(
            "crossgaze_step_seconds",
            "Steps of answering: candidates, rank, picture, look, ask, thumbnail",
            ("step",),
            registry=self.registry,
            buckets=SECONDS,
        )
        ProcessCollector(registry=self.registry)

    def served(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request. Status 0: the client was gone before there was an answer."""
        # What a client makes up must not become a new row.
        self._requests.labels(route, method if method in METHODS else "other", str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def step(self, name: str, seconds: float) -> None:
        """Count a step of answering."""
        self._steps.labels(name).observe(seconds)

    def watch(self, name: str, what: str, value: Callable[[], float]) -> None:
        """Show a value that is asked for when somebody looks."""
        Gauge(f"crossgaze_{name}", what, registry=self.registry).set_function(value)

    def text(self) -> bytes:
        """Return everything in Prometheus's text format."""
        return generate_latest(self.registry)
