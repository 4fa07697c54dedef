"""Handlers of ops runs that have to stop: their programs end, and no run is handed back."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from holdfast import Holdfast, RunCancelled
from holdfast.errors import LeaseLost
from holdfast.ops import OpsCtx, OpsRun
from ops.handlers import DB, messages, metadata, queue, until_message, work
from ops.runs import run, status
from worker.running import PATIENCE, read, seconds, until, working

pytestmark = pytest.mark.one_server  # the SQL is proved on both; here is Python


def test_a_cancel_reaches_the_program_of_the_run(hf: Holdfast, db: DB) -> None:
    """O-64, O-106."""
    ended = threading.Event()

    @hf.ops("deploy")
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        try:
            ctx.bash("echo running; sleep 99")
        finally:
            ended.set()

    handle = queue(hf)
    with working(hf, queues=("ops",)):
        until_message(db, handle, "running")
        handle.cancel("wrong branch")
        assert read(ended)

    found = run(db, handle.id)
    assert (found["status"], found["metadata"]["reason"]) == ("cancelled", "wrong branch")
    with pytest.raises(RunCancelled) as cancelled:
        handle.result()
    assert cancelled.value.reason == "wrong branch"


def test_a_handler_that_runs_too_long_fails_and_its_program_is_ended(hf: Holdfast, db: DB) -> None:
    @hf.ops("deploy", timeout=60)
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        ctx.output(phase="build")
        ctx.bash("echo running; sleep 99")

    handle = queue(hf)
    with working(hf, queues=("ops",)) as worker:
        until_message(db, handle, "running")
        (attempt,) = worker.held.values()
        attempt.ctx.deadline_at = time.monotonic()  # the minute is over
        until(lambda: status(db, handle.id) == "failed", "the end of the run")

    assert (metadata(db, handle)["phase"], "timeout" in metadata(db, handle)["error"]) == ("build", True)
    assert any("exit code 143 (SIGTERM)" in message for message in messages(db, handle))


def test_a_run_that_outlives_the_shutdown_grace_is_cancelled_with_that_reason(hf: Holdfast, db: DB) -> None:
    """C-40, R31: the machine has no `released`, so nothing is handed back."""

    @hf.ops("deploy")
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        ctx.bash("echo running; sleep 99")

    handle = queue(hf)
    with working(hf, queues=("ops",), grace=seconds(0.1)):
        until_message(db, handle, "running")

    found = run(db, handle.id)
    assert found["status"] == "cancelled"
    assert found["metadata"]["cancelled_by"] == found["claimed_by"]
    assert found["metadata"]["reason"] == "Worker shutdown (the run outlived the grace period)"


def test_a_run_that_ends_within_the_shutdown_grace_succeeds(hf: Holdfast, db: DB, tmp_path: Path) -> None:
    """R31."""

    @hf.ops("deploy")
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        ctx.bash(f"echo running; until [ -e {go} ]; do sleep 0.01; done")

    go = tmp_path / "go"
    handle = queue(hf)
    with working(hf, queues=("ops",), grace=seconds(PATIENCE)) as worker:
        until_message(db, handle, "running")
        threading.Thread(target=lambda: (until(lambda: worker.states.worker == "draining"), go.touch())).start()

    assert status(db, handle.id) == "success"


def test_a_worker_claims_only_runs_that_it_has_a_free_slot_for(hf: Holdfast, db: DB) -> None:
    gate, begun = threading.Event(), []

    @hf.ops("deploy")
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        begun.append(run.run_id)
        assert read(gate)

    @hf.task(queue="ops")
    def quick() -> None:
        return None

    for _ in range(300):  # quick ones let the worker claim larger batches
        quick.start()
    work(hf, concurrency=2)
    runs = [queue(hf, key=str(number)) for number in range(6)]
    with working(hf, queues=("ops",), concurrency=2):
        until(lambda: len(begun) == 2)
        quick.start()
        assert sorted(status(db, each.id) for each in runs) == ["queued"] * 4 + ["running"] * 2
        gate.set()
        until(lambda: all(status(db, each.id) == "success" for each in runs))

    ended = "select event from holdfast.journal where machine = 'ops.run' and event in ('released', 'cancelled')"
    assert db.execute(ended).fetchall() == []  # a quick task that waits for a second is released, but no run


def test_a_handler_that_lost_its_run_can_start_no_program(hf: Holdfast, db: DB) -> None:
    errors: list[BaseException] = []

    @hf.ops("deploy")
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        try:
            ctx.bash("echo running; sleep 99")
        except BaseException:
            try:
                ctx.bash("echo cleaning up")
            except BaseException as error:  # noqa: BLE001
                errors.append(error)
            raise

    handle = queue(hf)
    with working(hf, queues=("ops",)):
        until_message(db, handle, "running")
        handle.cancel()
        until(lambda: errors)

    assert isinstance(errors[0], LeaseLost)
    assert "echo cleaning up" not in str(messages(db, handle))
