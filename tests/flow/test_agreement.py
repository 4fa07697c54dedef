"""Readiness and the claim never disagree: after any story of a task, what is said to be ready is what a claim takes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from itertools import count
from typing import Any, NamedTuple
from uuid import UUID

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import Connection

from flow.asking import adjust, readiness
from holdfast.errors import HoldfastError
from holdfast.kernel import calls
from holdfast.kernel.db import run, translated
from holdfast.models import Continue, Done, Fail, Release, Retry, Snooze
from holdfast.testing import Clock
from kernel.steps import (
    claim,
    column,
    ids_by_name,
    node,
    rescue,
    seconds,
    settle,
    start_flow,
    violations,
    wish_in_chunks,
)

DB = Connection[Any]
NUMBERS = count(1)
SPANS = [-0.001, 0.0, 0.001, 1.0, 2.0, 30.0, 31.0, 100.0]
OUTCOMES = [Done(), Retry("x"), Retry("x", after=seconds(30)), Fail("x"), Snooze(seconds(2)), Release(), Continue({})]


class Story(NamedTuple):
    """A task under way: its steps by name, in two queues of its own."""

    db: DB
    clock: Clock
    task_id: UUID
    ids: dict[str, int]
    queues: list[str]


class Turn(NamedTuple):
    """What happens next: to which step, by how much, with what outcome."""

    act: Callable[[Story, str, Turn], None]
    step: int
    span: float
    outcome: int


def work(story: Story, name: str, turn: Turn) -> None:
    """Claim that step, if it is to be had, and settle it."""
    for step in _claimed(story, [name]):
        settle(story.db, step, OUTCOMES[turn.outcome])


def leave(story: Story, name: str, turn: Turn) -> None:
    """Claim that step and fall silent."""
    _claimed(story, [name])


def wait(story: Story, name: str, turn: Turn) -> None:
    """Let time pass, and take back what was held too long."""
    story.clock.advance(seconds(abs(turn.span)))
    rescue(story.db)


def meet(story: Story, name: str, turn: Turn) -> None:
    """Set the clock next to that step's due time."""
    due_at = column(story.db, story.ids[name], "due_at")
    if due_at is not None:
        story.clock.set(due_at + timedelta(seconds=turn.span))


def set_due(story: Story, name: str, turn: Turn) -> None:
    """Set that step's due time next to the clock."""
    story.db.execute(
        "update holdfast.steps set due_at = holdfast.clock() + make_interval(secs => %s) "
        "where id = %s and due_at is not null",
        [turn.span, story.ids[name]],
    )


def pause(story: Story, name: str, turn: Turn) -> None:
    run(story.db, calls.pause_queue(story.queues[turn.step % 2]))


def resume(story: Story, name: str, turn: Turn) -> None:
    run(story.db, calls.resume_queue(story.queues[turn.step % 2]))


def park(story: Story, name: str, turn: Turn) -> None:
    """Let a worker come by that has no handler for anything, and nobody else be alive."""
    story.db.execute("delete from holdfast.workers")
    for queue in story.queues:
        claim(story.db, f"odd{next(NUMBERS)}", queue=queue, kinds=["nothing"], batch=100)


def wish(story: Story, name: str, turn: Turn) -> None:
    """Ask for something by hand, which is refused as often as not."""
    asked = str(story.ids[name]) if turn.span > 0 else str(story.task_id)
    with suppress(HoldfastError):
        run(story.db, [calls.cancel, calls.retry, calls.resolve][turn.outcome % 3](asked))


def cancel_a_part(story: Story, name: str, turn: Turn) -> None:
    """Cancel the task, but move only the first of its steps."""
    with suppress(HoldfastError), translated():
        wish_in_chunks(story.db, story.task_id, "cancelled", 1)


def change(story: Story, name: str, turn: Turn) -> None:
    """Change how that step is retried, by SQL."""
    columns: list[dict[str, Any]] = [
        {"retry_limit": turn.step},
        {"retryable": turn.span > 1},
        {"backoff_request_seconds": abs(turn.span)},
        {"backoff_request_seconds": None},
    ]
    with suppress(HoldfastError), translated():
        adjust(story.db, story.ids[name], **columns[turn.outcome % 4])


ACTS = [work, work, work, leave, wait, meet, set_due, pause, resume, park, wish, cancel_a_part, change, change]
turns = st.builds(
    Turn, st.sampled_from(ACTS), st.integers(0, 5), st.sampled_from(SPANS), st.integers(0, len(OUTCOMES) - 1)
)
shapes = st.lists(st.sets(st.integers(0, 5), max_size=3), min_size=2, max_size=6)


def _claimed(story: Story, kinds: list[str]) -> list[Any]:
    found = []
    for queue in story.queues:
        run(story.db, calls.enlist_worker("serves all", [queue]))
        found += claim(story.db, f"w{next(NUMBERS)}", queue=queue, kinds=kinds, batch=100)
    return found


def assert_agreed(story: Story) -> None:
    """Compare what is said with what a worker gets that serves all but what is parked; its claim is undone."""
    said = readiness(story.db, story.task_id)
    parked = {name for name, step_id in story.ids.items() if column(story.db, step_id, "parked_for")}
    with story.db.transaction(force_rollback=True):
        got = {step.step_id for step in _claimed(story, sorted(story.ids.keys() - parked))}

    assert {row["step_id"] for row in said.values() if row["ready_for_execution"]} == got
    for row in said.values():
        assert isinstance(row["ready_for_execution"], bool)
        may_be = (
            row["current_state"] in ("pending", "error")
            and not row["processed"]
            and row["dependencies_satisfied"]
            and row["retry_eligible"]
            and not row["in_process"]
            and row["backoff_period_expired"]
        )
        assert may_be or not row["ready_for_execution"], row
        is_over = column(story.db, row["step_id"], "finished_at") is not None
        is_settled = row["ready_for_execution"] or row["in_process"] or is_over
        assert (row["waiting_reason"] is None) == is_settled, row
        assert row["dependencies_satisfied"] == (row["total_parents"] == row["completed_parents"]), row


@settings(max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(shape=shapes, story=st.lists(turns, max_size=16))
def test_after_any_story_what_is_ready_is_what_a_claim_takes(
    db: DB, clock: Clock, shape: list[set[int]], story: list[Turn]
) -> None:
    """T-29, T-31, T-33, T-34, T-35, T-36, T-37, T-38, T-39, T-40, T-140"""
    clock.freeze()
    queues = [f"q{next(NUMBERS)}", f"q{next(NUMBERS)}"]
    plan = [
        node(f"s{n}", *(f"s{p}" for p in sorted(parents) if p < n), queue=queues[n % 2])
        for n, parents in enumerate(shape)
    ]
    task_id = start_flow(db, *plan)
    told = Story(db, clock, task_id, ids_by_name(db, task_id), queues)

    assert_agreed(told)
    for turn in story:
        turn.act(told, f"s{turn.step % len(shape)}", turn)
        assert_agreed(told)

    rescue(db)
    assert violations(db) == []
