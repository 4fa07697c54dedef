"""A server that pushes back on callers that are under a limit: how long it is left alone, and who asks it first."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.stub import Stub
from holdfast import Holdfast, RetryPolicy
from holdfast.connectors import http
from holdfast.testing import Clock
from kernel.steps import DB, column, value
from worker.running import burst, seconds

pytestmark = pytest.mark.one_server
NOON, LATER, EARLIER = (f"Mon, 16 Nov 2026 {time} GMT" for time in ("12:00:00", "12:00:05", "11:59:00"))
LATE = RetryPolicy(limit=9, base=seconds(3600), growth=1, jitter=0)


def asking(hf: Holdfast, stub: Stub, **options: Any) -> Any:
    """Make a task that calls the server under the limit `shop`."""

    @hf.task(limits=["shop"], **options)
    def ask() -> Any:
        return http.call("GET", stub.url).json()

    return ask


def breaker(db: DB) -> tuple[str, int]:
    row: tuple[str, int] | None = db.execute(
        "select breaker, extract(epoch from open_until - holdfast.clock())::int from holdfast.limit_list"
    ).fetchone()
    assert row is not None
    return row


@pytest.mark.parametrize(
    ("header", "wait"),
    [("3", 3), (LATER, 5), (EARLIER, None), ("-1", None), ("1e9", None), ("1000000000", 3600), ("soon", None)],
)
def test_a_wait_in_every_form_is_bounded_and_holds_for_all_callers(
    hf: Holdfast, db: DB, clock: Clock, stub: Stub, header: str, wait: int | None
) -> None:
    """R28, A-55: one that makes no sense pauses nothing, and the step backs off as its policy says."""
    hf.limit("shop", rate=1000, per=1)
    ask = asking(hf, stub, retry=RetryPolicy(limit=9, base=seconds(7), growth=1, jitter=0))
    stub.answers(429, Retry_After=header, Date=NOON)
    now = clock.freeze()
    first = ask.start()
    burst(hf)
    stub.answers(200)
    other = ask.start()
    burst(hf)

    paused = value(db, "select max(paused_until) from holdfast.limit_list")
    assert (paused, len(stub.asked)) == (None, 2) if wait is None else (now + seconds(wait), 1)
    assert column(db, first.id, "due_at") == now + seconds(wait or 7)
    clock.advance(seconds(wait or 7))
    burst(hf)
    assert [column(db, step.id, "state") for step in (first, other)] == ["done", "done"]


@pytest.mark.parametrize("status", [429, 503])
def test_the_breaker_opens_at_five_sends_one_probe_and_closes(
    hf: Holdfast, db: DB, clock: Clock, stub: Stub, status: int
) -> None:
    """R28, A-59, A-60: a probe that fails doubles the wait, and a success lets the others through."""
    hf.limit("shop", concurrency=1, breaker_after=5, breaker_for=60)
    ask = asking(hf, stub, retry=LATE)
    clock.freeze()
    stub.answers(status)
    for _ in range(9):
        ask.start()

    burst(hf)
    assert (len(stub.asked), *breaker(db)) == (5, "open", 60)

    clock.advance(seconds(60))
    burst(hf)
    assert (len(stub.asked), *breaker(db)) == (6, "open", 120)

    clock.advance(seconds(119))
    stub.answers(200)
    burst(hf)
    assert (len(stub.asked), *breaker(db)) == (6, "open", 1)

    clock.advance(seconds(1))
    burst(hf)
    assert (len(stub.asked), value(db, "select breaker from holdfast.limit_list")) == (9, "closed")
    assert value(db, "select count(*) from holdfast.steps where state = 'done'") == 3
