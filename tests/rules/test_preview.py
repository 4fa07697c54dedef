"""Previews in SQL: targets, values, refusals and the plan."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from jsonschema import Draft202012Validator
from psycopg import Connection
from psycopg.types.json import Jsonb

from holdfast import Holdfast
from holdfast.errors import BadDefinition
from holdfast.rules import from_json
from holdfast.rules.language import json_schema
from holdfast.rules.plan import PlannedTarget, digest
from holdfast.testing import Clock
from kernel.steps import value
from rules.plans import RULE, applied, define, preview, refused, row, rows, run, status, statuses, targets, work

DB = Connection[Any]


def test_a_preview_writes_targets_refusals_and_a_plan_and_nothing_else(db: DB, clock: Clock) -> None:
    """A-02 A-09 A-24 A-117 A-119: the plan expires after a day"""
    now = clock.freeze()
    define(db)
    answer = preview(
        db,
        [row("b", 1000, 800), row("a", 500, 600), row("c", 300, 240, "USD")],
        [("d", "below_minimum", "below the minimum 3.50", "EUR", 400, 320)],
        unchanged=31,
    )

    stored = run(db, answer["run_id"])
    assert (stored["status"], stored["rule_id"], stored["channel"], stored["source"]) == (
        "PREVIEW", "summer", "shop", "api",
    )  # fmt: skip
    assert statuses(db, answer["run_id"]) == ["PREVIEW"] * 3
    assert stored["counts"]["refused"] == 1
    before = targets(db, answer["run_id"])[0]["before_json"]
    assert before == {"unit_amount": 1000, "currency": "EUR", "compare_at": None}
    assert stored["plan"]["sums"] == {
        "EUR": {"targets": 2, "before": 1500, "after": 1400},
        "USD": {"targets": 1, "before": 300, "after": 240},
    }
    assert [move["item"] for move in stored["plan"]["largest"]["down"]] == ["b", "c"]
    assert [(move["item"], move["percent"]) for move in stored["plan"]["largest"]["up"]] == [("a", 20)]
    assert stored["expires_at"] == now + timedelta(hours=24)
    refusals = db.execute("select item_id, reason, message, price_before, price_after from rules.refusals").fetchall()
    assert refusals == [("d", "below_minimum", "below the minimum 3.50", 400, 320)]


def test_the_hash_is_the_same_in_sql_and_in_python_and_in_any_order(db: DB) -> None:
    """A-119: one digest per thousand targets, by the bytes of their items"""
    define(db)
    odd = [row("é", 5, 4), row("Z", 5, 4, "JPY"), row("a b", 9, 7, compare_before=1, compare_after=9,
           writes_compare_at=True), row("日本", 1, 2)]  # fmt: skip
    planned = [*odd, *rows(1001)]
    first, second = (preview(db, given, channel="shop") for given in (planned, planned[::-1]))
    other = preview(db, [row("é", 5, 3), *planned[1:]])

    assert first["plan_hash"] == second["plan_hash"] != other["plan_hash"]
    ((text,),) = db.execute("select plan::text from rules.plans where run_id = %s", [first["run_id"]]).fetchall()
    targets_by_item = sorted((PlannedTarget(*each) for each in planned), key=lambda t: t.item_id.encode())
    assert digest(text, targets_by_item) == first["plan_hash"]


def test_a_rule_has_versions_and_a_run_keeps_its_own(db: DB) -> None:
    define(db)
    changed = {**RULE, "transform": {"percent": "-10"}}
    define_rule = "select rules.define_rule(%s)"

    assert [value(db, define_rule, Jsonb(each)) for each in (RULE, RULE, changed)] == [1, 1, 2]
    old = preview(db, rows(1), rule=changed)
    draft = preview(db, rows(1, first=2), rule={**RULE, "transform": {"percent": "-5"}})
    assert [run(db, each["run_id"])["rule_version"] for each in (old, draft)] == [2, 3]
    assert run(db, old["run_id"])["plan"]["rule"] == changed
    assert db.execute("select rule_id, version from rules.rule_list").fetchall() == [("summer", 2)]
    assert value(db, define_rule, Jsonb(RULE)) == 4


@pytest.mark.parametrize(
    "other",
    [{"rule": {**RULE, "transform": {"percent": "-5"}}}, {"channel": "web"}, {"source": "cli"}, {"project_id": "p"}],
    ids=["rule", "channel", "source", "project"],
)
def test_the_same_key_gives_the_same_preview_and_another_request_is_refused(db: DB, other: dict[str, Any]) -> None:
    define(db)
    define(db, "web")
    first, again = (preview(db, rows(2), key="k") for _ in range(2))

    assert (first["run_id"], first["is_new"], again["is_new"]) == (again["run_id"], True, False)
    with pytest.raises(psycopg.Error) as raised:
        preview(db, rows(2), key="k", **other)
    assert raised.value.sqlstate == "RN003"
    assert value(db, "select count(*) from rules.target_values") == 2


def test_a_key_still_gives_its_preview_after_the_prices_were_written(db: DB) -> None:
    """The repeat plans other targets, because the first plan has changed the items"""
    define(db)
    first = preview(db, rows(2), key="nightly")
    applied(db, first["run_id"])
    work(db)

    again = preview(db, rows(2, before=800, after=640), key="nightly")

    assert (again["run_id"], again["is_new"], again["plan_hash"]) == (first["run_id"], False, first["plan_hash"])
    assert value(db, "select count(*) from rules.target_values") == 2
    assert status(db, first["run_id"]) == "APPLIED"


def test_a_preview_carries_who_asked_and_for_what(db: DB) -> None:
    """A-106, A-117"""
    define(db)
    own = preview(db, rows(1), metadata={"correlationId": "req-1"}, actor="ann", project_id="p", source="console")
    default = preview(db, rows(1, first=2))

    assert run(db, own["run_id"])["metadata"] == {"actor": "ann", "correlationId": "req-1", "source": "console"}
    assert run(db, default["run_id"])["metadata"]["correlationId"] == str(default["run_id"])
    child = preview(db, rows(1, first=3), parent_run_id=own["run_id"])
    assert run(db, child["run_id"])["parent_run_id"] == own["run_id"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"channel": "nobody"}, "RN004"),
        ({"rule": []}, "RN005"),
        ({"rule": {}}, "RN005"),
        ({"expires_in": timedelta(days=31)}, "RN005"),
        ({"expires_in": timedelta(0)}, "RN005"),
        ({"unchanged": -1}, "RN005"),
        ({"unmatched": -1}, "RN005"),
        ({"metadata": {"correlationId": "a\nb"}}, "RN005"),
        ({"parent_run_id": UUID(int=1)}, "RN004"),
        ({"rule": {"name": "x", "list": "y" * 9_000_000}}, "RN011"),
        ({"tenant": "*"}, "RN005"),
    ],
    ids=lambda given: "" if isinstance(given, str) else ", ".join(given),
)
def test_bad_input_is_refused_and_leaves_nothing(db: DB, given: dict[str, Any], expected: str) -> None:
    define(db)

    with pytest.raises(psycopg.Error) as raised:
        preview(db, rows(1), **given)

    assert raised.value.sqlstate == expected
    for table in ("holdfast.runs", "holdfast.steps", "rules.target_values", "rules.run_facts", "rules.rule_versions"):
        assert value(db, f"select count(*) from {table}") == 0, table


@pytest.mark.parametrize("name", ["a", "a b", "é" * 100, "a" * 101, "a" * 150, "*", ""], ids=str)
def test_a_rule_has_the_same_name_in_python_in_its_schema_and_in_sql(db: DB, name: str) -> None:
    definition = {**RULE, "name": name}
    in_schema = Draft202012Validator(json_schema.schema()).is_valid(definition)
    in_sql = refused(db, "select rules.define_rule(%s)", [Jsonb(definition)])
    in_python = None
    try:
        from_json(definition)
    except BadDefinition as error:
        in_python = error.where

    assert (in_schema, in_sql, in_python) in [(True, None, None), (False, "RN005", "name")]


def test_python_names_what_is_wrong_in_a_rule_that_was_stored_with_plain_sql(db: DB, hf: Holdfast) -> None:
    """SQL checks the name and the size; the plan is applied all the same, because SQL evaluates no rule"""
    define(db)
    wrong = {**RULE, "selector": {"field": "price", "op": "near", "value": "1"}}
    answer = preview(db, rows(1), rule=wrong)

    with pytest.raises(BadDefinition) as exc_info:
        hf.rules.run(answer["run_id"]).explain("SKU-1")
    assert "near" in exc_info.value.what
    assert applied(db, answer["run_id"])["status"] == "QUEUED"


def test_nothing_is_taken_that_was_not_staged(db: DB) -> None:
    define(db)

    assert refused(db, "select rules.take_preview(%s, 'shop')", [Jsonb(RULE)]) == "RN005"
    with db.transaction(force_rollback=True):
        db.execute("select rules.stage_targets('shop')")
        db.execute("insert into pg_temp.staged_steps (kind, item_id, currency, price_before, price_after) "
                   "values ('other', 'a', 'EUR', 2, 1)")  # fmt: skip
        assert refused(db, "select rules.take_preview(%s, 'shop')", [Jsonb(RULE)]) == "RN005"


COLUMNS = {
    "rule_runs": "id tenant_id project_id rule_id channel source status metadata plan_hash expires_at counts error "
    "queued_at started_at finished_at parent_run_id",
    "rule_targets": "id rule_run_id item_id included status attempts apply_seq before_json after_json reason error "
    "retryable applied_at last_attempt_at next_due_at resolved_at",
    "refusals": "rule_run_id item_id reason message",
    "price_changes": "item_id old_json new_json source effect rule_run_id target_id",
    "events": "id event_key tenant_id event_type payload correlation_id",
    "channels": "channel batch request_timeout target_timeout queue",
}


def test_the_documents_columns_are_there(db: DB) -> None:
    """A-117, X-11: document 000 prints no SQL; its listing of the dead letter reads the view"""
    assert db.execute("select * from rules.rule_targets where status = 'FAILED'").fetchall() == []
    names = COLUMNS
    for view, wanted in names.items():
        columns = db.execute(
            "select column_name from information_schema.columns where table_schema = 'rules' and table_name = %s",
            [view],
        )
        assert set(wanted.split()) - {name for (name,) in columns} == set(), view
