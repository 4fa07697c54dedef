"""The handler of passes: it reads what a channel shows for each price that a run wrote last, and records what differs.

A step pages through 10,000 targets. Each page is one read, and is stored with the position after it in one transaction.
Where nothing limits the channel, a step reads page after page for up to a second. Otherwise each page has a claim of
its own, which is charged. A read that fails is repeated, then halved until the item that cannot be read is alone. If
nothing can be read at all, whole pages are unverifiable: a pass ends, whatever the channel does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any, NoReturn

from holdfast.errors import OutsideError, RateLimited
from holdfast.failpoints import failpoint
from holdfast.handlers.context import Ctx
from holdfast.handlers.limits import KindLimits
from holdfast.handlers.registry import Handler, RetryPolicy
from holdfast.handlers.signature import Signature
from holdfast.kernel.call import Call
from holdfast.models import Continue, Retry, Snooze
from holdfast.rules import reconcile_calls as calls
from holdfast.rules.channel import ChannelCall, Registered
from holdfast.rules.language.checks import compiled_checks
from holdfast.rules.language.evaluate import Refusal
from holdfast.rules.language.guard import Guard
from holdfast.rules.language.money import Price
from holdfast.rules.language.read_json import from_json
from holdfast.rules.reconcile_calls import CheckedTarget, FoundMismatch

CORRECT = "select rules.correct(%s, %s, %s)"
BUSY_FOR = timedelta(seconds=16)  # where the channel does not say how long
TRIES = 3  # reads of a page, before it is halved
MOST_CORRECTED = 100  # targets of a correction that nobody looks at
READS_FOR = 1.0  # seconds: then the step is claimed again, so that other steps and a stop do not wait for it
ROW = 3  # items in a row that cannot be read, before whole pages are given up
BUGS = RetryPolicy(limit=4, base=2, growth=2, longest=64, jitter=0.2)


class PassCtx(Ctx):
    """A handler's context that also makes calls of the face, apart from its transaction."""

    __slots__ = ()

    def make(self, call: Call[Any]) -> list[Any]:
        """Make a call; raise LeaseLost if the step is no longer ours."""
        return self._make(call)


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a step of a pass: its cursor, as a value. Its position is in its row."""

    page: int = 0  # how many were read
    size: int | None = None  # targets of the next read; None: as many as the channel takes
    row: int = 0  # items in a row that could not be read
    attempt: int = 0  # of the step, when this read was decided on: the attempts since then failed

    def gives_up(self, targets: int) -> bool:
        """Return whether targets that cannot be read are recorded as unverifiable, not read in halves."""
        return self.row >= ROW or targets == 1


def handler_of(registered: Registered) -> Handler:
    """Return the handler that serves the passes over a channel's runs."""
    function = _function(registered)
    return Handler(
        kind=f"reconcile:{registered.name}",
        function=function,
        signature=Signature(function),
        is_async=False,
        uses_cpu=False,
        queue=registered.place,
        retry=BUGS,
        lease=max(timedelta(seconds=300), registered.target_timeout * 3),
        timeout=registered.target_timeout,
        face="rules",
        context=PassCtx,
        limited=KindLimits(limits=(registered.place,)),
    )


def _function(registered: Registered) -> Callable[..., Any]:
    def check(ctx: PassCtx, correct: bool = False) -> dict[str, Any]:
        return _corrected(ctx) if correct else _checked(ctx, registered)

    check.__name__ = check.__qualname__ = f"reconcile {registered.name}"
    return check


def _checked(ctx: PassCtx, registered: Registered) -> dict[str, Any]:
    until = time.monotonic() + READS_FOR
    progress = Progress(**(ctx.cursor or {}))
    most = registered.batch if progress.size is None else min(progress.size, registered.batch)
    is_smooth = progress.size is None and ctx.attempt - progress.attempt <= 1  # no read of this page has failed
    page: list[CheckedTarget] = ctx.make(calls.page_targets(ctx.step_id, ctx.lease_id, most))
    if not page:
        return {"pages": progress.page}
    while page:
        due = [each for each in page if each.standing != "superseded"]
        try:
            shown = registered.channel.read([each.item_id for each in due], _call(ctx, registered)) if due else {}
        except RateLimited as error:
            raise Snooze(error.retry_after or BUSY_FOR, pause=registered.place) from error
        except OutsideError as error:
            _unread(ctx, progress, page, error)
        findings = [found for each in due if (found := _judged(each, shown.get(each.item_id))) is not None]
        grown = None if progress.size is None or progress.size * 2 >= registered.batch else progress.size * 2
        progress = replace(progress, page=progress.page + 1, size=grown, row=0)
        reads_on = is_smooth and time.monotonic() < until
        page = _turned(ctx, page, findings, most if reads_on else 0)
        if reads_on and not page and not ctx.make(calls.page_targets(ctx.step_id, ctx.lease_id, 1)):
            return {"pages": progress.page}  # another claim would find no target
    raise Continue(asdict(replace(progress, attempt=ctx.attempt)))


def _unread(ctx: PassCtx, progress: Progress, page: Sequence[CheckedTarget], error: OutsideError) -> NoReturn:
    """Continue after a failed read: read again later, read half of it, or record what cannot be read."""
    if progress.size is None and progress.row < ROW and ctx.attempt - progress.attempt < TRIES:
        raise Retry({"message": error.what, "class": error.code or "SERVER_ERROR"}, error.retry_after) from error
    if not progress.gives_up(len(page)):
        raise Continue(asdict(Progress(progress.page, max(len(page) // 2, 1), progress.row, ctx.attempt))) from error
    unread = [
        _finding(each, "unknown" if each.standing == "unknown" else "unverifiable", None, error.what)
        for each in page
        if each.standing != "superseded"
    ]
    row = progress.row + 1
    _turned(ctx, page, unread, 0)
    raise Continue(asdict(Progress(progress.page + 1, 1 if row < ROW else None, row, ctx.attempt))) from error


def _turned(
    ctx: PassCtx, page: Sequence[CheckedTarget], findings: list[dict[str, Any]], most: int
) -> list[CheckedTarget]:
    """Store a page, and return the next targets; none if they are to be read under another claim."""
    superseded = sum(each.standing == "superseded" for each in page)
    checked = sum(each.standing != "unknown" for each in page)
    failpoint("page_checked")
    following = ctx.make(
        calls.turn_page(
            ctx.step_id, ctx.lease_id, page[-1].target_id, checked=checked, superseded=superseded, findings=findings,
            most=most,
        )
    )  # fmt: skip
    failpoint("page_recorded")
    return following


def _judged(target: CheckedTarget, found: Price | Refusal | None) -> dict[str, Any] | None:
    """Return what differs; None if the channel shows what was written."""
    if type(found) is Price and target.standing == "check" and _is_as_written(target, found):
        return None
    if found is None:
        return _finding(target, "unknown" if target.standing == "unknown" else "unverifiable", None, "there is no item")
    if isinstance(found, Refusal):
        return _finding(target, "unknown" if target.standing == "unknown" else "unverifiable", None, found.message)
    if target.standing == "unknown":
        return _finding(target, "unknown", found, "its outcome was unknown")
    return _finding(target, "mismatch", found, None)


def _is_as_written(target: CheckedTarget, found: Price) -> bool:
    """Return whether a price is what a target wrote, without the objects that `Write.shows` takes."""
    return (
        found.currency == target.currency
        and (not target.writes_price or found.unit_amount == target.expected)
        and (not target.writes_compare_at or found.compare_at == target.expected_compare_at)
    )


def _finding(target: CheckedTarget, finding: str, found: Price | None, message: str | None) -> dict[str, Any]:
    return {
        "target_id": target.target_id,
        "finding": finding,
        "actual": None if found is None else found.unit_amount,
        "actual_compare_at": None if found is None else found.compare_at,
        "actual_currency": None if found is None else found.currency,
        "message": message,
    }


def _corrected(ctx: PassCtx) -> dict[str, Any]:
    """Plan the correction of what the pass found, in the transaction that completes this step."""
    found: list[FoundMismatch] = ctx.make(calls.pass_mismatches(ctx.step_id, ctx.lease_id))
    if not found:
        return {"correction": None}
    guard = from_json(found[0].rule).guard
    is_safe = len(found) <= MOST_CORRECTED and all(_is_safe(guard, each) for each in found)
    with ctx.transaction() as tx:
        row = tx.execute(CORRECT, (ctx.step_id, ctx.lease_id, is_safe)).fetchone()
        failpoint("correction_planned")
    return {"correction": None if row is None or row[0] is None else str(row[0])}


def _is_safe(guard: Guard, each: FoundMismatch) -> bool:
    """Return whether a correction from the actual to the expected price keeps the rule's guardrails."""
    if each.actual is None:
        return False
    before = each.actual
    checks = compiled_checks(guard, each.currency)
    return not any(check.breaks(before, each.expected, None) for check in checks if before != each.expected)


def _call(ctx: PassCtx, registered: Registered) -> ChannelCall:
    left = ctx.time_left()
    most = registered.request_timeout
    timeout = most if left is None else max(min(most, left - timedelta(seconds=1)), timedelta(seconds=0.1))
    return ChannelCall(timeout, str(ctx.run_id))
