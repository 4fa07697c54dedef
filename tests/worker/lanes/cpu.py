"""Handlers that run in a process of their own: it finds them here by name."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Any

from pydantic import SecretStr

from holdfast import Continue, Ctx, Env, Fail, Retry, RetryPolicy, Snooze
from worker.running import until


def busy(mark: str) -> None:
    """Burn until stopped, having said that it began."""
    Path(mark).write_text("began")
    while True:
        sum(range(1000))


def until_there(mark: str) -> None:
    """Run until the file is there."""
    until(Path(mark).exists, "the file")


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


def sign(mark: str) -> int:
    """Add a line to a file."""
    with Path(mark).open("a") as file:
        return file.write("ran\n")


def pid() -> int:
    return os.getpid()


def die(ctx: Ctx) -> int:
    """Die in the first attempt."""
    if ctx.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return ctx.attempt


def say(ctx: Ctx, what: str) -> Any:
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


def fork(number: int) -> int:
    """Forget to end the fork: it returns as its parent does."""
    os.fork()
    return number


def answer_for_another(ctx: Ctx) -> str:
    """In the first attempt, send an answer as an attempt before it would have sent it late."""
    if ctx.attempt == 1:
        answer = {"of": [ctx.step_id, ctx.lease_id - 1], "outcome": {"outcome": "done", "result": "of another"}}
        (pipe,) = [each for each in gc.get_objects() if isinstance(each, Connection)]
        pipe.send_bytes(json.dumps(answer | {"settled": None}).encode())
    return "its own"


def close_all_files(ctx: Ctx, mark: str) -> int:
    """In the first attempt, close what the process has, and go on."""
    if ctx.attempt == 1:
        Path(mark).write_text(str(os.getpid()))
        os.closerange(3, 1024)
        threading.Event().wait()
    return ctx.attempt


def leave_a_fork_behind(ctx: Ctx, mark: str) -> int:
    """In the first attempt, die, and leave a fork that has the process's files."""
    if ctx.attempt == 1:
        Path(mark).write_text(str(libc_fork() or os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return ctx.attempt


def libc_fork() -> int:
    """Fork as a C library does, past Python; the fork only waits."""
    pid = int(ctypes.CDLL(None).fork())
    if pid == 0:
        signal.pause()
    return pid


POLICY = RetryPolicy(limit=3)


def key_length(factor: int, key: Annotated[SecretStr, Env("SHOP_KEY")] = Env.supplied) -> int:
    return factor * len(key.get_secret_value())
