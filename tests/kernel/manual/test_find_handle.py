"""`hf.handle(id)` finds runs of every face: several share the form of their ids."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from uuid import uuid4

import pytest

from holdfast import Holdfast
from holdfast.errors import NotFound
from holdfast.flow.handle import FlowRun
from holdfast.ingest.handle import IngestRun
from holdfast.rules.handle import RuleRun
from holdfast.testing import drain
from ingest.shop import DB, TABLE, Shop, feed_of, order
from rules.plans import previewed

pytestmark = pytest.mark.one_server


@pytest.fixture
def hf(dsn: str) -> Iterator[Holdfast]:
    app = Holdfast(dsn)
    yield app
    app.close()


def test_a_uuid_leads_to_the_handle_of_the_face_of_its_run(hf: Holdfast, db: DB) -> None:
    db.execute(TABLE)
    flow = hf.flow("order")
    flow.step(name="pay")(lambda: None)
    feed = feed_of(hf, Shop([order(1)]))
    planning = feed.start()
    assert type(hf.handle(planning.id)) is IngestRun  # its run exists when its source has been counted
    assert hf.handle(planning.id).status().state == "planning"
    drain(hf)
    runs = {previewed(db): RuleRun, flow.start().id: FlowRun, planning.id: IngestRun}

    for run_id, kind in runs.items():
        for form in (run_id, str(run_id)):
            handles = (hf.handle(form), asyncio.run(hf.ahandle(form)))
            assert [(type(each), each.id) for each in handles] == [(kind, run_id)] * 2


def test_a_uuid_of_nothing_has_a_handle_that_says_so(hf: Holdfast) -> None:
    missing = uuid4()
    with pytest.raises(NotFound) as raised:
        hf.handle(missing).status()
    assert raised.value.where == str(missing)
