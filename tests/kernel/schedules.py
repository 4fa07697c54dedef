"""Schedules as the tests of the kernel define, fire and read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row

from holdfast import cron
from holdfast.kernel import schedule_calls
from holdfast.kernel.db import run
from holdfast.kernel.schedule_calls import Target, When
from holdfast.models import Json

DB = Connection[Any]


def at(text: str) -> datetime:
    """Read a time of 2027 in UTC: at("03-29 01:00")."""
    return datetime.fromisoformat(f"2027-{text}").replace(tzinfo=UTC)


def define(db: DB, name: str = "report", *, tenant: str = "default", face: str = "work", **options: Any) -> None:
    """Define a schedule of a task; times and policies by name."""
    times = {key: options.pop(key) for key in list(options) if key in When.__dataclass_fields__}
    what = {key: options.pop(key) for key in ("input", "options", "target") if key in options}
    target = Target(face, what.get("target", "report"), Json(what.get("input", "{}")), what.get("options", {}), tenant)
    run(db, schedule_calls.define_schedule(name, target, When(**times), **options))


def fire(db: DB) -> timedelta | None:
    """Fire and plan until nothing is due, as a worker does; return how long it would wait."""
    while True:
        (fired,) = run(db, schedule_calls.fire_schedules())
        if fired.plans:
            run(db, schedule_calls.plan_schedules([cron.plan(wanted) for wanted in fired.plans]))
        elif not fired.looked_at:
            return fired.waits


def ticks(db: DB, name: str = "report") -> list[tuple[datetime, str]]:
    """Return each tick of a schedule with its outcome, in order."""
    rows = db.execute("select at, outcome from holdfast.ticks where name = %s order by at", [name])
    return [(moment.astimezone(UTC), outcome) for moment, outcome in rows]


def listed(db: DB, name: str = "report") -> dict[str, Any]:
    """Return a schedule as its view shows it."""
    with db.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute("select * from holdfast.schedule_list where name = %s", [name]).fetchone()
    assert row is not None
    return row


def started(db: DB) -> list[tuple[str, datetime]]:
    """Return the kind and creation of each step, in order."""
    return db.execute("select kind, created_at from holdfast.steps order by id").fetchall()
