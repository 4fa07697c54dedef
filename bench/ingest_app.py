"""The feed that the section `ingest` measures: a table of another database, mapped by a function."""

from __future__ import annotations

import os

from holdfast import Holdfast
from holdfast.ingest import Canonical, Table
from ingest_map import Order, to_order

TARGET = "create table bench_orders (id bigint primary key, name text, cents bigint, note text, deleted_at timestamptz)"


hf = Holdfast()
feed = hf.ingest(
    "bench",
    source=Table(
        os.environ.get("BENCH_SOURCE", "dbname=bench"), "orders", key="id", updated_at="changed_at",
        page_size=int(os.environ.get("BENCH_PAGE", "1000")),
    ),
    into=Canonical("public.bench_orders", Order, key="id"),
    map=to_order,
)  # fmt: skip
