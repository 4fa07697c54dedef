"""Batch handlers as holdfast's users write them: one that does nothing, and one that writes a row per task."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import probe
from driver import KEYS

from holdfast import Batch, Holdfast

SIZE = int(os.environ.get("BENCH_CALLS", "0"))  # tasks per call
WRITES = bool(os.environ.get("BENCH_WRITES"))
INSERT = "insert into written (sent, key) select * from unnest(%s::float[], %s::int[])"


@dataclass
class Item:
    """The input of one task, with the fields that the task by itself has."""

    sent: float = 0.0
    key: int = 0


def define(hf: Holdfast) -> Any:
    """Define the handler that is asked for, under the name that every section starts."""

    def write(batch: Batch, items: list[Item]) -> list[None]:
        """Insert one row per task, and complete the tasks in the same transaction."""
        probe.hit(tasks=len(items))
        with batch.transaction() as tx:
            tx.execute(INSERT, [[item.sent for item in items], [item.key for item in items]])
        return [None] * len(items)

    def noop(items: list[Item]) -> list[None]:
        """Do nothing."""
        probe.hit(tasks=len(items))
        return [None] * len(items)

    return hf.task(name="noop", batch=SIZE, by="key" if KEYS else None)(write if WRITES else noop)
