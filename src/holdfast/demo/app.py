"""The demo's whole app, for `holdfast worker --app holdfast.demo.app:hf`."""

from __future__ import annotations

from holdfast.demo import deploys, feeds, orders, outlets, sales, shops
from holdfast.demo.tasks import hf

__all__ = ["deploys", "feeds", "hf", "orders", "outlets", "sales", "shops"]
