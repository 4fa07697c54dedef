"""The checker of the scenarios: the judge that `holdfast doctor --self-test` has too, over a test's own database."""

from __future__ import annotations

from pathlib import Path

from holdfast.selftest import history
from holdfast.selftest.history import Evidence, Line, Verdict, attempts_overlap, leases_overlap, lines
from holdfast.testing import journal
from kernel.steps import violations
from scenarios.crew import Database

__all__ = ["Line", "Verdict", "attempts_overlap", "judge", "leases_overlap", "lines"]

# Kinds that have an effect in the transaction that completes them, or that ends a page of them.
PAYING = [
    "pay", "deposit", "adeposit", "deposit_apart", "deposit_much", "deposit_once", "turn_pages",
    "order.ship", "billing.send",
]  # fmt: skip
EFFECTS = "select step_id, lease_id from public.effects"
RESULTS = """select id, result::bigint from holdfast.steps
              where last_event = 'succeeded' and jsonb_typeof(result) = 'number'"""  # handlers give their lease


def judge(database: Database, folder: Path, *, started: int, failed: int = 0) -> Verdict:
    """Find what was lost or accepted twice: by the journal, by the handlers' own file, and by the effects they had."""
    with database.connection() as db:
        paying = db.execute("select id from holdfast.steps where kind = any (%s)", [PAYING])
        found = Evidence(
            story=journal(db),
            kept=database.value("select count(*) from holdfast.steps"),
            paying={step_id for (step_id,) in paying},
            effects=db.execute(EFFECTS).fetchall(),
            results=db.execute(RESULTS).fetchall(),
            written=lines(folder),
            broken=tuple(map(str, violations(db))),
        )
    return history.judge(found, started=started, failed=failed)
