"""What a worker shows of itself: probe, metrics and log, also before it has a database."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from holdfast import Holdfast
from holdfast.worker.loop import Worker
from holdfast.worker.probe import Probe
from worker.running import burst, running, scraped, until, worker_of

pytestmark = pytest.mark.one_server
SILENT = "postgresql://ann@127.0.0.1:1/app"
SCRAPED = (
    "holdfast_rescued_total", "holdfast_in_flight", "holdfast_heartbeat_timestamp_seconds",
    "holdfast_poll_interval_seconds", "holdfast_handler_seconds_count", "holdfast_leases_lost_total",
)  # fmt: skip


@pytest.fixture
def away() -> Iterator[tuple[Worker, Probe]]:
    """A worker whose database is down, with its probe."""
    worker, probe = worker_of(Holdfast(SILENT)), Probe("127.0.0.1", 0)
    probe.start(worker)
    yield worker, probe
    probe.stop()


def asked(probe: Probe, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{probe.port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_metrics_are_there_before_the_first_connection(away: tuple[Worker, Probe]) -> None:
    """W-02, W-64."""
    _, probe = away

    assert 'holdfast_worker_state{state="startup"} 1.0' in asked(probe, "/metrics")[1]
    assert asked(probe, "/healthz")[0] == 200
    assert asked(probe, "/readyz") == (503, "not ready: startup\n")
    assert asked(probe, "/nothing")[0] == 404


def test_a_probe_answers_before_there_is_a_worker() -> None:
    """W-02."""
    probe = Probe("127.0.0.1", 0)
    try:
        assert asked(probe, "/healthz")[0] == 200
        assert asked(probe, "/readyz") == (503, "not ready: startup\n")
        assert 'holdfast_worker_state{state="startup"} 1.0' in asked(probe, "/metrics")[1]
    finally:
        probe.stop()


def test_two_probes_answer_for_two_workers(away: tuple[Worker, Probe], hf: Holdfast) -> None:
    """W-64."""
    other, probe = worker_of(hf), Probe("127.0.0.1", 0)
    probe.start(other)
    try:
        other.is_ready = True
        assert [asked(each, "/readyz")[0] for each in (away[1], probe)] == [503, 200]
    finally:
        probe.stop()


def test_with_the_database_down_a_worker_waits_and_says_so(away: tuple[Worker, Probe], log_lines) -> None:  # type: ignore[no-untyped-def]
    """W-02, W-12, W-15, W-28, W-34, W-64."""
    worker, probe = away

    with running(worker):
        until(lambda: worker.states.moves["error_wait", "connecting"] >= 2, "a second try")
        assert asked(probe, "/readyz")[0] == 503

    assert any(line["event"] == "worker.error_wait" for line in log_lines)
    assert worker.states.moves["connecting", "error_wait"] >= 2


def test_the_state_is_in_metrics_and_log(hf: Holdfast, log_lines) -> None:  # type: ignore[no-untyped-def]
    """W-56, W-64, X-10."""

    @hf.task
    def count() -> int:
        return 1

    count.start()
    worker = burst(hf)
    found = scraped(worker)

    assert 'holdfast_worker_state{state="stopped"} 1.0' in found
    assert 'holdfast_claimed_total{kind="count"} 1.0' in found
    assert 'holdfast_settled_total{event="succeeded",kind="count"} 1.0' in found
    assert 'holdfast_worker_transitions_total{from_state="startup",to_state="connecting"} 1.0' in found
    assert all(name in found for name in SCRAPED)
    moved = [(line["come"], line["to"]) for line in log_lines if line["event"] == "worker.moved"]
    assert moved[:3] == [("startup", "connecting"), ("connecting", "recovery"), ("recovery", "polling")]
