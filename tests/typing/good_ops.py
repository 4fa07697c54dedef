"""Ops handlers and runs, as a typed team writes them: neither tool finds anything."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, assert_type

from pydantic import SecretStr

from holdfast import Env, Handle, Holdfast, RetryPolicy
from holdfast.ops import OpsCtx, OpsHandle, OpsRun, ShellResult

hf = Holdfast()


@hf.ops("deploy", timeout=1200)
def deploy(ctx: OpsCtx, run: OpsRun) -> dict[str, object]:
    built = ctx.shell("make", "image", env={"SHA": run.git_sha}, cwd=Path("/srv"), timeout="10m", step="build")
    assert_type(built, ShellResult)
    assert_type(ctx.artifact("image", f"registry.example/app:{run.git_sha}", digest="sha256:00"), str)
    ctx.artifact("logs", Path("build.log"), size=12, step="build")
    ctx.progress(1, 2)
    ctx.note("half done", level="warn", step=built.step)
    return {"exit_code": built.exit_code, "author": run.metadata["author"]}


@hf.ops("backup", queue="backups", retry=RetryPolicy(limit=5), lease="10m")
async def backup(ctx: OpsCtx, run: OpsRun, key: Annotated[SecretStr, Env("BACKUP_KEY")] = Env.supplied) -> None:
    done = await ctx.ashell("pg_dump", check=False, grace=timedelta(seconds=30), keep_log="dump.log")
    await ctx.abash(f"echo {done.exit_code} {run.env}", env={"KEY": key.get_secret_value()})


assert_type(deploy.__name__, str)


def queue() -> None:
    handle = hf.ops.queue("shop", env="staging", git_sha="abc", key="deploy-abc", priority=9, ttl="1h")
    assert_type(handle, OpsHandle)
    assert_type(handle.id, str)
    assert_type(handle.result(timeout="20m"), dict[str, Any])
    assert_type(handle.retry("the registry is back"), Handle[dict[str, Any]])
    assert_type(handle.rollback(), OpsHandle)
    handle.approve("reviewed", actor="bob")
    hf.ops.project("shop", repository="acme/shop")
    assert_type(hf.ops.environment("shop", "production", branch="release/*", approval=True, concurrency=1), str)
    hf.ops.schedule("nightly", "backup", cron="0 2 * * *", overlap="skip", metadata={"why": "nightly"})


async def aqueue() -> None:
    handle = await hf.ops.aqueue("shop", env="staging", metadata={"author": "ann"})
    assert_type(await handle, dict[str, Any])
    await handle.acancel("wrong branch")
