"""How soon a waiting worker picks a task up, what it costs while idle, and whether its memory stays flat.

    make bench-worker runs worker.py; this one: .venv/bin/python bench/pickup.py trickle|idle|memory

One worker process as users start it, on a database of its own. `trickle`: 20 tasks a second, from the start's commit to the
handler's first line. `idle`: transactions a minute of a worker that has settled down. `memory`: a drain of many tasks.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg

from holdfast.worker import listen
from hot_path import HERE, HOLDFAST, database, load

SETTLED = 45.0  # seconds until the polls have grown to their longest


@contextmanager
def worker(dsn: str) -> Iterator[psutil.Process]:
    environment = {**os.environ, "HOLDFAST_DSN": dsn, "HOLDFAST_LOG_LEVEL": "warning", "HOLDFAST_TEST_TARGET": dsn}
    command = [sys.executable, "-m", "holdfast", "worker", "--app", "pickup_tasks:hf"]
    process = subprocess.Popen(command, cwd=HERE, env=environment)
    try:
        wait_for(dsn, "select exists (select from holdfast.workers)")
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def wait_for(dsn: str, condition: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        while connection.execute(condition).fetchone() != (True,):
            time.sleep(0.1)


def trickle(dsn: str, options: argparse.Namespace) -> None:
    times = Path("/tmp") / f"holdfast-pickup-{os.getpid()}"
    os.environ["HOLDFAST_TEST_TIMES"] = str(times)
    with worker(dsn), psycopg.connect(dsn, autocommit=True) as connection:
        started: dict[int, float] = {}
        for _ in range(options.seconds * 20):
            row = connection.execute("select holdfast.start_task('tick')").fetchone()
            started[row[0] if row else 0] = time.time()
            time.sleep(0.05)
        wait_for(dsn, "select not exists (select from holdfast.steps where finished_at is null)")
    began = {int(step): float(at) for step, at in (line.split() for line in times.read_text().splitlines())}
    times.unlink()
    waits = sorted((began[step] - at) * 1000 for step, at in started.items())
    print(
        f"trickle: {len(waits)} tasks, p50 {statistics.median(waits):.1f} ms, p99 {waits[len(waits) * 99 // 100]:.1f} ms"
    )


def idle(dsn: str, options: argparse.Namespace) -> None:
    """Count calls of the functions that a worker makes; the listener's probe each 30 s is no function of ours."""
    names = ["claim_steps", "mark_asleep", "upkeep", "renew_leases", "lost_leases", "enlist_worker"]
    query = "select funcname, calls from pg_stat_user_functions where schemaname = 'holdfast' and funcname = any (%s)"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"alter database {connection.info.dbname} set track_functions = 'pl'")
    with worker(dsn):
        time.sleep(SETTLED)
        with psycopg.connect(dsn, autocommit=True) as connection:
            before = dict(connection.execute(query, [names]).fetchall())
            time.sleep(options.seconds)
            after = dict(connection.execute(query, [names]).fetchall())
    made = {name: (calls - before.get(name, 0)) * 60 / options.seconds for name, calls in after.items()}
    probes = 60 / listen.PROBE_EACH
    print(f"idle: {sum(made.values()) + probes:.1f} statements a minute: {made}, probes {probes}")


def memory(dsn: str, options: argparse.Namespace) -> None:
    load(dsn, HOLDFAST, "tasks", options.steps)
    with worker(dsn) as process, psycopg.connect(dsn, autocommit=True) as connection:
        for share in range(1, 11):
            done = options.steps * share // 10
            while moves(connection) < 2 * done - 2000:
                time.sleep(0.2)
            print(f"memory: {done:,} done, {process.memory_info().rss / 2**20:.0f} MiB", flush=True)


def moves(connection: psycopg.Connection[tuple[object, ...]]) -> int:
    """Tell how many moves were journaled, as far as the statistics know: two for each task."""
    row = connection.execute(
        """select coalesce(sum(s.n_tup_ins), 0)::bigint from pg_stat_user_tables s
             join pg_inherits i on i.inhrelid = s.relid where i.inhparent = 'holdfast.journal'::regclass"""
    ).fetchone()
    return int(str(row[0])) if row else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["trickle", "idle", "memory"])
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=1_000_000)
    options = parser.parse_args()
    with database() as dsn:
        {"trickle": trickle, "idle": idle, "memory": memory}[options.what](dsn, options)


if __name__ == "__main__":
    main()
