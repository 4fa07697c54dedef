"""Rows that the command line's tests look at."""

from __future__ import annotations

from holdfast.models import Done, Fail
from kernel.steps import claim_one, node, settle, start, start_flow

FAULT = {"type": "ValueError", "message": "no user 17 at 'shop'\nline two", "trace": "Traceback\n  the last line"}


def dead_task(db, name="mail", error=None, **options):
    """A task that failed for good."""
    step_id = start(db, name, **options)
    queue = {"queue": options["queue"]} if "queue" in options else {}
    step = claim_one(db, kinds=[name], **queue)
    assert settle(db, step, Fail(FAULT if error is None else error)) == ["failed"]
    return step_id


def done_task(db, name="mail", result=None):
    """A task that is done."""
    step_id = start(db, name)
    settle(db, claim_one(db, kinds=[name]), Done(result))
    return step_id


def partial_run(db):
    """A run of two steps, over: one is done, one is dead."""
    run_id = start_flow(db, node("good"), node("bad"))
    settle(db, claim_one(db, kinds=["good"]), Done())
    settle(db, claim_one(db, kinds=["bad"]), Fail(FAULT))
    return run_id
