"""What a process logs, when others write to the same file."""

from __future__ import annotations

import io
import sys

import pytest
import structlog

from holdfast import log


class Writes(io.StringIO):
    """A stderr that keeps what each write was given."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[str] = []

    def write(self, text: str) -> int:
        self.made.append(text)
        return len(text)


def test_a_line_is_one_write_so_that_those_of_two_processes_do_not_mix(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last lines of a supervisor's two workers once stood on one."""
    written, before = Writes(), structlog.get_config()
    monkeypatch.setattr(sys, "stderr", written)
    try:
        log.configure("info", "json")
        log.get("test").info("test.happened", number=1)
    finally:
        structlog.configure(**before)

    assert len(written.made) == 1
    assert written.made[0].endswith("}\n")
