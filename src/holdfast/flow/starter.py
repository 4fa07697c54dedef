"""Starts a run of a flow by the flow's name: by what workers have defined in the database, or by an app's own types."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from psycopg import Connection

from holdfast.errors import BadInput
from holdfast.flow import calls, run_list
from holdfast.kernel.call import Call
from holdfast.kernel.query import query
from holdfast.reads.startable import Order


def names(connection: Connection[Any]) -> list[str]:
    """List the flows that workers have defined."""
    return query(connection, run_list.names())


def names_of(app: Any) -> list[str]:
    """List the flows of an app."""
    return [flow.title.name for flow in app.flow]


def call(order: Order) -> Call[UUID]:
    """Return the call that starts a run of its latest version."""
    _check(order)
    return calls.start_task(order.name, dict(order.input), key=order.key, tenant=order.tenant)


def by_app(app: Any, order: Order) -> str:
    """Start a run of the version that was defined last, by the type of its context."""
    _check(order)
    *_, flow = (each for each in app.flow if each.title.name == order.name)
    return str(flow.options(key=order.key, tenant=order.tenant).start(dict(order.input)).id)


def _check(order: Order) -> None:
    """Refuse what only a task has: the steps of a flow have their own queues and priorities."""
    for option, value in (("queue", order.queue), ("delay", order.due_at), ("priority", order.priority)):
        if value is not None:
            raise BadInput(
                f"{order.name} is a flow, and its start takes no {option}",
                where=option,
                next=f"leave out --{option}; its steps have their own",
            )
