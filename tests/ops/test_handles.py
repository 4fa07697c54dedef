"""Runs that Python queues, and their handles: as those of all faces, sync and async."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psycopg import Rollback

from holdfast import Holdfast
from holdfast.errors import BadInput, NotFound, WrongState
from holdfast.ops import OpsCtx, OpsRun
from ops.handlers import DB, at_once, queue, work
from ops.runs import run

pytestmark = pytest.mark.one_server  # the SQL is proved on both; here is Python


def test_a_handle_has_what_all_handles_have(hf: Holdfast, db: DB) -> None:
    at_once(db, executions=1)

    @hf.ops("deploy")
    def deploy(ctx: OpsCtx, run: OpsRun) -> dict[str, object]:
        if run.retry_of is None:
            raise ValueError("no")
        return {"retried": run.retry_of}

    handle = queue(hf)
    work(hf)
    again = hf.handle(handle.id).retry("another try")
    work(hf)

    assert again.id != handle.id
    assert again.result() == {"retried": handle.id, "retry_count": 0}
    assert again.status().name == "deploy"
    assert [e.event for e in again.events() if e.kind == "move"][-1] == "succeeded"
    with pytest.raises(WrongState):
        again.cancel()
    with pytest.raises(NotFound):
        hf.handle("run-00000000-0000-0000-0000-000000000000").status()
    failing = queue(hf, env="prod")
    work(hf)
    failing.resolve("dealt with")
    assert db.execute("select count(*) from holdfast.dead_steps").fetchone() == (0,)


async def _async_handles(hf: Holdfast) -> tuple[str, Any]:
    handle = await hf.ops.aqueue("proj-123", env="staging")
    state = (await handle.astatus()).state
    await handle.acancel("no")
    assert (await handle.astatus()).state == "cancelled"
    return state, await handle.aevents()


def test_handles_have_async_twins(hf: Holdfast) -> None:
    state, history = asyncio.run(_async_handles(hf))

    assert state == "queued"
    assert [event.event for event in history][-1] == "cancelled"


def test_a_run_is_queued_in_the_caller_s_transaction(hf: Holdfast, db: DB) -> None:
    with db.transaction():
        queue(hf, conn=db)
        raise Rollback
    assert db.execute("select count(*) from ops.runs").fetchone() == (0,)

    with db.transaction():
        handle = queue(hf, conn=db, priority=7, due_at=datetime.now(UTC) + timedelta(hours=1), ttl="2h", actor="ann")
    assert run(db, handle.id)["queued_by"] == "ann"


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"priority": 10}, "priority"),
        ({"due_at": datetime(2026, 1, 1)}, "due_at"),  # noqa: DTZ001
        ({"metadata": "x"}, "metadata"),
        ({"metadata": {"at": object()}}, "metadata"),
        ({"key": ""}, "key"),
        ({"ttl": -1}, "ttl"),
        ({"env": ""}, "env"),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else given,
)
def test_bad_arguments_are_named(hf: Holdfast, given: dict[str, Any], where: str) -> None:
    with pytest.raises(BadInput) as refused:
        queue(hf, **given)
    assert refused.value.where == where
