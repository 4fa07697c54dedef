"""What the tests of rules arrange and read: channels, previews, workers, tables of prices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from holdfast.kernel import calls
from holdfast.kernel.db import run as kernel_run
from holdfast.models import ClaimedStep, Done, Fail, Outcome, Retry, Settlement
from holdfast.rules.calls import COPY_REFUSALS, COPY_TARGETS

DB = Connection[Any]
LEASE = timedelta(seconds=30)
RULE: dict[str, Any] = {"name": "summer", "selector": {"all": True}, "transform": {"percent": "-20"}}
Row = tuple[Any, ...]
Judge = Callable[[dict[str, Any]], Outcome]


def define(db: DB, channel: str = "shop") -> None:
    """Register a channel."""
    db.execute("select rules.define_channel(%s, 'table')", [channel])


def row(item: str, before: int = 1000, after: int = 800, currency: str = "EUR", **more: Any) -> Row:
    """A staged target."""
    return (
        item, currency, before, after, more.get("compare_before"), more.get("compare_after"),
        more.get("writes_price", before != after), more.get("writes_compare_at", False),
    )  # fmt: skip


def rows(count: int, *, first: int = 1, before: int = 1000, after: int = 800) -> list[Row]:
    """So many targets, with items named SKU-1, SKU-2, …"""
    return [row(f"SKU-{number}", before, after) for number in range(first, first + count)]


def preview(
    db: DB,
    targets: Iterable[Row],
    refusals: Iterable[Row] = (),
    *,
    channel: str = "shop",
    rule: Any = None,
    **more: Any,
) -> dict[str, Any]:
    """Preview targets and give what take_preview returns."""
    tenant = more.get("tenant", "default")
    given = {"rule": Jsonb(RULE if rule is None else rule), "channel": channel, **more}
    if "metadata" in given:
        given["metadata"] = Jsonb(given["metadata"])
    arguments = ", ".join(f"{name} => %({name})s" for name in given)
    with db.transaction(), db.cursor(row_factory=dict_row) as cursor:
        cursor.execute("select rules.stage_targets(%s, %s)", [channel, tenant])
        for copy_to, staged in ((COPY_TARGETS, targets), (COPY_REFUSALS, refusals)):
            with cursor.copy(copy_to) as copy:
                for each in staged:
                    copy.write_row(each)
        cursor.execute(f"select * from rules.take_preview({arguments})", given)
        (answer,) = cursor.fetchall()
        return dict(answer)


def previewed(db: DB, count: int = 3, **more: Any) -> UUID:
    """Preview so many targets on a channel of their own name and give the run's id."""
    define(db, more.get("channel", "shop"))
    return UUID(str(preview(db, rows(count), **more)["run_id"]))


def called(db: DB, function: str, **given: Any) -> list[dict[str, Any]]:
    """Call a function by named arguments, and give its rows."""
    arguments = ", ".join(f"{name} => %({name})s" for name in given)
    with db.cursor(row_factory=dict_row) as cursor:
        cursor.execute(f"select * from rules.{function}({arguments})", given)
        return cursor.fetchall()


def run(db: DB, run_id: UUID) -> dict[str, Any]:
    """Read a run."""
    with db.cursor(row_factory=dict_row) as cursor:
        (found,) = cursor.execute("select * from rules.rule_runs where id = %s", [run_id]).fetchall()
        return dict(found)


def status(db: DB, run_id: UUID) -> str:
    return str(run(db, run_id)["status"])


def targets(db: DB, run_id: UUID) -> list[dict[str, Any]]:
    """Read the targets of a run, in order."""
    with db.cursor(row_factory=dict_row) as cursor:
        cursor.execute("select * from rules.rule_targets where rule_run_id = %s order by id", [run_id])
        return cursor.fetchall()


def statuses(db: DB, run_id: UUID) -> list[str]:
    return [target["status"] for target in targets(db, run_id)]


def ids(db: DB, run_id: UUID) -> list[int]:
    return [target["id"] for target in targets(db, run_id)]


def refused(db: DB, statement: str, given: Sequence[Any] = ()) -> str | None:
    """Run a statement that is refused, and give the SQLSTATE; nothing is left of it."""
    try:
        with db.transaction():
            db.execute(statement, given)
    except psycopg.Error as error:
        return error.sqlstate
    return None


def claim(db: DB, channel: str = "shop", batch: int = 100, worker: str = "w") -> list[ClaimedStep]:
    """Claim targets of a channel."""
    return kernel_run(db, calls.claim_steps(worker, queue=f"rules:{channel}", batch=batch, lease=LEASE))


def settle(db: DB, steps: Iterable[ClaimedStep], outcome: Outcome | None = None) -> list[str]:
    """Settle claimed targets alike, by default as written; the events."""
    given = Done({"effect": "written"}) if outcome is None else outcome
    return [
        settled.event
        for settled in kernel_run(db, calls.settle_steps([Settlement(s.step_id, s.lease_id, given) for s in steps]))
    ]


def inputs(db: DB, steps: Iterable[ClaimedStep]) -> dict[int, dict[str, Any]]:
    """Read what a handler receives, by target."""
    rows = db.execute("select step_id, input from rules.target_inputs(%s)", [[s.step_id for s in steps]])
    return dict(rows.fetchall())


def work(db: DB, judge: Judge | None = None, channel: str = "shop") -> int:
    """Apply what is due, each target as judged by its input; how many were tried."""
    tried = 0
    while steps := claim(db, channel):
        tried += len(steps)
        given = inputs(db, steps)
        for step in steps:
            settle(db, [step], None if judge is None else judge(given[step.step_id]))
    return tried


def fails(*items: str, error: dict[str, Any] | None = None, final: bool = True) -> Judge:
    """Fail some items and write the others."""
    given = {"message": "refused", "class": "VALIDATION"} if error is None else error

    def judge(values: dict[str, Any]) -> Outcome:
        if values["item_id"] not in items:
            return Done({"effect": "written"})
        return Fail(given) if final else Retry(given)

    return judge


def applied(db: DB, run_id: UUID, **options: Any) -> dict[str, Any]:
    """Apply a run and give what apply returns."""
    (answer,) = called(db, "apply", run_id=run_id, **options)
    return answer


def moves(db: DB, run_id: UUID) -> list[tuple[str, str, str]]:
    """Read the moves of a run itself: states and who made them."""
    return db.execute(
        """select from_state, to_state, actor_kind from holdfast.journal
            where run_id = %s and step_id is null order by id""",
        [run_id],
    ).fetchall()


def target_moves(db: DB, target: int) -> list[tuple[str, str, str]]:
    """Read the moves of a target: states and who made them."""
    return db.execute(
        "select from_state, to_state, actor_kind from holdfast.journal where step_id = %s order by id", [target]
    ).fetchall()
