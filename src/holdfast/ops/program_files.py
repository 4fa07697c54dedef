"""The files that a program may write for its run: HOLDFAST_OUTPUT for metadata, HOLDFAST_SUMMARY for a summary."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast.ops.output import Cleaner, Lines

LARGEST = 64 * 1024  # bytes of each file; the rest is not read
_ENTRY = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]{0,99})=(.*)")
_OPEN_ENTRY = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]{0,99})<<(\S+)")


@dataclass(frozen=True, slots=True)
class Written:
    """What a program wrote: values by name, its summary, and remarks about what could not be read."""

    values: dict[str, str]
    summary: str
    remarks: tuple[str, ...] = ()


class ProgramFiles:
    """The two files of one program, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._output = folder / "output"
        self._summary = folder / "summary"
        self._output.touch(mode=0o600)
        self._summary.touch(mode=0o600)

    def environment(self) -> dict[str, str]:
        """Return the variables that name the files."""
        return {"HOLDFAST_OUTPUT": str(self._output), "HOLDFAST_SUMMARY": str(self._summary)}

    def read(self) -> Written:
        """Read both files."""
        output, was_cut = _text(self._output)
        values, remarks = parse_output(output)
        summary, summary_was_cut = _text(self._summary)
        for name, is_long in (("HOLDFAST_OUTPUT", was_cut), ("HOLDFAST_SUMMARY", summary_was_cut)):
            if is_long:
                remarks.append(f"{name}: only the first {LARGEST} bytes were read")
        return Written(values, summary, tuple(remarks))


@contextmanager
def program_files() -> Iterator[ProgramFiles]:
    """Yield the files of a program; they are removed with the block."""
    with tempfile.TemporaryDirectory(prefix="holdfast-", ignore_cleanup_errors=True) as folder:
        yield ProgramFiles(Path(folder))


def parse_output(text: str) -> tuple[dict[str, str], list[str]]:
    """Parse lines `NAME=VALUE`, and `NAME<<END` with the lines of the value up to END; return remarks about others."""
    values: dict[str, str] = {}
    remarks: list[str] = []
    lines = iter(text.split("\n"))
    for line in lines:
        if (opened := _OPEN_ENTRY.fullmatch(line)) is not None:
            name, end = opened.groups()
            inner: list[str] = []
            for value in lines:
                if value == end:
                    break
                inner.append(value)
            else:
                remarks.append(f"HOLDFAST_OUTPUT: the value of {name} has no line {end}, which should end it")
            values[name] = "\n".join(inner)
        elif (entry := _ENTRY.fullmatch(line)) is not None:
            values[entry[1]] = entry[2]
        elif line.strip():
            remarks.append(f"HOLDFAST_OUTPUT: lines must be NAME=VALUE, got {line[:80]!r}")
    return values, remarks


def _text(path: Path) -> tuple[str, bool]:
    """Read the beginning of a file, cleaned as output is; a program may have replaced it by anything."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(LARGEST + 1) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return "", False
    cleaner, lines = Cleaner(), Lines(LARGEST)
    text = cleaner.feed(data[:LARGEST]) + cleaner.end()
    return lines.feed(text) + lines.end(), len(data) > LARGEST
