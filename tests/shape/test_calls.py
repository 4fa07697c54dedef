"""Python and SQL say the same: functions and parameters, rows and columns, events and states, files and functions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import psycopg
import pytest
from psycopg import Connection

from holdfast import faces
from holdfast.kernel import sources
from holdfast.kernel.call import Call
from holdfast.kernel.schedule_calls import Target, When
from holdfast.models import ActorKind, Event, JournalEntry, Json, Level, RunOutcome
from holdfast.rules import clock_calls
from holdfast.testing import Template

DB = Connection[Any]

SOURCE = Path(str(files("holdfast")))
MODULES = [
    import_module(f"holdfast.{folder}.{file.stem}")
    for folder in ("kernel", *faces.FACES)
    for file in sorted((SOURCE / folder).glob("*calls.py"))
]
MADE = [
    make
    for module in MODULES
    for _, make in inspect.getmembers(module, inspect.isfunction)
    if make.__module__ == module.__name__
    and str(make.__annotations__.get("return")).startswith("Call[")
    and make is not clock_calls.apply  # calls one of two others
]
SAMPLES: dict[str, Any] = {"str": "1", "int": 1, "Any": {}, "Json": Json("{}"), "Level": "info", "UUID": None,
                           "timedelta | str | None": None, "datetime": None, "Mapping[str, Any]": {},
                           "timedelta": None, "list[dict[str, Any]]": [],
                           "Target": Target("work", "t", Json("{}"), {}, "default"), "When": When()}  # fmt: skip
PARAMETERS = """
select coalesce(array_agg(a.name order by a.no) filter (where a.mode in ('i', 'b')), '{}') as taken,
       array_agg(a.name order by a.no) filter (where a.mode in ('o', 'b', 't')) as given,
       p.prorettype::regtype::text
  from pg_proc p
  left join lateral unnest(p.proargnames, coalesce(p.proargmodes::text[], array_fill('i'::text, array[p.pronargs])))
         with ordinality a (name, mode, no) on true
 where p.pronamespace = %s::regnamespace and p.proname = %s
 group by p.oid
"""


def sample(make: Callable[..., Call[Any]]) -> Call[Any]:
    """Make a call with something for each parameter that must be given."""
    wanted = [p for p in inspect.signature(make).parameters.values() if p.default is p.empty]
    return make(
        **{
            p.name: [] if str(p.annotation).startswith(("Sequence", "Iterable")) else SAMPLES[p.annotation]
            for p in wanted
        }
    )


def columns_of(db: DB, relation: str) -> list[str]:
    query = "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 order by attnum"
    return [name for (name,) in db.execute(query, [relation])]


@pytest.fixture(scope="module")
def catalog(template: Template) -> Iterator[DB]:
    """One database for all of these: they only read."""
    with template.clone() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("make", MADE, ids=lambda make: make.__name__)
def test_a_call_names_a_function_with_just_its_parameters_and_columns(
    catalog: DB, make: Callable[..., Call[Any]]
) -> None:
    call = sample(make)

    ((taken, given, answer),) = catalog.execute(PARAMETERS, [call.schema, call.function]).fetchall()

    assert set(call.arguments) == set(taken)
    if is_dataclass(call.row):
        assert [f.name for f in fields(call.row)] == (given or columns_of(catalog, answer))
    if issubclass(call.row, tuple):
        assert list(call.row._fields) == (given or columns_of(catalog, answer))


def test_a_call_that_only_reads_is_known_by_its_function(catalog: DB) -> None:
    """An answer that is lost leaves a doubt only where something may have been written."""
    made = [sample(make) for make in MADE]

    for call in made:
        ((kind,),) = catalog.execute(
            "select provolatile::text from pg_proc where pronamespace = %s::regnamespace and proname = %s",
            [call.schema, call.function],
        )
        assert call.is_read == (kind != "v" or call.function == "clock"), call.function


def test_there_are_calls_at_all() -> None:
    assert {"start_task", "claim_steps", "settle_steps", "note", "define_schedule", "apply_at", "reconcile"} <= {
        make.__name__ for make in MADE
    }


def test_a_journal_entry_has_the_columns_of_the_journal(catalog: DB) -> None:
    assert [f.name for f in fields(JournalEntry)] == columns_of(catalog, "holdfast.journal")


@pytest.mark.parametrize(
    ("words", "relation", "constraint", "beyond"),
    [
        (Event, "machine_moves", "known_event", {"by_hand", "created"}),
        (ActorKind, "machine_moves", "known_actors", set()),
        (Level, "notes", "known_level", set()),
        (RunOutcome, "machine_states", "known_outcome", set()),
    ],
)
def test_python_knows_the_words_that_sql_knows(
    catalog: DB, words: Any, relation: str, constraint: str, beyond: set[str]
) -> None:
    ((check,),) = catalog.execute(
        "select pg_get_constraintdef(oid) from pg_constraint where conrelid = %s::regclass and conname = %s",
        [f"holdfast.{relation}", constraint],
    )

    assert set(get_args(words)) == set(re.findall(r"'(\w+)'", check)) | beyond


def _schema(file: Path) -> str:
    return "holdfast" if file.parts[0] == "kernel" else file.parts[0]


def test_each_file_makes_the_one_function_that_it_is_named_after(catalog: DB) -> None:
    """The kernel's lie in a folder per story, those of a face in the folder of its name."""
    root = Path(str(files("holdfast") / "sql"))
    made = {
        f"{_schema(file.relative_to(root))}.{file.stem}": re.findall(
            r"^create or replace function ([\w.]+)\(", file.read_text("utf-8"), re.MULTILINE
        )
        for file in root.glob("*/functions/**/*.sql")
    }
    installed = catalog.execute(
        """select p.pronamespace::regnamespace || '.' || p.proname from pg_proc p
            where p.pronamespace = any (%s::regnamespace[])""",
        [sources.schemas()],
    ).fetchall()

    assert made == {name: [name] for name in made}
    assert sorted(name for (name,) in installed) == sorted(made)


def test_a_machine_uses_only_states_and_events_that_are_known(catalog: DB) -> None:
    states = set(catalog.execute("select machine, state from holdfast.machine_states").fetchall())
    moves = catalog.execute("select machine, from_state, event, to_state from holdfast.machine_moves").fetchall()

    assert {event for _, _, event, _ in moves} <= set(get_args(Event)) - {"by_hand", "created"}
    assert {(machine, state) for machine, before, _, after in moves for state in (before, after)} == states


def test_a_machine_has_a_beginning_and_leaves_nothing_open_for_ever(catalog: DB) -> None:
    """One initial state for each machine, a way on from all that is not over, none out of what it never comes to."""
    ((beginnings,),) = catalog.execute(
        """select array_agg(m.machine) from holdfast.machines m
            where 1 <> (select count(*) from holdfast.machine_states s where s.machine = m.machine and s.is_initial)"""
    )
    ((dead_ends,),) = catalog.execute(
        """select array_agg(s.machine || ' ' || s.state) from holdfast.machine_states s
            where s.phase <> 'over'
              and not exists (select from holdfast.machine_moves m
                               where m.machine = s.machine and m.from_state = s.state)"""
    )
    assert (beginnings, dead_ends) == (None, None)
