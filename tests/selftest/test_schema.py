"""The kernel under another name: all of it moves, and nothing in the copy points back."""

from __future__ import annotations

import pytest

from holdfast.connections.deadline import connect
from holdfast.errors import BadInput
from holdfast.kernel import bulk, calls, migrate, self_test_schema, sources
from holdfast.kernel import db as kernel
from holdfast.kernel import self_test_place as place

NAME = "holdfast_selftest_0123abcd"
WORD = r"\mholdfast\M"  # PostgreSQL's way to say: as a whole word
SCHEMAS_OF_FACES = sources.schemas()[1:]
FACES = [f"{NAME}_{face}" for face in SCHEMAS_OF_FACES]
MENTIONS = f"""
select 'function ' || p.proname from pg_proc p
 where p.pronamespace = any (%(schemas)s::regnamespace[])
   and (pg_get_functiondef(p.oid) ~ '{WORD}'
        or pg_get_functiondef(p.oid) ~ '(?<![''"\\w.])({"|".join(SCHEMAS_OF_FACES)})[.][a-z]')
union all
select 'view ' || c.relname from pg_class c
 where c.relnamespace = any (%(schemas)s::regnamespace[]) and c.relkind = 'v' and pg_get_viewdef(c.oid) ~ '{WORD}'
union all
select 'default of ' || d.adrelid::regclass from pg_attrdef d join pg_class c on c.oid = d.adrelid
 where c.relnamespace = any (%(schemas)s::regnamespace[]) and pg_get_expr(d.adbin, d.adrelid) ~ '{WORD}'
union all
select 'policy ' || p.policyname from pg_policies p
 where p.schemaname::text::regnamespace = any (%(schemas)s::regnamespace[])
   and (p.qual ~ '{WORD}' or p.with_check ~ '{WORD}')
"""
OBJECTS = """
select p.proname from pg_proc p where p.pronamespace = any (%(schemas)s::regnamespace[])
union all
select c.relname from pg_class c where c.relnamespace = any (%(schemas)s::regnamespace[])
"""


@pytest.fixture
def copy(dsn):
    """The schema of a self-test, installed beside the real one."""
    with connect(dsn) as connection:
        place.make(connection, NAME)
        with self_test_schema.renamed(NAME):
            migrate.run(dsn)
        yield NAME
        place.sweep(connection)


def named(connection, *schemas):
    return {name for (name,) in connection.execute(OBJECTS, {"schemas": list(schemas)})}


def mentions(connection, *schemas):
    return {line for (line,) in connection.execute(MENTIONS, {"schemas": list(schemas)})}


def test_the_copy_has_all_that_the_original_has_and_never_names_it(db, copy):
    original = named(db, "holdfast") - {"test_clock", "test_clock_pkey"}

    assert named(db, copy) == original | {"effects", "found_before"}
    assert mentions(db, copy, *FACES) == set()
    assert {line.split()[0] for line in mentions(db, "holdfast")} == {"function", "view", "default", "policy"}


def test_each_face_has_a_schema_of_its_own_in_the_copy(db, copy):
    assert {face: named(db, f"{copy}_{face}") for face in SCHEMAS_OF_FACES} == {
        face: named(db, face) for face in SCHEMAS_OF_FACES
    }
    assert all(named(db, *FACES))


def test_what_is_started_in_the_copy_is_in_the_copy_alone(dsn, db, copy):
    with self_test_schema.renamed(copy), connect(dsn) as connection:
        kernel.run(connection, calls.start_task("mail", {}))
        bulk.start_tasks(connection, [bulk.Start("mail", "{}")] * 3)

    assert db.execute(f"select count(*) from {copy}.steps").fetchone() == (4,)
    assert db.execute("select count(*) from holdfast.steps").fetchone() == (0,)


def test_a_hint_of_the_copy_is_not_heard_in_the_original_and_the_other_way_round(dsn, db, copy):
    db.execute("listen holdfast")
    db.execute(f"listen {copy}")
    with self_test_schema.renamed(copy), connect(dsn) as connection:
        asleep(connection)
        kernel.run(connection, calls.start_task("mail", {}, queue="q"))
    asleep(db)
    kernel.run(db, calls.start_task("mail", {}, queue="q"))

    assert [hint.channel for hint in db.notifies(timeout=5, stop_after=2)] == [copy, "holdfast"]


def asleep(connection):
    kernel.run(connection, calls.enlist_worker("w", ["q"], kinds=["mail"]))
    kernel.run(connection, calls.mark_asleep("w", "q"))


@pytest.mark.parametrize("name", ["holdfast", "public", "holdfast_selftest_", f"{NAME}; drop table x", f"{NAME}0"])
def test_no_other_name_is_taken(name, monkeypatch):
    monkeypatch.setenv(self_test_schema.VARIABLE, name)

    with pytest.raises(BadInput, match="unset it"):
        self_test_schema.connects()


@pytest.mark.parametrize(
    ("statement", "renamed"),
    [
        ("select holdfast.clock()", "select X.clock()"),
        ("set search_path = pg_catalog, holdfast, pg_temp", "set search_path = pg_catalog, X, pg_temp"),
        ("select pg_notify('holdfast', q)", "select pg_notify('X', q)"),
        ("select current_setting('holdfast.actor', true)", "select current_setting('X.actor', true)"),
        ("create schema if not exists work", "create schema if not exists X_work"),
        ("comment on schema flow is 'work of a flow'", "comment on schema X_flow is 'work of a flow'"),
        ("grant usage on schema holdfast, work, flow to w", "grant usage on schema X, X_work, X_flow to w"),
        ("select t.* from work.tasks t where m = 'work.task'", "select t.* from X_work.tasks t where m = 'work.task'"),
        ("select from flow.steps s join holdfast.steps k", "select from X_flow.steps s join X.steps k"),
        ("listen holdfast_12345678", "listen holdfast_12345678"),
    ],
)
def test_statements_are_renamed_word_by_word(statement, renamed):
    with self_test_schema.renamed(NAME):
        assert self_test_schema.reworded(statement).decode() == renamed.replace("X", NAME)


def test_outside_a_self_test_statements_are_sent_as_they_are_written(db):
    assert "cursor_factory" not in self_test_schema.connects() | self_test_schema.aconnects()
