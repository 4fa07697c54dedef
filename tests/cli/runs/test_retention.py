"""`holdfast retention`: rules, dry runs and sweeps, and what `runs show` and `doctor` say about them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.cli.retention import read_keep
from holdfast.errors import BadInput
from holdfast.kernel import retention_calls
from holdfast.kernel.db import run
from holdfast.reads import retention_checks, schema_checks
from holdfast.reads.retention_checks import JournalUser
from kernel.retention import days, flow, is_there, sweep, task
from kernel.steps import start, value


def test_the_rules_are_shown_with_their_defaults_and_when_the_first_sweep_begins(cli, found):
    """X-16: the documented defaults, as `docs/reference/defaults.md` has them."""
    shown = found("retention", "show")

    assert {(rule["what"], rule["outcome"]): rule["keep"] for rule in shown["rules"]} == {
        ("runs", "succeeded"): "30 days", ("runs", "cancelled"): "30 days", ("runs", "undone"): "30 days",
        ("runs", "failed"): "90 days", ("runs", "partial"): "90 days", ("journal", None): "6 mons",
        ("ticks", None): "30 days", ("runs", None): "90 days",  # rules.run
    }  # fmt: skip
    assert shown["sweep"]["begins_at"] is not None
    done = cli("retention", "show")
    assert "a day after the migration" in done.stderr
    assert all(word in done.stdout for word in ("failed", "90 days", "6 months", "default"))


def test_a_rule_is_set_shown_and_removed(cli, found):
    done = cli("retention", "set", "7d", "--queue", "bulk", "--outcome", "succeeded", "--reason", "it is much")
    assert (done.returncode, "dry-run" in done.stderr) == (0, True)
    assert cli("retention", "set", "forever", "--outcome", "failed").returncode == 0
    assert cli("retention", "set", "1y", "--journal").returncode == 0

    shown = found("retention", "show")
    rules = {rule["rule"] for rule in shown["rules"] if not rule["is_default"]}
    assert rules == {"queue bulk, succeeded: 7 days", "failed: forever", "journal: 1 year"}
    assert [change["reason"] for change in shown["changes"]] == [None, None, "it is much"]
    assert "it is much" in cli("retention", "show").stderr

    assert cli("retention", "remove", "--journal").returncode == 0
    assert cli("retention", "remove", "--queue", "bulk", "--outcome", "succeeded").returncode == 0
    assert cli("retention", "remove", "--queue", "bulk").returncode == 4
    assert "journal: 6 months" in {rule["rule"] for rule in found("retention", "show")["rules"]}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["7 parsecs"], 2),
        (["7d", "--outcome", "lost"], 2),
        (["7d", "--machine", "no.such"], 4),
        (["7d", "--machine", "flow.task", "--queue", "bulk"], 2),
        (["2d", "--journal"], 2),
        (["7d", "--journal", "--ticks"], 2),
    ],
)
def test_a_rule_that_cannot_be_one_is_refused_with_what_to_do(cli, arguments, code):
    done = cli("retention", "set", *arguments)

    assert done.returncode == code
    assert done.stderr


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("7d", timedelta(days=7)), ("1h30m", timedelta(hours=1.5)), ("0", timedelta()), ("none", timedelta()),
        ("forever", None), ("6mo", "6 months"), ("1y", "1 years"), ("2 years", "2 years"), ("Forever ", None),
    ],
)  # fmt: skip
def test_how_long_is_read_as_people_write_it(text, read):
    assert read_keep(text) == read


@pytest.mark.parametrize("text", ["", "7x", "-1d", "mo", "1.5y"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(BadInput) as refused:
        read_keep(text)
    assert refused.value.where == "keep"


def test_a_dry_run_counts_and_a_run_removes(cli, found, db, clock):
    for _ in range(3):
        task(db)
    run_id = flow(db)
    clock.advance(days(31))

    dry = found("retention", "run", "--dry-run")
    assert dry["is_all"]
    assert {(each["what"], each["rule"]): (each["rows"], each["steps"]) for each in dry["prunable"]} == {
        ("tasks", "succeeded: 30 days"): (3, 3), ("runs", "succeeded: 30 days"): (1, 3),
    }  # fmt: skip
    assert "only the oldest 2" in cli("retention", "run", "--dry-run", "--most", "2").stderr
    assert "not counted" in cli("retention", "run", "--dry-run").stderr
    assert is_there(db, run_id)

    assert found("retention", "run") == {
        "steps": 6, "runs": 1, "keys": 0, "ticks": 0, "months": [], "is_through": True,
    }  # fmt: skip
    assert "would remove nothing" in cli("retention", "run", "--dry-run").stderr
    assert value(db, "select count(*) from holdfast.steps") == 0


def test_runs_show_still_tells_the_story_of_what_was_pruned(cli, found, db, clock):
    """X-16: the journal outlives the row."""
    step_id, run_id = task(db, "failed"), flow(db)
    clock.advance(days(91))
    sweep(db)

    for subject, label, rule, last in (
        (step_id, "task", "failed: 90 days", "failed"),
        (run_id, "run", "succeeded: 30 days", "all_succeeded"),
    ):
        page = found("runs", "show", str(subject))
        assert (page["what"], page["rule"], page["is_pruned"]) == (label, rule, True)
        assert page["story"][-1]["what"] == last
        assert "claimed" in [entry["what"] for entry in page["story"]], "a run's steps are part of it"
        shown = cli("runs", "show", str(subject))
        assert (shown.returncode, rule in shown.stdout, last in shown.stdout) == (0, True, True)


@pytest.mark.parametrize("command", [["runs", "watch"], ["runs", "cancel"], ["runs", "retry"], ["flow", "show"]])
def test_other_commands_say_that_it_was_pruned(cli, db, clock, command):
    run_id = flow(db)
    clock.advance(days(31))
    sweep(db)

    done = cli(*command, str(run_id))

    assert done.returncode == 4
    assert "succeeded: 30 days" in done.stderr


def test_a_key_is_kept_for_a_time(cli, db, clock):
    start(db, "mail")
    db.execute("insert into holdfast.kinds (kind) values ('mail') on conflict do nothing")
    clock.freeze()
    ids = [cli("start", "mail", "--key", "k", "--key-for", "1h").stdout.strip() for _ in range(2)]
    clock.advance("1h")
    ids.append(cli("start", "mail", "--key", "k", "--key-for", "1h").stdout.strip())

    assert ids[0] == ids[1] != ids[2]


def test_doctor_names_the_session_that_keeps_a_month_from_being_dropped():
    months = ["journal_202601", "notes_202601"]

    idle = retention_checks.judge_overdue(months, [])
    used = retention_checks.judge_overdue(months, [JournalUser(42, "report", timedelta(minutes=40))])

    assert (idle.verdict, "worker" in idle.next) == ("warn", True)
    assert all(word in used.detail for word in ("journal_202601", "pid 42", "report", "40 min"))
    assert "42" in used.next


def test_doctor_reports_dead_rows():
    assert retention_checks.judge_bloat([]).verdict == "ok"

    found = retention_checks.judge_bloat([("holdfast.steps", 1000, 20_000, None)])

    assert (found.verdict, "20,000 of 21,000" in found.detail, "vacuum holdfast.steps" in found.next) == (
        "warn", True, True,
    )  # fmt: skip


def test_doctor_tells_a_sweep_under_way_from_one_that_is_late(db, clock):
    """A sweep of many rows takes its time, long after the first one was due."""

    def verdict():
        return retention_checks.retention(db).verdict

    for _ in range(4):
        task(db)
    clock.advance(days(31))
    assert verdict() == "warn", "nobody sweeps"
    assert run(db, retention_calls.sweep(batch=2))[0].is_through is False
    assert (verdict(), "2 steps" in retention_checks.retention(db).detail) == ("ok", True)
    clock.advance(days(1.1))
    assert verdict() == "warn", "nobody goes on with it"
    while not run(db, retention_calls.sweep(batch=2))[0].is_through:
        pass
    assert verdict() == "ok"
    clock.advance(days(1.1))
    assert verdict() == "warn", "nobody sweeps any more"


@pytest.mark.own_database
def test_doctor_finds_dead_rows_on_a_real_server(db):
    """As a sweep leaves them where no vacuum comes."""
    db.execute("alter table holdfast.keys set (autovacuum_enabled = off)")
    db.execute(
        """insert into holdfast.keys (tenant, key, id, input_hash, expires_at)
           select 'default', n::text, n::text, '', now() from generate_series(1, 12000) n"""
    )
    sweep(db, batch=10_000)
    db.execute("select pg_stat_force_next_flush()")
    found = retention_checks.bloat(db)

    assert (found.verdict, "holdfast.keys: 12,000 of 12,000" in found.detail) == ("warn", True)
    db.execute("vacuum holdfast.keys")
    db.execute("select pg_stat_force_next_flush()")
    assert retention_checks.bloat(db).verdict == "ok"


@pytest.mark.own_database
def test_doctor_finds_them_on_a_real_server(dsn, db, clock):
    """An old month that somebody reads, and an index that an interrupted build left invalid."""
    import psycopg

    task(db)
    assert retention_checks.retention(db).verdict == "ok"
    assert schema_checks.indexes(db).verdict == retention_checks.bloat(db).verdict == "ok"
    clock.advance(days(260))
    with psycopg.connect(dsn, application_name="report") as reader:
        reader.execute("select count(*) from holdfast.journal")
        blocked = retention_checks.retention(db)
    db.execute("update pg_index set indisvalid = false where indexrelid = 'holdfast.steps_dead'::regclass")

    assert blocked.verdict == "warn"
    assert "(report)" in blocked.detail
    invalid = schema_checks.indexes(db)
    assert (invalid.verdict, "holdfast.steps_dead" in invalid.detail) == ("warn", True)
    assert "reindex index concurrently holdfast.steps_dead" in invalid.next
