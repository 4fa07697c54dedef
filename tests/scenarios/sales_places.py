"""The places of an apply where its worker is killed."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    failpoint: str
    is_other: bool  # whether the table is reached by a DSN of its own

    @property
    def channel(self) -> str:
        return f"{'other' if self.is_other else 'own'}-{self.failpoint}"


_SHARED = ("after_claim_steps", "before_handler", "after_handler", "before_settle_batch", "after_settle_batch")
PLACES = (
    *(Place(name, is_other=True) for name in (*_SHARED, "before_channel_write", "after_channel_write")),
    *(Place(name, is_other=False) for name in ("after_claim_steps", "before_handler", "before_commit", "after_commit")),
)
SHORT = tuple(place for place in PLACES if place.failpoint in {"after_channel_write", "before_commit"})
