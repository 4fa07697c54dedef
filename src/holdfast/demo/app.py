"""The demo's whole app: its tasks, its order and its shops, for `holdfast worker --app holdfast.demo.app:hf`."""

from __future__ import annotations

from holdfast.demo import orders, shops
from holdfast.demo.tasks import hf

__all__ = ["hf", "orders", "shops"]
