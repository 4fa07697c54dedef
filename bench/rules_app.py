"""The app of the section `rules`: a table of prices and a shop as channels, a no-op with a batch, and a previewer as a process."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from dataclasses import dataclass

from holdfast import Holdfast
from holdfast.handlers.batch import Batch
from holdfast.rules import Rule, percent, tag
from holdfast.rules.http import HttpChannel
from holdfast.rules.table import Table

BATCH = 250

hf = Holdfast()
hf.rules.channel("shop", Table("shop.products", key="sku", price="price", tags="tags", currency="EUR"), batch=BATCH)
if "OUTLET_URL" in os.environ:  # a simulated shop, with a limit if there is one
    rate = os.environ.get("OUTLET_RATE")
    limit = {} if rate is None else {"rate": float(rate), "per": 1, "burst": float(os.environ["OUTLET_BURST"])}
    size = int(os.environ.get("OUTLET_BATCH", BATCH))
    hf.rules.channel("outlet", HttpChannel(os.environ["OUTLET_URL"]), batch=size, **limit)


@dataclass
class Item:
    """What a no-op takes."""

    n: int


@hf.task(batch=BATCH, queue="noops")
def noop(batch: Batch, items: list[Item]) -> list[None]:
    """Do nothing, for many at once."""
    return [None] * len(items)


def preview(label: str) -> None:
    """Preview all items with a tag; print the run, the seconds that it took and the memory at its peak."""
    begun = time.perf_counter()
    run = hf.rules.preview(Rule(f"rule {label}", where=tag(label), change=percent(-10)), channel="shop")
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"run": str(run.id), "seconds": seconds, "peak": peak}))
    hf.close()


if __name__ == "__main__":
    preview(sys.argv[1])
