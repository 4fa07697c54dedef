"""Readings: one figure of one engine in one round, with its noise, and the file of a section."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

SPINS = 300_000


@dataclass(frozen=True)
class Reading:
    """A figure, and the noise when it was taken."""

    engine: str
    what: str
    round: int
    value: float
    unit: str
    spin_ms: float
    steal_pct: float
    extra: dict[str, Any] = field(default_factory=dict)

    def as_row(self) -> dict[str, Any]:
        """Return it as in the results file."""
        row = {
            name: getattr(self, name) for name in ("engine", "what", "round", "value", "unit", "spin_ms", "steal_pct")
        }
        return {**row, **self.extra}


class Noise:
    """Measures how much slower the machine is than at rest: the time of a fixed loop, and the share of stolen time."""

    def __init__(self) -> None:
        self._times = psutil.cpu_times()

    def take(self) -> tuple[float, float]:
        """Return the loop's milliseconds now, and the percentage stolen since the last call."""
        before, self._times = self._times, psutil.cpu_times()
        passed = sum(self._times) - sum(before)
        stolen = getattr(self._times, "steal", 0.0) - getattr(before, "steal", 0.0)
        return spin(), round(100 * stolen / passed, 1) if passed > 0 else 0.0


def spin() -> float:
    """Time a fixed loop of pure Python, in milliseconds."""
    begun = time.perf_counter()
    total = 0
    for number in range(SPINS):
        total += number
    return round((time.perf_counter() - begun) * 1000, 1)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed."""
    if not values:
        raise ValueError("no values were read")
    return sorted(values)[max(0, math.ceil(len(values) * share) - 1)]


@dataclass
class Section:
    """All readings of one section in one run."""

    name: str
    title: str
    quick: bool
    rounds: int
    server: dict[str, Any]
    versions: dict[str, str]
    readings: list[Reading] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    def save(self, folder: Path) -> Path:
        """Write it to the results folder, replacing the previous run."""
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{self.name}.json"
        commit, dirty = commit_of(Path(__file__).parent)
        content = {
            "section": self.name,
            "title": self.title,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": commit,
            "dirty": dirty,
            "quick": self.quick,
            "rounds": self.rounds,
            "machine": machine(),
            "server": self.server,
            "versions": self.versions,
            "left_out": self.left_out,
        }
        # A reading a line: a later run's difference can be read.
        rows = ",\n".join("    " + json.dumps(reading.as_row()) for reading in self.readings)
        text = json.dumps(content, indent=2).removesuffix("\n}")
        file.write_text(f'{text},\n  "readings": [\n{rows}\n  ]\n}}\n')
        return file


def machine() -> dict[str, Any]:
    """Describe the machine that the bench runs on."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def commit_of(folder: Path) -> tuple[str, bool]:
    """Return the last commit that changed the measured code, and whether the source differs from it."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", folder, *arguments], capture_output=True, text=True, check=False
        ).stdout.strip()

    measured = ("--", ":/src", ":/bench", ":!/bench/results", ":!/bench/plots", ":!/bench/*.md")
    return git("log", "-1", "--format=%h", "--abbrev=10", *measured), bool(git("status", "--porcelain", *measured))


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor()
    )
