"""Writes in flight when their worker, their lease or their channel fails are entered in the ledger, or are unknown."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from holdfast import Holdfast, RetryPolicy
from holdfast.errors import Unavailable
from holdfast.kernel import calls
from holdfast.kernel.db import run as made
from holdfast.models import Release, Settlement
from holdfast.rules import Item, Price, Refusal, Rule, everything, percent
from holdfast.rules.channel import ChannelCall, Health, Write, Wrote
from holdfast.rules.handle import RuleRun
from holdfast.testing import drain
from kernel.steps import value
from rules.plans import called
from worker.running import read, until, working

SALE = Rule("sale", where=everything, change=percent(-10))
DB = Connection[Any]
HELD = "select count(*) from holdfast.steps where lease_id is not null"


class Shelf:
    """A channel in memory; a test may do something before a read, and after a write has changed its prices."""

    kind = "memory"
    in_transaction = False

    def __init__(self, *, compares: bool = True) -> None:
        self.compares = compares
        self.prices = {f"M{n}": Price(1000, None, "EUR") for n in (1, 2, 3)}
        self.sent: list[list[str]] = []
        self.is_readable = True

    def about(self) -> Mapping[str, Any]:
        return {}

    def items(self, call: ChannelCall) -> Iterator[Item | Refusal]:  # noqa: ARG002
        for name, price in list(self.prices.items()):
            yield Item(name, price.unit_amount, "EUR")

    def before_read(self) -> None:
        """Do nothing."""

    def after_write(self) -> None:
        """Do nothing."""

    def read(self, ids: Sequence[str], call: ChannelCall) -> Mapping[str, Price | Refusal]:  # noqa: ARG002
        self.before_read()
        if not self.is_readable:
            raise Unavailable("it is down")
        return {name: self.prices[name] for name in ids}

    def write(self, writes: Sequence[Write], call: ChannelCall) -> Sequence[Wrote]:  # noqa: ARG002
        self.sent.append([write.item_id for write in writes])
        effects = [Wrote("found" if self.prices[write.item_id] == write.after else "written") for write in writes]
        self.prices |= {write.item_id: write.after for write in writes}
        self.after_write()
        return effects

    def health(self) -> Health:
        return Health(ok=True, detail="")


def sold(hf: Holdfast, shelf: Shelf, **options: Any) -> RuleRun:
    hf.rules.channel("shelf", shelf, retry=RetryPolicy(limit=2, base=0), **options)
    return hf.rules.preview(SALE, channel="shelf", apply=True)


def effects(db: DB) -> list[tuple[str, str]]:
    return db.execute("select item_id, effect from rules.price_changes order by item_id").fetchall()


def test_a_target_that_was_taken_back_meanwhile_is_not_sent(hf: Holdfast, db: DB) -> None:
    """R3, A-89: a late write could follow the read with which another worker gave the target up"""

    class Slow(Shelf):
        def before_read(self) -> None:
            """Take the first target from its worker, once."""
            held = db.execute("select id, lease_id from holdfast.steps where lease_id is not null order by id")
            (step_id, lease_id) = held.fetchall()[0]
            if not self.sent:
                made(db, calls.settle_steps([Settlement(step_id, lease_id, Release())]))

    shelf = Slow(compares=False)
    run = sold(hf, shelf)
    drain(hf)

    assert shelf.sent == [["M2", "M3"], ["M1"]]
    assert effects(db) == [("M1", "written"), ("M2", "written"), ("M3", "written")]
    assert run.summary.status == "APPLIED"


@pytest.mark.parametrize("is_readable", [True, False], ids=["read", "unreadable"])
def test_a_channel_that_breaks_after_it_wrote_leaves_its_targets_unknown(
    hf: Holdfast, db: DB, *, is_readable: bool
) -> None:
    """A call that broke says nothing about its targets: they are read before they are given up"""

    class Broken(Shelf):
        def after_write(self) -> None:
            raise KeyError("results")

    shelf = Broken()
    shelf.is_readable = is_readable
    run = sold(hf, shelf)
    drain(hf)
    counts = run.summary.counts

    assert len(shelf.sent) == 2
    assert (counts["applied"], counts["unknown"]) == ((3, 0) if is_readable else (0, 3))
    assert effects(db) == ([("M1", "found"), ("M2", "found"), ("M3", "found")] if is_readable else [])
    assert {target.reason for target in run.targets()} == {None if is_readable else "outcome_unknown"}


def test_a_write_that_outlasts_its_worker_is_unknown_and_a_rollback_finds_it(hf: Holdfast, db: DB) -> None:
    """R31, A-123: the worker was stopped at once, and the run before the next try; no changed price is left unseen"""

    in_call, returned = threading.Event(), threading.Event()

    class Stuck(Shelf):
        def after_write(self) -> None:
            if self.sent != [["M1"], ["M2"]]:
                return
            try:
                in_call.set()
                with psycopg.connect(hf.dsn, autocommit=True) as own:  # the stop may interrupt it in a statement
                    until(lambda: value(own, HELD) == 0, "the end of its lease")
            finally:
                returned.set()

    shelf = Stuck()
    run = sold(hf, shelf, batch=1)
    with working(hf, queues=("rules:shelf",), concurrency=1, grace=timedelta(seconds=0.05)):
        assert read(in_call), "there was no second write"
        db.execute("select holdfast.pause_queue('rules:shelf')")  # what is handed back waits
    assert read(returned), "the handler of the second write did not return"
    db.execute("select holdfast.stop_run(%s)", [str(run.id)])
    assert [(each.status, each.attempts) for each in run.targets()] == [("APPLIED", 0), ("QUEUED", 0), ("QUEUED", 0)]
    assert effects(db) == [("M1", "written")]

    db.execute("select holdfast.resume_queue('rules:shelf')")
    run.reconcile()
    drain(hf)
    (report,) = [each for each in run.passes() if each.kind == "manual"]
    assert (report.total_checked, report.mismatches, report.unknown) == (1, 0, 1)

    assert called(db, "rollback", run_id=run.id)[0]["unknown"] == 1
    drain(hf)
    assert effects(db) == [("M1", "written"), ("M2", "found")]
    run.rollback(apply=True)
    drain(hf)
    assert (run.summary.status, {price.unit_amount for price in shelf.prices.values()}) == ("ROLLED_BACK", {1000})
