"""Ingest: partitioned pulls from a source into a table. Define feeds with `hf.ingest`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.ingest.calls import RunSummary
    from holdfast.ingest.handle import IngestRun
    from holdfast.ingest.pricing import Pricing
    from holdfast.ingest.rows import Rows
    from holdfast.ingest.source import Page, Part, Source, Window
    from holdfast.ingest.table import Table
    from holdfast.ingest.target import Canonical

__all__ = ["Canonical", "IngestRun", "Page", "Part", "Pricing", "Rows", "RunSummary", "Source", "Table", "Window"]

_PLACES = {
    "Canonical": "target",
    "IngestRun": "handle",
    "Page": "source",
    "Part": "source",
    "Pricing": "pricing",
    "Rows": "rows",
    "RunSummary": "calls",
    "Source": "source",
    "Table": "table",
    "Window": "source",
}

if not TYPE_CHECKING:  # a type checker would take every name as one of ours

    def __getattr__(name: str) -> Any:
        """Import a public name on first use, because the face's entry and commands need none of them."""
        if name not in _PLACES:
            raise AttributeError(f"module 'holdfast.ingest' has no attribute {name!r}")
        return getattr(import_module(f"holdfast.ingest.{_PLACES[name]}"), name)
