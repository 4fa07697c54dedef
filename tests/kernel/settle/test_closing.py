"""A face's own closing rule: it may add steps before a run ends, or choose another event."""

from __future__ import annotations

from uuid import UUID

import pytest

from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Done, Fail
from holdfast.testing import events
from kernel.steps import (
    DB,
    add_machine,
    at_once,
    claim,
    claim_one,
    column,
    counts,
    finish,
    node,
    run_row,
    settle,
    start_flow,
)

MACHINE = """
created:open     started        working:held
working:held     all_succeeded  completed:over=succeeded
working:held     some_failed    failed:over=failed
working:held     none_succeeded failed:over=failed
working:held     blocked        failed:over=failed
working:held     stopped        skipped:over=succeeded
"""

# As an ingest's: when all pages are in, one step more; when nothing came of them, the run is stopped.
CONSOLIDATES = """
create function public.consolidate(run uuid, event text) returns text language plpgsql as $$
begin
  if event = 'none_succeeded' then
    return 'stopped';
  end if;
  if exists (select from holdfast.run_steps s where s.run_id = consolidate.run and s.name = 'consolidate') then
    return event;
  end if;
  perform holdfast.add_steps(consolidate.run, 'flow.step', '[{"kind": "consolidate", "name": "consolidate"}]');
  return null;
end $$;
grant execute on function public.consolidate to public;
"""


@pytest.fixture
def pull(db: DB) -> UUID:
    """A run of two pages whose machine has a closing rule."""
    db.execute(CONSOLIDATES)
    add_machine(db, "test.pull", MACHINE, initial="created:open", subject="run", closing="public.consolidate")
    return run(db, calls.start_run("test.pull", "feed", "flow.step", steps=[node("page1"), node("page2")]))[0]


def test_a_closing_rule_adds_a_last_step_once(db: DB, pull: UUID) -> None:
    finish(db, claim(db, batch=10))

    assert (run_row(db, pull)["state"], counts(db, pull)) == ("working", {"total": 3, "live": 1, "succeeded": 2})
    last = claim_one(db)
    assert last.kind == "consolidate"
    finish(db, [last])

    assert (run_row(db, pull)["state"], counts(db, pull)) == ("completed", {"total": 3, "succeeded": 3})
    assert events(db, run=pull) == ["created", "started", "all_succeeded"]
    assert claim(db) == []


def test_the_last_step_is_added_once_by_workers_that_settle_together(db: DB, dsn: str, pull: UUID) -> None:
    one, two = claim(db, batch=10)

    at_once(dsn, lambda own: finish(own, [one]), lambda own: finish(own, [two]))

    assert counts(db, pull) == {"total": 3, "live": 1, "succeeded": 2}
    assert [s.kind for s in claim(db, batch=10)] == ["consolidate"]


def test_a_closing_rule_is_told_what_the_counts_say(db: DB, pull: UUID) -> None:
    one, two = claim(db, batch=10)
    settle(db, one, Done())
    settle(db, two, Fail("e"))
    finish(db, claim(db))

    assert events(db, run=pull) == ["created", "started", "some_failed"]
    assert counts(db, pull) == {"total": 3, "succeeded": 2, "failed": 1}


def test_a_closing_rule_may_choose_another_event(db: DB, pull: UUID) -> None:
    for step in claim(db, batch=10):
        settle(db, step, Fail("e"))

    assert run_row(db, pull)["state"] == "skipped"
    assert events(db, run=pull) == ["created", "started", "stopped"]


def test_a_closing_rule_that_fails_undoes_the_settle_that_asked_it(db: DB, pull: UUID) -> None:
    """Nothing is half done: the step is still held, and is settled again"""
    db.execute("alter function public.consolidate rename to elsewhere")
    one, two = claim(db, batch=10)
    finish(db, [one])

    with pytest.raises(Exception, match="consolidate"):
        finish(db, [two])

    assert column(db, two.step_id, "lease_id") == two.lease_id
    db.execute("alter function public.elsewhere rename to consolidate")
    assert finish(db, [two]) == [two.step_id]


def test_runs_of_both_sorts_close_in_one_batch(db: DB, pull: UUID) -> None:
    other = start_flow(db, node("a"))

    finish(db, claim(db, batch=10))

    assert (run_row(db, pull)["state"], run_row(db, other)["state"]) == ("working", "complete")
