"""Medians, spreads and ratios of readings, paired inside a round. Uses only the standard library."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Span:
    """The median, minimum and maximum of some rounds."""

    median: float
    least: float
    most: float
    rounds: int

    def includes(self, value: float) -> bool:
        return self.least <= value <= self.most


@dataclass(frozen=True)
class Measured:
    """A section's file: one interleaved run of it."""

    section: str
    title: str
    at: str
    commit: str
    dirty: bool
    quick: bool
    rounds: int
    readings: list[dict[str, Any]]
    machine: dict[str, Any] = field(default_factory=dict)
    server: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def whats(self) -> list[str]:
        """List what was measured, in the order of first readings."""
        return list(dict.fromkeys(reading["what"] for reading in self.readings))

    def engines(self, what: str | None = None) -> list[str]:
        """List the engines that have a reading of `what`, or any reading."""
        return list(dict.fromkeys(r["engine"] for r in self.readings if what in {None, r["what"]}))

    def unit(self, what: str, engine: str | None = None) -> str:
        """Return the unit of `what`, for the engine or for the first that has a reading."""
        units = (r["unit"] for r in self.readings if r["what"] == what and engine in {None, r["engine"]})
        return next(units, "")

    def by_round(self, engine: str, what: str) -> dict[int, float]:
        """Return the value of each round that has one."""
        return {
            reading["round"]: float(reading["value"])
            for reading in self.readings
            if reading["engine"] == engine and reading["what"] == what and reading["value"] is not None
        }

    def span(self, engine: str, what: str) -> Span | None:
        return span(self.by_round(engine, what).values())

    def ratio(self, ours: tuple[str, str], theirs: tuple[str, str]) -> Span | None:
        """Pair two (engine, what) inside each round that has both, and return the median of the ratios."""
        mine, other = self.by_round(*ours), self.by_round(*theirs)
        return span(mine[number] / other[number] for number in mine if other.get(number))


def span(values: Iterable[float]) -> Span | None:
    """Return the median with its spread, or None if nothing was measured."""
    known = list(values)
    return Span(statistics.median(known), min(known), max(known), len(known)) if known else None


def less_is_better(unit: str) -> bool:
    """Return whether less is better: true for times, sizes and counts, false for rates."""
    return not unit.endswith("/s")


def load(folder: Path) -> dict[str, Measured]:
    """Read every section's file of `folder`, by the section's name."""
    known = set(Measured.__dataclass_fields__)
    files = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    return {file["section"]: Measured(**{key: file[key] for key in known & file.keys()}) for file in files}
