"""`holdfast schedules`, and what `doctor` says of those that cannot fire."""

from __future__ import annotations

import pytest

from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.reads.schema_checks import schedules
from holdfast.testing import Clock
from kernel.schedules import at, fire, listed, ticks
from kernel.steps import value


@pytest.fixture(autouse=True)
def report(db):
    """A task that a worker has defined."""
    run(db, calls.define_kind("report"))
    clock = Clock(db)
    clock.set(at("03-01 00:30"))
    return clock


def test_a_schedule_is_added_shown_run_paused_resumed_and_removed(cli, found, db):
    added = cli("schedules", "add", "eu", "report", "--cron", "0 2 * * *", "--timezone", "Europe/Berlin",
                "--input", '{"region": "eu"}', "--overlap", "skip", "--options", '{"queue": "night"}')  # fmt: skip
    assert (added.returncode, added.stderr) == (0, "schedule eu is defined; any worker fires its ticks\n")
    assert "2027-03-01 02:00:00 CET" in added.stdout  # also before any worker has planned it
    assert found("schedules", "list")["schedules"][0]["state"] == "new"
    fire(db)

    (schedule,) = found("schedules", "list")["schedules"]
    assert (schedule["state"], schedule["words"]) == ("active", "At 02:00 every day, Europe/Berlin")
    assert schedule["input"] == {"region": "eu"}
    assert schedule["options"] == {"queue": "night"}
    assert len(schedule["next_ticks"]) == 5
    started = cli("schedules", "run", "eu", "--reason", "they asked").stdout.split()
    assert started == [str(value(db, "select id from holdfast.steps where queue = 'night'"))]
    assert cli("schedules", "pause", "eu", "--reason", "a sale").returncode == 0
    assert "paused: a sale" in cli("schedules", "show", "eu").stdout
    assert cli("schedules", "resume", "eu").returncode == 0
    shown = found("schedules", "show", "eu")
    assert [tick["ids"] for tick in shown["ticks"]] == [started]
    assert [change["event"] for change in shown["changes"]] == ["resumed", "paused", "run", "defined"]
    assert "eu" in cli("schedules", "list").stdout
    assert cli("schedules", "remove", "eu").returncode == 0
    assert found("schedules", "list")["schedules"] == []


def test_a_backfill_lists_first_and_then_fires_what_has_not_started(cli, found, db, report):
    cli("schedules", "add", "eu", "report", "--every", "1h", "--missed", "skip")
    report.set(at("03-01 04:40"))
    fire(db)
    assert [outcome for _, outcome in ticks(db, "eu")] == ["missed"] * 4
    span = ("--from", "2027-02-28T23:00", "--until", "2027-03-01T03:00")

    listing = found("schedules", "backfill", "eu", *span, "--dry-run")
    assert [tick["at"] for tick in listing["ticks"]] == [
        f"2027-{when}:30:00Z" for when in ("02-28T23", "03-01T00", "03-01T01", "03-01T02")
    ]
    assert value(db, "select count(*) from holdfast.steps") == 0
    done = cli("schedules", "backfill", "eu", *span)

    assert (done.returncode, done.stderr) == (0, "4 of 4 ticks fired\n")
    assert found("schedules", "backfill", "eu", *span)["ticks"] == []
    assert value(db, "select count(*) from holdfast.steps") == 4
    too_many = cli("schedules", "backfill", "eu", "--from", "2020-01-01")
    assert (too_many.returncode != 0, "1000" in too_many.stderr) == (True, True)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("add", "eu", "report", "--cron", "0 0 30 2 *"), "day-of-month"),
        (("add", "eu", "report", "--cron", "* * * * * *"), "five fields"),
        (("add", "eu", "report", "--every", "0.2s"), "every"),
        (("add", "eu", "report", "--at", "2020-01-01T00:00"), "2020"),
        (("add", "eu", "report", "--at", "soon"), "soon"),
        (("add", "eu", "report", "--every", "1h", "--ends-at", "2020-01-01"), "2020"),
        (("add", "eu", "report", "--every", "1h", "--timezone", "Mars/Base"), "Mars/Base"),
        (("add", "eu", "report", "--every", "1h", "--missed", "some"), "some"),
        (("add", "eu", "report", "--every", "1h", "--options", "[]"), "--options"),
        (("add", "eu", "nothing", "--every", "1h"), "nothing"),
        (("add", "eu", "report", "--every", "1h", "--tenant", "*"), "tenant"),
        (("show", "eu"), "eu"),
        (("run", "eu"), "eu"),
        (("pause", "eu"), "eu"),
        (("resume", "eu"), "eu"),
        (("remove", "eu"), "eu"),
        (("backfill", "eu", "--from", "2027-02-01"), "eu"),
    ],
)
def test_what_cannot_work_is_refused_with_the_value_and_a_next_step(cli, arguments, named):
    done = cli("schedules", *arguments)

    assert done.returncode != 0
    assert named in done.stderr
    assert "next" in done.stderr.lower()


def test_doctor_reports_schedules_that_are_broken_or_that_nobody_fires(db, report):
    assert schedules(db).verdict == "ok"
    db.execute("select holdfast.define_schedule('odd', 'report', cron => '0 0 30 2 *')")
    fire(db)
    assert listed(db, "odd")["state"] == "broken"
    told = schedules(db)
    assert (told.verdict, "odd is broken" in told.detail) == ("warn", True)
    db.execute("select holdfast.forget_schedule('odd')")
    db.execute("select holdfast.define_schedule('late', 'report', every => '1 h')")
    report.set(at("03-01 02:00"))

    told = schedules(db)
    assert (told.verdict, "late was due" in told.detail, told.next) == ("warn", True, "start a worker")
    fire(db)
    assert schedules(db).verdict == "ok"
    db.execute("select holdfast.define_schedule('late', 'nobody', face => 'flow', every => '1 h')")
    report.set(at("03-01 03:00"))
    fire(db)
    told = schedules(db)
    assert (told.verdict, "nobody" in told.detail, told.next) == ("warn", True, "holdfast schedules show late")
