"""Retention removes the rows that a face keeps about its runs, by the function that the face names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from psycopg import Connection

from holdfast import Holdfast, faces
from holdfast.faces import Face
from holdfast.kernel import calls, migrate, retention_calls
from holdfast.kernel.db import run
from holdfast.testing import Clock
from kernel.retention import days, sweep
from worker.running import burst

pytestmark = pytest.mark.one_server


@pytest.fixture
def toy() -> Iterator[Face]:
    with faces.plugged("toy", "toy.face") as face:
        yield face


@pytest.fixture
def hf(dsn: str, toy: Face) -> Iterator[Holdfast]:
    migrate.run(dsn)
    app = Holdfast(dsn)
    yield app
    app.close()


def pony(asker: str) -> None:
    """Grant a pony."""


def lists(db: Connection[Any]) -> set[str]:
    return {name for (name,) in db.execute("select distinct list_id from toy.counts")}


@pytest.mark.parametrize("batch", [100, 1], ids=["whole", "large"])
def test_what_a_face_keeps_about_a_run_goes_with_it(
    hf: Holdfast, db: Connection[Any], clock: Clock, batch: int
) -> None:
    """X-16: and what it keeps about other runs stays."""
    toys = hf.face("toy")
    toys.wish(pony)
    old = toys.start("ann", ["pony", "pony"])
    burst(hf)
    clock.advance(days(31))
    young = toys.start("bob", ["pony"])

    assert sweep(db, batch=batch).runs == 1

    assert lists(db) == {str(young)}
    assert old != young
    assert run(db, calls.violations()) == []


def test_an_error_of_the_face_leaves_the_run_whole(hf: Holdfast, db: Connection[Any], clock: Clock) -> None:
    """It is one transaction: the run stays, with its rows, until the face is mended."""
    toys = hf.face("toy")
    toys.wish(pony)
    run_id = toys.start("ann", ["pony"])
    burst(hf)
    clock.advance(days(31))
    db.execute("alter function toy.prune_counts rename to prune_nothing")

    with pytest.raises(Exception, match="prune_counts"):
        sweep(db)

    db.execute("alter function toy.prune_nothing rename to prune_counts")
    assert lists(db) == {str(run_id)}
    assert run(db, calls.run_status([run_id]))[0].total == 1
    assert run(db, retention_calls.pruned(str(run_id))) == []
