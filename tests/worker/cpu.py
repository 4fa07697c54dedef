"""Handlers that run in a process of their own: it finds them here by name."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from holdfast import Continue, Ctx, Fail, Retry, RetryPolicy, Snooze


def busy(mark: str) -> None:
    """Burn until stopped, having said that it began."""
    Path(mark).write_text("began")
    while True:
        sum(range(1000))


def swallow(mark: str) -> None:
    """Burn, whatever is raised in it."""
    Path(mark).write_text("began")
    while True:
        try:
            time.sleep(0.01)
        except Exception:  # noqa: BLE001
            continue


def quick(number: int) -> int:
    return number


def refuse() -> None:
    raise Fail("never")


def pid() -> int:
    return os.getpid()


def die(ctx: Ctx) -> int:
    """Die in the first attempt."""
    if ctx.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return ctx.attempt


def say(what: str, ctx: Ctx) -> Any:
    """Come to the outcome that is asked for."""
    if ctx.attempt > 1 or ctx.cursor:
        return {"attempt": ctx.attempt, "cursor": ctx.cursor, "key": ctx.idempotency_key}
    outcomes = {"retry": Retry("x", after=0), "fail": Fail("x"), "snooze": Snooze(0), "continue": Continue({"p": 2})}
    if what in outcomes:
        raise outcomes[what]
    if what == "odd":
        raise Continue({1, 2})
    raise ValueError(what)


def effect(ctx: Ctx) -> str:
    """Write in the transaction of the step."""
    with ctx.transaction() as tx:
        tx.execute("insert into effects values ('cpu')")
    ctx.note("written")
    return "kept"


POLICY = RetryPolicy(limit=3)
