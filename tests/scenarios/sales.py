"""An app with one channel per place: a table in Holdfast's own database, or the same one through a DSN of its own."""

from __future__ import annotations

import os

from sales_places import PLACES

from holdfast import Env, Holdfast
from holdfast.rules.table import Table

os.environ.setdefault("SALES_DSN", os.environ["HOLDFAST_DSN"])
hf = Holdfast()
for place in PLACES:
    dsn = Env("SALES_DSN") if place.is_other else None
    table = Table("sales.products", key="sku", price="price", currency="EUR", dsn=dsn)
    hf.rules.channel(place.channel, table, batch=5)
