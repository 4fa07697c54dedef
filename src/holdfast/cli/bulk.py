"""Bulk actions: on each of some ids, or on all dead steps of a scope, which is fixed and confirmed first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import typer

from holdfast.cli.connection import DB, opened
from holdfast.cli.render import data, data_json, say, show_error
from holdfast.cli.table import data_table
from holdfast.errors import BadInput, HoldfastError, RefusedError
from holdfast.kernel import db
from holdfast.kernel.call import Call
from holdfast.kernel.query import query
from holdfast.reads import dead_letter
from holdfast.reads.dead_letter import Scope, Tally, Verb
from holdfast.reads.run_detail import parse_id

TYPE_THE_COUNT_ABOVE = 100
DONE = {"retry": "retried", "resolve": "resolved"}


def act_on_each(ids: Sequence[str], action: Callable[[DB, str], Call[str]], *, as_json: bool) -> None:
    """Act on one id after the other, even if one is refused; exit with the code of the first refusal."""
    for subject in ids:
        parse_id(subject)  # before anything is moved
    done: list[dict[str, str]] = []
    refusals: list[HoldfastError] = []
    with opened() as connection:
        for subject in ids:
            try:
                (state,) = db.run(connection, action(connection, subject))
                done.append({"id": subject, "state": state})
            except RefusedError as error:
                refusals.append(error)
    if as_json:
        data_json({"done": done})
    else:
        data_table(("id", "state"), [(row["id"], row["state"]) for row in done])
    for refusal in refusals:
        show_error(refusal, as_json=as_json)
    if refusals:
        raise typer.Exit(refusals[0].exit_code)


def deal_with_all(connection: DB, verb: Verb, scope: Scope, *, reason: str | None, yes: bool, as_json: bool) -> None:
    """Retry or resolve all dead steps in scope, after a confirmation."""
    ids = query(connection, dead_letter.snapshot(scope))
    say(f"{verb} {len(ids):,} dead steps: {scope}")
    if ids and not yes:
        confirm(verb, len(ids))
    tally = Tally()
    for seen, tally in dead_letter.deal_with_all(connection, verb, ids, reason):  # noqa: B007 - the last one counts
        say(f"{seen:,} of {len(ids):,}")
    _report(verb, len(ids), tally, as_json=as_json)


def confirm(verb: Verb, count: int) -> None:
    """Ask at the terminal; without one, require --yes."""
    if not sys.stdin.isatty():
        raise BadInput(
            f"{count:,} dead steps would be {DONE[verb]}, and there is no terminal to ask", next="add --yes to confirm"
        )
    if count > TYPE_THE_COUNT_ABOVE:
        if typer.prompt(f"type {count} to {verb} them all", err=True) != str(count):
            raise BadInput(f"the count was not confirmed, so nothing was {DONE[verb]}", next=f"type {count} to confirm")
        return
    if not typer.confirm(f"{verb} {count} steps?", err=True):
        raise BadInput(f"nothing was {DONE[verb]}", next="narrow it with --kind, --queue, --tenant or --since")


def _report(verb: Verb, count: int, tally: Tally, *, as_json: bool) -> None:
    refused = len(tally.refusals)
    if as_json:
        data_json({"found": count, DONE[verb]: tally.done, "left_alone": tally.left_alone, "refused": refused})
    else:
        data(f"{DONE[verb]} {tally.done}, left alone {tally.left_alone} (no longer dead), refused {refused}")
    if tally.refusals:
        show_error(tally.refusals[0], as_json=as_json)
        raise typer.Exit(tally.refusals[0].exit_code)
