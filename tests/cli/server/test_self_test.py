"""`holdfast doctor --self-test`, as people run it: it ends by itself, its verdict counts, and nothing of it is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from datetime import timedelta

import psutil
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from cli.conftest import MAIN, environment
from holdfast import embedded
from holdfast.embedded.locks import until
from selftest.traces import alive, catalog, processes, rows
from servers import owned_server

SMALL = ("--tasks", "60", "--kills", "1")
LONG = timedelta(seconds=90)
DOUBLED = """
create function public.doubled() returns trigger language plpgsql as $$
begin
  insert into {schema}.effects values (new.*);
  return null;
end
$$;
create trigger doubled after insert on {schema}.effects
  for each row when (pg_trigger_depth() = 0) execute function public.doubled();
"""


@pytest.fixture
def self_test(tmp_path):
    """Run it, and give the process."""

    @contextmanager
    def begin(dsn, *options, stdout=subprocess.PIPE):
        settings = environment(dsn=dsn, home=tmp_path / "no home") | {"TMPDIR": str(tmp_path)}
        process = subprocess.Popen(
            [sys.executable, "-c", MAIN, "doctor", "--self-test", *options],
            env=settings, stdout=stdout, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    return begin


def is_at_work(dsn):
    """Whether workers of a self-test have had an effect."""
    with psycopg.connect(dsn, autocommit=True) as db:
        for (name,) in db.execute("select nspname from pg_namespace where nspname ~ '^holdfast_selftest_'"):
            try:
                return db.execute(f"select exists (select from {name}.effects)").fetchone() == (True,)
            except psycopg.Error:
                return False
    return False


@pytest.mark.one_server
def test_a_self_test_holds_and_leaves_nothing_behind(self_test, dsn, tmp_path):
    before, kept = catalog(dsn), rows(dsn, "holdfast")

    with self_test(dsn, *SMALL, "--json", "--seed", "7") as process:
        out, said = process.communicate(timeout=120)

    assert process.returncode == 0, said
    found = json.loads(out)
    assert (found["ok"], found["seed"]) == (True, 7)
    assert [(fault["lost"], fault["twice"], fault["broken"]) for fault in found["faults"]] == [(0, 0, [])] * 6
    assert sum(fault["kills"] for fault in found["faults"]) == 5
    assert alive(dsn, tmp_path) == []
    assert catalog(dsn) == before
    assert rows(dsn, "holdfast") == kept


@pytest.mark.long
@pytest.mark.one_server
def test_on_a_server_that_has_never_seen_holdfast_the_roles_go_too(self_test, tmp_path_factory, tmp_path):
    """R1"""
    home = tmp_path_factory.mktemp("bare") / "home"
    with owned_server(home):
        dsn = embedded.admin_dsn(home)
        before = catalog(dsn)

        with self_test(dsn, *SMALL) as process:
            out, said = process.communicate(timeout=120)

        assert process.returncode == 0, said
        assert "\nAll held, in " in out
        assert "To repeat it: holdfast doctor --self-test --seed " in out
        assert alive(dsn, tmp_path) == []
        assert catalog(dsn) == before


@pytest.mark.one_server
def test_effects_that_are_doubled_behind_its_back_fail_it(self_test, dsn, tmp_path):
    with self_test(dsn, *SMALL) as process, psycopg.connect(dsn, autocommit=True) as db:
        assert until(lambda: double_effects(db), within=LONG)
        out, said = process.communicate(timeout=120)

    assert process.returncode == 9, said
    assert "\n✗\t" in f"\n{out}"
    assert "accepted twice" in out
    assert "Do not rely on this installation" in out
    assert alive(dsn, tmp_path) == []


def double_effects(db):
    for (name,) in db.execute("select nspname from pg_namespace where nspname ~ '^holdfast_selftest_'").fetchall():
        db.execute(DOUBLED.format(schema=name))
        return True
    return False


@pytest.mark.one_server
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_that_is_interrupted_removes_what_it_made(self_test, dsn, number, tmp_path):
    before = catalog(dsn)

    with self_test(dsn, *SMALL, stdout=subprocess.DEVNULL) as process:
        assert until(lambda: is_at_work(dsn), within=LONG)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)

    assert process.returncode == 130, said
    assert "is removed" in said
    assert alive(dsn, tmp_path) == []
    assert catalog(dsn) == before


@pytest.mark.one_server
def test_one_that_is_killed_with_its_workers_frozen_leaves_nothing_either(self_test, dsn, tmp_path):
    before = catalog(dsn)

    with self_test(dsn, *SMALL, stdout=subprocess.DEVNULL) as process:
        assert until(lambda: is_at_work(dsn), within=LONG)
        for worker in processes(dsn):
            worker.suspend()
        process.kill()

    assert until(lambda: alive(dsn, tmp_path) == [], within=LONG), alive(dsn, tmp_path)
    assert catalog(dsn) == before


@pytest.mark.long
@pytest.mark.one_server
def test_what_one_left_that_was_killed_with_its_reaper_is_found_by_doctor_and_removed_by_the_next(
    self_test, cli, dsn, tmp_path
):
    """R1"""
    migrated = catalog(dsn)
    with self_test(dsn, *SMALL, stdout=subprocess.DEVNULL) as process:
        assert until(lambda: is_at_work(dsn), within=LONG)
        while_it_runs = cli("doctor")
        for helper in [child for child in psutil.Process(process.pid).children() if is_reaper(child)]:
            helper.kill()
        process.kill()
    assert until(lambda: not processes(dsn), within=LONG)

    afterwards = cli("doctor")
    again = cli("doctor", "--self-test", *SMALL)

    assert "\tself-tests\tno schema was left behind" in while_it_runs.stdout
    assert "warn\tself-tests\tholdfast_selftest_" in afterwards.stdout
    assert again.returncode == 0, again.stderr
    assert alive(dsn, tmp_path) == []
    assert catalog(dsn) == migrated


def is_reaper(process):
    with suppress(psutil.Error):  # a worker that was killed, and nobody has looked at yet
        return "holdfast.selftest.reaper" in process.cmdline()
    return False


@pytest.mark.one_server
def test_a_second_one_in_the_same_database_is_refused(self_test, cli, dsn, tmp_path):
    with self_test(dsn, *SMALL) as first:
        assert until(lambda: is_at_work(dsn), within=LONG)
        second = cli("doctor", "--self-test", *SMALL)
        first.send_signal(signal.SIGINT)
        _, said = first.communicate(timeout=120)

    assert second.returncode == 70
    assert "self-test is running" in second.stderr
    assert first.returncode == 130, said


@pytest.mark.one_server
def test_a_login_that_may_not_is_told_before_anything_begins(cli, dsn, db, tmp_path):
    name = f"hf_test_{os.getpid()}_weak"
    db.execute(f"create role {name} login in role hf_worker")
    try:
        refused = cli("doctor", "--self-test", dsn=make_conninfo(dsn, user=name))
    finally:
        db.execute(f"drop role {name}")

    assert refused.returncode == 6
    assert "use the login that migrates" in refused.stderr
    assert alive(dsn, tmp_path) == []


@pytest.mark.long
@pytest.mark.one_server
def test_a_login_that_owns_its_database_and_is_no_superuser_may(self_test, dsn, db, template, tmp_path):
    """R1"""
    name = f"hf_test_{os.getpid()}_owner"
    db.execute(f"create role {name} login createrole in role hf_owner")
    db.execute(f"create database {name} owner {name}")
    address = make_conninfo(dsn, user=name, dbname=name)
    try:
        with self_test(address, *SMALL) as process:
            _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
        assert alive(address, tmp_path) == []
    finally:
        db.execute(f"drop database {name} with (force)")
        db.execute(f"drop role {name}")


@pytest.mark.long
def test_the_whole_form_takes_about_a_minute_and_holds(self_test, dsn, proof, tmp_path):
    """R1"""
    with self_test(dsn, "--json", "--seed", str(proof.chance.randrange(10**6))) as process:
        out, _ = process.communicate(timeout=300)

    found = json.loads(out)
    proof.add(rounds=1, **{what: sum(fault[what] for fault in found["faults"]) for what in ("kills", "lost", "twice")})
    assert process.returncode == 0, [fault for fault in found["faults"] if fault["broken"]] or found
    assert alive(dsn, tmp_path) == []
