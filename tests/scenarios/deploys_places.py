"""The places of an ops run where its worker is killed, and how the run ends after that."""

from __future__ import annotations

from typing import NamedTuple


class Cell(NamedTuple):
    kind: str
    ends: str  # of the run, when another worker has done what is left to do
    waits: bool = True  # whether the worker dies before its program may go on

    @property
    def arms(self) -> str:
        name, _, turn = self.kind.partition("@")
        return f"{name}:kill9" + (f"@{turn}" if turn else "")


CELLS = (
    Cell("before_claim_steps", "success"),  # nothing was claimed, so another worker takes it
    Cell("after_claim_steps", "cancelled"),
    Cell("before_hand_out", "cancelled"),
    Cell("before_note", "cancelled"),  # claimed, without an event
    Cell("after_note", "cancelled"),
    Cell("before_shell", "cancelled"),
    Cell("after_shell", "cancelled"),
    Cell("before_append_output", "cancelled"),  # events of the program and its output
    Cell("after_append_output", "cancelled"),
    Cell("after_program", "cancelled", waits=False),
    Cell("before_artifact", "cancelled", waits=False),
    Cell("after_artifact", "cancelled", waits=False),
    Cell("before_settle_batch", "cancelled", waits=False),
    Cell("after_settle_batch", "success", waits=False),
)
SHORT = tuple(
    cell for cell in CELLS if cell.kind in {"after_claim_steps", "after_append_output", "before_settle_batch"}
)
