"""`holdfast start`: starts a task or a flow by its name, and waits for it with --wait."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from typing import Annotated, Any
from uuid import UUID

import typer

from holdfast.cli import watch
from holdfast.cli.app_loader import load_app
from holdfast.cli.connection import DB, opened
from holdfast.cli.options import matching_names, output_options, parse_duration
from holdfast.cli.render import AsJson, data, data_json, say
from holdfast.errors import BadInput
from holdfast.kernel import db
from holdfast.kernel.query import JsonText
from holdfast.reads import run_detail, startable
from holdfast.reads.run_detail import parse_id
from holdfast.reads.startable import Order

NEXT_INPUT = "quote it for the shell, as in '{\"user_id\": 42}'"


def names(incomplete: str) -> list[str]:
    """Complete the name of a task or a flow."""
    return matching_names(
        lambda connection: [each for some in startable.starters().values() for each in some.names(connection)],
        incomplete,
    )


@output_options
def start(
    name: Annotated[str, typer.Argument(help="The name of a task or a flow.", autocompletion=names)],
    *,
    given: Annotated[
        str,
        typer.Option("--input", "-i", metavar="JSON", help="Its arguments as a JSON object; - reads it from stdin."),
    ] = "{}",
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it ends; the exit code is its outcome.")] = False,
    timeout: Annotated[
        timedelta | None,
        typer.Option(
            "--timeout", parser=parse_duration, metavar="DURATION", help="Stop waiting after 30s, 10m, …: exit code 8."
        ),
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="Reusing a key with the same input returns the existing task or run.")
    ] = None,
    key_for: Annotated[
        timedelta | None,
        typer.Option("--key-for", parser=parse_duration, metavar="DURATION", help="Forget the key after 1d, …"),
    ] = None,
    queue: Annotated[str | None, typer.Option("--queue", help="A queue other than the task's own.")] = None,
    delay: Annotated[
        timedelta | None,
        typer.Option("--delay", parser=parse_duration, metavar="DURATION", help="Run it after 30s, 10m, …"),
    ] = None,
    priority: Annotated[int | None, typer.Option("--priority", min=0, max=9, help="0 to 9; higher runs first.")] = None,
    tenant: Annotated[str, typer.Option("--tenant", help="For this tenant.")] = "default",
    app: Annotated[
        str | None,
        typer.Option("--app", "-a", envvar="HOLDFAST_APP", help="Check the input with this app's types: module:name."),
    ] = None,
    face: Annotated[str | None, typer.Option("--face", help="work or flow, if both have the name.")] = None,
    as_json: AsJson = False,
) -> None:
    """Start a task or a flow by its name.

    Prints the id. Without --app, the name must be one that a worker has defined in the database. With --wait the exit
    code is 0 if it succeeded, 1 if it failed or was cancelled, 3 if only some steps failed and 8 if the time ran out.

    Examples:

        holdfast start welcome --input '{"user_id": 42}'

        holdfast start welcome --input '{"user_id": 42}' --delay 10m --key welcome:42

        holdfast start order --input '{"order_id": 7}' --wait --timeout 5m
    """
    arguments = read_input(given)
    with opened() as connection:
        order = Order(name, arguments, key, queue, startable.moment_in(connection, delay), priority, tenant, key_for)
        id_ = _by_app(app, order, face) if app else _by_definition(connection, order, face)
        report(connection, id_, wait=wait or timeout is not None, timeout=timeout, as_json=as_json)


def read_input(text: str, option: str = "--input") -> dict[str, Any]:
    """Parse the arguments: a JSON object."""
    if text == "-":
        text = sys.stdin.read()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{option} is not JSON: {error}", where=option, next=NEXT_INPUT) from None
    if not isinstance(value, dict):
        raise BadInput(
            f"{option} must be a JSON object with the arguments by name, got {_sort(value)}",
            where=option,
            next=NEXT_INPUT,
        )
    return value


def report(connection: DB, id_: str, *, wait: bool, timeout: timedelta | None, as_json: bool) -> None:
    """Print the id at once; with --wait, show the progress and exit with the code of its outcome."""
    if not as_json:
        data(id_)
        sys.stdout.flush()
    if not wait:
        if as_json:
            data_json({"id": id_})
        say(f"started; to follow it: holdfast runs watch {id_}")
        return
    subject = parse_id(id_)
    last = watch.wait_beside(connection, subject, timeout)
    result = _result(connection, subject)
    if as_json:
        data_json({"id": id_, "state": last.state, "outcome": last.outcome, "result": result})
    elif result is not None:
        say(f"result: {result.text}")
    if last.outcome != "succeeded":
        say(f"what happened, and what to do: holdfast runs show {id_}")
        raise typer.Exit(watch.exit_code(last))


def _by_definition(connection: DB, order: Order, face: str | None) -> str:
    by_face = startable.starters(face)
    found = startable.find(order.name, {each: starter.names(connection) for each, starter in by_face.items()})
    (id_,) = db.run(connection, by_face[found].call(order))
    return str(id_)


def _by_app(named: str, order: Order, face: str | None) -> str:
    hf = load_app(named)
    by_face = startable.starters(face)
    found = startable.find(order.name, {each: starter.names_of(hf) for each, starter in by_face.items()})
    try:
        return by_face[found].by_app(hf, order)
    finally:
        hf.close()


def _result(connection: DB, id_: int | UUID) -> JsonText | None:
    """Read the result of a task; a run has none of its own."""
    result = run_detail.step(connection, id_).result if isinstance(id_, int) else None
    return None if result is None else JsonText(result)


def _sort(value: object) -> str:
    return {list: "a list", str: "a text", bool: "true or false", type(None): "null"}.get(type(value), "a number")
