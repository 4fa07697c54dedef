"""Count the server's instructions per step, under callgrind: single calls, and claim and settle in batches of 500.

    .venv/bin/python bench/instructions.py [--only CASE] [--batch 1] [--keep FILE]

Times tremble, instructions do not: the same SQL gives the same count on a busy machine. Needs valgrind. One backend runs
alone (`postgres --single`) on a database with tasks due; the count is the difference of a long and a short drain. It is
also counted under limits. Single calls are a start, and the functions of ops beside document 002's own. `--only` counts
one case, `--batch` claims and settles by so many, and `--keep` leaves callgrind's profile of the last one counted, for
callgrind_annotate.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg.conninfo import make_conninfo

from holdfast import embedded
from holdfast.embedded.binaries import binary
from hot_loop import BATCH, install, load

SHORT, LONG = 4, 8  # batches
SINGLES = 100  # times as many of them, if they are of less than ten steps
CALLS = 100  # single calls per batch
SETTLE = """select count(*) from {function}((select array_agg(step_id) from pg_temp.claimed),
  (select array_agg(lease_id) from pg_temp.claimed), (select array_agg('null'::jsonb) from pg_temp.claimed));"""
ENGINES = {
    "baseline": ("select step_id, lease_id from baseline.claim('bench', {batch}, '60 s')", "baseline.settle"),
    "holdfast": (
        "select step_id, lease_id from holdfast.claim_steps('bench', kinds => array['noop'], batch => {batch})",
        "holdfast.settle_batch",
    ),
}


# What is counted: an engine, and what is done before its drain.
CASES: dict[str, tuple[str, tuple[LiteralString, ...]]] = {
    "baseline": ("baseline", ()),
    "holdfast": ("holdfast", ()),
    "holdfast, limits that never bind": (
        "holdfast",
        ("select holdfast.define_limit('queue:*', concurrency => 100000, rate => 1e6, per => '1 s', burst => 1e8)",),
    ),
    "holdfast, 1 000 keys": (
        "holdfast",
        (
            "select holdfast.define_limit('key:*', concurrency => 1)",
            "update holdfast.steps set limits = array['key:' || id % 1000]",
            "vacuum full holdfast.steps",
        ),
    ),
}

# Single calls, each a transaction of its own.
SINGLE = {
    "start": "select holdfast.start_task('noop', '{}');",
    "ops claim": "select run_id from ops.claim_next_run('w');",
    "ops claim, document 002": "select run_id from anchor.claim_next_run('w');",
    "ops queue": "select run_id from ops.queue_run('p', 'staging', 'sha', 'main');",
    "ops queue, document 002": "select run_id from anchor.queue_run('p', 'staging', 'sha', 'main');",
}
QUEUED: LiteralString = "select from generate_series(1, 2000) n, {}.queue_run('p', 'staging', 'sha' || n, 'main')"
ANCHOR = Path(__file__).with_name("ops_anchor.sql")


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[*CASES, *SINGLE], help="count this case alone")
    parser.add_argument("--batch", type=int, default=BATCH, help=f"steps per claim and settle ({BATCH})")
    parser.add_argument("--keep", type=Path, help="where to leave callgrind's profile")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        raise SystemExit("valgrind is not there; install it, such as by `apt-get install valgrind`")
    with tempfile.TemporaryDirectory(prefix="hf-instructions-", dir="/tmp") as folder:
        Path(folder).chmod(0o711)  # as root, the server runs as another user
        for number, (case, (engine, before)) in enumerate(CASES.items()):
            if options.only in {None, case}:
                home = Path(folder, str(number))
                short, long = (each * (SINGLES if options.batch < 10 else 1) for each in (SHORT, LONG))
                prepare(home, engine, before)
                counts = {batches: run(home, engine, batches, options.batch) for batches in (short, long)}
                steps = (long - short) * options.batch
                print(f"{case}: {(counts[long] - counts[short]) // steps:,} instructions a step", flush=True)
        wanted = {what: call for what, call in SINGLE.items() if options.only in {None, what}}
        if wanted:
            home = Path(folder, "calls")
            prepare(home, "holdfast", (), has_ops=True)
            for what, call in wanted.items():
                count_calls(home, what, call)
        if options.keep:
            shutil.copy(Path(folder, "copy", "profile"), options.keep)


def count_calls(home: Path, what: str, call: str) -> None:
    """Print the count of a single call."""
    counts = {batches: count(home, "\n".join([call] * CALLS * batches) + "\n")[0] for batches in (SHORT, LONG)}
    print(f"{what}: {(counts[LONG] - counts[SHORT]) // ((LONG - SHORT) * CALLS):,} instructions a call", flush=True)


def prepare(home: Path, engine: str, before: tuple[LiteralString, ...], *, has_ops: bool = False) -> None:
    """Make a data directory with due tasks, and queued runs of ops if it has any, and stop its server."""
    embedded.ensure(home)
    try:
        admin = embedded.admin_dsn(home)
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute("create database bench")
        dsn = make_conninfo(admin, dbname="bench")
        install(dsn, engine)
        load(dsn, engine, "tasks", (LONG + SHORT) * BATCH)
        with psycopg.connect(dsn, autocommit=True) as connection:
            for statement in before:
                connection.execute(statement)
            if has_ops:
                connection.execute(ANCHOR.read_bytes())
                for schema in ("ops", "anchor"):
                    connection.execute(QUEUED.format(schema))
    finally:
        embedded.stop(home)


def run(home: Path, engine: str, batches: int, size: int) -> int:
    """Drain some batches, and return the instructions it took."""
    instructions, output = count(home, script(engine, batches, size))
    settled = re.findall(r'count = "(\d+)"', output)
    if settled != [str(size)] * batches:
        raise SystemExit(f"{engine} did not settle its batches: {settled}\n{output[-2000:]}")
    return instructions


def count(home: Path, statements: str) -> tuple[int, str]:
    """Run statements, one per line, on a copy of the data; return the instructions and the output."""
    copy = home.parent / "copy"  # not below the home, which lets nobody in
    shutil.rmtree(copy, ignore_errors=True)
    subprocess.run(["cp", "-a", home / "pgdata", copy], check=True)
    server = [binary("postgres"), "--single", "-D", copy, "-c", "fsync=off", "-c", "shared_buffers=256MB", "bench"]
    owner = copy.stat().st_uid
    said = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={copy / 'profile'}", *server],
        input=statements,
        capture_output=True,
        text=True,
        user=owner if os.getuid() == 0 else None,
        cwd=copy,
        check=True,
    )
    counted = re.search(r"Collected : (\d+)", said.stderr)
    if counted is None:
        raise SystemExit(f"callgrind counted nothing:\n{said.stderr[-2000:]}")
    return int(counted[1]), said.stdout


def script(engine: str, batches: int, size: int) -> str:
    """Write the backend's input, one statement per line."""
    claim, settle = ENGINES[engine]
    each = [
        f"insert into pg_temp.claimed {claim.format(batch=size)};",
        SETTLE.format(function=settle).replace("\n", " "),
        "truncate pg_temp.claimed;",
    ]
    return "\n".join(["create temp table claimed (step_id bigint, lease_id bigint);", *each * batches, ""])


if __name__ == "__main__":
    main()
