"""The demo's verdict: what the journal and the tasks' own effects say, step by step, and whether it holds."""

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
        """Hold each figure against what it must be."""
        return [
            Finding("started", self.started, f"{self.asked:,} were asked for", self.started == self.asked),
            Finding("done", self.done, "all that can succeed", self.done == self.asked - self.hopeless),
            Finding("failed for good", self.failed, "import_catalog, by intent", self.failed == self.hopeless),
            Finding("attempts", self.attempts, "at least one each", self.attempts >= self.asked),
            Finding("workers killed with -9", self.killed, "one, in the middle", self.killed == 1),
            Finding("rescued from it", self.rescued, "what it held", self.rescued >= self.killed),
            Finding("lost", self.lost, "over, and with its effect", self.lost == 0),
            Finding("accepted twice", self.twice, "one success and one effect each", self.twice == 0),
            Finding("half done", self.half, "no effect without a success", self.half == 0),
        ]

    @property
    def holds(self) -> bool:
        """Whether every figure is what it must be."""
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
        """Show it in one sign."""
        return "✓" if self.holds else "✗"


def judge(load: Load, evidence: Sequence[StepRecord], *, killed: int) -> DemoResult:
    """Count what became of the tasks; nothing is taken for granted, least of all that each is there once."""
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
