"""The places of a call to a shop where its worker is killed, and the fault that leads there."""

from __future__ import annotations

from typing import Any

PLACES: dict[str, dict[str, Any] | None] = {
    "after_channel_write": None,
    "before_halving": {"name": "rejected"},
    "after_read_back": {"name": "error_after"},
    "after_stop_failing": {"name": "unauthorized"},
    "before_channel_write": None,
    "before_read_back": {"name": "error_after"},
    "before_stop_failing": {"name": "unauthorized"},
}
SHORT = ("after_channel_write", "before_halving", "after_read_back", "after_stop_failing")
CHANNELS = ("outlet", *PLACES)
