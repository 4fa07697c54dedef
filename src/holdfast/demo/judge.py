"""The demo's verdict: what the journal and the tasks' own effects say, step by step, and whether it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from psycopg import Connection
from psycopg.rows import class_row

from holdfast.demo.tasks import HOPELESS
from holdfast.demo.workload import Load

# `taken`: the leases that the killed worker was granted. A rescue is the end of one of them by the system.
EVIDENCE = """
with taken as materialized (
  select j.lease_id
    from holdfast.journal j
   where j.step_id > %(after)s and j.step_id <= %(until)s and j.event = 'claimed' and j.actor = %(killed)s),
moves as (
  select j.step_id,
         count(*) filter (where j.event = 'claimed') as claims,
         count(*) filter (where j.event = 'expired' and t.lease_id is not null) as rescues,
         count(*) filter (where j.event = 'succeeded') as successes,
         count(*) filter (where j.event = 'failed') as failures
    from holdfast.journal j
    left join taken t on t.lease_id = j.lease_id
   where j.step_id > %(after)s and j.step_id <= %(until)s
   group by j.step_id),
effects as (
  select e.step_id, count(*) as effects
    from holdfast_demo.effects e
   where e.step_id > %(after)s and e.step_id <= %(until)s
   group by e.step_id)
select s.id as step_id, s.kind, coalesce(m.claims, 0) as claims, coalesce(m.rescues, 0) as rescues,
       coalesce(m.successes, 0) as successes, coalesce(m.failures, 0) as failures, coalesce(e.effects, 0) as effects
  from holdfast.steps s
  left join moves m on m.step_id = s.id
  left join effects e on e.step_id = s.id
 where s.queue = %(queue)s and s.id > %(after)s and s.id <= %(until)s
 order by s.id
"""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """What the journal and the effects say of one step."""

    step_id: int
    kind: str
    claims: int
    rescues: int
    successes: int
    failures: int
    effects: int


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


def gather(connection: Connection[Any], load: Load, killed: str | None) -> list[StepRecord]:
    """Read the evidence; `killed` is the name of the worker that was killed."""
    with connection.cursor(row_factory=class_row(StepRecord)) as cursor:
        return cursor.execute(EVIDENCE, {**load.scope(), "killed": killed}).fetchall()


def _is_lost(one: StepRecord) -> bool:
    is_over = one.successes + one.failures > 0
    return not is_over or (one.successes > 0 and one.effects == 0)
