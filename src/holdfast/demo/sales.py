"""The demo's sale: a rule, and the table whose prices it changes."""

from __future__ import annotations

from holdfast.demo.tasks import hf
from holdfast.rules.language.rule import Rule
from holdfast.rules.language.selectors import everything
from holdfast.rules.language.transforms import percent
from holdfast.rules.table import Table

CHANNEL = "demo-sale"
QUEUE = f"rules:{CHANNEL}"
SALE = Rule("demo-sale", where=everything, change=percent(-20).round("nearest", "0.05").compare_at("before"))
products = Table("holdfast_demo.products", key="sku", price="price", compare_at="compare_at", currency="EUR")
hf.rules.channel(CHANNEL, products, batch=10)
