"""`holdfast rules`: rules that are defined, previewed, applied, retried and explained."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from holdfast import Holdfast
from holdfast.rules.table import Table
from holdfast.testing import drain

APP = """
from holdfast import Holdfast
from holdfast.rules.table import Table

hf = Holdfast()
hf.rules.channel("shop", Table("shop.products", key="sku", price="price", compare_at="compare_at", tags="tags",
                               currency="EUR"))
"""
SUMMER = {
    "name": "summer",
    "selector": {"and": [{"tag": "sale"}, {"field": "price", "op": "gte", "value": "1.00"}]},
    "transform": {"percent": "-20", "round": {"nearest": "0.05"}, "compareAt": "before"},
    "guardrails": {"minPrice": "3.50", "maxDecreasePercent": "30"},
}
MADE = """
drop schema if exists shop cascade;
create schema shop;
create table shop.products (
  sku text primary key, price numeric(12, 2), compare_at numeric, tags text[] default '{sale}');
insert into shop.products (sku, price) values ('SKU-1042', 49.90), ('SKU-1050', 15), ('SKU-77', 4), ('SKU-9', 0.50);
"""


@pytest.fixture
def shop(dsn, tmp_path, monkeypatch):
    (tmp_path / "prices_app.py").write_text(APP)
    (tmp_path / "summer.json").write_text(json.dumps(SUMMER))
    (tmp_path / "list.csv").write_text("\ufeffsku,price\nSKU-1050,14.50\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.chdir(tmp_path)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(MADE)
        yield connection
        connection.execute("drop schema shop cascade")


def work(dsn):
    hf = Holdfast(dsn)
    hf.rules.channel("shop", Table("shop.products", key="sku", price="price", compare_at="compare_at", currency="EUR"))
    try:
        return drain(hf)
    finally:
        hf.close()


def test_a_rule_goes_from_its_file_to_prices_that_explain_themselves(cli, found, shop, dsn):
    """A-107, A-108, X-13: the output of a preview, the exit codes, and the actions that are possible."""
    assert cli("rules", "define", "summer.json").stdout == "summer 1\n"
    done = cli("rules", "preview", "summer", "--channel", "shop", "--app", "prices_app:hf")
    lines = done.stdout.splitlines()

    assert done.returncode == 0, done.stderr
    assert lines[0] == "~ SKU-1042   49.90 → 39.90 EUR   -20.0 %   compare at - → 49.90"
    assert lines[2] == "! SKU-77   4.00 → 3.20 EUR   refused: below the minimum 3.50"
    assert "2 to change, 0 unchanged, 1 refused; -13.00 EUR, largest -20.0 %; expires " in lines[3]
    run_id, digits = done.stderr.split("rules apply ")[1].split(" --plan ")
    (listed,) = found("rules", "list")
    assert (listed["ruleRunId"], listed["status"], listed["actions"]) == (run_id, "PREVIEW", ["apply"])

    assert cli("rules", "apply", run_id, "--plan", "0" * 8).returncode == 5
    assert cli("rules", "apply", run_id, "--plan", "0" * 7).returncode == 2
    shop.execute("update shop.products set price = 16 where sku = 'SKU-1050'")
    assert cli("rules", "apply", run_id, "--plan", digits.strip()).stdout == f"{run_id} QUEUED\n"
    assert cli("rules", "apply", run_id, "--wait", "--timeout", "1s").returncode == 8
    assert work(dsn) == 2
    done = cli("rules", "apply", run_id, "--wait")

    assert (done.returncode, done.stdout) == (3, f"{run_id} PARTIAL\n")
    shown = found("rules", "show", run_id)
    assert (shown["failed"], shown["actions"], shown["counts"]["applied"]) == (
        1,
        ["retry_failed", "retry_all", "rollback", "reconcile"],
        1,
    )
    (failed,) = found("rules", "targets", run_id, "--status", "FAILED")["targets"]
    assert (failed["itemId"], failed["reason"], failed["foundJson"]["price"]) == ("SKU-1050", "stale", "16.00")
    assert "(found 16.00 EUR)" in cli("rules", "targets", run_id, "--status", "FAILED").stdout
    (retried,) = found("rules", "retry-failed", run_id)
    assert (retried["outcome"], retried["itemId"]) == ("skipped", "SKU-1050")
    steps = found("rules", "explain", run_id, "SKU-1042")["steps"]
    assert [step["value"] for step in steps][:3] == ["49.90", "39.92", "39.90"]
    assert "percent" in cli("rules", "explain", run_id, "SKU-1042").stdout
    (channel,) = found("rules", "channels")
    assert (channel["channel"], channel["queue"]) == ("shop", "rules:shop")

    again = found("rules", "preview", "--again", run_id, "--app", "prices_app:hf")
    assert again["differs"] == {"added": 0, "gone": 0, "changed": 2, "same": 0}


def test_a_retry_takes_targets_by_the_class_of_their_error(cli, found, shop, dsn):
    """A-68 to A-70: a class that does not exist is named, and nothing is queued"""
    run = found("rules", "preview", "list.csv", "--channel", "shop", "--app", "prices_app:hf", "--apply")
    run_id = run["ruleRunId"]
    shop.execute("delete from shop.products where sku = 'SKU-1050'")
    work(dsn)

    done = cli("rules", "retry-failed", run_id, "--class", "NETWROK")
    assert (done.returncode, "NETWROK" in done.stderr) == (2, True)
    others = found("rules", "retry-failed", run_id, "--class", "TIMEOUT", "--class", "NETWORK")
    assert [(row["itemId"], row["outcome"]) for row in others] == [("SKU-1050", "skipped")]
    own = found("rules", "retry-failed", run_id, "--class", "TIMEOUT", "--class", "NOT_FOUND")
    assert [(row["itemId"], row["outcome"]) for row in own] == [("SKU-1050", "queued")]


def test_the_name_of_a_rule_is_that_of_the_tenants_own_rule(cli, found, shop, tmp_path):
    for tenant, percent in (("a", "-40"), ("b", "-20")):
        (tmp_path / "own.json").write_text(json.dumps({**SUMMER, "transform": {"percent": percent}}))
        assert cli("rules", "define", "own.json", "--tenant", tenant).returncode == 0
    given = ("rules", "preview", "summer", "--channel", "shop", "--app", "prices_app:hf")

    assert found(*given, "--tenant", "b")["plan"]["rule"]["transform"] == {"percent": "-20"}
    assert found(*given, "--tenant", "a")["plan"]["rule"]["transform"] == {"percent": "-40"}
    assert cli(*given).returncode == 4


def test_a_run_is_planned_again_for_its_tenant_and_project_and_with_its_own_items(cli, found, shop, tmp_path, dsn):
    app = ("--app", "prices_app:hf")
    (tmp_path / "few.csv").write_text("sku,tags\nSKU-1050,sale\n")
    hf = Holdfast(dsn)
    hf.rules.channel("shop", Table("shop.products", key="sku", price="price", tags="tags", currency="EUR"))
    more = {"correlationId": "req-7", "actor": "eve", "ticket": "T-1"}
    old = hf.rules.preview(SUMMER, channel="shop", tenant="b", project_id="spring", metadata=more)
    few = hf.rules.preview(SUMMER, channel="shop", tenant="b", items=tmp_path / "few.csv")
    hf.close()

    again = found("rules", "preview", "--again", str(old.id), *app, "--actor", "ann")
    assert (again["tenantId"], again["projectId"], again["counts"]["targets"]) == ("b", "spring", 2)
    assert again["metadata"] == more | {"actor": "ann", "source": "api"}
    given = ("rules", "preview", "--again", str(few.id), *app)
    assert cli(*given).returncode == cli(*given, "--items", "few.csv", "--tenant", "a").returncode == 2
    same = found(*given, "--items", "few.csv", "--tenant", "b")
    assert (same["counts"]["targets"], same["differs"]["same"]) == (1, 1)
    assert same["metadata"]["correlationId"] == same["ruleRunId"]


def test_skus_of_a_list_that_match_no_item_are_counted_and_named(cli, found, shop, tmp_path):
    """Whether the item was changed, stayed as it is or was refused, its sku was found."""
    wanted = ["SKU-1050,14.50", "SKU-9,0.50", "SKU-77,1.00", *(f"GONE-{n},5" for n in range(7))]
    (tmp_path / "many.csv").write_text("\n".join(["sku,price", *wanted]))
    given = ("rules", "preview", "many.csv", "--channel", "shop", "--app", "prices_app:hf")
    lines = cli(*given).stdout.splitlines()

    assert lines[-2] == "? 7 skus of the list match no item: GONE-0, GONE-1, GONE-2, GONE-3, GONE-4, …"
    assert "1 to change, 1 unchanged, 1 refused" in lines[-1]
    run = found(*given)
    assert run["unmatched"] == {"skus": 7, "first": [f"GONE-{n}" for n in range(5)]}
    assert lines[-2] in cli("rules", "show", run["ruleRunId"]).stdout
    all_there = found("rules", "preview", "list.csv", "--channel", "shop", "--app", "prices_app:hf")
    assert (all_there["unmatched"]["skus"], "unmatched" in all_there["plan"]) == (0, False)


def test_a_preview_prints_the_first_ten_targets_and_refusals_and_how_to_list_the_rest(cli, found, shop):
    """ux 5.6: the output of a large plan"""
    shop.execute("insert into shop.products (sku, price) select 'T' || n, 100 from generate_series(1, 1211) n")
    shop.execute("insert into shop.products (sku, price) select 'U' || n, 4 from generate_series(1, 11) n")
    given = ("rules", "preview", "summer.json", "--channel", "shop", "--app", "prices_app:hf")
    done = cli(*given)
    run_id = done.stderr.split("rules apply ")[1].split(" --plan ")[0]
    lines = done.stdout.splitlines()

    assert [line[0] for line in lines] == [*"~" * 10, " ", *"!" * 10, " ", "P"]
    assert lines[10] == f"  … 1,203 more: holdfast rules targets {run_id}"
    assert lines[21] == f"  … 2 more: holdfast rules targets {run_id} --refused"
    run = found(*given)
    assert (len(run["targets"]), len(run["refusals"]), run["counts"]["refused"]) == (10, 10, 12)
    first = {"itemId": "SKU-77", "reason": "below_minimum", "currency": "EUR", "priceBefore": 400, "priceAfter": 320}
    assert run["refusals"][0] == first | {"message": "below the minimum 3.50"}


def test_a_failed_target_is_in_the_dead_letter_of_both_reports_until_it_is_dealt_with(cli, found, shop, dsn):
    """A-70: `holdfast dlq` shows the targets of `rules.dlq_report`."""
    run_id = found("rules", "preview", "summer.json", "--channel", "shop", "--app", "prices_app:hf", "--apply")[
        "ruleRunId"
    ]
    shop.execute("update shop.products set price = 16 where sku = 'SKU-1050'")
    work(dsn)
    (failed,) = found("rules", "targets", run_id, "--status", "FAILED")["targets"]

    (dead,) = found("dlq", "list")["steps"]
    assert (dead["id"], dead["kind"], dead["run_id"]) == (failed["targetId"], "rules:shop", run_id)
    (group,) = found("dlq", "report")["groups"]
    assert (group["count"], group["kind"], group["sample_id"]) == (1, "rules:shop", failed["targetId"])
    report = "select (rules.dlq_report() ->> 'total')::int"
    assert shop.execute(report).fetchone() == (1,)
    assert cli("dlq", "resolve", failed["targetId"], "--reason", "by hand").returncode == 0
    assert found("dlq", "list")["steps"] == []
    assert shop.execute(report).fetchone() == (0,)


def test_a_list_of_prices_is_applied_at_once_paused_and_stopped(cli, found, shop, dsn):
    run = found("rules", "preview", "list.csv", "--channel", "shop", "--app", "prices_app:hf", "--apply")
    run_id = run["ruleRunId"]

    assert (run["status"], run["ruleId"]) == ("QUEUED", "list")
    for verb, shown in (("pause", "QUEUED, paused"), ("resume", "QUEUED"), ("stop", "FAILED")):
        done = cli("rules", verb, run_id, "--reason", "look")
        assert (done.returncode, done.stdout) == (0, f"{run_id} {shown}\n")
        assert shown in cli("rules", "show", run_id).stdout
    assert cli("rules", "apply", run_id, "--wait").returncode == 1
    assert [row["outcome"] for row in found("rules", "retry-all", run_id)] == ["queued"]
    assert work(dsn) == 1
    assert cli("rules", "apply", run_id, "--wait").returncode == 0
    assert shop.execute("select price from shop.products where sku = 'SKU-1050'").fetchall()[0][0] == 14.50


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("show", "0198c0de-0000-7000-8000-000000000000"), 4),
        (("show", "seven"), 2),
        (("define", "nothing.json"), 2),
        (("apply", "0198c0de-0000-7000-8000-000000000000"), 4),
        (("preview", "summer.json", "--channel", "shop"), 2),
        (("targets", "0198c0de-0000-7000-8000-000000000000"), 4),
        (("stop", "0198c0de-0000-7000-8000-000000000000"), 4),
    ],
)
def test_what_is_not_there_or_not_understood_has_its_exit_code(cli, shop, arguments, code):
    done = cli("rules", *arguments)

    assert (done.returncode, done.stdout) == (code, "")


def test_a_rollback_is_shown_before_it_is_applied_and_a_conflict_is_overwritten_by_its_count(cli, found, shop, dsn):
    """A-123, R27, X-13: the output of a rollback"""
    run_id = found("rules", "preview", "summer.json", "--channel", "shop", "--app", "prices_app:hf", "--apply")[
        "ruleRunId"
    ]
    work(dsn)
    shop.execute("update shop.products set price = 11.50 where sku = 'SKU-1050'")
    given = ("rules", "rollback", run_id, "--app", "prices_app:hf")
    done = cli(*given)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == [
        "~ SKU-1042   39.90 → 49.90 EUR   compare at 49.90 → -",
        "! SKU-1050   conflict: we wrote 12.00, the shop shows 11.50, which no run wrote",
    ]
    assert "1 to restore, 1 changed since (will not be touched), 0 unknown" in done.stdout
    assert cli(*given, "--force", "SKU-1050").returncode == 2
    assert cli(*given, "--force", "SKU-1050", "--overwrite", "2").returncode == 2
    undo = found(*given, "--force", "SKU-1050", "--overwrite", "1", "--yes")
    assert (undo["source"], undo["parentRunId"], undo["plan"]["forced"]) == ("rollback", run_id, ["SKU-1050"])
    work(dsn)

    assert found("rules", "show", run_id)["status"] == "ROLLED_BACK"
    assert (
        cli(*given).returncode
        == cli("rules", "preview", "--again", undo["ruleRunId"], "--app", "prices_app:hf").returncode
    )
    assert shop.execute("select price from shop.products where sku = 'SKU-1050'").fetchone()[0] == 15


def test_drift_is_found_listed_and_part_of_an_items_history(cli, found, shop, dsn):
    """A-71, A-76, A-77, X-13: reconcile, drift, history and status"""
    run_id = found("rules", "preview", "list.csv", "--channel", "shop", "--app", "prices_app:hf", "--apply")[
        "ruleRunId"
    ]
    work(dsn)
    shop.execute("update shop.products set price = 11.50 where sku = 'SKU-1050'")
    planned = found("rules", "reconcile", run_id)
    assert (planned["kind"], planned["status"], planned["runId"]) == ("manual", "pending", run_id)
    assert cli("rules", "reconcile", run_id, "--wait", "--timeout", "1s").returncode == 8
    work(dsn)

    (drifted,) = found("rules", "drift", run_id)
    assert (drifted["expected"], drifted["actual"], drifted["difference"]) == (1450, 1150, -300)
    assert "11.50" in cli("rules", "drift").stdout
    (changed,) = found("rules", "history", "SKU-1050")
    assert (changed["newJson"]["unit_amount"], changed["ruleRunId"]) == (1450, run_id)
    assert "14.50 EUR" in cli("rules", "history", "SKU-1050").stdout
    stands = found("rules", "status", run_id)
    assert {each["kind"] for each in stands["passes"]} == {"immediate", "delayed", "daily", "manual"}
    assert stands["actions"] == ["rollback", "reconcile"]
    assert "1 differ" in cli("rules", "status", run_id).stdout


def test_status_shows_when_the_clock_applies_and_undoes_a_run(cli, found, shop):
    """A-120: the times of a change that ends by itself"""
    run_id = found("rules", "preview", "list.csv", "--channel", "shop", "--app", "prices_app:hf")["ruleRunId"]
    begins, ends = (datetime.now(UTC) + timedelta(hours=hours) for hours in (1, 2))
    done = cli("rules", "apply", run_id, "--at", begins.isoformat(), "--revert-at", ends.isoformat())
    assert done.returncode == 0, done.stderr

    times = found("rules", "status", run_id)["times"]
    assert [(each["what"], datetime.fromisoformat(each["at"]), each["waits"]) for each in times] == [
        ("apply", begins, None),
        ("revert", ends, None),
    ]
    assert f"{begins:%Y-%m-%d %H:%M} UTC" in cli("rules", "status", run_id).stdout
