"""Writes the rows of a bulk start in COPY's text format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

ROWS = 32  # per piece: an input may have a megabyte


class Start(NamedTuple):
    """One step of a bulk start; the input is JSON text, and the queue defaults to that of its kind."""

    kind: str
    input: str
    queue: str | None = None
    priority: int = 0
    due_at: datetime | None = None
    limits: list[str] | None = None
    weight: float | None = None
    batch_key: str | None = None


@dataclass(frozen=True)
class AlikeStarts:
    """Steps that differ only in their input: what they share is written once, which saves half of the time."""

    shared: Start
    inputs: Iterable[str]

    def __iter__(self) -> Iterator[Start]:
        return (self.shared._replace(input=text) for text in self.inputs)

    def lines(self) -> Iterator[str]:
        """Yield the line of each step."""
        kind, _, *others = (_field(value) for value in self.shared)
        head, tail = f"{kind}\t", "\t".join(["", *others]) + "\n"
        for text in self.inputs:
            is_plain = not ("\\" in text or "\n" in text or "\t" in text or "\r" in text)
            yield head + (text if is_plain else _escaped(text)) + tail


def pieces(steps: Iterable[Start]) -> Iterator[str]:
    """Yield the lines of the steps, many at once."""
    lines = steps.lines() if isinstance(steps, AlikeStarts) else map(_line, steps)
    while piece := "".join(islice(lines, ROWS)):
        yield piece


def _line(step: Start) -> str:
    return "\t".join(map(_field, step)) + "\n"


def _field(value: Any) -> str:
    return "\\N" if value is None else _escaped(_text(value))


def _text(value: Any) -> str:
    """Write a value as PostgreSQL reads it; a list is an array of text."""
    if not isinstance(value, list):
        return str(value)
    quoted = (str(each).replace("\\", "\\\\").replace('"', '\\"') for each in value)
    return "{" + ",".join(f'"{each}"' for each in quoted) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
