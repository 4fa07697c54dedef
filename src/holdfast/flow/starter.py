"""Starts a run of a flow by its name, with the definition in the database or with an app's own types."""

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
    return calls.start_task(order.name, dict(order.input), key=order.key, tenant=order.tenant, key_for=order.key_for)


def by_app(app: Any, order: Order) -> str:
    """Start a run of the latest version, with its context checked by its type."""
    _check(order)
    *_, flow = (each for each in app.flow if each.title.name == order.name)
    options = flow.options(key=order.key, tenant=order.tenant, key_for=order.key_for)
    return str(options.start(dict(order.input)).id)


def _check(order: Order) -> None:
    """Raise for options that only tasks have: the steps of a flow have their own queues and priorities."""
    for option, value in (("queue", order.queue), ("delay", order.due_at), ("priority", order.priority)):
        if value is not None:
            raise BadInput(
                f"a start of the flow {order.name} has no option {option}",
                where=option,
                next=f"leave out --{option}; its steps have their own",
            )
