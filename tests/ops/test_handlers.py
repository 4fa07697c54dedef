"""Handlers of ops runs in Python: they run programs, register artifacts, and retry in place under one lease."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast import Fail, Holdfast, RetryPolicy, RunFailed
from holdfast.errors import BadDefinition, BadInput, ProgramFailed, Rejected
from holdfast.masking import Masker
from holdfast.models import Retry, Snooze
from holdfast.ops import OpsCtx, OpsRun
from holdfast.testing import Clock
from kernel.steps import violations
from ops.handlers import DB, at_once, messages, metadata, queue, until_message, work
from ops.runs import events, run, status
from worker.running import seconds, until, working

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
    """O-90: the worker renews the lease while it waits; the database's clock moves on when it has."""

    @hf.ops("deploy", retry=RetryPolicy(limit=3, base=600, jitter=0))
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        raise ValueError("later")

    lease = seconds(2)
    clock.freeze()
    handle = queue(hf)
    with working(hf, queues=("ops",), lease=lease):
        until_message(db, handle, "Retry 1/3")
        for _ in range(2):
            clock.advance(seconds(1.9))
            whole = clock.now() + lease
            until(lambda: db.execute("select lease_until from holdfast.steps").fetchone() == (whole,), "a renewal")  # noqa: B023
        assert db.execute("select ops.cancel_stale_runs()").fetchone() == ({"cancelled": 0},)
        handle.cancel()


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


def test_a_run_that_expired_in_the_queue_is_cancelled_and_not_executed(hf: Holdfast, db: DB, clock: Clock) -> None:
    """C-41: the worker's claim knows no time in the queue; here the monitor has not come yet"""
    executed: list[str] = []

    @hf.ops("deploy")
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        executed.append(run.run_id)

    clock.freeze()
    late, in_time = queue(hf, ttl="30s"), queue(hf, ttl="2m", key="other")
    clock.advance(seconds(31))
    work(hf)

    assert executed == [in_time.id]
    assert (status(db, late.id), status(db, in_time.id)) == ("cancelled", "success")
    assert {name: metadata(db, late)[name] for name in ("cancelled_by", "reason")} == {
        "cancelled_by": "system", "reason": "Run expired in the queue"}  # fmt: skip
    assert violations(db) == []


def test_errors_and_notes_are_masked_by_name_and_a_digest_by_value(
    hf: Holdfast, db: DB, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-15: in events and in metadata, as errors of tasks are"""
    at_once(db)
    masked = Masker(["digest-canary"])
    monkeypatch.setattr("holdfast.masking.known", masked)
    error = "GET https://ann:hunter2pw@host/a failed, {'Authorization': 'Bearer abc.def.ghi'}"

    @hf.ops("deploy")
    def deploy(ctx: OpsCtx, run: OpsRun) -> None:
        ctx.artifact("image", "x", digest="sha256:digest-canary")
        raise ValueError(error)

    @hf.ops("failing")
    def failing(ctx: OpsCtx, run: OpsRun) -> None:
        raise Fail(error)

    runs = [queue(hf), queue(hf, kind="failing", key="other")]
    work(hf)

    written = str([(events(db, each.id), metadata(db, each)) for each in runs])
    written += str(db.execute("select error::text from holdfast.steps").fetchall())
    assert [word for word in ("hunter2pw", "abc.def") if word in written] == []
    assert "https://ann:***@host" in metadata(db, runs[0])["last_error"]
    assert "https://ann:***@host" in metadata(db, runs[1])["error"]
    assert db.execute("select digest from ops.artifacts").fetchall() == [("sha256:***",)]
