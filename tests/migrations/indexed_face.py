"""A face with indexes on the kernel's tables."""

from __future__ import annotations

from holdfast.faces import Face

FACE = Face(name="indexed", summary="indexes large tables", machines={}, sql="migrations:indexed_sql", has_schema=False)
