"""Handlers of ops runs in Python: they run programs, register artifacts, and retry in place under one lease."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from psycopg import Rollback

from holdfast import Fail, Holdfast, RetryPolicy, RunCancelled, RunFailed
from holdfast.errors import BadDefinition, BadInput, LeaseLost, NotFound, ProgramFailed, Rejected, WrongState
from holdfast.models import Retry, Snooze
from holdfast.ops import OpsCtx, OpsRun
from holdfast.testing import Clock
from kernel.steps import violations
from ops.handlers import DB, at_once, messages, metadata, queue, until_message, work
from ops.runs import events, run, status
from worker.running import PATIENCE, read, seconds, until, working

pytestmark = pytest.mark.one_server  # the SQL is proved on both; here is Python


def test_a_handler_runs_programs_and_its_result_becomes_metadata(hf: Holdfast, db: DB) -> None:
    """O-58, O-60: the issue's example."""

    @hf.ops("deploy", timeout=1200)
    def deploy(ctx: OpsCtx, run: OpsRun) -> dict[str, object]:
        ctx.shell("bash", "-c", "echo building $SHA for $HOLDFAST_ENV", env={"SHA": run.git_sha})
        ctx.artifact("image", f"registry.example/app:{run.git_sha}", digest="sha256:0011")
        return {"deploy_url": "https://staging.example.com", "health_check": "passed"}

    handle = queue(hf, metadata={"author": "ann"}, key="deploy-abc123-staging")
    work(hf)

    assert handle.status().state == status(db, handle.id) == "success"
    assert handle.result()["deploy_url"] == "https://staging.example.com"
    assert metadata(db, handle) == {
        "author": "ann", "exit_code": 0, "retry_count": 0, "deploy_url": "https://staging.example.com",
        "health_check": "passed",
    }  # fmt: skip
    assert [message for message in messages(db, handle) if not message.startswith("bash:")] == [
        "Run queued", "Run claimed by worker", "Run started", f"Started by {run(db, handle.id)['claimed_by']}",
        "$ bash -c 'echo building $SHA for $HOLDFAST_ENV'", "building abc123 for staging", "Artifact added: image",
        "Run finished: success",
    ]  # fmt: skip
    artifacts = db.execute("select type, url, digest from ops.artifacts").fetchall()
    assert artifacts == [("image", "registry.example/app:abc123", "sha256:0011")]


def test_an_async_handler_does_the_same(hf: Holdfast, db: DB) -> None:
    @hf.ops("deploy")
    async def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        results = await asyncio.gather(ctx.ashell("echo", "one"), ctx.abash("echo two; echo url=x > $HOLDFAST_OUTPUT"))
        assert [result.stdout for result in results] == ["one\n", "two\n"]

    handle = queue(hf)
    work(hf)

    assert status(db, handle.id) == "success"
    assert metadata(db, handle)["url"] == "x"


def test_a_failed_execution_is_repeated_in_place_with_events_that_say_so(hf: Holdfast, db: DB) -> None:
    """O-82, O-83, O-88, C-39: the same run, claimed once."""
    at_once(db)
    executions: list[tuple[str, int]] = []

    @hf.ops("deploy")
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        executions.append((run.run_id, ctx.execution))
        ctx.bash(f"exit {3 - ctx.execution}", step="build")

    handle, _other = queue(hf), queue(hf, key="other")
    work(hf, concurrency=1)

    assert executions[:3] == [(handle.id, 1), (handle.id, 2), (handle.id, 3)]
    assert status(db, handle.id) == "success"
    assert metadata(db, handle)["retry_count"] == 2
    warnings = [message for level, message in events(db, handle.id) if level == "warn"]
    assert [message.partition(":")[0] for message in warnings] == ["Retry 1/3 in 0 seconds", "Retry 2/3 in 0 seconds"]
    assert messages(db, handle).count("Run claimed by worker") == 1


def test_after_three_executions_it_fails_with_the_document_s_words(hf: Holdfast, db: DB) -> None:
    """O-62, O-63, O-89."""
    at_once(db)

    @hf.ops("deploy")
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        ctx.bash("echo 'ERROR: Cannot find Dockerfile' >&2; echo tag=v1 >> $HOLDFAST_OUTPUT; exit 7", step="build")

    handle = queue(hf)
    work(hf)

    found = metadata(db, handle)
    assert status(db, handle.id) == "failed"
    assert {name: found[name] for name in ("error", "retry_count", "exit_code", "step", "stderr", "tag")} == {
        "error": "Max retries exceeded", "retry_count": 3, "exit_code": 7, "step": "build",
        "stderr": "ERROR: Cannot find Dockerfile\n", "tag": "v1",
    }  # fmt: skip
    with pytest.raises(RunFailed) as failure:
        handle.result()
    assert failure.value.run_id == handle.id
    assert "Max retries exceeded" in failure.value.what


def test_the_delays_between_executions_are_5_and_10_seconds_and_the_policy_is_a_row(hf: Holdfast, db: DB) -> None:
    """O-84, O-90: a wait ends early if the run has to stop."""

    @hf.ops("deploy")
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        raise ValueError("not today")

    handle = queue(hf)
    with working(hf, queues=("ops",)):
        until_message(db, handle, "Retry 1/3 in 5 seconds: ValueError: not today")
        handle.cancel("enough")
        until(lambda: status(db, handle.id) == "cancelled")

    assert db.execute("select holdfast.backoff('ops.in_place', 1), holdfast.backoff('ops.in_place', 2)").fetchone() == (
        timedelta(seconds=5), timedelta(seconds=10),
    )  # fmt: skip


def test_a_kind_may_have_its_own_policy(hf: Holdfast, db: DB) -> None:
    executions: list[int] = []

    @hf.ops("deploy", retry=RetryPolicy(limit=5, base=0, jitter=0))
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        executions.append(ctx.execution)
        raise Retry("busy", after=0)

    handle = queue(hf)
    work(hf)

    assert executions == [1, 2, 3, 4, 5]
    assert metadata(db, handle)["retry_count"] == 5


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (Fail("no such environment"), "no such environment"),
        (Fail({"message": "no", "code": 7}), "no"),
        (Fail(ProgramFailed("make ended", program_exit=2, step="make", stderr="oops")), "make ended"),
        (Rejected("the registry refused it"), "the registry refused it"),
        (Snooze(5), "an ops run cannot snooze: it runs to its end"),
    ],
    ids=["fail", "fail with fields", "fail with an error", "rejected", "snooze"],
)
def test_some_outcomes_end_the_run_at_once(hf: Holdfast, db: DB, raised: Exception, said: str) -> None:
    executions: list[int] = []

    @hf.ops("deploy")
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        executions.append(ctx.execution)
        raise raised

    handle = queue(hf)
    work(hf)

    assert executions == [1]
    assert status(db, handle.id) == "failed"
    assert (metadata(db, handle)["error"], metadata(db, handle)["retry_count"]) == (said, 0)


def test_a_long_wait_between_executions_does_not_make_the_run_stale(hf: Holdfast, db: DB, clock: Clock) -> None:
    """O-90: the worker renews the lease while it waits."""

    @hf.ops("deploy", retry=RetryPolicy(limit=3, base=600, jitter=0))
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        raise ValueError("later")

    handle = queue(hf)
    with working(hf, queues=("ops",), lease=seconds(0.6)):
        until_message(db, handle, "Retry 1/3")
        before = db.execute("select lease_until from holdfast.steps").fetchone()
        until(lambda: db.execute("select lease_until from holdfast.steps").fetchone() != before, "a renewal")
        assert db.execute("select ops.cancel_stale_runs()").fetchone() == ({"cancelled": 0},)
        handle.cancel()


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
    @hf.ops("deploy", timeout=0.3)
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        ctx.output(phase="build")
        ctx.bash("sleep 99")

    handle = queue(hf)
    work(hf)

    assert status(db, handle.id) == "failed"
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

    assert db.execute("select count(*) from holdfast.journal where event in ('released', 'cancelled')").fetchone() == (
        0,
    )


def test_a_secret_does_not_reach_the_database(hf: Holdfast, db: DB) -> None:
    """R37 for programs: an argument, an environment variable, output that reads split, metadata and an artifact."""
    canary = "canary-secret-7f3a"

    @hf.ops("deploy")
    def deploy(ctx: OpsCtx, run: OpsRun) -> dict[str, object]:
        ctx.mask(canary)
        ctx.shell("echo", canary)
        ctx.bash("printf canary-; sleep 0.4; echo secret-7f3a; echo key=$KEY >> $HOLDFAST_OUTPUT", env={"KEY": canary})
        ctx.artifact("image", f"https://user:{canary}@registry.example/app", note=canary)
        ctx.note(f"the key is {canary}", key=canary)
        ctx.bash(f"echo {canary} >&2; exit 3", check=False)
        return {"answer": canary}

    handle = queue(hf)
    work(hf)

    assert status(db, handle.id) == "success"
    assert metadata(db, handle)["key"] == "***"
    tables = db.execute(
        "select format('%I.%I', schemaname, tablename) from pg_tables where schemaname in ('holdfast', 'ops')"
    ).fetchall()
    for (table,) in tables:
        assert canary not in str(db.execute(f"select t::text from {table} t").fetchall()), table


def test_all_output_may_become_an_artifact(
    hf: Holdfast, db: DB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_ARTIFACTS", str(tmp_path))

    @hf.ops("deploy")
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        ctx.shell("seq", "3", keep_log="count.log")

    handle = queue(hf)
    work(hf)

    ((url, size, digest),) = db.execute("select url, size_bytes, digest from ops.artifacts").fetchall()
    assert url == (tmp_path / handle.id / "1-count.log").as_uri()
    assert size == 6
    assert digest.startswith("sha256:")
    assert (tmp_path / handle.id / "1-count.log").read_text() == "1\n2\n3\n"


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


def test_a_handler_has_to_take_a_context_and_a_run() -> None:
    hf = Holdfast("postgresql://nowhere/none")
    functions: list[Any] = [lambda ctx: ctx, lambda run: run, lambda ctx, run: (ctx, run)]
    for function in functions:
        with pytest.raises(BadDefinition) as refused:
            hf.ops("deploy")(function)
        assert refused.value.where == "deploy"


def test_odd_text_does_not_keep_a_run_from_its_end(hf: Holdfast, db: DB) -> None:
    at_once(db, executions=1)

    @hf.ops("deploy")
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        ctx.shell("echo", "\udcff")  # a byte that is not UTF-8, as the arguments of a process may have it
        for odd in ({"at": datetime.now(UTC)}, {"text": "a\0b"}, {"much": "x" * 300_000}):
            with pytest.raises(BadInput) as refused:
                ctx.output(**odd)
            assert refused.value.where == "values"
        raise ValueError("a\0b \udcff")

    handle = queue(hf)
    work(hf)

    assert status(db, handle.id) == "failed"
    assert metadata(db, handle)["last_error"] == "ValueError: a\ufffdb ?"


def test_bad_arguments_of_a_shell_fail_the_execution(hf: Holdfast, db: DB) -> None:
    at_once(db, executions=1)
    refused: list[str | None] = []

    @hf.ops("deploy")
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        odd: Any = [ctx.shell, lambda: ctx.shell("echo", 7), lambda: ctx.shell("echo", "a\0b")]
        odd += [lambda: ctx.shell("true", cwd="/nowhere"), lambda: ctx.shell("true", keep_log="../x")]
        for call in odd:
            with pytest.raises(BadInput) as error:
                call()
            refused.append(error.value.where)

    queue(hf)
    work(hf)

    assert refused == ["argv", "argv", "argv", "cwd", "keep_log"]
    assert violations(db) == []
