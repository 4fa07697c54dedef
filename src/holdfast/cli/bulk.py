"""Dealing with many dead steps at once: what is meant is fixed and said first, then done in chunks, safe to repeat."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import psycopg
import typer

from holdfast.cli.common import DB
from holdfast.cli.render import data, data_json, say, show_error
from holdfast.errors import BadInput, RefusedError
from holdfast.kernel.query import ask
from holdfast.reads import dead_letter
from holdfast.reads.dead_letter import Scope, Verb

CHUNK = 100
TYPE_THE_COUNT_ABOVE = 100
DONE = {"retry": "retried", "resolve": "resolved"}


@dataclass
class Tally:
    """What became of the snapshot so far."""

    done: int = 0
    left_alone: int = 0  # no longer dead: somebody else dealt with it
    refusals: list[RefusedError] = field(default_factory=list)


def deal_with_all(connection: DB, verb: Verb, scope: Scope, *, reason: str | None, yes: bool, as_json: bool) -> None:
    """Retry or resolve all that are dead now and in scope, once that is confirmed."""
    ids = ask(connection, dead_letter.snapshot(scope))
    say(f"{verb} {len(ids):,} dead steps: {scope}")
    if ids and not yes:
        confirm(verb, len(ids))
    tally = Tally()
    for begin in range(0, len(ids), CHUNK):
        _deal_with_chunk(connection, verb, ids[begin : begin + CHUNK], reason, tally)
        say(f"{min(begin + CHUNK, len(ids)):,} of {len(ids):,}")
    _report(verb, len(ids), tally, as_json=as_json)


def confirm(verb: Verb, count: int) -> None:
    """Ask whoever sits at the terminal; without one, --yes is needed."""
    if not sys.stdin.isatty():
        raise BadInput(f"{count:,} dead steps would be {DONE[verb]}, and nobody is here to ask; add --yes to do it")
    if count > TYPE_THE_COUNT_ABOVE:
        if typer.prompt(f"type {count} to {verb} them all", err=True) != str(count):
            raise BadInput(f"that is not the count; nothing was {DONE[verb]}")
        return
    if not typer.confirm(f"{verb} {count} steps?", err=True):
        raise BadInput(f"nothing was {DONE[verb]}; narrow it with --kind, --queue, --tenant or --since")


def _deal_with_chunk(connection: DB, verb: Verb, ids: list[int], reason: str | None, tally: Tally) -> None:
    try:
        moved = dead_letter.deal_with(connection, verb, ids, reason)
    except (RefusedError, psycopg.errors.DeadlockDetected) as error:
        if len(ids) > 1:  # one of them spoiled it for all: each by itself
            for one in ids:
                _deal_with_chunk(connection, verb, [one], reason, tally)
            return
        if not isinstance(error, RefusedError):
            raise
        tally.refusals.append(error)
        return
    tally.done += len(moved)
    tally.left_alone += len(ids) - len(moved)


def _report(verb: Verb, count: int, tally: Tally, *, as_json: bool) -> None:
    refused = len(tally.refusals)
    if as_json:
        data_json({"found": count, DONE[verb]: tally.done, "left_alone": tally.left_alone, "refused": refused})
    else:
        data(f"{DONE[verb]} {tally.done}, left alone {tally.left_alone} (no longer dead), refused {refused}")
    if tally.refusals:
        show_error(tally.refusals[0], as_json=as_json)
        raise typer.Exit(tally.refusals[0].exit_code)
