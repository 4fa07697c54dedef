"""The reference of the SQL functions says what is there: each public function with its parameters, and each error."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from psycopg import Connection

from holdfast import errors
from holdfast.kernel import sources

DB = Connection[Any]
TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "sql.md").read_text("utf-8")
# A default is what stands between two commas; one has a call in it.
SIGNATURE = re.compile(rf"^    ((?:{'|'.join(sources.schemas())})\.\w+)\(((?:[^()]|\(\))*)\)", re.MULTILINE)
EXAMPLE = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_public_function_is_there_with_its_parameters(db: DB) -> None:
    """Deliver: the surface for workers in any language, documented."""
    written = {name: [part.split()[0] for part in given.split(",") if part] for name, given in SIGNATURE.findall(TEXT)}
    public = db.execute(
        """select p.pronamespace::regnamespace || '.' || p.proname, coalesce(p.proargnames[:p.pronargs], '{}')
             from pg_proc p
            where p.pronamespace = any (%s::regnamespace[])
              and exists (select from unnest(array['hf_producer', 'hf_worker', 'hf_reader', 'hf_operator']) r
                           where has_function_privilege(r, p.oid, 'execute'))""",
        [sources.schemas()],
    )

    assert written == dict(public.fetchall())


def test_every_error_is_there(db: DB) -> None:
    """Each SQLSTATE of ours with its Python leaf."""
    written = dict(re.findall(r"^\| `(RN\d{3})` \| `(\w+)` \|", TEXT, re.MULTILINE))

    assert written == {state: leaf.__name__ for state, leaf in errors.BY_SQLSTATE.items()}


def test_the_examples_run_in_order_on_a_new_database(db: DB) -> None:
    """And leave it sound."""
    for example in EXAMPLE.findall(TEXT):
        db.execute(example)

    assert db.execute("select count(*) from holdfast.violations()").fetchone() == (0,)
    noted = db.execute("select message from holdfast.notes where lease_id is not null").fetchall()
    assert noted == [("half way",), ("Building",)]
    states = db.execute(
        "select state, count(*) from holdfast.steps where kind = 'mail' group by 1 order by 1"
    ).fetchall()
    assert states == [("cancelled", 1), ("done", 1), ("pending", 1)]
