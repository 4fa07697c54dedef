"""`holdfast rules apply`, `pause`, `resume`, `stop`, `retry-failed` and `retry-all`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated
from uuid import UUID

import typer

from holdfast.cli.connection import DB, opened
from holdfast.cli.options import Reason, parse_duration
from holdfast.cli.render import AsJson, data, data_json, say
from holdfast.cli.schedules.page import read_moment
from holdfast.cli.table import data_table
from holdfast.errors import BadInput, NotFound, RunFailed, RunPartial, WaitTimedOut
from holdfast.kernel import calls as kernel
from holdfast.kernel import db
from holdfast.kernel.call import Call
from holdfast.rules import calls, clock_calls, reads
from holdfast.rules.cli.parts import Actor, RunId, parse_run, run_document, status_text
from holdfast.rules.rows import RuleRunRow

LOOK_EACH = 0.5  # seconds
OVER = frozenset({"APPLIED", "PARTIAL", "FAILED", "ROLLED_BACK"})
Only = Annotated[list[str] | None, typer.Option("--only", help="Only this item or target number. May be repeated.")]
Without = Annotated[
    list[str] | None, typer.Option("--without", help="All but this item or target number. May be repeated.")
]


def apply(
    run: RunId,
    *,
    plan: Annotated[str | None, typer.Option("--plan", help="8 or more digits of the plan's hash.")] = None,
    only: Only = None,
    without: Without = None,
    first: Annotated[int | None, typer.Option("--first", min=1, help="Apply this many targets, then pause.")] = None,
    leave_out_shared: Annotated[
        bool, typer.Option("--leave-out-shared", help="Leave out items that are in another open run.")
    ] = False,
    at: Annotated[str | None, typer.Option("--at", help="When to apply it: 2027-03-01T06:00.")] = None,
    revert_at: Annotated[str | None, typer.Option("--revert-at", help="When to undo it.")] = None,
    timezone: Annotated[str, typer.Option("--timezone", help="The time zone of times without an offset.")] = "UTC",
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until it ends; exit 1 if it failed, 3 if in part.")
    ] = False,
    timeout: Annotated[
        timedelta | None, typer.Option("--timeout", parser=parse_duration, metavar="DURATION", help="How long to wait.")
    ] = None,
    reason: Reason = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Apply a previewed plan; workers send it and nothing else. Applying twice is the same as applying once."""
    run_id = parse_run(run)
    times = clock_calls.times(read_moment("at", at, timezone), read_moment("revert-at", revert_at, timezone))
    if wait and at is not None:
        raise BadInput("--wait cannot be combined with --at", where="--wait", next="leave one out")
    with opened() as connection:
        numbers = _numbers(connection, run_id, only), _numbers(connection, run_id, without)
        call = clock_calls.apply(run_id, times, plan=plan, only=numbers[0], without=numbers[1], first=first,
                                 leave_out_shared=leave_out_shared, reason=reason, actor=actor)  # fmt: skip
        (applied,) = db.run(connection, call)
        row = _waited(connection, run_id, timeout) if wait else reads.run_of(connection, run_id)
    if as_json:
        document = run_document(row)
        names = {"applySchedule": "apply_schedule", "revertSchedule": "revert_schedule"}
        planned = {name: getattr(applied, own, None) for name, own in names.items()}
        data_json({**document, "included": applied.included, "leftOut": applied.left_out, "isNew": applied.is_new,
                   **{name: schedule for name, schedule in planned.items() if schedule}})  # fmt: skip
    else:
        data(f"{run_id} {row.status}")
    say(f"{applied.included:,} targets are included, {applied.left_out:,} left out")
    for schedule in (getattr(applied, "apply_schedule", None), getattr(applied, "revert_schedule", None)):
        if schedule:
            say(f"to cancel it: holdfast schedules remove {schedule}")
    if wait:
        _end(row)
    else:
        say(f"to follow it: holdfast rules show {run_id}")


def pause(run: RunId, *, reason: Reason = None, actor: Actor = None, as_json: AsJson = False) -> None:
    """Begin no further target; calls in progress finish."""
    _acted(run, kernel.pause_run(str(parse_run(run)), reason, actor), as_json=as_json)


def resume(run: RunId, *, reason: Reason = None, actor: Actor = None, as_json: AsJson = False) -> None:
    """End a pause."""
    _acted(run, kernel.resume_run(str(parse_run(run)), reason, actor), as_json=as_json)


def stop(run: RunId, *, reason: Reason = None, actor: Actor = None, as_json: AsJson = False) -> None:
    """End a run early; `retry-all` continues with the targets that were not tried."""
    _acted(run, kernel.stop_run(str(parse_run(run)), reason, actor), as_json=as_json)


def retry_failed(
    run: RunId,
    *,
    only: Only = None,
    without: Without = None,
    classes: Annotated[
        list[str] | None, typer.Option("--class", help="Only errors of this class, such as TIMEOUT. May be repeated.")
    ] = None,
    reason: Reason = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Retry failed targets, and print for each whether it was queued or skipped, and why."""
    run_id = parse_run(run)
    with opened() as connection:
        call = calls.retry_failed(run_id, only=_numbers(connection, run_id, only),
                                  without=_numbers(connection, run_id, without), classes=classes, reason=reason,
                                  actor=actor)  # fmt: skip
        _retried(db.run(connection, call), as_json=as_json)


def retry_all(run: RunId, *, reason: Reason = None, actor: Actor = None, as_json: AsJson = False) -> None:
    """Retry everything that was not applied, including targets that were never tried."""
    with opened() as connection:
        _retried(db.run(connection, calls.retry_all(parse_run(run), reason, actor)), as_json=as_json)


def _acted(run: str, call: Call[str], *, as_json: bool) -> None:
    run_id = parse_run(run)
    with opened() as connection:
        reads.run_of(connection, run_id)
        db.run(connection, call)
        row = reads.run_of(connection, run_id)
    if as_json:
        data_json(run_document(row))
    else:
        data(f"{run_id} {status_text(row)}")


def _retried(rows: Sequence[calls.RetriedTarget], *, as_json: bool) -> None:
    if as_json:
        documents = [
            {"targetId": str(r.target_id), "itemId": r.item_id, "outcome": r.outcome, "why": r.why} for r in rows
        ]
        data_json(documents)
        return
    data_table(
        ("target", "item", "outcome", "why"), [(row.target_id, row.item_id, row.outcome, row.why) for row in rows]
    )


def _numbers(connection: DB, run_id: UUID, given: Sequence[str] | None) -> list[int] | None:
    """Return targets by their numbers; an item's id stands for its target."""
    if not given:
        return None
    numbers = {each.item_id: each.id for each in reads.targets_of_items(connection, run_id, list(given))}
    unknown = next((each for each in given if each not in numbers and not each.isdecimal()), None)
    if unknown is not None:
        raise NotFound(f"run {run_id} has no target for item {unknown}", where=unknown,
                       next=f"list them: holdfast rules targets {run_id}")  # fmt: skip
    return [numbers[each] if each in numbers else int(each) for each in given]


def _waited(connection: DB, run_id: UUID, timeout: timedelta | None) -> RuleRunRow:
    until = None if timeout is None else time.monotonic() + timeout.total_seconds()
    while True:
        row = reads.run_of(connection, run_id)
        if row.status in OVER:
            return row
        if until is not None and time.monotonic() >= until:
            raise WaitTimedOut(
                f"run {run_id} is {row.status} and did not end within {timeout}",
                where=str(run_id),
                next=f"it continues, follow it with: holdfast rules show {run_id}",
            )
        time.sleep(LOOK_EACH)


def _end(run: RuleRunRow) -> None:
    listed = f"list them: holdfast rules targets {run.id} --status FAILED"
    counts = f"{run.counts['applied']:,} applied, {run.counts['failed']:,} failed"
    if run.status == "PARTIAL":
        raise RunPartial(f"run {run.id} ended PARTIAL: {counts}", where=str(run.id), next=listed)
    if run.status == "FAILED":
        raise RunFailed(f"run {run.id} failed: {counts}", where=str(run.id), next=listed)
    say(f"{run.id}: {run.status}, {counts}")
