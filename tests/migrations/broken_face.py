"""A face whose SQL cannot be installed."""

from __future__ import annotations

from holdfast.faces import Face

FACE = Face(name="broken", summary="cannot be installed", machines={}, sql="migrations:broken_sql")
