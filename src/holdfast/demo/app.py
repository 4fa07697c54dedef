"""The demo's whole app, for `holdfast worker --app holdfast.demo.app:hf`."""

from __future__ import annotations

from holdfast.demo import deploys, feeds, labels, orders, outlets, sales, shops
from holdfast.demo.tasks import hf

__all__ = ["deploys", "feeds", "hf", "labels", "orders", "outlets", "sales", "shops"]
