"""Mistakes with ops runs, each with what the tools say on its line."""

from __future__ import annotations

from holdfast import Ctx, Holdfast
from holdfast.ops import OpsCtx, OpsRun

hf = Holdfast()


@hf.ops("deploy")  # mypy: arg-type, pyright: reportArgumentType
def swapped(run: OpsRun, ctx: OpsCtx) -> None:
    print(run, ctx)


@hf.ops("deploy", time=1200)  # mypy: call-arg, pyright: reportCallIssue
def misspelt(ctx: OpsCtx, run: OpsRun) -> None:
    ctx.shell("make", env={"SHA": 7})  # mypy: dict-item, pyright: reportArgumentType
    ctx.shell(["make"])  # mypy: arg-type, pyright: reportArgumentType
    ctx.shell("make", environment={})  # mypy: call-arg, pyright: reportCallIssue
    print(run.sha)  # mypy: attr-defined, pyright: reportAttributeAccessIssue


def plain(ctx: Ctx) -> None:
    ctx.shell("make")  # mypy: attr-defined, pyright: reportAttributeAccessIssue


def queue() -> None:
    hf.ops.queue("shop")  # mypy: call-arg, pyright: reportCallIssue
    hf.ops.queue("shop", env="staging", sha="abc")  # mypy: call-arg, pyright: reportCallIssue
    number: int = hf.ops.queue("shop", env="staging").id  # mypy: assignment, pyright: reportAssignmentType
    hf.ops.schedule("nightly", "backup", crom="0 2 * * *")  # mypy: call-arg, pyright: reportCallIssue
    print(number)
