"""Pull a table with dlt into another database, merged by upsert, and print the seconds that it took, of CPU too.

    python dlt_adapter.py SOURCE TARGET BACKEND FORMAT WORKERS FOLDER

Run by the peers' interpreter. BACKEND is dlt's (sqlalchemy, pyarrow, connectorx), or `vectorised`: pyarrow with a mapping
of columns in place of the function. FORMAT is how dlt loads (insert_values, csv). WORKERS also divides the source into as
many parallel resources.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import dlt
import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy
from dlt.sources.sql_database import sql_table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ingest_map import to_order

CHUNK = 50_000
COLUMNS = ["id", "name", "cents", "note"]


def mapped(rows: Any) -> Any:
    """Map rows by the function, as they come: one by one, or a table of Arrow."""
    if isinstance(rows, pa.Table):
        return pa.Table.from_pylist([to_order(row).model_dump() for row in rows.to_pylist()])
    return to_order(rows).model_dump()


def vectorised(rows: Any) -> Any:
    """Map whole columns, without the function."""
    return rows.select(COLUMNS).set_column(1, "name", pc.utf8_upper(rows["name"]))


def part_of(engine: sqlalchemy.Engine, backend: str, number: int, of: int) -> Any:
    """Return one of the resources that divide the table by its key."""

    def divided(query: Any, table: Any) -> Any:
        return query.where(table.c.id % of == number) if of > 1 else query

    rows = sql_table(
        credentials=engine if backend != "connectorx" else str(engine.url.render_as_string(hide_password=False)),
        table="orders", chunk_size=CHUNK, reflection_level="full", query_adapter_callback=divided,
        backend="pyarrow" if backend == "vectorised" else backend, included_columns=COLUMNS,
    )  # fmt: skip
    merge = {"disposition": "merge", "strategy": "upsert"}
    rows.apply_hints(table_name="bench_orders", primary_key="id", write_disposition=merge)
    rows = rows.with_name(f"orders_{number}").add_map(vectorised if backend == "vectorised" else mapped)
    return rows.parallelize() if of > 1 else rows


def complete(address: str) -> str:
    """Return an address that dlt accepts: it wants a host and a password also for a socket, which needs neither."""
    url = sqlalchemy.make_url(address)
    return url.set(host=url.host or "localhost", password=url.password or "none").render_as_string(hide_password=False)


def main() -> None:
    """Pull once."""
    source, target, backend, form, workers, folder = sys.argv[1:]
    os.environ.update(
        NORMALIZE__WORKERS=workers, EXTRACT__WORKERS=workers, LOAD__WORKERS=workers, RUNTIME__DLTHUB_TELEMETRY="false",
        RUNTIME__LOG_LEVEL="ERROR", DLT_DATA_DIR=folder,
    )  # fmt: skip
    engine = sqlalchemy.create_engine(source)
    pipeline = dlt.pipeline(
        "bench", destination=dlt.destinations.postgres(complete(target)), dataset_name="pulled",
        pipelines_dir=f"{folder}/pipelines",
    )  # fmt: skip
    begun = time.perf_counter()
    parts = [part_of(engine, backend, number, int(workers)) for number in range(int(workers))]
    pipeline.run(parts, loader_file_format=form)
    seconds = time.perf_counter() - begun
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(json.dumps({"seconds": seconds, "cpu": sum(each.ru_utime + each.ru_stime for each in used)}))


if __name__ == "__main__":
    main()
