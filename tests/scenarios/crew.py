"""A server that can be made to fail, and worker processes that belong to a test and end with it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, LiteralString, Protocol

import psutil
import psycopg
from psycopg import Connection

import holdfast
from holdfast.embedded import locks
from holdfast.kernel import bulk, calls
from holdfast.kernel.db import run

HERE = Path(__file__).parent
SOURCES = Path(holdfast.__file__).parents[1]
LONG = timedelta(seconds=60)  # as long as a condition may take on a machine that is busy with other things
QUICK = {  # settings under which a scenario is told in seconds
    "lease": "1s", "recovery_interval": "300ms", "poll_min": "50ms", "poll_max": "500ms", "error_wait": "500ms",
    "grace": "20s",
}  # fmt: skip


def until(happened: Callable[[], Any], what: str) -> None:
    """Wait for a condition; `what` says what did not happen should it fail to."""
    assert locks.until(lambda: bool(happened()), within=LONG), f"in {LONG.seconds} s it did not happen that {what}"


class Server(Protocol):
    """A PostgreSQL to be killed and started again: the embedded one of a home, or a cluster of our own."""

    admin: str

    def halt(self) -> None:
        """End it at once, as `pg_ctl stop -m immediate` does."""

    def start(self) -> None:
        """Start it unless it runs, and wait until it takes connections."""

    def restart(self) -> None:
        """Do as `pg_ctl restart -m immediate`."""

    def log(self) -> str:
        """Give what it wrote to its log."""


class Database:
    """A test's own database, by connections that are made for each question: its server may come and go."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    @contextmanager
    def connection(self) -> Iterator[Connection[Any]]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            yield connection

    def rows(self, statement: str, *arguments: Any) -> list[Any]:
        with self.connection() as connection:
            return connection.execute(statement, arguments).fetchall()

    def do(self, statement: LiteralString) -> None:
        with self.connection() as connection:
            connection.execute(statement)

    def value(self, statement: str, *arguments: Any) -> Any:
        ((found,),) = self.rows(statement, *arguments)
        return found

    def start(self, kind: str, *, key: str | None = None, due_in: float = 0, **arguments: Any) -> int:
        """Start a task, and give its number."""
        with self.connection() as connection:
            (now,) = connection.execute("select holdfast.clock()").fetchone() or (None,)
            due_at = now + timedelta(seconds=due_in) if due_in else None
            (step_id,) = run(connection, calls.start_task(kind, arguments, key=key, due_at=due_at))
        return step_id

    def start_many(self, kind: str, count: int, *, queue: str | None = None, **arguments: Any) -> int:
        """Start as many, and give how many were acknowledged."""
        with self.connection() as connection:
            return bulk.start_tasks(connection, [bulk.Start(kind, json.dumps(arguments), queue)] * count)

    def count(self, event: str) -> int:
        """Count what the journal says of an event."""
        found: int = self.value("select count(*) from holdfast.journal where event = %s", event)
        return found

    def story(self, step_id: int) -> list[str]:
        """Give the events of a step, in order."""
        return [e for (e,) in self.rows("select event from holdfast.journal where step_id = %s order by id", step_id)]

    def step(self, step_id: int) -> dict[str, Any]:
        """Give a step as people look at it."""
        found: dict[str, Any] = self.value("select to_jsonb(s) from holdfast.step_list s where id = %s", step_id)
        return found

    def is_over(self, *step_ids: int) -> bool:
        """Whether all of these steps are."""
        wanted = "select bool_and(finished_at is not null) from holdfast.steps where id = any (%s)"
        return bool(self.value(wanted, list(step_ids)))

    def held_by(self) -> dict[str, int]:
        """Tell which worker, by its --name, holds how many steps."""
        held = """select split_part(lease_owner, '/', 1), count(*)::int from holdfast.steps
                   where lease_id is not null group by 1"""
        return dict(self.rows(held))


def until_done(database: Database, count: int) -> None:
    """Wait for as many successes."""
    while_moving(database, lambda: database.count("succeeded") >= count, f"{count} were done")


def while_moving(database: Database, happened: Callable[[], bool], what: str) -> None:
    """Wait for a condition while the journal grows: a busy machine is slow, but it does not stand still."""
    moves, before = 0, -1
    while moves != before:
        if locks.until(happened, within=LONG):
            return
        before, moves = moves, database.value("select count(*) from holdfast.journal")
    done = database.count("succeeded")
    raise AssertionError(f"in {LONG.seconds} s nothing moved, {done} were done, and it did not happen that {what}")


def waiting_for_a_lock(database: Database) -> int:
    """Count connections that wait for one in this database."""
    wanted = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    found: int = database.value(wanted)
    return found


class Member:
    """One process of the crew, most often of `holdfast worker`."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.process = process
        self._log = log

    @property
    def pid(self) -> int:
        return self.process.pid

    def said(self, event: str) -> list[dict[str, Any]]:
        """Give its log lines of that name; those of the processes it supervises are among them."""
        whole = self._log.read_text().split("\n")[:-1]
        return [line for line in map(_read, whole) if line.get("event") == event]

    def text(self) -> str:
        return self._log.read_text()

    def await_said(self, event: str, *, times: int = 1) -> list[dict[str, Any]]:
        until(lambda: len(self.said(event)) >= times or self.has_ended, f"{self.name} said {event}:\n{self.text()}")
        assert len(self.said(event)) >= times, f"{self.name} ended without {event}:\n{self.text()}"
        return self.said(event)

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def exit_code(self) -> int:
        """Wait for its end."""
        try:
            return self.process.wait(LONG.total_seconds())
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} does not end:\n{self.text()}") from None

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.pid).children()


class Crew:
    """The workers of one test. Each is told its folder by its environment, and by that found again at the end."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self.folder = folder
        self._dsn = dsn
        self._members: list[Member] = []

    def hire(self, *options: str, app: str = "chores", prefix: tuple[str, ...] = (), **settings: str) -> Member:
        """Start a worker; its name is w and a number unless the options say otherwise."""
        number = len(self._members) + 1
        name = options[options.index("--name") + 1] if "--name" in options else f"w{number}"
        own_name = () if "--name" in options else ("--name", name)
        command = [*prefix, sys.executable, "-m", "holdfast", "worker", "--app", app, *own_name, *options]
        return self.run(name, *command, **settings)

    def run(self, name: str, *command: str, **settings: str) -> Member:
        """Start a process that knows the database and the folder, and ends with the others."""
        log = self.folder / f"{len(self._members) + 1}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*_dies_with_us(), *command],
                env=self._environment(settings),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                process_group=0,
            )
        self._members.append(Member(name, process, log))
        return self._members[-1]

    def hire_ready(self, *options: str, **more: Any) -> Member:
        """Start a worker, and wait until it works."""
        member = self.hire(*options, **more)
        member.await_said("worker.connected")
        return member

    def open(self, gate: str) -> None:
        """Let handlers that wait for this gate end."""
        (self.folder / gate).touch()

    def dismiss(self) -> None:
        """End all processes that are left."""
        for process in self.processes():
            with suppress(psutil.Error):
                process.kill()
        for member in self._members:
            member.process.wait()

    def processes(self) -> list[psutil.Process]:
        """List those that live, also where their supervisor is gone."""
        return [process for process in psutil.process_iter() if _folder_of(process) == str(self.folder)]

    def _environment(self, settings: dict[str, str]) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        given = QUICK | {"dsn": self._dsn, "test_folder": str(self.folder)} | settings
        path = {"PYTHONPATH": os.pathsep.join([str(HERE), str(SOURCES)])}
        return clean | path | {f"HOLDFAST_{name.upper()}": value for name, value in given.items()}


def _dies_with_us() -> tuple[str, ...]:
    """Let a worker end with the process that runs the tests, also when that is killed with -9."""
    return ("setpriv", "--pdeathsig", "KILL", "--") if shutil.which("setpriv") else ()


def _folder_of(process: psutil.Process) -> str | None:
    try:
        return None if process.status() == psutil.STATUS_ZOMBIE else process.environ().get("HOLDFAST_TEST_FOLDER")
    except psutil.Error:
        return None


def _read(line: str) -> dict[str, Any]:
    with suppress(ValueError):
        found = json.loads(line)
        return found if isinstance(found, dict) else {}
    return {}
