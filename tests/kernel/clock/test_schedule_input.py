"""Schedules that SQL refuses, each with the value at fault and what to do."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from holdfast.testing import Clock
from kernel.schedules import at, define, fire, listed
from kernel.steps import DB, value

pytestmark = pytest.mark.one_server
LARGE = "to_jsonb(array(select gen_random_uuid() from generate_series(1, 40000)))"
GOOD = {"name": "'report'", "target": "'report'", "every": "'1 h'"}


def call(function: str, **arguments: str) -> str:
    return f"select holdfast.{function}({', '.join(f'{name} => {given}' for name, given in arguments.items())})"


@pytest.mark.parametrize(
    ("changes", "column"),
    [
        ({"every": "null", "cron": "'0 2 * * * *'"}, "cron"),
        ({"every": "null", "cron": "'0 2 * *'"}, "cron"),
        ({"every": "null", "cron": "''"}, "cron"),
        ({"every": "null", "cron": "'60 * * * *'"}, "cron"),
        ({"every": "null", "cron": "'* 24 * * *'"}, "cron"),
        ({"every": "null", "cron": "'* * 0 * *'"}, "cron"),
        ({"every": "null", "cron": "'* * * 13 *'"}, "cron"),
        ({"every": "null", "cron": "'* * * * 8'"}, "cron"),
        ({"every": "null", "cron": "'* * * * FOO'"}, "cron"),
        ({"every": "null", "cron": "'5-1 * * * *'"}, "cron"),
        ({"every": "null", "cron": "'*/0 * * * *'"}, "cron"),
        ({"every": "null", "cron": "'1, * * * *'"}, "cron"),
        ({"every": "null", "cron": "'@daily'"}, "cron"),
        ({"every": "null", "cron": "'* * * * ' || repeat('1,', 200) || '1'"}, "cron"),
        ({"every": "null"}, "cron"),
        ({"cron": "'0 2 * * *'"}, "cron"),
        ({"every": "'0.9 s'"}, "every"),
        ({"every": "'-1 h'"}, "every"),
        ({"every": "'1 month'"}, "every"),
        ({"every": "'400 days'"}, "every"),
        ({"every": "null", "at": "holdfast.clock() - interval '1 s'"}, "at"),
        ({"every": "null", "at": "'infinity'"}, "at"),
        ({"every": "null", "cron": "'0 0 1 1 *'", "starts_at": "'9000-06-01'"}, "starts_at"),
        ({"starts_at": "'1899-06-01'"}, "starts_at"),
        ({"ends_at": "'infinity'"}, "ends_at"),
        ({"ends_at": "'9000-06-01'", "from_code": "true"}, "ends_at"),
        ({"timezone": "'Europe/Bern'"}, "timezone"),
        ({"timezone": "null"}, "timezone"),
        ({"ends_at": "holdfast.clock()"}, "ends_at"),
        ({"starts_at": "'2030-01-01'", "ends_at": "'2029-01-01'"}, "ends_at"),
        ({"missed": "'some'"}, "missed"),
        ({"missed": "null"}, "missed"),
        ({"missed_window": "'-1 s'"}, "missed_window"),
        ({"overlap": "'wait'"}, "overlap"),
        ({"spread": "'-1 s'"}, "spread"),
        ({"spread": "'2 days'"}, "spread"),
        ({"face": "'nothing'"}, "face"),
        ({"face": "null"}, "face"),
        ({"target": "''"}, "target"),
        ({"target": "null"}, "target"),
        ({"options": "'[]'"}, "options"),
        ({"name": "''"}, "the name of a schedule"),
        ({"name": "null"}, "the name of a schedule"),
        ({"actor": "''"}, "actor"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused_by_its_part(db: DB, changes: dict[str, str], column: str) -> None:
    with pytest.raises(psycopg.Error) as refused:
        db.execute(call("define_schedule", **{**GOOD, **changes}))

    diag = refused.value.diag
    assert (diag.sqlstate, diag.column_name, bool(diag.message_hint)) == ("RN005", column, True)
    assert value(db, "select count(*) from holdfast.schedules") == 0


@pytest.mark.parametrize(
    "cron",
    ["*/15 0-6,22 1,15 JAN-MAR mon-fri", "0 0 L * *", "0 0 LW * *", "0 0 * * 5L", "0 0 * * fri#2", "5/10 * * * 7"],
)
def test_a_cron_that_passes_in_sql_can_be_planned(db: DB, clock: Clock, cron: str) -> None:
    clock.set(at("03-01 00:00"))
    define(db, cron=cron)
    fire(db)

    assert listed(db)["state"] == "active"


@pytest.mark.parametrize("function", ["pause_schedule", "resume_schedule", "run_schedule"])
def test_a_schedule_that_is_not_there_is_not_found(db: DB, function: str) -> None:
    with pytest.raises(psycopg.Error) as refused:
        db.execute(call(function, name="'report'"))

    assert (refused.value.diag.sqlstate, bool(refused.value.diag.message_hint)) == ("RN004", True)


@pytest.mark.parametrize(
    ("function", "arguments", "code"),
    [
        ("define_schedule", {**GOOD, "input": LARGE}, "RN011"),
        ("pause_schedule", {"name": "'report'", "reason": "repeat('x', 1001)"}, "RN005"),
        ("forget_schedule", {"name": "'report'", "tenant": "'*'"}, "RN005"),
        ("plan_schedules", {"plans": "'{}'"}, "RN005"),
        ("backfill_schedule", {"name": "'good'", "ticks": "array_fill(now() - interval '1 h', array[1001])"}, "RN005"),
        ("backfill_schedule", {"name": "'good'", "ticks": "array[now() + interval '1 h']"}, "RN005"),
        ("backfill_schedule", {"name": "'good'", "ticks": "array[null]::timestamptz[]"}, "RN005"),
    ],
)  # fmt: skip
def test_other_bad_arguments_are_refused(db: DB, function: str, arguments: dict[str, Any], code: str) -> None:
    db.execute(call("define_schedule", **{**GOOD, "name": "'good'"}))
    with pytest.raises(psycopg.Error) as refused:
        db.execute(call(function, **arguments))

    assert refused.value.diag.sqlstate == code
