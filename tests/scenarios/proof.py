"""What a test of a fault found: how often it was made, and whether anything was lost or accepted twice."""

from __future__ import annotations

import os
import random
from pathlib import Path

from scenarios.crew import Database
from scenarios.history import judge

Figures = dict[str, int]


def seed() -> int:
    """Give the seed of this run: FAULT_SEED, which `evidence` sets where nobody did."""
    return int(os.environ["FAULT_SEED"])


class Proof:
    """The figures of one test. What it does not count is not known: a scenario that starts no task can lose none."""

    def __init__(self, test: str) -> None:
        self.figures: Figures = {}
        self.chance = random.Random(f"{seed()}:{test}")

    def add(self, **figures: int) -> None:
        """Add to rounds, kills, lost and twice."""
        for name, count in figures.items():
            self.figures[name] = self.figures.get(name, 0) + count

    def check(self, database: Database, folder: Path, *, started: int, failed: int = 0) -> None:
        """Judge the history and count it; `failed` of the started tasks were meant to fail."""
        verdict = judge(database, folder, started=started, failed=failed)
        self.add(lost=verdict.lost, twice=verdict.twice)
        assert verdict.is_sound, verdict
