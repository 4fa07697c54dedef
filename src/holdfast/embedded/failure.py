"""Builds the errors of this package."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from holdfast.errors import EmbeddedFailed

QUOTED = 12


def failed(what: str, *, then: str, logs: Iterable[Path] = ()) -> EmbeddedFailed:
    """Build the error from what happened and the next step, with the ends of the logs as a note."""
    error = EmbeddedFailed(what, next=then)
    for log in logs:
        if lines := _tail(log):
            error.add_note("\n".join([f"the end of {log}:", *(f"  | {line}" for line in lines)]))
    return error


def _tail(log: Path) -> list[str]:
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - 8192))
            return file.read().decode(errors="replace").splitlines()[-QUOTED:]
    except OSError:
        return []
