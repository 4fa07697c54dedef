"""Around handlers of ops runs: events, schedules, workers in other languages, and workers that end after one run."""

from __future__ import annotations

import threading

import pytest

from holdfast import Event, Holdfast
from holdfast.errors import BadDefinition
from holdfast.ops import OpsCtx, OpsRun
from holdfast.testing import Clock
from ops.handlers import DB, at_once, queue, work
from ops.runs import claim, finish, run, status
from worker.running import read, seconds, until, worker_of, working

pytestmark = pytest.mark.one_server


def test_events_of_runs_are_published_with_the_run_s_id(hf: Holdfast, db: DB) -> None:
    at_once(db, executions=1)
    events: list[Event] = []
    hf.on("ops.run.*")(events.append)

    @hf.ops("deploy")
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        if run.env == "prod":
            raise ValueError("no")

    good, bad, waiting = queue(hf, key="a"), queue(hf, env="prod"), queue(hf, env="later", priority=0)
    waiting.cancel("not today")
    work(hf)
    bad.resolve("known")
    again = bad.retry()
    until(lambda: len(events) == 10)

    named = [(event.name, event.id) for event in events]
    assert sorted(named) == sorted([
        ("ops.run.queued", good.id), ("ops.run.queued", bad.id), ("ops.run.queued", waiting.id),
        ("ops.run.cancelled", waiting.id), ("ops.run.started", good.id), ("ops.run.started", bad.id),
        ("ops.run.succeeded", good.id), ("ops.run.failed", bad.id), ("ops.run.resolved", bad.id),
        ("ops.run.retried", bad.id),
    ])  # fmt: skip
    failed = next(event for event in events if event.name == "ops.run.failed")
    assert failed.payload["kind"] == "deploy"
    assert failed.payload["error"]["metadata"]["retry_count"] == 1
    assert events[-1].payload["new_run"] == again.id
    assert hf.handle(good.id).status().state == "success"


def test_a_schedule_queues_one_run_per_environment(hf: Holdfast, db: DB) -> None:
    """O-25."""

    @hf.ops("deploy")
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        return None

    for env in ("staging", "prod"):
        queue(hf, env=env)
    queue(hf, env="other")
    hf.ops.schedule("nightly", "deploy", project="proj-123", env="prod", cron="0 2 * * *", metadata={"by": "clock"})
    hf.ops.schedule("weekly", "deploy", every="7d", priority=3, ttl="1h")
    work(hf)

    defined = db.execute("select name from holdfast.schedules where face = 'ops' and target = 'deploy' order by name")
    assert defined.fetchall() == [("nightly",), ("weekly",)]
    for name in ("nightly", "weekly"):
        db.execute("select holdfast.run_schedule(%s)", [name])
    work(hf)
    ticked = db.execute("select env, status from ops.runs where metadata ->> 'trigger' = 'schedule'").fetchall()
    assert sorted(ticked) == [("other", "success"), ("prod", "success"), ("prod", "success"), ("staging", "success")]
    with pytest.raises(BadDefinition) as refused:
        hf.ops.schedule("odd", "deploy", cron="every night")
    assert refused.value.where == "cron"


def test_a_worker_in_another_language_takes_the_kinds_that_python_leaves(hf: Holdfast, db: DB) -> None:
    gate = threading.Event()

    @hf.ops("deploy")
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        assert read(gate)

    @hf.ops("migrate", queue="python-only")
    def migrate(ctx: OpsCtx, run: OpsRun) -> None:
        return None

    backup, deployed = queue(hf, kind="backup"), queue(hf)
    with working(hf, queues=("ops", "python-only")):
        until(lambda: status(db, deployed.id) == "running")
        migrated = queue(hf, kind="migrate")
        until(lambda: status(db, migrated.id) == "success")
        assert claim(db, "worker-bash") == backup.id
        finish(db, backup.id, "success")
        gate.set()
        until(lambda: status(db, deployed.id) == "success")


def test_a_run_without_an_event_is_not_stale_while_its_handler_begins(hf: Holdfast, db: DB, clock: Clock) -> None:
    """O-91: the worker's first event moves it to running before the handler is called."""
    begun, gate = threading.Event(), threading.Event()

    @hf.ops("deploy")
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        begun.set()
        assert read(gate)

    handle = queue(hf)
    with working(hf, queues=("ops",)):
        assert read(begun)
        assert (status(db, handle.id), run(db, handle.id)["running_at"] is not None) == ("running", True)
        gate.set()
        until(lambda: status(db, handle.id) == "success")


def test_a_worker_may_end_after_some_steps(hf: Holdfast, db: DB) -> None:
    executed: list[str] = []

    @hf.ops("deploy")
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        executed.append(run.run_id)

    runs = [queue(hf, key=str(number)) for number in range(3)]
    work(hf, most_steps=2, concurrency=5, grace=seconds(10))

    assert sorted(executed) == sorted(each.id for each in runs[:2])
    assert status(db, runs[2].id) == "queued"
    assert worker_of(hf, most_steps=0).claimer.is_through
