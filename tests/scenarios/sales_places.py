"""The places of an apply where its worker is killed."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    failpoint: str
    is_other: bool  # whether the table is reached by a DSN of its own

    @property
    def channel(self) -> str:
        return f"{'other' if self.is_other else 'own'}-{self.failpoint}"


_INPUTS = ("before_target_inputs", "after_target_inputs")
_SHARED = ("after_claim_steps", "before_handler", "after_handler", "before_settle_batch", "after_settle_batch")
PLACES = (
    *(Place(name, is_other=True) for name in (*_SHARED, "before_channel_write", "after_channel_write")),
    *(Place(name, is_other=False) for name in ("after_claim_steps", "before_handler", "before_commit", "after_commit")),
)
READS = (  # between the claim and the call
    *(Place(name, is_other=is_other) for name in _INPUTS for is_other in (True, False)),
    *(Place(name, is_other=True) for name in ("before_leases_left", "after_leases_left")),
)
SHORT = tuple(place for place in PLACES if place.failpoint in {"after_channel_write", "before_commit"})
LOST = Place("read_back", is_other=True)  # a table whose every answer is lost: its targets are read in the end
