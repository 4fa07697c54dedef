"""What handles and commands say of a feed's run that retention removed."""

from __future__ import annotations

import os
from uuid import UUID

import pytest

from cli import in_process
from holdfast import Holdfast, errors
from holdfast.testing import Clock, drain
from ingest.shop import DB, TABLE, Shop, feed_of, order
from kernel.retention import days, sweep

NEVER = UUID("018f0000-0000-7000-8000-000000000000")


def test_handles_and_commands_tell_a_pruned_run_from_one_that_never_was(
    hf: Holdfast, dsn: str, db: DB, clock: Clock
) -> None:
    """X-16: with the rule that removed it"""
    db.execute(TABLE)
    feed = feed_of(hf, Shop([order(n) for n in range(3)]))
    run = feed.start()
    drain(hf)
    assert run.result(timeout=5).records == 3
    clock.advance(days(31))
    while sweep(db).runs:
        pass

    for read in (run.status, run.result, run.cancel, run.retry, run.force, run.resume_consolidation):
        with pytest.raises(errors.Pruned, match="30 days"):
            read()
    never = type(run)(NEVER, run._executor)
    for read in (never.status, never.result, never.cancel, never.retry, never.force, never.resume_consolidation):
        with pytest.raises(errors.NotFound) as raised:
            read()
        assert not isinstance(raised.value, errors.Pruned)
    settings = {**os.environ, "HOLDFAST_DSN": dsn}
    story = in_process.run(["runs", "show", str(run.id)], settings, None)
    assert (story.returncode, "30 days" in story.stdout + story.stderr) == (0, True)
    newest = in_process.run(["ingest", "status", "orders"], settings, None)
    assert (newest.returncode, "has no runs" in newest.stdout) == (0, True)
