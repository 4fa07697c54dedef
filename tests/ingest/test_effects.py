"""What a batch writes to the target is part of the transaction that settles it."""

from __future__ import annotations

import pytest

from holdfast import Holdfast, failpoints
from holdfast.failpoints import armed
from holdfast.testing import Clock, drain
from ingest.shop import DB, TABLE, Shop, feed_of, order
from kernel.steps import seconds

pytestmark = pytest.mark.one_server


def test_a_batch_that_fails_after_its_upserts_leaves_nothing_in_the_target(
    hf: Holdfast, db: DB, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P-83: a worker whose lease is lost by then must not overwrite what others wrote since"""
    db.execute(TABLE)
    run = feed_of(hf, Shop([order(n) for n in range(10)])).start()
    monkeypatch.setattr(failpoints, "_ARMED", armed("batch_written:raise"))

    drain(hf)

    assert db.execute("select count(*) from public.orders").fetchone() == (0,)
    for _ in range(2):  # the batch, then the consolidation that waits for it
        clock.advance(seconds(900))
        drain(hf)
    assert run.result(timeout=10).records == 10
    assert db.execute("select count(*) from public.orders").fetchone() == (10,)
