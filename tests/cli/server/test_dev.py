"""`holdfast dev`: database, migrations and a worker by one command, renewed when the code changes."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress
from datetime import timedelta

import psycopg
import pytest

from cli.conftest import MAIN, environment
from holdfast import embedded
from holdfast.cli.dev import seen, watched
from holdfast.embedded.locks import until
from holdfast.errors import AppNotFound
from servers import owned_server

APP = """
from holdfast import Holdfast
hf = Holdfast()

@hf.task(queue="letters")
def greet(name: str) -> str:
    return "WORD " + name

hf.schedule("each", greet, {"name": "the clock"}, every=1)
"""
KEEP_NOTHING = """
select holdfast.set_retention('0', queue => 'letters');
update holdfast.retention_sweep set begins_at = holdfast.clock();
"""
HEEDING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home whose server runs; its database is empty at first."""
    home = tmp_path_factory.mktemp("dev") / "home"
    with owned_server(home):
        yield home


@pytest.fixture
def shop(tmp_path):
    """A package with an app in it."""
    package = tmp_path / "dev_shop"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "tasks.py").write_text(APP.replace("WORD", "hello"))
    return package


def test_it_runs_tasks_takes_new_code_and_ends_on_an_interrupt(shop, home):
    """W-01, W-62, X-09, X-16: all queues are served, schedules fire, what is over is pruned, and the end is orderly."""
    with psycopg.connect(embedded.ensure(home), autocommit=True) as db:
        dev = subprocess.Popen(
            [sys.executable, "-c", HEEDING + MAIN, "dev", "--app", "dev_shop.tasks:hf"],
            cwd=shop.parent, env=environment(home=home, recovery_interval="200ms"),
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert until(lambda: is_greeted(db, "hello Ada"), within=timedelta(seconds=60))
            assert until(lambda: is_so(db, STARTED_AND_ENDED), within=timedelta(seconds=60))
            db.execute(KEEP_NOTHING)  # the next worker looks for a sweep once, soon after its start
            (shop / "tasks.py").write_text("this is no Python")
            (shop / "tasks.py").write_text(APP.replace("WORD", "good day"))
            assert until(lambda: is_greeted(db, "good day Bob"), within=timedelta(seconds=60))
            assert until(lambda: is_so(db, STARTED_AND_PRUNED), within=timedelta(seconds=60))
            dev.send_signal(signal.SIGINT)
            _, said = dev.communicate(timeout=60)
        finally:
            dev.kill()
            dev.communicate()

    assert dev.returncode == 0, said
    assert "tasks.py changed" in said
    assert "worker.stopped" in said
    assert embedded.status(home).running


STARTED_AND_ENDED = """
select exists (select from holdfast.ticks t join holdfast.steps s on s.id::text = t.ids[1]
                where t.outcome = 'started' and s.finished_at is not null)
"""
STARTED_AND_PRUNED = """
select exists (select from holdfast.ticks t
                where t.outcome = 'started' and not exists (select from holdfast.steps s where s.id::text = t.ids[1]))
"""


def is_so(db, question):
    return db.execute(question).fetchone() == (True,)


def is_greeted(db, said):
    """Start a greeting, once there is a schema and none is under way; tell whether one of them came out like that."""
    start = "select holdfast.start_task('greet', jsonb_build_object('name', %s::text), 'letters', unique_key => %s)"
    with suppress(psycopg.errors.UndefinedFunction, psycopg.errors.InvalidSchemaName):
        db.execute(start, [said.split()[-1], said])
        found = db.execute("select exists (select from holdfast.steps where result = to_jsonb(%s::text))", [said])
        return found.fetchone() == (True,)
    return False


def test_code_that_cannot_be_imported_is_told_and_waited_for(shop, home):
    (shop / "tasks.py").write_text("this is no Python")
    dev = subprocess.Popen(
        [sys.executable, "-c", HEEDING + MAIN, "dev", "--app", "dev_shop.tasks:hf"],
        cwd=shop.parent, env=environment(home=home), stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        lines = iter(dev.stderr.readline, "")
        assert any("restarts when the code changes" in line for line in lines)
        (shop / "tasks.py").write_text(APP)
        assert any("worker.connected" in line for line in lines)
        dev.send_signal(signal.SIGTERM)
        dev.communicate(timeout=60)
    finally:
        dev.kill()
        dev.communicate()

    assert dev.returncode == 0


def test_a_package_is_watched_whole_and_a_module_with_its_neighbours(shop, monkeypatch):
    (shop.parent / "dev_alone.py").write_text("")
    (shop / "deep").mkdir()
    (shop / "deep" / "more.py").write_text("")
    monkeypatch.chdir(shop.parent)
    monkeypatch.syspath_prepend(str(shop.parent))

    of_package, of_module = seen(*watched("dev_shop.tasks:hf")), seen(*watched("dev_alone:hf"))

    assert {file.name for file in of_package} == {"__init__.py", "tasks.py", "more.py"}
    assert {file.name for file in of_module} == {"dev_alone.py"}
    with pytest.raises(AppNotFound):
        watched("dev_nowhere.tasks:hf")
