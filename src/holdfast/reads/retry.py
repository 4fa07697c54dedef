"""Retries steps and runs, with the kernel's `retry` or that of the face whose machine they follow."""

from __future__ import annotations

from typing import Any, LiteralString
from uuid import UUID

from psycopg import Connection

from holdfast import faces
from holdfast.kernel import calls
from holdfast.kernel.call import Call
from holdfast.kernel.query import Query, query

MACHINE_OF_STEP: LiteralString = "select s.machine from holdfast.steps s where s.id = %(id)s"
MACHINE_OF_RUN: LiteralString = "select r.machine from holdfast.runs r where r.id = %(id)s"


def retry_call(connection: Connection[Any], id: int | UUID, reason: str | None) -> Call[str]:  # noqa: A002
    """Return the call that retries a step or a run."""
    retries = faces.retries()
    if retries:
        text = MACHINE_OF_STEP if isinstance(id, int) else MACHINE_OF_RUN
        for machine in query(connection, Query(text, str, {"id": id})):
            call: Call[str] = retries.get(machine, calls.retry)(str(id), reason)
            return call
    return calls.retry(str(id), reason)
