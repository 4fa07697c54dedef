"""An idle worker moves the steps of a large run that was cancelled, in chunks that nobody has to wait for."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.errors import BadInput
from holdfast.kernel import calls
from holdfast.kernel.call import Call
from holdfast.kernel.db import run
from holdfast.worker.upkeep import chunk_after
from kernel.plans import begun, install
from kernel.steps import DB
from worker.running import burst, running, seconds, until, worker_of

SIZES = """
select count(*) from holdfast.journal where event = 'cancelled' and step_id is not null group by xmin order by min(id)
"""


@pytest.mark.parametrize(
    ("chunk", "took", "then"), [(250, 0.015, 500), (250, 0.0, 500), (1000, 0.3, 100), (1000, 0.01, 1000), (60, 9.0, 50)]
)
def test_a_chunk_is_as_large_as_can_be_moved_in_time(chunk: int, took: float, then: int) -> None:
    assert chunk_after(chunk, took) == then


@pytest.mark.one_server
def test_a_worker_begins_with_small_chunks(hf: Holdfast, db: DB) -> None:
    """R21: what a cancel leaves is moved by whoever is idle."""
    install(db, 100)
    run_id = begun(db, 1600)
    run(db, calls.cancel(str(run_id)))

    burst(hf)

    first, second, *_ = sizes = [size for (size,) in db.execute(SIZES)]
    assert (first, second, sum(sizes)) == (1000, 250, 1600)
    assert db.execute("select moving, live from holdfast.runs").fetchone() == (None, 0)


@pytest.mark.one_server
def test_what_upkeep_has_begun_is_moved_by_calls_that_do_nothing_else(hf: Holdfast, db: DB) -> None:
    """Upkeep has the steps of a chunk locked until it is through with everything else."""
    install(db, 100)
    run(db, calls.cancel(str(begun(db, 3000))))
    worker = worker_of(hf, burst=True, recovery_interval=seconds(3600))
    functions = heard(worker)

    with running(worker):
        until(lambda: worker.states.worker == "stopped", "the burst is over")

    moves = [function for function in functions if function in {"measured_upkeep", "move_chunk"}]
    assert moves[0] == "measured_upkeep"
    assert set(moves[1:]) == {"move_chunk"}
    assert db.execute("select moving, live from holdfast.runs").fetchone() == (None, 0)


@pytest.mark.one_server
def test_a_hint_that_comes_during_upkeep_is_not_forgotten(hf: Holdfast) -> None:
    """The upkeep may have looked for runs before the one that the hint is about was cancelled."""
    worker = worker_of(hf, listens=False, recovery_interval=seconds(3600))
    functions: list[str] = []
    make = worker._claims.make

    async def hinted(call: Call[Any]) -> list[Any]:
        answer = await make(call)
        if call.function == "measured_upkeep" and "measured_upkeep" not in functions:
            worker._recovery.hasten()
        functions.append(call.function)
        return answer

    worker._claims.make = hinted  # type: ignore[method-assign]
    with running(worker):
        until(lambda: functions.count("measured_upkeep") == 2, "it looked again")


def test_a_hint_is_sent_even_if_no_worker_is_asleep(db: DB) -> None:
    """A worker that is about to fall asleep would otherwise move the steps half a minute later."""
    install(db, 100)
    run_id = begun(db, 1001)
    db.execute("listen holdfast")

    run(db, calls.cancel(str(run_id)))

    assert [hint.payload for hint in db.notifies(timeout=10, stop_after=1)] == [""]


@pytest.mark.parametrize("batch", [0, 10_001, None])
def test_a_chunk_has_a_size(db: DB, batch: Any) -> None:
    with pytest.raises(BadInput) as refused:
        run(db, calls.move_chunk(batch))

    assert refused.value.where == "batch"


def heard(worker: Any) -> list[str]:
    """Collect the names of the functions that a worker's loop calls."""
    functions: list[str] = []
    make = worker._claims.make

    async def noted(call: Call[Any]) -> list[Any]:
        functions.append(call.function)
        return list(await make(call))

    worker._claims.make = noted
    return functions
