"""`holdfast ingest`, called in process."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.errors import Rejected
from holdfast.testing import drain
from ingest.shop import DB, TABLE, Shop, feed_of, order


@pytest.fixture
def ingest(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a command and give its exit code and its output."""
    from typer.testing import CliRunner

    from holdfast.cli import app

    monkeypatch.setenv("HOLDFAST_DSN", dsn)
    return lambda *words: CliRunner().invoke(app, ["ingest", *words])


@pytest.mark.one_server
def test_the_commands_show_and_continue_a_failed_run(hf: Holdfast, db: DB, ingest: Any) -> None:
    """P-43, P-120, P-153: retry, force, watermark, quarantine, backfill and cancel, each with --json"""
    db.execute(TABLE)
    shop = Shop([order(n) for n in range(40)])
    feed = feed_of(hf, shop)
    feed.start()
    shop.faults = [Rejected("the source answered 401")]
    drain(hf)

    shown = ingest("status", "orders").output
    assert "0/1, 1 failed" in shown
    assert "partition-0 at offset 0" in shown
    assert "holdfast ingest retry orders" in shown
    assert json.loads(ingest("status", "orders", "--json").output)["run"]["state"] == "failed"
    again = ingest("retry", "orders", "--reason", "back", "--json")
    assert json.loads(again.output)["state"] == "workers_running"
    drain(hf)
    assert "completed  1/1" in ingest("status", "orders").output
    (row,) = json.loads(ingest("list", "--json").output)
    assert (row["feed"], row["state"], row["target"]) == ("orders", "completed", "public.orders")
    document = json.loads(ingest("watermark", "orders", "--json").output)
    assert document.keys() == {"lastUpdatedAt", "lastRunId", "lastRunCompletedAt"}
    assert json.loads(ingest("quarantine", "orders", "--json").output) == []
    moved = ingest("watermark", "orders", "--set", "2024-01-01", "--reason", "again", "--json")
    assert json.loads(moved.output)["lastUpdatedAt"] == "2024-01-01T00:00:00Z"
    assert ingest("watermark", "orders", "--set", "2024-01-01").exit_code != 0
    started = json.loads(ingest("run", "orders", "--json").output)
    assert ingest("run", "orders").exit_code != 0
    cancelled = json.loads(ingest("cancel", "orders", "--reason", "no", "--json").output)
    assert (cancelled["run_id"], cancelled["state"]) == (started["run_id"], "cancelled")
    since = ingest("backfill", "orders", "--since", "2024-01-01", "--until", "2024-02-01", "--json")
    assert json.loads(since.output)["state"] == "planning"
    drain(hf)
    assert ingest("status", "nosuch").exit_code != 0
    for command in ("force", "resume-consolidation"):
        assert ingest(command, "orders").exit_code != 0
