"""What is to become of a task, by where it stands: a pure function over a row and a configuration."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from holdfast.flow.backoff import Backoff, ReenqueueDelays
from holdfast.flow.decisions import decide

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TASK = UUID(int=1)


@dataclass(frozen=True)
class Row:
    execution_status: str
    state: str = "in_progress"
    earliest_retry_at: datetime | None = None
    run_id: UUID = TASK


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


@pytest.mark.parametrize(
    ("row", "action", "delay"),
    [
        (Row("all_complete", "complete"), "complete", None),
        (Row("all_complete", "resolved_manually"), "complete", None),
        (Row("blocked_by_failures", "error"), "fail", None),
        (Row("blocked_by_failures", "cancelled"), "none", None),
        (Row("has_ready_steps"), "reenqueue", 0),
        (Row("waiting_for_dependencies"), "reenqueue", 50),
        (Row("processing"), "reenqueue", 15),
        (Row("of a later release"), "reenqueue", 30),
    ],
)
def test_each_status_has_its_action_and_its_delay(row: Row, action: str, delay: float | None) -> None:
    """T-57, T-60, T-61, T-62, T-63, T-64, T-110, T-111, C-48."""
    decision = decide(row, Backoff(), NOW)

    assert (decision.run_id, decision.status, decision.action) == (TASK, row.execution_status, action)
    assert decision.delay == (None if delay is None else seconds(delay))


def test_a_task_that_waits_for_retries_is_due_with_the_earliest_and_a_buffer() -> None:
    """T-13, T-65, C-48, C-49."""
    row = Row("waiting_for_dependencies", earliest_retry_at=NOW + seconds(3))

    assert decide(row, Backoff(), NOW).delay == seconds(3 + 5)


def test_a_retry_that_is_due_already_waits_for_the_buffer_alone() -> None:
    row = Row("waiting_for_dependencies", earliest_retry_at=NOW - seconds(3))

    assert decide(row, Backoff(), NOW).delay == seconds(5)


def test_a_delay_is_never_above_the_longest_backoff() -> None:
    """C-48, T-126."""
    row = Row("waiting_for_dependencies", earliest_retry_at=NOW + seconds(4000))

    assert decide(row, Backoff(), NOW).delay == seconds(300)


def test_a_task_goes_on_while_one_branch_failed_for_good_and_another_waits_for_its_retry() -> None:
    """T-09, T-70, C-53: what is blocked is told, and the database has not closed it."""
    row = Row("blocked_by_failures", earliest_retry_at=NOW + seconds(7))

    decision = decide(row, Backoff(), NOW)

    assert (decision.action, decision.delay) == ("reenqueue", seconds(12))
    assert decision.reason == "a branch failed, others continue"


def test_delays_are_those_of_the_configuration() -> None:
    """T-110, T-117."""
    backoff = Backoff(reenqueue_delays=ReenqueueDelays(0, 15, 5), buffer_seconds=10)
    statuses = ("has_ready_steps", "waiting_for_dependencies", "processing")

    assert [decide(Row(each), backoff, NOW).delay for each in statuses] == [seconds(0), seconds(25), seconds(15)]
