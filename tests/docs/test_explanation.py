"""The pages that map the source documents to ours say what was asked of them, in names that exist."""

from __future__ import annotations

import re
from typing import Any

import pytest
from psycopg import Connection

from docs.pages import DOCS, blocks
from holdfast.worker.metrics import Meters

ENGINE = (DOCS / "explanation" / "document-003.md").read_text("utf-8")
LOOP = (DOCS / "explanation" / "document-004.md").read_text("utf-8")
NAMES = """
select n.nspname || '.' || p.proname from pg_proc p join pg_namespace n on n.oid = p.pronamespace
union select n.nspname || '.' || c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
union select machine from holdfast.machines
union select policy from holdfast.policies
"""
GUARANTEES = (DOCS / "explanation" / "guarantees.md").read_text("utf-8")


def test_the_page_of_the_worker_loop_names_metrics_that_exist() -> None:
    """W-56: also those of used-up tries and of the backlog."""
    named = set(re.findall(r"`(holdfast_\w+)", LOOP))
    known = {metric.name for metric in Meters().registry.collect()}

    assert {"holdfast_exhausted_total", "holdfast_backlog"} <= named
    assert {name for name in named if name.removesuffix("_total") not in known} == set()


def test_the_page_of_the_worker_loop_says_where_we_differ() -> None:
    """W-27, W-36, W-55: what waits, how tries are counted, and where the trace id is."""
    assert {"W-27", "W-36", "W-55"} <= set(re.findall(r"W-\d+", LOOP))
    assert "`try_count` may pass `max_tries`" in " ".join(LOOP.split())


def test_the_page_of_the_engine_says_once_what_becomes_of_states_changed_by_hand() -> None:
    """T-141: the views refuse it; of the tables' owner a legal move is journaled."""
    (row,) = (line for line in ENGINE.splitlines() if "T-141" in line)

    assert "owner" in row
    assert "by_hand" in row


def test_what_is_not_guaranteed_includes_the_actor_of_an_owner() -> None:
    """tests/security/test_roles.py shows that it is so."""
    _, _, section = GUARANTEES.partition("## Not guaranteed")

    assert {"holdfast.actor_kind", "holdfast.actor"} <= set(re.findall(r"`([\w.]+)`", section))
    assert "`tests/security/test_roles.py`" in section


@pytest.mark.one_server
def test_the_sql_of_the_design_pages_names_what_the_database_has(db: Connection[Any]) -> None:
    """Functions, tables, machines and policies of ours, in every block of SQL."""
    text = "\n".join(
        block.text for page in (DOCS / "design").glob("*.md") for block in blocks(page) if block.language == "sql"
    )
    named = set(re.findall(r"\b(?:holdfast|work|flow|ops|rules|ingest)\.[a-z_]+", text))

    assert len(named) > 3
    assert named - {name for (name,) in db.execute(NAMES)} == set()
