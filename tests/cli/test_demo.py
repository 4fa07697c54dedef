"""`holdfast demo`, as people run it: it ends by itself, its figures hold, and no process is left."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg
import pytest

from cli.conftest import MAIN, environment
from holdfast import embedded
from holdfast.demo import workload
from holdfast.embedded.locks import until
from servers import owned_server, reaped

ROOT = Path(__file__).parents[2]
HEEDING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
DOUBLED = """
create function public.doubled() returns trigger language plpgsql as $$
begin
  insert into holdfast_demo.effects values (new.*);
  return null;
end
$$;
create trigger doubled after insert on holdfast_demo.effects
  for each row when (pg_trigger_depth() = 0) execute function public.doubled();
"""


@pytest.fixture
def own_home(tmp_path_factory):
    """A home of the test's own, without a server."""
    home = tmp_path_factory.mktemp("demo") / "home"
    with reaped(home):
        yield home


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home whose server runs; its database is the demo's alone."""
    home = tmp_path_factory.mktemp("demo") / "home"
    with owned_server(home):
        yield home


def shops_of(demo):
    """Find the simulated shop of a demo that runs, by its program."""
    return [
        child
        for child in psutil.Process(demo.pid).children(recursive=True)
        if "holdfast.demo.outlet_shop" in child.cmdline()
    ]


def is_at_work(process):
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def workers_of(home):
    """Find the demo's workers by the address that they were given."""
    address = quote(str(embedded.status(home).socket_directory), safe="")
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if "--supervised" in process.cmdline() and address in process.environ().get("HOLDFAST_DSN", ""):
                found.append(process)
    return found


def test_the_demo_kills_a_worker_and_nothing_is_lost_or_accepted_twice(holdfast, own_home):
    """W-35, W-37, W-38, W-61, and that an embedded server which it started is stopped again."""
    ran = holdfast("demo", "--tasks", "300", "--json", home=own_home)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = json.loads(ran.stdout)
    assert (found["holds"], found["lost"], found["twice"], found["half"]) == (True, 0, 0, 0)
    assert (found["killed"], found["started"], found["failed"]) == (1, 300, 1)
    assert found["rescued"] >= 1
    assert [line["state"] for line in found["story"]][:4] == ["pending", "running", "pending", "running"]
    order = found["order"]
    assert (order["parcels"], order["card_retried"], order["Retry-After_kept"], order["resolved_by_hand"]) == (
        4,
        1,
        1,
        1,
    )
    assert (order["done_twice"], order["complete"]) == (0, 1)
    shops = found["shops"]
    assert (shops["prices_updated"], shops["claims_while_closed"]) == (36, 0)
    assert 1 <= shops["calls_at_once"] <= shops["claims_at_once"] <= 2
    assert shops["429_with_Retry-After"] >= 1
    assert shops["others_meanwhile"] >= 1
    assert (found["schedule"]["ticks"] >= 3, found["schedule"]["fired_twice"]) == (True, 0)
    pushes = found["pushes"]
    assert (pushes["wrongly_signed"], pushes["runs_queued"], pushes["repeated"]) == (401, 3, 0)
    assert (pushes["deployed"], pushes["cancelled"], pushes["stale"]) == (1, 1, 1)
    assert pushes["lines_seen_live"] >= 1
    feed = found["feed"]
    assert (feed["records_read"], feed["429"], feed["quarantined"], feed["late_records"]) == (20_000, 1, 1, 1)
    assert (feed["counted_twice"], feed["partitions_rescued"] >= 1) == (0, True)
    labels = found["labels"]
    assert (labels["printed"], labels["failed"], labels["of_two_carriers"], labels["printed_twice"]) == (119, 1, 0, 0)
    assert 6 <= labels["calls"] < 119
    outlet = found["outlet"]
    assert (outlet["planned"], outlet["429"], outlet["refused"], outlet["applied"]) == (40, 1, 1, 40)
    assert (outlet["drift"], outlet["rolled_back"], outlet["conflicts"], outlet["written_twice"]) == (1, 39, 1, 0)
    assert "deployment: rendering body" in ran.stderr
    assert "killed with -9: worker-" in ran.stderr
    assert "taken over: " in ran.stderr
    assert "PostgreSQL is stopped" in ran.stderr
    assert not embedded.status(own_home).running
    assert workers_of(own_home) == []


def commands(report):
    return report.partition("Look further:\n")[2].splitlines()


@pytest.mark.skipif(not (ROOT / ".venv" / "installed").exists(), reason="make would set up a .venv first")
def test_make_demo_has_a_home_of_its_own_and_each_command_works_as_printed(own_home):
    typed = {"cwd": ROOT, "env": environment(), "capture_output": True, "text": True, "timeout": 100}
    ran = subprocess.run(["make", "-s", "demo", f"DEMO_HOME={own_home}", "ARGS=--tasks 60 --workers 2"], **typed)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert len(commands(ran.stdout)) == 13
    for command in commands(ran.stdout):
        done = subprocess.run(["bash", "-c", command], **typed)
        assert done.returncode == 0, done.stderr
        assert done.stdout, command


def test_a_server_that_was_running_is_left_running(holdfast, home):
    ran = holdfast("demo", "--tasks", "120", "--workers", "2")

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "keeps running" in ran.stderr
    assert embedded.status(home).running
    assert "\nlost\t0\t✓\t" in ran.stdout
    assert len(commands(ran.stdout)) == 13


def test_a_demo_that_is_interrupted_stops_its_workers_and_says_what_stays(home):
    demo = subprocess.Popen(
        [sys.executable, "-c", HEEDING + MAIN, "demo", "--tasks", "20000"],
        env=environment(home=home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert until(lambda: len(workers_of(home)) >= 3 and is_under_way(home), within=timedelta(seconds=60))
        demo.send_signal(signal.SIGINT)
        _, said = demo.communicate(timeout=60)
    finally:
        demo.kill()
        demo.communicate()

    assert demo.returncode == 130, said
    assert "stay queued" in said
    assert f"to run them: HOLDFAST_HOME={home} " in said
    assert "worker --app holdfast.demo.app:hf --queue demo-" in said
    assert workers_of(home) == []


def test_a_demo_that_is_killed_leaves_no_process(own_home):
    demo = subprocess.Popen(
        [sys.executable, "-c", MAIN, "demo", "--tasks", "20000"],
        env=environment(home=own_home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert until(lambda: len(workers_of(own_home)) >= 3 and is_under_way(own_home), within=timedelta(seconds=60))
        shops = shops_of(demo)
        demo.kill()
    finally:
        demo.kill()
        demo.wait()

    assert len(shops) == 1
    assert until(lambda: not is_at_work(shops[0]), within=timedelta(seconds=60))
    assert until(lambda: not workers_of(own_home), within=timedelta(seconds=60))
    assert until(lambda: not embedded.status(own_home).running, within=timedelta(seconds=60))


def is_under_way(home):
    try:
        with psycopg.connect(embedded.admin_dsn(home, "holdfast")) as connection:
            return connection.execute("select exists (select from holdfast_demo.effects)").fetchone() == (True,)
    except psycopg.Error:
        return False


def test_an_effect_that_is_written_twice_fails_the_check(cli, db):
    """The check is no decoration: with effects doubled behind its back the demo ends with 9 and says what is wrong."""
    workload.prepare(db)
    db.execute(DOUBLED)

    ran = cli("demo", "--tasks", "60", "--workers", "2")

    assert ran.returncode == 9, ran.stderr
    assert "\naccepted twice\t59\t✗\t" in ran.stdout
    assert "\nlost\t0\t✓\t" in ran.stdout
    assert "from HOLDFAST_DSN" in ran.stderr


def test_a_named_database_that_is_not_migrated_is_not_ours_to_change(holdfast, own_home):
    embedded.ensure(own_home)
    refused = holdfast("demo", dsn=embedded.admin_dsn(own_home))

    assert refused.returncode == 13
    assert "holdfast db migrate" in refused.stderr
