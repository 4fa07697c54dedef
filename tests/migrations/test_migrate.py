"""Migrating: an empty database, again, several at once, killed in the middle, and as a script."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import psycopg
import pytest

from holdfast import errors, faces
from holdfast.connections.deadline import connect
from holdfast.kernel import calls, db, migrate, sources
from holdfast.models import Violation
from migrations.conftest import Server, as_admin
from scenarios.proof import Proof

NUMBERS = [m.number for m in sources.migrations()]
MIGRATIONS = [m.name for m in sources.migrations()]
CODE = "functions, views and machines"
EVERYTHING = [*MIGRATIONS, CODE, *(f"index {index.name}" for index in sources.indexes())]


def at_once(*tasks: Callable[[], list[str]]) -> list[list[str]]:
    """Do things at the same moment, each in a thread of its own."""
    barrier = Barrier(len(tasks))

    def begin(task: Callable[[], list[str]]) -> list[str]:
        barrier.wait(30)
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(begin, tasks))


def violations(server: Server, dsn: str) -> list[Violation]:
    with connect(as_admin(dsn, server.admin)) as connection:
        return db.run(connection, calls.violations())


def through_psql(server: Server, dsn: str, script: str) -> None:
    command: list[str | Path] = [server.program("psql"), "--no-psqlrc", "--quiet", "--dbname", dsn]
    subprocess.run(command, input=script, text=True, check=True, stdout=subprocess.DEVNULL)


def test_four_at_once_on_a_server_that_has_no_roles_yet(server: Server, proof: Proof) -> None:
    """R32: two for each of two databases, which share the server's roles; each part is applied by one of them."""
    one, two = server.database(), server.database()

    applied = at_once(*[lambda dsn=dsn: migrate.run(dsn) for dsn in (one, two, one, two)])

    proof.add(rounds=len(applied))
    assert sorted(applied[0] + applied[2]) == sorted(applied[1] + applied[3]) == sorted(EVERYTHING)
    assert server.dump(one) == server.dump(two)
    assert violations(server, one) == violations(server, two) == []


def test_a_login_that_may_make_roles_migrates_its_own_database(server: Server) -> None:
    """R32: no superuser is needed; what it makes belongs to hf_owner."""
    dsn = server.database()

    assert migrate.status(dsn).pending == MIGRATIONS
    assert migrate.run(dsn) == EVERYTHING

    status = migrate.status(dsn)
    assert (status.schema_version, status.pending) == (migrate.code_version(), [])
    with connect(dsn) as connection:
        migrate.check(connection)
        row = connection.execute(
            """select r.rolsuper, (select array_agg(distinct pg_get_userbyid(c.relowner)) from pg_class c
                                    where c.relnamespace = 'holdfast'::regnamespace)
                 from pg_roles r where r.rolname = current_user"""
        ).fetchone()
    assert row == (False, ["hf_owner"])


def test_a_second_time_there_is_nothing_to_do(server: Server) -> None:
    """R32"""
    dsn = server.database()
    migrate.run(dsn)
    before = server.dump(dsn), installed_at(dsn)

    assert migrate.run(dsn) == []
    assert (server.dump(dsn), installed_at(dsn)) == before


def installed_at(dsn: str) -> list[tuple[object, ...]]:
    with connect(dsn) as connection:
        return connection.execute("select * from holdfast.installed order by part").fetchall()


def test_four_at_once_on_one_database_agree(server: Server, proof: Proof) -> None:
    """R32"""
    dsn = server.database()

    applied = at_once(*[lambda: migrate.run(dsn)] * 4)

    proof.add(rounds=len(applied))
    assert sorted(part for parts in applied for part in parts) == sorted(EVERYTHING)
    assert violations(server, dsn) == []


@pytest.mark.parametrize("number", NUMBERS)
def test_one_that_is_killed_is_taken_up_by_the_next(server: Server, number: int) -> None:
    """R2: what it had not committed is not there."""
    dsn, whole = server.database(), server.database()
    program = f"from holdfast.kernel import migrate; migrate.run({dsn!r})"
    environment = {**os.environ, "HOLDFAST_FAILPOINT": f"migrate_{number}:kill9"}

    killed = subprocess.run([sys.executable, "-c", program], env=environment)

    assert killed.returncode == -signal.SIGKILL
    place = NUMBERS.index(number)
    assert migrate.status(dsn).schema_version == (NUMBERS[place - 1] if place else None)
    assert migrate.run(dsn) == EVERYTHING[place:]
    migrate.run(whole)
    assert server.dump(dsn) == server.dump(whole)


def test_the_script_makes_the_same_schema(server: Server) -> None:
    """Where nobody may let a program in, an administrator runs it through psql."""
    dsn, by_script = server.database(), server.database()
    migrate.run(dsn)

    through_psql(server, by_script, migrate.script())

    assert server.dump(by_script) == server.dump(dsn)
    assert migrate.run(by_script) == []
    assert violations(server, by_script) == []


def test_the_script_for_a_migrated_database_leaves_out_what_is_applied(server: Server) -> None:
    """As after an upgrade: it can be run again, and changes nothing that stands."""
    dsn = server.database()
    migrate.run(dsn)
    before = server.dump(dsn)

    through_psql(server, dsn, migrate.script(after=migrate.code_version()))

    assert server.dump(dsn) == before


def test_partitions_are_made_once_by_whoever_comes_first(server: Server) -> None:
    """R32: four connections, seven months more than there are; of journal and notes each."""
    dsn = server.database()
    migrate.run(dsn)

    made = at_once(*[lambda: make_partitions(as_admin(dsn, server.admin), ahead=20)] * 4)

    assert sorted(int(amount) for (amount,) in made) == [0, 0, 0, 14]
    assert violations(server, dsn) == []


def make_partitions(dsn: str, *, ahead: int) -> list[str]:
    with psycopg.connect(dsn, options="-c role=hf_owner", autocommit=True) as connection:
        row = connection.execute("select holdfast.make_partitions(%s)", [ahead]).fetchone()
        assert row is not None
        return [str(row[0])]


def test_a_database_that_is_not_migrated_is_refused(server: Server) -> None:
    """By every command that needs the schema."""
    with connect(server.database()) as connection:
        with pytest.raises(errors.NotMigrated, match="holdfast db migrate"):
            migrate.check(connection)
        with pytest.raises(errors.NotMigrated, match="holdfast db migrate"):
            db.run(connection, calls.claim_steps("w"))


def test_a_function_and_the_one_that_replaces_it_are_swapped_in_one_transaction(server: Server) -> None:
    """R32: where the install fails, the function that it would have dropped is still there."""
    dsn = server.database()
    migrate.run(dsn)
    outdated = "select to_regprocedure('holdfast.upkeep(int)') is not null"
    with connect(as_admin(dsn, server.admin)) as connection:
        connection.execute("create function holdfast.upkeep(int) returns int language sql return $1")
        connection.execute("alter function holdfast.upkeep(int) owner to hf_owner")
        connection.execute("update holdfast.installed set digest = 'of yesterday' where part = 'code'")

        with faces.plugged("broken", "migrations.broken_face"), pytest.raises(psycopg.Error):
            migrate.run(dsn)
        assert connection.execute(outdated).fetchone() == (True,)

        assert migrate.run(dsn) == [CODE]
        assert connection.execute(outdated).fetchone() == (False,)


def test_no_migration_drops_a_function() -> None:
    """They would be missing until the code is installed; dropped.sql is part of that transaction."""
    assert [m.name for m in sources.migrations() if "drop function" in m.text] == []
