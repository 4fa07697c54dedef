"""Servers that tests start: each is stopped with the test that owns it, also when that is killed with -9."""

from __future__ import annotations

from holdfast.embedded.owned import owned_server, reaped

__all__ = ["ELDER", "EMBEDDED", "owned_server", "reaped"]

EMBEDDED, ELDER = "embedded 18", "Debian's 15"
