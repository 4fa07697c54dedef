"""An app with one channel per place: a table in Holdfast's own database, or the same one through a DSN of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence

from sales_places import LOST, PLACES, READS

from holdfast import Env, Holdfast, RetryPolicy
from holdfast.errors import Unavailable
from holdfast.rules.channel import ChannelCall, Write, Wrote
from holdfast.rules.table import Table


class Lossy(Table):
    """A table that writes, and whose answer is lost."""

    def write(self, writes: Sequence[Write], call: ChannelCall) -> Sequence[Wrote]:
        """Write, and lose the answer."""
        super().write(writes, call)
        raise Unavailable("the answer is lost", code="NETWORK")


os.environ.setdefault("SALES_DSN", os.environ["HOLDFAST_DSN"])
hf = Holdfast()
for place in (*PLACES, *READS):
    dsn = Env("SALES_DSN") if place.is_other else None
    table = Table("sales.products", key="sku", price="price", currency="EUR", dsn=dsn)
    hf.rules.channel(place.channel, table, batch=5)
lossy = Lossy("sales.products", key="sku", price="price", currency="EUR", dsn=Env("SALES_DSN"))
hf.rules.channel(LOST.channel, lossy, batch=5, retry=RetryPolicy(limit=2, base=0.1))
