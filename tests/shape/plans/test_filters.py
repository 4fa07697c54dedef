"""A filter that is a function costs what the expression costs: it is put into the query, and the plan is the same."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg import Connection

from holdfast.models import error_text

DB = Connection[Any]
SAME = {
    "holdfast.matches($1, kind)": "($1 is null or kind = $1)",
    "holdfast.matches_any($2, kind)": "($2 is null or kind = any ($2))",
    "holdfast.is_live_worker(created_at, $3)": "created_at > $3 - interval '150 s'",
    "left(holdfast.error_text(error), 9) = $1": "left(coalesce(error ->> 'message', error #>> '{}'), 9) = $1",
}


@pytest.mark.parametrize("mode", ["force_generic_plan", "force_custom_plan"])
@pytest.mark.parametrize("call", SAME)
def test_a_filter_is_planned_as_its_expression(db: DB, call: str, mode: str) -> None:
    def plan(condition: str) -> list[Any]:
        db.execute(f"prepare asked (text, text[], timestamptz) as select id from holdfast.steps where {condition}")  # type: ignore[arg-type]
        rows = db.execute("explain (costs off) execute asked ('mail', '{mail,page}', '2030-01-01')").fetchall()
        db.execute("deallocate asked")
        return rows

    db.execute(f"set plan_cache_mode = {mode}")  # type: ignore[arg-type]

    assert plan(call) == plan(SAME[call])


@pytest.mark.one_server
@pytest.mark.parametrize("error", ['{"message": "bad", "type": "E"}', '{"type": "E"}', '"bad"', '{"message": null}'])
def test_python_and_sql_put_an_error_into_the_same_words(db: DB, error: str) -> None:
    ((found, text),) = db.execute("select %s::jsonb, holdfast.error_text(%s)", [error, error]).fetchall()

    assert error_text(found) == text
