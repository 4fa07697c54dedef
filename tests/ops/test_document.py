"""Document 002 against the schema. HOLDFAST_SEEDS names the folder with the documents; without it these are skipped."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from psycopg import Connection

from holdfast import embedded
from holdfast.testing import Clock
from kernel.steps import seconds
from ops.runs import claim, event, events, finish, queue, run, status

DB = Connection[Any]
BLOCK = re.compile(r"^```(sql|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLE = "run-uuid-1234"
# C-90: blocks that are not run, by the line of their fence.
EXEMPT = {
    144: "a fragment of a function's body: SELECT … INTO v_run_id",
    203: "a fragment of a function's body: WHERE run_id = p_run_id",
    344: "creates a function: ours has its name and columns",
    429: "alters a table, and creates a function with placeholders",
    498: "creates a function: ours has its name and arguments",
}
# What the bash blocks need of their surroundings: the workflow that the document leaves out, a clock that stands still
# for its idempotency key, and a sleep that takes no time.
AROUND = """
execute_workflow() { echo "$1 $2" >> "$SEEN"; [ "$FAILS" != yes ]; }
sleep() { echo "slept $1" >> "$SEEN"; }
date() { echo 1771065000; }
"""


@dataclass(frozen=True)
class Block:
    line: int
    language: str
    text: str


@pytest.fixture(scope="module")
def blocks() -> dict[int, Block]:
    folder = os.environ.get("HOLDFAST_SEEDS")
    if not folder:
        pytest.skip("HOLDFAST_SEEDS is not set: it names the folder with the source documents")
    (path,) = Path(folder).glob("002_*")
    text = path.read_text("utf-8")
    found = (
        Block(text[: match.start()].count("\n") + 1, match.group(1), match.group(2)) for match in BLOCK.finditer(text)
    )
    return {block.line: block for block in found}


class Shell:
    """Runs blocks through the package's psql and bash, as somebody would who types them in."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self.dsn = dsn
        self.folder = folder
        self.seen = folder / "seen"
        (folder / "around.sh").write_text(AROUND)

    def sql(self, block: Block, run_id: str = EXAMPLE) -> list[list[str]]:
        """Give the rows of the block's statements, one list per row."""
        done = subprocess.run(
            [embedded.binary("psql"), self.dsn, "-XqAt", "-v", "ON_ERROR_STOP=1", "-f", "-"],
            input=block.text.replace(EXAMPLE, run_id),
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (0, ""), block.line
        return [line.split("|") for line in done.stdout.splitlines()]

    def bash(self, block: Block, *, fails: bool = False) -> subprocess.CompletedProcess[str]:
        path = f"{embedded.binary('psql').parent}:{os.environ['PATH']}"
        environment = {"SUPABASE_DB_URL": self.dsn, "FAILS": "yes" if fails else "no", "SEEN": str(self.seen)}
        return subprocess.run(
            ["bash", "-c", block.text],
            env={**os.environ, **environment, "PATH": path, "BASH_ENV": str(self.folder / "around.sh")},
            cwd=self.folder,
            capture_output=True,
            text=True,
        )


@pytest.fixture
def shell(dsn: str, tmp_path: Path) -> Shell:
    return Shell(dsn, tmp_path)


def printed_row(block: Block) -> list[str]:
    """Give the columns of the first result that the block prints."""
    header = re.search(r"^--  (.*)\n-- [-+]+$", block.text, re.MULTILINE)
    assert header is not None, block.line
    return [name.strip() for name in header.group(1).split("|")]


def test_every_block_is_run_or_listed_with_the_reason(blocks: dict[int, Block]) -> None:
    """X-11, O-107: tests below run the others, by their lines"""
    run_below = {int(line) for line in re.findall(r"blocks\[(\d+)\]", Path(__file__).read_text("utf-8"))}

    assert blocks.keys() == EXEMPT.keys() | run_below
    assert not EXEMPT.keys() & run_below
    for line in EXEMPT:
        assert re.search(r"INTO v_run_id|= p_run_id|CREATE OR REPLACE FUNCTION", blocks[line].text), line


def test_a_run_lives_as_the_document_prints_it(blocks: dict[int, Block], shell: Shell, db: DB) -> None:
    """O-27 to O-29, O-33, O-46, O-60, O-107, X-11"""
    ((run_id, queued, _),) = shell.sql(blocks[89])
    assert (queued, printed_row(blocks[89])) == ("queued", ["run_id", "status", "queued_at"])
    assert run(db, run_id)["metadata"] == {"trigger": "webhook", "author": "john@example.com"}

    claimed, state = shell.sql(blocks[124], run_id)
    assert printed_row(blocks[124]) == ["run_id", "project_id", "env_id", "git_sha", "git_ref", "metadata"]
    assert (claimed[0], claimed[1], claimed[3:5]) == (run_id, "proj-123", ["abc123def456", "main"])
    assert claimed[2] == run(db, run_id)["env_id"] is not None
    assert state[:3] == [run_id, "claimed", "worker-001"]

    event_id, state = shell.sql(blocks[185], run_id)
    assert event_id[0].startswith("evt-")
    assert state == [run_id, "running"]

    finished, state = shell.sql(blocks[228], run_id)
    assert finished == ["t"]
    assert [state[0], state[1], state[3]] == [run_id, "success", "0"]
    assert run(db, run_id)["metadata"]["artifacts"][0] == {"type": "image", "url": "ghcr.io/org/odoo-ce:abc123"}
    assert [message for _, message in events(db, run_id)] == [
        "Run queued",
        "Run claimed by worker",
        "Run started",
        "Starting build process",
        "Run finished: success",
    ]


def test_a_run_fails_as_the_document_prints_it(blocks: dict[int, Block], shell: Shell, db: DB) -> None:
    """O-21, O-63, X-11"""
    run_id = queue(db)
    claim(db)
    event(db, run_id)

    assert shell.sql(blocks[270], run_id) == [["t"], [run_id, "failed", "Docker build failed"]]
    assert {"exit_code", "step", "stderr", "retry_count"} <= run(db, run_id)["metadata"].keys()


def test_manual_and_stale_runs_are_cancelled_by_the_printed_statements(
    blocks: dict[int, Block], shell: Shell, db: DB, clock: Clock
) -> None:
    """O-67, O-72, C-84, X-11: the UPDATE passes the view's trigger and leaves its event"""
    clock.set(datetime.now(UTC) - seconds(400))  # NOW() in the document is the server's
    manual, stale = queue(db), queue(db, metadata={"reason": "hotfix", "author": "ann"})
    started, waiting = queue(db), queue(db)
    assert [claim(db) for _ in range(3)] == [manual, stale, started]
    event(db, started)
    clock.set(datetime.now(UTC) - seconds(60))
    fresh = queue(db)
    assert [claim(db), claim(db)] == [waiting, fresh]
    clock.set(datetime.now(UTC))

    assert shell.sql(blocks[311], manual) == [["t"]]

    assert [status(db, each) for each in (manual, stale, started, waiting, fresh)] == [
        "cancelled", "cancelled", "running", "claimed", "claimed"]  # fmt: skip
    assert run(db, manual)["metadata"]["cancelled_by"] == "user-456"
    metadata = run(db, stale)["metadata"]
    assert (metadata["cancelled_by"], metadata["reason"], metadata["original_worker"], metadata["author"]) == (
        "system",
        "Stale run (claimed for >5 minutes without events)",
        "worker-001",
        "ann",
    )
    assert [each for each in events(db, stale) if "cancelled" in each[1]] == [("warn", "Run finished: cancelled")]


def test_the_reads_of_the_concurrency_example_run(blocks: dict[int, Block], shell: Shell, db: DB) -> None:
    """O-42, X-11: with a barrier it is in test_races.py"""
    runs = [queue(db) for _ in range(5)]
    for worker in ("worker-001", "worker-002", "worker-003"):
        claim(db, worker)

    rows = shell.sql(blocks[388])

    assert [row[0] for row in rows[:2]] == runs[3:]
    assert rows[2:] == [
        [runs[0], "claimed", "worker-001"],
        [runs[1], "claimed", "worker-002"],
        [runs[2], "claimed", "worker-003"],
        [runs[3], "queued", ""],
        [runs[4], "queued", ""],
    ]


def test_the_four_printed_metrics_are_also_views(blocks: dict[int, Block], shell: Shell, db: DB, clock: Clock) -> None:
    """O-99 to O-102, X-11: their export comes with Observability"""
    clock.set(datetime.now(UTC))
    names = ["queue_depth", "worker_utilization", "success_rate", "run_durations"]

    def views() -> list[list[str]]:
        rows = [db.execute(f"select * from ops.{name} order by 1").fetchall() for name in names]
        return [["" if each is None else str(each) for each in row] for part in rows for row in part]

    empty = shell.sql(blocks[645])
    assert empty == views() == [["0"], ["0", "0", ""]]
    for end in ("success", "failed", "success", "cancelled"):
        run_id = queue(db)
        claim(db)
        clock.advance(seconds(10))
        finish(db, run_id, end)
    clock.set(clock.now())
    queue(db), queue(db)
    claim(db, "worker-002")

    rows = shell.sql(blocks[645])

    assert rows[:3] == [["1"], ["worker-002", "1"], ["2", "1", "66.67"]]
    assert sorted(rows[3:]) == [[end, "10.0000000000000000"] for end in ("cancelled", "failed", "success")]
    assert views() == rows[:3] + sorted(rows[3:])


@pytest.mark.one_server
def test_the_cli_block_can_be_run_twice(blocks: dict[int, Block], shell: Shell, db: DB) -> None:
    """O-80, C-38, X-11: in the same second its key is the same"""
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *command], cwd=shell.folder, check=True)

    first, second = shell.bash(blocks[474]), shell.bash(blocks[474])

    assert (first.returncode, first.stdout) == (0, second.stdout)
    assert db.execute("select count(*), max(length(git_sha)) from ops.runs").fetchall() == [(1, 40)]


@pytest.mark.parametrize("command", ["db migrate", "doctor", "worker"])
def test_what_the_references_name_is_part_of_the_product(command: str) -> None:
    """O-108: the schema's installation, the test of the state machine (doctor --self-test) and the worker"""
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", *command.split(), "--help"], capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    assert command != "doctor" or "--self-test" in done.stdout


needs_jq = pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed: the bash worker needs it")


@needs_jq
def test_the_bash_worker_runs_to_success_as_printed(blocks: dict[int, Block], shell: Shell, db: DB) -> None:
    """O-85 to O-87, X-11, C-92"""
    idle = shell.bash(blocks[546])
    run_id = queue(db)

    done = shell.bash(blocks[546])

    assert (idle.returncode, idle.stdout.splitlines()) == (0, ["No queued runs available"])
    assert done.returncode == 0, done.stderr
    assert shell.seen.read_text().splitlines() == [f"{run_id} abc123def456"]
    after = run(db, run_id)
    assert (after["status"], after["claimed_by"]) == ("success", f"worker-{os.uname().nodename}")
    assert [message for _, message in events(db, run_id)][1:] == [
        "Run claimed by worker",
        "Run started",
        "Run finished: success",
    ]


@needs_jq
def test_the_bash_worker_runs_to_its_final_failure_as_printed(blocks: dict[int, Block], shell: Shell, db: DB) -> None:
    """O-83, O-84, O-89, X-11, C-39, C-92: its loop claims another run each time; our own worker does not"""
    runs = [queue(db) for _ in range(3)]

    done = shell.bash(blocks[546], fails=True)

    assert done.returncode == 1, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith(("Retry", "Max"))] == [
        "Retry 1/3 in 5 seconds...",
        "Retry 2/3 in 10 seconds...",
        "Max retries exceeded, marking as failed",
    ]
    assert [line for line in shell.seen.read_text().splitlines() if "slept" in line] == ["slept 5", "slept 10"]
    assert [status(db, run_id) for run_id in runs] == ["claimed", "claimed", "failed"]
    assert run(db, runs[2])["metadata"] == {"error": "Max retries exceeded", "retry_count": 3}
