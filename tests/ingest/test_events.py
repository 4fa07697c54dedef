"""Subscribers to events of feeds: every event of the catalogue, with its payload, and each of them once."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast import Holdfast
from holdfast.errors import Rejected
from holdfast.ingest import calls
from holdfast.ingest.events import CATALOGUE
from holdfast.notify import Event
from holdfast.testing import drain, recorded
from ingest.runs import facts
from ingest.shop import DB, TABLE, Shop, feed_of, order

pytestmark = pytest.mark.one_server
WORKERS = "select body ->> 'worker' from ingest.events where event = 'run.completed'"
AWAY, BACK = "alter table public.orders rename to away", "alter table public.away rename to orders"


@pytest.fixture(autouse=True)
def target(db: DB) -> None:
    db.execute(TABLE)


def of_ingest(told: list[Event]) -> list[Event]:
    return [event for event in told if event.name.startswith("ingest.")]


def told_of(told: list[Event], run_id: object) -> list[str]:
    """The events of a run, in the order in which they were published."""
    return [event.name.removeprefix("ingest.") for event in of_ingest(told) if event.run_id == run_id]


def check_payloads(told: list[Event]) -> None:
    """Compare each event with the catalogue."""
    for event in told:
        fields = CATALOGUE[event.name].fields
        assert set(event.payload) == set(fields), event.name
        wrong = {name for name, kind in fields.items() if not isinstance(event.payload[name], kind)}
        assert wrong == set(), event
        is_of_a_step = event.name.startswith("ingest.partition.") or event.name.endswith("planning_failed")
        assert (event.step_id is not None) == is_of_a_step


def test_every_event_of_the_catalogue_is_observed_and_no_other(hf: Holdfast, db: DB) -> None:
    """P-12, P-75, P-78, P-121, P-142, C-29: with the payload that the catalogue lists"""
    shop = Shop([order(n) for n in range(40)])
    feed = feed_of(hf, shop, least=20)
    with recorded(hf) as told:
        unwanted = feed.start()
        unwanted.cancel("not now")
        db.execute(AWAY)
        unusable = feed.start()
        drain(hf)
        db.execute(BACK)
        shop.faults = [Rejected("401")]
        half = feed.start()
        drain(hf, concurrency=1)
        half.force("half is better than nothing")
        drain(hf)
        shop.faults = [Rejected("401")]
        shop.between = [lambda: None, lambda: None, lambda: db.execute(AWAY)]  # before its last page
        whole = feed.start(full=True)
        drain(hf, concurrency=1)
        whole.retry_partitions(["partition-0"], "it is back")
        drain(hf, bypass_backoff=True)
        db.execute(BACK)
        whole.resume_consolidation("so is the table")
        drain(hf)

    assert told_of(told, unwanted.id) == ["run.requested", "run.cancelled"]
    assert told_of(told, unusable.id) == ["run.requested", "run.planning_failed"]
    fetched = ["run.requested", "run.created", "run.started", "partition.failed", "partition.completed"]
    skipped = [*fetched, "run.consolidation_skipped", "run.failed", "run.alerted"]
    assert told_of(told, half.id) == [*skipped, "run.forced", "run.consolidation_started", "run.completed"]
    assert told_of(told, whole.id) == [
        *skipped, "run.retried", "partition.completed", "run.consolidation_triggered", "run.consolidation_started",
        "run.alerted", "run.failed", "run.alerted", "run.consolidation_resumed", "run.consolidation_started",
        "run.completed",
    ]  # fmt: skip
    assert {event.name for event in of_ingest(told)} == set(CATALOGUE)
    check_payloads(of_ingest(told))
    alerts = [event.payload for event in of_ingest(told) if event.name.endswith("alerted")]
    assert [each["severity"] for each in alerts] == ["critical", "critical", "warning", "critical"]
    assert alerts[2]["text"] == f"Run {whole.id} failed. Watermark NOT advanced."
    ends = [event.payload for event in of_ingest(told) if event.name == "ingest.run.completed"]
    assert [(each["records"], each["watermark"]) for each in ends] == [(20, None), (40, feed.watermark)]


def test_several_workers_publish_each_event_once(hf: Holdfast, db: DB) -> None:
    """P-75, P-76: each publishes what it did itself"""
    feed = feed_of(hf, Shop([order(n) for n in range(240)], page_size=10), least=20, batch=50)
    with recorded(hf) as told:
        run = feed.start()
        with ThreadPoolExecutor(3) as workers:
            list(workers.map(lambda _: drain(hf, concurrency=2), range(3)))
        drain(hf)

    run.result(timeout=5)
    parts = facts(db, run.id)["expected_workers"]
    assert parts > 3
    assert Counter(told_of(told, run.id)) == {
        "run.requested": 1, "run.created": 1, "run.started": 1, "partition.completed": parts,
        "run.consolidation_triggered": 1, "run.consolidation_started": 1, "run.completed": 1,
    }  # fmt: skip


def test_only_what_somebody_listens_to_is_read(hf: Holdfast) -> None:
    """Events of manual actions need no query, and a subscriber to other faces none."""
    hf.on("ingest.run.cancelled")(lambda _event: None)
    watcher = hf.ingest.watcher
    assert watcher.query("w", [1]) is None
    hf.on("ingest.run.completed")(lambda _event: None)
    assert watcher.query("w", [1]) is not None


def test_a_worker_reads_the_events_of_a_run_once(hf: Holdfast, db: DB) -> None:
    """P-75: each settled partition asks for what came after the last event that was published."""
    shop = Shop([order(number) for number in range(40)])
    feed = feed_of(hf, shop)
    with recorded(hf) as told:
        run = feed.start()
        drain(hf)
        hf.ingest.watcher.flush(5)
        (worker,) = {each for (each,) in db.execute(WORKERS)}
        steps = [step_id for (step_id,) in db.execute("select id from holdfast.steps where kind like '%:page'")]
        again = hf.ingest.watcher.query(worker, steps)

    assert again is not None
    caused = hf._engine.make(calls.events_by(worker, steps))
    assert len(caused) == len(told_of(told, run.id)) - 1  # a person requested it
    assert hf._engine.make(again) == []
