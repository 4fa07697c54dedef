"""What a run offers to people: each action that is offered works, and each that is not is refused."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from holdfast.rules import reads
from holdfast.testing import Clock
from kernel.steps import value
from rules.plans import DB, applied, called, claim, fails, previewed, refused, settle, work

ACTIONS = {
    "apply": "select rules.apply(%s)",
    "pause": "select holdfast.pause_run(%s::text)",
    "resume": "select holdfast.resume_run(%s::text)",
    "stop": "select holdfast.stop_run(%s::text)",
    "retry_failed": "select rules.retry_failed(%s)",
    "rollback": "select rules.rollback(%s)",
    "reconcile": "select rules.reconcile(%s)",
    "retry_all": "select rules.retry_all(%s)",
}
OFFERED = {
    "PREVIEW": ["apply"],
    "expired": [],
    "QUEUED": ["pause", "stop"],
    "APPLYING": ["pause", "stop"],
    "paused": ["resume", "stop"],
    "first": ["resume", "stop"],
    "stopping": [],
    "APPLIED": ["rollback", "reconcile"],
    "PARTIAL": ["retry_failed", "retry_all", "rollback", "reconcile"],
    "FAILED": ["retry_failed", "retry_all"],
    "stopped": ["retry_all"],
    "ROLLED_BACK": [],
}
HALTED = {"paused": "pause", "stopping": "stop", "stopped": "stop"}
STATUS = {
    "stopped": "FAILED", "expired": "PREVIEW", "paused": "APPLYING", "first": "QUEUED", "stopping": "APPLYING"
}  # fmt: skip
REMARKS = {
    "expired": "expired", "paused": "paused", "first": "paused after its first targets", "stopping": "stopping"
}  # fmt: skip
IDLE = {  # accepted, and nothing to do
    "QUEUED": ["resume"], "APPLYING": ["resume"], "paused": ["pause"], "first": ["pause"],
    "stopping": ["stop"], "stopped": ["stop", "retry_failed"],
}  # fmt: skip


def made(db: DB, state: str) -> UUID:
    """Bring a run of two targets to a state."""
    run_id = previewed(db, 2)
    if state == "expired":
        Clock(db).advance(timedelta(days=2))
    if state in {"PREVIEW", "expired"}:
        return run_id
    applied(db, run_id, first=1 if state == "first" else None)
    match state:
        case "APPLYING" | "paused" | "stopping":
            claim(db, batch=1)
        case "PARTIAL":
            work(db, fails("SKU-1"))
        case "FAILED":
            work(db, fails("SKU-1", "SKU-2"))
        case "APPLIED" | "ROLLED_BACK":
            settle(db, claim(db))
    if state in HALTED:
        db.execute(ACTIONS[HALTED[state]], [str(run_id)])
    if state == "ROLLED_BACK":
        called(db, "rollback", run_id=run_id, apply=True)
        work(db)
    return run_id


@pytest.mark.parametrize("state", OFFERED)
def test_an_action_is_offered_if_it_works(db: DB, clock: Clock, state: str) -> None:
    """A-107, A-108: a PARTIAL run offers a retry of what failed, an APPLIED run does not"""
    run_id = made(db, state)
    run = reads.run_of(db, run_id)

    assert run.status == STATUS.get(state, state)
    assert run.remark == REMARKS.get(state)
    assert run.actions == OFFERED[state]
    count = "select count(*) from rules.rule_targets where status = 'FAILED'"
    assert run.counts["failed"] == value(db, count) == {"PARTIAL": 1, "FAILED": 2}.get(state, 0)
    for action, statement in ACTIONS.items():
        with db.transaction(force_rollback=True):
            code = refused(db, statement, [run_id])
        idle = {"apply", *IDLE.get(state, [])} - ({"apply"} if state == "expired" else set())
        if action in run.actions or action not in idle:
            assert (code is None) == (action in run.actions), action
