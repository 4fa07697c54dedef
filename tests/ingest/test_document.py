"""Document 001 against the schema. HOLDFAST_SEEDS names the folder with the documents; without it these are skipped."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from holdfast.models import Done
from ingest.runs import DB, claim, consolidate, define, facts, fail_for_good, page, put, run_of, settle

BLOCK = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLE = "'abc123'"
CREATES = {110: "run_metadata", 186: "worker_runs", 206: "partition_progress"}  # C-90: ours have their columns


@pytest.fixture(scope="module")
def blocks() -> dict[int, str]:
    folder = os.environ.get("HOLDFAST_SEEDS")
    if not folder:
        pytest.skip("HOLDFAST_SEEDS is not set: it names the folder with the source documents")
    (path,) = Path(folder).glob("001_*")
    text = path.read_text("utf-8")
    return {text[: match.start()].count("\n") + 1: match.group(1) for match in BLOCK.finditer(text)}


@pytest.fixture(autouse=True)
def feed(db: DB) -> None:
    define(db)
    db.execute("set search_path = ingest")


def rows(db: DB, block: str, run_id: UUID | None = None) -> list[list[dict[str, Any]]]:
    """Run the statements of a block; give the rows of each by column."""
    answers = []
    for statement in filter(str.strip, block.replace(EXAMPLE, f"'{run_id}'").split(";")):
        with db.cursor() as cursor:
            cursor.execute(statement)
            names = [column.name for column in cursor.description or ()]
            answers.append([dict(zip(names, row, strict=True)) for row in cursor.fetchall()])
    return answers


def test_every_block_is_run_or_compared(blocks: dict[int, str]) -> None:
    """X-11"""
    run_below = {int(line) for line in re.findall(r"blocks\[(\d+)\]", Path(__file__).read_text("utf-8"))}

    assert blocks.keys() == CREATES.keys() | run_below


@pytest.mark.parametrize(("line", "name"), CREATES.items())
def test_our_views_have_the_columns_of_the_printed_tables(db: DB, blocks: dict[int, str], line: int, name: str) -> None:
    """P-36, P-44 to P-53, P-84 to P-92, P-94 to P-98, X-11"""
    printed = re.findall(r"^  (\w+) (UUID|TEXT|INTEGER|TIMESTAMP|BOOLEAN|JSONB)", blocks[line], re.MULTILINE)
    types = {"timestamp": "timestamp with time zone"}
    ours = dict(
        db.execute(
            "select column_name, data_type from information_schema.columns"
            " where table_schema = 'ingest' and table_name = %s",
            [name],
        ).fetchall()
    )

    assert len(printed) >= 6
    for column, kind in printed:
        assert ours[column] == types.get(kind.lower(), kind.lower()), column


def test_the_offset_moves_by_the_printed_update_once(db: DB, blocks: dict[int, str]) -> None:
    """P-82, P-95, P-96, P-99, X-11: 1 row, then 0; refused while a worker holds the partition"""
    run_id = run_of(db, 1)
    statement = (
        blocks[220]
        .replace("$newOffset", "30")
        .replace("$runId", f"'{run_id}'")
        .replace("$partitionId", "'partition-0'")
        .replace("$expectedOffset", "0")
    )

    assert [db.execute(statement).rowcount for _ in range(2)] == [1, 0]
    (step,) = claim(db, "page")
    assert step.cursor == {"offset": 30, "read": 0, "moved": 1}
    with pytest.raises(psycopg.Error) as caught:
        db.execute("update partition_progress set next_offset = 60")
    assert (caught.value.sqlstate, "w1" in str(caught.value)) == ("RN010", True)
    with pytest.raises(psycopg.Error) as caught:
        db.execute("update partition_progress set completed = true")
    assert caught.value.sqlstate == "RN005"
    db.execute("set search_path to default")


def test_the_printed_increments_are_refused_with_the_reason(db: DB, blocks: dict[int, str]) -> None:
    """P-100, P-101, X-11: a settle counts, in its own transaction"""
    run_id = run_of(db, 2)
    for statement in filter(str.strip, blocks[235].split(";")):
        with pytest.raises(psycopg.Error) as caught:
            db.execute(statement.replace("$runId", f"'{run_id}'"))
        assert (caught.value.sqlstate, "settles" in str(caught.value.diag.message_hint)) == ("RN005", True)


def test_the_status_queries_answer_as_printed(db: DB, blocks: dict[int, str]) -> None:
    """P-127 to P-131, X-11, C-28: four standings, by the printed CASE"""
    run_id = run_of(db, 2)
    standings = []

    def standing() -> None:
        (status,), workers, progress = rows(db, blocks[331], run_id)
        assert status.keys() == {
            "run_id", "run_type", "progress", "failed_workers", "status", "started_at", "completed_at",
            "duration_minutes"}  # fmt: skip
        standings.append((status["progress"], status["status"], len(workers), len(progress)))

    standing()
    for step in claim(db, "page", 2):
        standing()
        page(db, step, [f"k{step.step_id}"])
    standing()
    consolidate(db)
    standing()
    (status,), workers, _ = rows(db, blocks[331], run_id)
    assert [worker["partition_id"] for worker in workers] == ["partition-0", "partition-1"]
    assert status["duration_minutes"] >= 0
    failed = run_of(db, 1)
    fail_for_good(db)
    (status,), _, _ = rows(db, blocks[331], failed)
    assert status["status"] == "failed"
    assert standings == [
        ("0/2", "in_progress", 0, 2), ("0/2", "in_progress", 2, 2), ("1/2", "in_progress", 2, 2),
        ("2/2", "consolidating", 2, 2), ("2/2", "completed", 2, 2)]  # fmt: skip


def test_the_monitoring_queries_answer_as_printed(db: DB, blocks: dict[int, str]) -> None:
    """P-132 to P-135, X-11"""
    run_id = run_of(db, 2)
    (step,) = claim(db, "page")
    with db.transaction():
        put(db, step, ["a"])
        settle(db, step, Done({"records": 1}))
    active, recent = rows(db, blocks[436])
    assert [each["run_id"] for each in active] == [run_id] == [each["run_id"] for each in recent]
    assert (recent[0]["progress"], recent[0]["status"]) == ("1/2", "in_progress")
    fail_for_good(db)
    failed, unfinished = rows(db, blocks[470], run_id)
    assert [(each["partition_id"], each["error_message"]) for each in failed] == [
        ("partition-1", "the source answered 502")
    ]
    assert [(each["partition_id"], each["next_offset"]) for each in unfinished] == [("partition-1", 0)]
    assert facts(db, run_id)["state"] == "failed"
