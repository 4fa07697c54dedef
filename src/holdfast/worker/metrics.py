"""A worker's metrics in Prometheus' form; one set per worker, so that two in a process do not mix."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

from holdfast.worker.states import STATES, State

MOST_COUNTED = 10_000  # due steps of a queue; a larger backlog is reported as this number
DURATIONS = (0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Durations(Collector):
    """How long handlers took, by kind: a histogram that records a batch at once, as the library locks per value."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}

    def add(self, kind: str, seconds: list[float]) -> None:
        """Count a batch."""
        counts = self._counts.setdefault(kind, [0] * (len(DURATIONS) + 1))
        for each in seconds:
            counts[bisect_left(DURATIONS, each)] += 1
        self._sums[kind] = self._sums.get(kind, 0.0) + sum(seconds)

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """Yield the counts in Prometheus' form."""
        family = HistogramMetricFamily("holdfast_handler_seconds", "How long handlers took.", labels=["kind"])
        for kind, counts in self._counts.items():
            until = [str(float(bound)) for bound in DURATIONS] + ["+Inf"]
            totals = [sum(counts[: place + 1]) for place in range(len(counts))]
            buckets = list(zip(until, map(float, totals), strict=True))
            family.add_metric([kind], buckets=buckets, sum_value=self._sums[kind])
        yield family


class Meters:
    """The worker's meters. docs/reference/metrics.md lists them."""

    def __init__(self) -> None:
        self.registry = own = CollectorRegistry()
        self._claimed = Counter("holdfast_claimed", "Steps claimed.", ["kind"], registry=own)
        self.settled = Counter("holdfast_settled", "Steps settled, by event.", ["kind", "event"], registry=own)
        self.refused = Counter(
            "holdfast_settle_refused", "Outcomes that arrived after the lease was lost.", registry=own
        )
        self.durations = Durations()
        own.register(self.durations)
        self.rescued = Counter("holdfast_rescued", "Steps recovered from silent workers.", registry=own)
        self.exhausted = Counter(
            "holdfast_exhausted", "Steps that failed for good because their tries were used up.", ["kind"], registry=own
        )
        self._backlog = Gauge(
            "holdfast_backlog",
            f"Steps due in a queue at the worker's last recovery, counted up to {MOST_COUNTED}.",
            ["queue"],
            registry=own,
        )
        self.renewed = Counter("holdfast_leases_renewed", "Leases renewed.", registry=own)
        self.lost = Counter("holdfast_leases_lost", "Leases lost while a handler ran.", registry=own)
        self.timed_out = Counter("holdfast_timed_out", "Handlers that exceeded their timeout.", ["kind"], registry=own)
        self.blocked = Counter("holdfast_loop_blocked", "How often an async handler blocked its loop.", registry=own)
        self._hooks = Counter("holdfast_notifications", "Notifications of outcomes.", ["result"], registry=own)
        self.errors = Counter("holdfast_worker_errors", "Errors that led to error_wait.", registry=own)
        self.moves = Counter(
            "holdfast_worker_transitions", "State changes of the worker.", ["from_state", "to_state"], registry=own
        )
        self._state = Gauge("holdfast_worker_state", "1 for the worker's current state.", ["state"], registry=own)
        self._in_flight = Gauge("holdfast_in_flight", "Steps that the worker holds.", registry=own)
        self.poll_interval = Gauge("holdfast_poll_interval_seconds", "Current sleep of an idle worker.", registry=own)
        self._beat = Gauge(
            "holdfast_heartbeat_timestamp_seconds", "When the loop last completed a round.", registry=own
        )
        for state in STATES:
            self._state.labels(state).set(0)

    def claimed(self, kinds: dict[str, int]) -> None:
        """Count claims."""
        for kind, count in kinds.items():
            self._claimed.labels(kind).inc(count)

    def waiting(self, backlog: dict[str, int]) -> None:
        """Set how many steps are due in each queue."""
        for queue, count in backlog.items():
            self._backlog.labels(queue).set(count)

    def notified(self, *, ok: bool) -> None:
        """Count a notification."""
        self._hooks.labels("delivered" if ok else "failed").inc()

    def stands(self, state: State, *, in_flight: int, beat: float | None = None) -> None:
        """Set the worker's state; with `beat`, also the time of its loop's last round."""
        for each in STATES:
            self._state.labels(each).set(1 if each == state else 0)
        self._in_flight.set(in_flight)
        if beat is not None:
            self._beat.set(beat)
