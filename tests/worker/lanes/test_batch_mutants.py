"""Workers that treat the steps of a call as one: each of these mistakes is noticed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from typing_extensions import TypedDict

from holdfast import Batch, Holdfast
from holdfast.kernel import calls
from holdfast.models import Settlement
from holdfast.worker.attempt import Attempt
from holdfast.worker.batch import Prepared
from kernel.steps import DB
from worker.running import burst

pytestmark = pytest.mark.one_server
Patch = Callable[[pytest.MonkeyPatch], None]


class Job(TypedDict):
    n: int


def shifted(patch: pytest.MonkeyPatch) -> None:
    usual = Prepared.with_
    patch.setattr(Prepared, "with_", lambda self, outcomes: usual(self, [*outcomes[1:], outcomes[0]]))


def by_one_lease(patch: pytest.MonkeyPatch) -> None:
    def settlement(self: Attempt, outcome: Any) -> Settlement:
        first = self if self.call is None else self.call.attempts[0]
        return Settlement(self.step.step_id, first.step.lease_id, outcome)

    patch.setattr(Attempt, "settlement", settlement)


def without_a_lease(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(calls, "settle_whole", lambda settlements, **_checks: calls.settle_steps(settlements))
    patch.setattr(Prepared, "settled", lambda _self, _outcomes, _rows: None)


def play(hf: Holdfast, db: DB, dsn: str) -> None:
    """Serve three steps, of which one is cancelled meanwhile; each of the others has a result and a row."""
    is_first = True

    @hf.task(batch=10)
    def work(batch: Batch, jobs: list[Job]) -> list[int]:
        nonlocal is_first
        with batch.transaction() as tx:
            tx.execute("create table if not exists public.written (n int)")
            tx.cursor().executemany("insert into public.written values (%s)", [[job["n"]] for job in jobs])
            if is_first:
                is_first = False
                with psycopg.connect(dsn, autocommit=True) as other:
                    other.execute("select holdfast.cancel(%s)", [str(batch.steps[1].step_id)])
        return [job["n"] for job in jobs]

    @hf.task(batch=10)
    def plain(jobs: list[Job]) -> list[int]:
        return [job["n"] for job in jobs]

    for task in (work, plain):
        task.start_many([{"n": n} for n in range(3)])
    burst(hf)

    rows = db.execute("select kind, state, result from holdfast.steps order by id").fetchall()
    assert rows == [
        ("work", "done", 0), ("work", "cancelled", None), ("work", "done", 2),
        ("plain", "done", 0), ("plain", "done", 1), ("plain", "done", 2),
    ]  # fmt: skip
    assert db.execute("select n from public.written order by n").fetchall() == [(0,), (2,)]


def test_a_call_is_served_as_its_steps_are(hf: Holdfast, db: DB, dsn: str) -> None:
    """R3, R11: effects and outcomes of each step happen together and once."""
    play(hf, db, dsn)


@pytest.mark.parametrize("mistake", [shifted, by_one_lease, without_a_lease], ids=lambda mistake: mistake.__name__)
def test_a_mistake_is_noticed(hf: Holdfast, db: DB, dsn: str, mistake: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    mistake(monkeypatch)

    with pytest.raises((AssertionError, psycopg.Error)):
        play(hf, db, dsn)
