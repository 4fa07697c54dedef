"""Starts a run of a flow from the command line, with its definition in the database or with an app's types."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import typer

from holdfast.cli import watch
from holdfast.cli.app_loader import load_app
from holdfast.cli.connection import DB
from holdfast.cli.render import data, data_json, say
from holdfast.errors import BadInput
from holdfast.flow import calls
from holdfast.kernel import db


@dataclass(frozen=True, slots=True)
class Order:
    """A request to start a run."""

    name: str
    context: Any
    namespace: str
    version: str | None
    key: str | None
    tenant: str
    skip: tuple[str, ...]
    about: dict[str, Any]


def read_context(fields: Sequence[str], whole: str | None) -> Any:
    """Parse a context: the whole as JSON, or its fields as key=value."""
    if whole is not None and fields:
        raise BadInput("both --context and key=value are given", where="--context", next="pass only one of them")
    if whole is not None:
        return read_json(sys.stdin.read() if whole == "-" else whole, "--context")
    values: dict[str, Any] = {}
    for field in fields:
        name, is_there, text = field.partition("=")
        if not is_there or not name:
            raise BadInput(
                f"a field of the context must be key=value, got {field!r}",
                where=field,
                next="write key=value, as in order_id=123",
            )
        if name in values:
            raise BadInput(f"{name} is given twice", where=name, next="pass it once")
        values[name] = value_of(text)
    return values


def read_json(text: str, what: str) -> Any:
    """Parse JSON from the command line."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadInput(
            f"{what} is not JSON: {error}", where=what, next="quote it for the shell, as in '{\"order_id\": 123}'"
        ) from None


def value_of(text: str) -> Any:
    """Parse a value as JSON if possible, else take it as text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def about(tags: Sequence[str] | None, initiator: str | None, reason: str | None) -> dict[str, Any]:
    """Return what is stored with a run for people."""
    options = {"tags": list(tags or ()), "initiator": initiator, "reason": reason}
    return {name: value for name, value in options.items() if value}


def by_definition(connection: DB, order: Order) -> UUID:
    """Start the flow's latest registered version."""
    call = calls.start_task(
        order.name,
        order.context,
        namespace=order.namespace,
        version=order.version,
        key=order.key,
        tenant=order.tenant,
        skip=order.skip,
        about=order.about,
    )
    (task_id,) = db.run(connection, call)
    return task_id


def by_app(named: str, order: Order) -> UUID:
    """Start it through an app, whose types check the context."""
    hf = load_app(named)
    try:
        flow = hf.flows.find(order.name, namespace=order.namespace, version=order.version)
        options = flow.options(key=order.key, tenant=order.tenant, skip=order.skip, **order.about)
        return options.start(order.context).id
    finally:
        hf.close()


def report(connection: DB, task_id: UUID, *, wait: bool, timeout: timedelta | None, as_json: bool) -> None:
    """Print the id at once; with --wait, show the progress and exit with the code of its outcome."""
    if not as_json:
        data(str(task_id))
        sys.stdout.flush()
    if not wait:
        if as_json:
            data_json({"task": task_id})
        say(f"started; to see it: holdfast flow show {task_id}")
        return
    last = watch.wait_beside(connection, task_id, timeout)
    if as_json:
        data_json({"task": task_id, "state": last.state, "outcome": last.outcome})
    if last.outcome != "succeeded":
        say(f"what happened, and what to do: holdfast flow show {task_id}")
        raise typer.Exit(watch.FAILED)
