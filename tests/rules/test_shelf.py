"""Channels that cannot compare, that lose answers and that hang: what is called, with what, and what becomes of it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
import structlog
from psycopg import Connection

from holdfast import Batch, Holdfast, RetryPolicy, log
from holdfast.errors import BadInput, Unavailable
from holdfast.rules import Item, Price, Rule, everything, percent
from holdfast.rules.channel import ChannelCall, Health, Write, Wrote
from holdfast.rules.table import Table
from holdfast.testing import Clock, drain
from kernel.steps import rescue, value

TENTH = Rule("tenth", where=everything, change=percent(-10))


class Shelf:
    """A channel that cannot compare, in memory, and that fails on demand."""

    kind = "shelf"
    compares = False
    in_transaction = False

    def __init__(self) -> None:
        self.prices = {f"S{n}": Price(1000 * n, None, "EUR") for n in range(1, 5)}
        self.written: list[list[str]] = []
        self.correlations: dict[str, str | None] = {}  # by item
        self.fails: list[Exception] = []

    def about(self) -> Mapping[str, Any]:
        return {}

    def items(self, _call: ChannelCall) -> Iterator[Item]:
        return (Item(name, p.unit_amount, p.currency, p.compare_at) for name, p in self.prices.items())

    def read(self, ids: Sequence[str], _call: ChannelCall) -> Mapping[str, Price]:
        return {each: self.prices[each] for each in ids if each in self.prices}

    def write(self, writes: Sequence[Write], call: ChannelCall) -> Sequence[Wrote]:
        self.correlations |= {write.item_id: call.correlation_id for write in writes}
        self.written.append([write.item_id for write in writes])
        if self.fails and not isinstance(self.fails[0], EOFError):
            raise self.fails.pop(0)
        for write in writes:
            self.prices[write.item_id] = write.after
        if self.fails:  # written, and the answer is lost
            self.fails.pop(0)
            raise Unavailable("reset", code="NETWORK")
        return [Wrote("written")] * len(writes)

    def health(self) -> Health:
        return Health(ok=True, detail="")


@pytest.mark.one_server
def test_a_channel_that_cannot_compare_is_read_before_each_write(hf: Holdfast, clock: Clock) -> None:
    """A-33, A-44, A-89: after a lost answer the new price is found, and nothing is written twice."""
    shelf = Shelf()
    hf.rules.channel("shelf", shelf, batch=10)
    clock.freeze()
    run = hf.rules.preview(TENTH, channel="shelf", apply=True)
    shelf.prices["S4"] = Price(1, None, "EUR")
    shelf.fails = [EOFError()]
    drain(hf)
    clock.advance(3)
    drain(hf)

    assert shelf.written == [["S1", "S2", "S3"]]
    assert {target.item_id: target.status for target in run.targets()} == {
        "S1": "APPLIED",
        "S2": "APPLIED",
        "S3": "APPLIED",
        "S4": "FAILED",
    }


@pytest.mark.one_server
def test_a_target_is_tried_four_times_then_it_is_failed(hf: Holdfast, clock: Clock) -> None:
    """A-34, A-45, A-49, A-51, A-61: retries after 2, 4 and 8 s, then FAILED with reason max_retries."""
    shelf = Shelf()
    hf.rules.channel("shelf", shelf, batch=10)
    clock.freeze()
    clock.fix_chance(0.5)
    run = hf.rules.preview(TENTH, channel="shelf", items=["S1"], apply=True)
    shelf.fails = [Unavailable("down", code="SERVER_ERROR") for _ in range(4)]
    attempts = []
    for wait in (2, 4, 8, 100):
        drain(hf)
        (target,) = run.targets()
        attempts.append((target.attempts, target.status))
        clock.advance(wait - 0.1)
        assert drain(hf) == 0
        clock.advance(0.2)

    (target,) = run.targets()
    assert attempts == [(1, "QUEUED"), (2, "QUEUED"), (3, "QUEUED"), (3, "FAILED")]
    assert (target.reason, target.error_class, target.retryable) == ("max_retries", "SERVER_ERROR", True)
    assert len(shelf.written) == 4


POLICY = """
select p.tries, p.base, p.growth, p.longest, p.jitter from holdfast.policies p
 where p.policy in (%s, (select k.policy from holdfast.kinds k where k.kind = 'rules:shelf'))
"""


@pytest.mark.one_server
def test_a_channel_retries_by_the_documents_parameters_unless_it_has_its_own(hf: Holdfast, db: Connection[Any]) -> None:
    """A-38 to A-43: those of a channel in Python are those of the machine"""
    shelf = Shelf()
    hf.rules.channel("shelf", shelf)
    hf.rules.preview(TENTH, channel="shelf")

    defaults = (4, timedelta(seconds=2), 2, timedelta(seconds=64), Decimal("0.2"))  # four tries are three retries
    assert db.execute(POLICY, ["rules.target"]).fetchall() == [defaults] * 2
    own = Holdfast(hf.dsn)
    own.rules.channel("shelf", shelf, retry=RetryPolicy(limit=2, base=7, growth=3, longest=70, jitter=0.1))
    own.rules.preview(TENTH, channel="shelf")
    own.close()
    chosen = (2, timedelta(seconds=7), 3, timedelta(seconds=70), Decimal("0.1"))
    assert db.execute(POLICY, ["none"]).fetchall() == [chosen]


OPEN = """
select count(*) from pg_stat_activity
 where datname = current_database() and backend_type = 'client backend' and xact_start is not null
   and pid <> pg_backend_pid()
"""


@pytest.mark.one_server
def test_no_transaction_is_open_while_a_channel_is_read(hf: Holdfast, db: Connection[Any]) -> None:
    """A slow channel would keep the database from cleaning up behind everybody."""
    seen: list[int] = []

    class Watched(Shelf):
        def items(self, call: ChannelCall) -> Iterator[Item]:
            for each in super().items(call):
                seen.append(value(db, OPEN))
                yield each

    hf.rules.channel("shelf", Watched())
    run = hf.rules.preview(TENTH, channel="shelf")

    assert (seen, run.summary.counts["targets"]) == ([0] * 4, 4)


class Frozen(Shelf):
    """A shelf whose caller is frozen after it has read, until its lease is another's."""

    def __init__(self, clock: Clock, db: Connection[Any]) -> None:
        super().__init__()
        self.clock, self.db = clock, db
        self.is_frozen = True

    def read(self, ids: Sequence[str], call: ChannelCall) -> Mapping[str, Price]:
        shown = super().read(ids, call)
        if self.is_frozen:
            self.is_frozen = False
            self.clock.advance(600)
            rescue(self.db)
        return shown


def nothing_is_sent_late(hf: Holdfast, db: Connection[Any], clock: Clock) -> None:
    """A call begins only under a lease that outlasts it."""
    shelf = Frozen(clock, db)
    hf.rules.channel("shelf", shelf)
    clock.freeze()
    run = hf.rules.preview(TENTH, channel="shelf", apply=True)
    drain(hf)
    assert shelf.written == []
    clock.advance(3)
    drain(hf)

    assert sorted(item for call in shelf.written for item in call) == ["S1", "S2", "S3", "S4"]
    assert (run.summary.status, {target.attempts for target in run.targets()}) == ("APPLIED", {1})


@pytest.mark.one_server
def test_a_worker_that_was_frozen_sends_nothing_late(hf: Holdfast, db: Connection[Any], clock: Clock) -> None:
    """A-121, C-15"""
    nothing_is_sent_late(hf, db, clock)


@pytest.mark.one_server
def test_a_worker_that_does_not_look_at_its_lease_is_caught(
    hf: Holdfast, db: Connection[Any], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Batch, "hold", lambda *_: None)
    with pytest.raises(AssertionError):
        nothing_is_sent_late(hf, db, clock)


class Hanging(Shelf):
    """A shelf on which the writes of one item never end."""

    def write(self, writes: Sequence[Write], call: ChannelCall) -> Sequence[Wrote]:
        self.written.append([write.item_id for write in writes])
        while any(write.item_id == "S2" for write in writes):
            time.sleep(0.01)
        return super().write(writes, call)


@pytest.mark.one_server
def test_a_target_that_hangs_is_tried_alone_and_then_fails_with_reason_timeout(hf: Holdfast, clock: Clock) -> None:
    """A-63, A-64, C-09: in a larger call it takes nobody else to the dead letter."""
    shelf = Hanging()
    hf.rules.channel("shelf", shelf, batch=10, request_timeout=1, target_timeout=1.5)
    run = hf.rules.preview(TENTH, channel="shelf", apply=True)
    drain(hf)
    clock.advance(10)
    drain(hf)

    found = {target.item_id: (target.status, target.reason) for target in run.targets()}
    assert found == {**dict.fromkeys(["S1", "S3", "S4"], ("APPLIED", None)), "S2": ("FAILED", "timeout")}
    assert shelf.written[0] == ["S1", "S2", "S3", "S4"]
    assert all(len(call) == 1 for call in shelf.written[1:])


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Iterator[StringIO]:
    """Configure logs as a worker does, whatever an earlier test did, and give what is written."""
    written, before = StringIO(), structlog.get_config()
    monkeypatch.setattr(sys, "stderr", written)
    try:
        log.configure("info", "json")
        yield written
    finally:
        structlog.configure(**before)


@pytest.mark.one_server
def test_the_correlation_id_of_each_run_reaches_its_calls_its_log_lines_and_its_events(
    hf: Holdfast, logged: StringIO
) -> None:
    """A-106: also if targets of several runs are due at once; a run without one has its own id"""
    shelf = Shelf()
    hf.rules.channel("shelf", shelf, batch=10)
    asked = [(["S1", "S3"], {"correlationId": "c-1", "actor": "ann"}), (["S2"], {"correlationId": "c-2"}), (["S4"], {})]
    runs = [
        hf.rules.preview(TENTH, channel="shelf", items=items, metadata=metadata, source="console", apply=True)
        for items, metadata in asked
    ]
    drain(hf)

    known = ["c-1", "c-2", str(runs[2].id)]
    assert shelf.correlations == {"S1": known[0], "S3": known[0], "S2": known[1], "S4": known[2]}
    assert sorted(map(len, shelf.written)) == [1, 1, 2]  # a call has targets of one correlationId
    lines = [line for line in logged.getvalue().splitlines() if "channel.called" in line]
    assert [[each in line for each in known] for line in lines] == [[n == m for m in range(3)] for n in range(3)]
    with hf.rules._engine.connection() as connection:
        events = connection.execute("select rule_run_id, correlation_id from rules.events").fetchall()
    assert set(events) == {(run.id, each) for run, each in zip(runs, known, strict=True)}
    own = {"correlationId": "c-1", "actor": "ann", "source": "console"}
    assert runs[0].summary.metadata == own | {"itemsFrom": "a list"}


@pytest.mark.one_server
def test_a_call_has_targets_of_one_key_also_of_a_rollback_and_a_correction(hf: Holdfast, clock: Clock) -> None:
    """The channel says which items may share a call."""
    shelf = Shelf()
    hf.rules.channel("shelf", shelf, batch=10, corrects=True, by=lambda item: f"odd\t{int(item.id[1:]) % 2}")
    run = hf.rules.preview(TENTH, channel="shelf", apply=True)
    drain(hf)
    assert sorted(shelf.written) == [["S1", "S3"], ["S2", "S4"]]

    shelf.written.clear()
    shelf.prices = {name: Price(77, None, "EUR") for name in shelf.prices}
    check = run.reconcile(correct=True)
    drain(hf)
    (corrected,) = [each.correction_run_id for each in run.passes() if each.pass_id == check.id]
    hf.rules.run(str(corrected)).apply()
    drain(hf)
    assert sorted(shelf.written) == [["S1", "S3"], ["S2", "S4"]]

    shelf.written.clear()
    run.rollback(apply=True)
    drain(hf)
    assert sorted(shelf.written) == [["S1", "S3"], ["S2", "S4"]]
    assert run.summary.status == "ROLLED_BACK"


@pytest.mark.one_server
@pytest.mark.parametrize("key", [7, None, "k" * 401, "a\0b"])
def test_a_key_that_is_no_short_text_is_refused(hf: Holdfast, key: Any) -> None:
    hf.rules.channel("shelf", Shelf(), by=lambda _: key)

    with pytest.raises(BadInput) as exc_info:
        hf.rules.preview(TENTH, channel="shelf")
    assert (exc_info.value.where, "S1" in exc_info.value.what) == ("by", True)


@pytest.mark.one_server
def test_targets_of_several_runs_in_one_transaction_are_logged_by_their_correlation_ids(
    hf: Holdfast, db: Connection[Any], logged: StringIO
) -> None:
    """A-106: a table in Holdfast's own database writes them with one UPDATE."""
    db.execute("create schema shop")
    db.execute(
        "create table shop.products as select 'P' || n as sku, 10::numeric as price from generate_series(1, 3) n"
    )
    db.execute("alter table shop.products add primary key (sku)")
    hf.rules.channel("own", Table("shop.products", key="sku", price="price", currency="EUR"))
    for items, correlation in ((["P1", "P3"], "c-1"), (["P2"], "c-2")):
        hf.rules.preview(TENTH, channel="own", items=items, metadata={"correlationId": correlation}, apply=True)
    drain(hf)

    lines = map(json.loads, filter(None, logged.getvalue().splitlines()))
    called = [line for line in lines if line["event"] == "channel.called"]
    assert [(line["correlation_id"], line["targets"], line["failed"]) for line in called] == [
        ("c-1", 2, 0), ("c-2", 1, 0)
    ]  # fmt: skip
    db.execute("drop schema shop cascade")
