"""The demo's verdict: compares the journal with the tasks' effects, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from holdfast.demo.tasks import HOPELESS
from holdfast.reads.demo import Load, StepRecord


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The figures, each counted from evidence."""

    asked: int
    started: int
    done: int
    failed: int
    hopeless: int
    attempts: int
    killed: int
    rescued: int
    lost: int
    twice: int
    half: int

    def findings(self) -> list[Finding]:
        """Compare each figure with what it must be."""
        return [
            Finding("started", self.started, f"{self.asked:,} were requested", self.started == self.asked),
            Finding("done", self.done, "all that can succeed did", self.done == self.asked - self.hopeless),
            Finding("failed for good", self.failed, "import_catalog, intentionally", self.failed == self.hopeless),
            Finding("attempts", self.attempts, "at least one per task", self.attempts >= self.asked),
            Finding("workers killed with -9", self.killed, "one, in the middle", self.killed == 1),
            Finding("rescued from it", self.rescued, "the tasks it held", self.rescued >= self.killed),
            Finding("lost", self.lost, "every task ended, with its effect", self.lost == 0),
            Finding("accepted twice", self.twice, "one success and one effect per task", self.twice == 0),
            Finding("half done", self.half, "no effect without a success", self.half == 0),
        ]

    @property
    def holds(self) -> bool:
        """Return whether every figure is what it must be."""
        return all(finding.holds for finding in self.findings())


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the final table."""

    what: str
    count: int
    meaning: str
    holds: bool

    @property
    def mark(self) -> Literal["✓", "✗"]:
        """Return a check mark or a cross."""
        return "✓" if self.holds else "✗"


def judge(load: Load, evidence: Sequence[StepRecord], *, killed: int) -> DemoResult:
    """Count the outcomes of the tasks, without assuming even that each task exists once."""
    missing = load.asked - len(evidence)
    return DemoResult(
        asked=load.asked,
        started=len(evidence),
        done=sum(1 for one in evidence if one.successes),
        failed=sum(1 for one in evidence if one.failures and one.kind == HOPELESS),
        hopeless=load.hopeless,
        attempts=sum(one.claims for one in evidence),
        killed=killed,
        rescued=sum(one.rescues for one in evidence),
        lost=max(0, missing) + sum(1 for one in evidence if _is_lost(one)),
        twice=sum(1 for one in evidence if one.successes + one.failures > 1 or one.effects > 1),
        half=sum(1 for one in evidence if one.effects and not one.successes),
    )


def _is_lost(one: StepRecord) -> bool:
    is_over = one.successes + one.failures > 0
    return not is_over or (one.successes > 0 and one.effects == 0)
