"""How much of the tables a call really reads, as the server counts it: no clock, no estimate of the planner."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg import Connection
from psycopg.errors import Diagnostic

from holdfast.kernel.call import Call
from holdfast.kernel.db import run

Row = TypeVar("Row")
Answer = TypeVar("Answer")

# Of a table: the rows that sequential scans read. Of an index: the entries that its scans gave. A scan that walks past
# entries inside the index gives none of them, but touches their blocks.
COUNTS = """
select c.relname, pg_stat_get_xact_tuples_returned(c.oid), pg_stat_get_xact_blocks_fetched(c.oid)
  from pg_class c
 where c.relnamespace = any ('{holdfast,ops,rules}'::regnamespace[]) and c.relkind in ('r', 'i')
   and c.relname !~ '^machine(s|_states|_moves)'  -- they grow with each face, and not with what the product does
"""
# What a session says, once, when it first meets a plan so expensive that it is to be compiled; also without LLVM.
COMPILES = "probing availability of JIT provider"
STOCK = "-c jit=on -c client_min_messages=debug1"
EXPLAIN = {
    "log_min_duration": "0",
    "log_level": "notice",
    "log_format": "json",
    "log_analyze": "on",
    "log_timing": "off",
    "log_nested_statements": "on",
}


@dataclass(frozen=True)
class Reading:
    """What a call read: rows and index entries, and blocks, by table or index."""

    rows: Counter[str]
    blocks: Counter[str]

    @property
    def most(self) -> str:
        """Name the greediest, for the message of a failed test."""
        return ", ".join(f"{name} {count}" for name, count in self.rows.most_common(6))


def reading(db: Connection[Any], call: Call[Row]) -> tuple[list[Row], Reading]:
    """Make the call in a transaction of its own, and count what it read."""
    return counted(db, lambda: run(db, call))


@contextmanager
def stock_connection(dsn: str) -> Iterator[Connection[Any]]:
    """Connect as to a server with the usual settings: it compiles what looks expensive, and says so."""
    with psycopg.connect(dsn, autocommit=True, options=STOCK) as connection:
        yield connection


def counted(db: Connection[Any], job: Callable[[], Answer]) -> tuple[Answer, Reading]:
    """Do a job in a transaction of its own, and count what it read; nothing in it may be compiled."""
    with db.transaction(), _nothing_compiled(db):
        rows_before, blocks_before = _counts(db)
        answer = job()
        rows, blocks = _counts(db)
    return answer, Reading(rows - rows_before, blocks - blocks_before)


@contextmanager
def _nothing_compiled(db: Connection[Any]) -> Iterator[None]:
    contexts: list[str] = []

    def listen(notice: Diagnostic) -> None:
        if COMPILES in (notice.message_primary or ""):
            contexts.append(notice.context or "the statement itself")

    db.add_notice_handler(listen)
    try:
        yield
    finally:
        db.remove_notice_handler(listen)
    assert not contexts, f"the server compiles plans of: {contexts}"


def _counts(db: Connection[Any]) -> tuple[Counter[str], Counter[str]]:
    found = db.execute(COUNTS).fetchall()
    return Counter({name: rows for name, rows, _ in found}), Counter({name: blocks for name, _, blocks in found})


@dataclass(frozen=True)
class Node:
    """One node of an executed plan: what it scanned, and how many rows it threw away in all its loops."""

    type: str
    relation: str
    removed: float


def executed_plans(db: Connection[Any], call: Call[Row]) -> tuple[list[Row], list[Node]]:
    """Make the call, and give the nodes of every plan that was run inside it; needs auto_explain and a superuser."""
    said: list[str] = []

    def listen(notice: Diagnostic) -> None:
        said.append(notice.message_primary or "")

    db.execute("load 'auto_explain'")
    for setting, value in EXPLAIN.items():
        db.execute(f"set auto_explain.{setting} = {value}")
    db.add_notice_handler(listen)
    try:
        answer = run(db, call)
    finally:
        db.remove_notice_handler(listen)
        db.execute("set auto_explain.log_min_duration = -1")
    plans = [json.loads(text.partition("plan:\n")[2])["Plan"] for text in said if "plan:\n" in text]
    return answer, [node for plan in plans for node in _nodes(plan)]


def _nodes(plan: dict[str, Any]) -> Iterator[Node]:
    removed = sum(count for key, count in plan.items() if key.startswith("Rows Removed by"))
    yield Node(plan["Node Type"], plan.get("Relation Name", ""), removed * plan["Actual Loops"])
    for child in plan.get("Plans", ()):
        yield from _nodes(child)
