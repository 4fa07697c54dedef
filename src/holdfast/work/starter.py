"""Starts a task by its name, with the definition in the database or with an app's own types."""

from __future__ import annotations

from typing import Any, LiteralString

from psycopg import Connection

from holdfast import faces
from holdfast.kernel import calls
from holdfast.kernel.call import Call
from holdfast.kernel.query import Query, query
from holdfast.reads.startable import Order
from holdfast.work.define import Task

# The steps of other faces are kinds too; a face's name comes first in the policy that its handlers define. A kind of
# ops runs has no policy, because an execution is repeated in place: there the face's name comes first in the kind.
NAMES: LiteralString = """
select k.kind from holdfast.kinds k
 where split_part(coalesce(k.policy, k.kind), ':', 1) <> all (%(others)s)
 order by k.kind
"""


def names(connection: Connection[Any]) -> list[str]:
    """List the tasks that workers have defined."""
    others = [name for name in faces.names() if name != "work"]
    return query(connection, Query(NAMES, str, {"others": others}))


def names_of(app: Any) -> list[str]:
    """List the tasks of an app."""
    return [task.name for task in app.work]


def call(order: Order) -> Call[int]:
    """Return the call that starts it, by default in its kind's queue."""
    return calls.start_task(
        order.name,
        dict(order.input),
        queue=order.queue,
        key=order.key,
        due_at=order.due_at,
        priority=order.priority or 0,
        tenant=order.tenant,
        key_for=order.key_for,
    )


def by_app(app: Any, order: Order) -> str:
    """Start it, with its arguments checked by its function's types."""
    task: Task[..., Any] = next(task for task in app.work if task.name == order.name)
    arguments = task.handler.signature.read_given(order.input)
    options = task.options(
        key=order.key,
        queue=order.queue,
        due_at=order.due_at,
        priority=order.priority or 0,
        tenant=order.tenant,
        key_for=order.key_for,
    )
    return str(options.start(**arguments).id)
