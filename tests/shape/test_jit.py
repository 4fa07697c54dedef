"""A function that disables a plan type must disable JIT: before PostgreSQL 18 each of its plans would be compiled."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg import Connection

SWITCHES = """
select p.oid::regprocedure::text, array_agg(split_part(c.setting, '=', 1)), bool_or(c.setting = 'jit=off')
  from pg_proc p
 cross join lateral unnest(p.proconfig) c (setting)
 where p.pronamespace in ('holdfast'::regnamespace, 'work'::regnamespace, 'flow'::regnamespace)
 group by p.oid
"""


@pytest.mark.one_server
def test_a_function_that_switches_a_plan_type_also_switches_jit_off(db: Connection[Any]) -> None:
    found = db.execute(SWITCHES).fetchall()

    switching = {
        name: has_no_jit for name, settings, has_no_jit in found if any(s.startswith("enable_") for s in settings)
    }
    assert any(name.startswith("holdfast.claim_steps(") for name in switching)
    assert [name for name, has_no_jit in switching.items() if not has_no_jit] == []
