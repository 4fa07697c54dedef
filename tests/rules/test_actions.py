"""What a run offers to people: each action that is offered works, and each that is not is refused."""

from __future__ import annotations

from uuid import UUID

import pytest

from holdfast.rules import reads
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
    "QUEUED": ["pause", "resume", "stop"],
    "APPLYING": ["pause", "resume", "stop"],
    "APPLIED": ["rollback", "reconcile"],
    "PARTIAL": ["retry_failed", "retry_all", "rollback", "reconcile"],
    "FAILED": ["retry_failed", "retry_all"],
    "stopped": ["retry_all"],
    "ROLLED_BACK": [],
}


def made(db: DB, state: str) -> UUID:
    """Bring a run of two targets to a state."""
    run_id = previewed(db, 2)
    if state == "PREVIEW":
        return run_id
    applied(db, run_id)
    match state:
        case "APPLYING":
            claim(db, batch=1)
        case "PARTIAL":
            work(db, fails("SKU-1"))
        case "FAILED":
            work(db, fails("SKU-1", "SKU-2"))
        case "stopped":
            db.execute("select holdfast.stop_run(%s)", [str(run_id)])
        case "APPLIED" | "ROLLED_BACK":
            settle(db, claim(db))
    if state == "ROLLED_BACK":
        called(db, "rollback", run_id=run_id, apply=True)
        work(db)
    return run_id


@pytest.mark.parametrize("state", OFFERED)
def test_an_action_is_offered_if_it_works(db: DB, state: str) -> None:
    """A-107, A-108: a PARTIAL run offers a retry of what failed, an APPLIED run does not"""
    run_id = made(db, state)
    run = reads.run_of(db, run_id)

    assert run.status == {"stopped": "FAILED"}.get(state, state)
    assert run.actions == OFFERED[state]
    count = "select count(*) from rules.rule_targets where status = 'FAILED'"
    assert run.counts["failed"] == value(db, count) == {"PARTIAL": 1, "FAILED": 2}.get(state, 0)
    for action, statement in ACTIONS.items():
        with db.transaction(force_rollback=True):
            code = refused(db, statement, [run_id])
        idle = {"apply", *(["stop", "retry_failed"] if state == "stopped" else [])}  # accepted, and nothing to do
        if action in run.actions or action not in idle:
            assert (code is None) == (action in run.actions), action
