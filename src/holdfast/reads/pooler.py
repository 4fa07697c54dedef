"""Tests, with two connections, whether a pooler in between breaks hints or prepared statements."""

from __future__ import annotations

from contextlib import ExitStack

import psycopg

from holdfast.connections.deadline import connect, options
from holdfast.kernel import hints as kernel_hints
from holdfast.reads.schema_checks import Check

CHANNEL = "holdfast_doctor"
HINT_WAIT = 2.0  # seconds
BROKEN = (psycopg.errors.DuplicatePreparedStatement, psycopg.errors.InvalidSqlStatementName)


def hints(address: str) -> Check:
    """Check that one connection receives another's notifications."""
    with connect(address) as listening, connect(address) as other:
        listening.execute(kernel_hints.listen(CHANNEL), prepare=False)
        other.execute(kernel_hints.notify(CHANNEL), prepare=False)
        heard = list(listening.notifies(timeout=HINT_WAIT, stop_after=1))
    if heard:
        return Check("hints", "ok", "a hint sent on one connection arrived on another")
    return Check(
        "hints",
        "warn",
        "hints do not arrive through this address, as with a pooler in transaction mode: tasks start only when polled",
        "give workers the server's direct address, or set HOLDFAST_LISTEN=false and a short HOLDFAST_POLL_MAX",
    )


def statements(address: str, *, prepares: bool) -> Check:
    """Check that a connection keeps its own prepared statements, and no others."""
    with ExitStack() as stack:
        both = [stack.enter_context(psycopg.connect(address, **options() | {"prepare_threshold": 0})) for _ in range(2)]
        try:
            for connection in both * 2:
                connection.execute("select %s::int", [1])
        except BROKEN as error:
            return judge_statements(str(error).splitlines()[0], prepares=prepares)
    return judge_statements(None, prepares=prepares)


def judge_statements(broken: str | None, *, prepares: bool) -> Check:
    """Judge by the error, if any, and by whether we prepare statements at all."""
    if not prepares:
        needs = "as this address requires" if broken else "as HOLDFAST_PREPARE_STATEMENTS says"
        return Check("statements", "ok", f"no statement is prepared, {needs}")
    if broken is None:
        return Check("statements", "ok", "prepared statements are kept")
    return Check(
        "statements",
        "fail",
        f"prepared statements break, as with a pooler in transaction mode: {broken}",
        "set HOLDFAST_PREPARE_STATEMENTS=false for workers and for apps that start tasks",
    )
