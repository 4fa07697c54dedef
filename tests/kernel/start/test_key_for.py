"""A key is kept forever, unless its start says for how long."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from holdfast import Holdfast, errors
from holdfast.flow import calls as flow_calls
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Json
from holdfast.testing import Clock
from kernel.retention import days, is_there, sweep, task
from kernel.steps import DB, at_once, node, seconds, start, value

PLAN = Json('[{"kind": "a", "name": "a"}]')


def keys(db: DB) -> int:
    count: int = value(db, "select count(*) from holdfast.keys")
    return count


def start_by(way: str, key_for: Any) -> Any:
    match way:
        case "start_task":
            return calls.start_task("mail", {}, key="k", key_for=key_for)
        case "start_step":
            return calls.start_step("rules.check", "mail", {}, key="k", key_for=key_for)
        case "start_tasks":
            given = {} if key_for is None else {"key_for": f"{key_for.total_seconds()} seconds"}
            return calls.start_tasks([{"name": "mail", "key": "k", **given}])
        case "start_run":
            return calls.start_run("flow.task", "order", "flow.step", steps=[node("a")], key="k", key_for=key_for)
        case _:
            return flow_calls.initialize_task("order", PLAN, Json("{}"), key="k", key_for=key_for)


WAYS = ["start_task", "start_step", "start_tasks", "start_run", "initialize_task"]


@pytest.mark.parametrize("way", WAYS)
def test_an_expired_key_starts_anew(db: DB, clock: Clock, way: str) -> None:
    clock.freeze()
    call = start_by(way, seconds(60))
    first = run(db, call)
    clock.advance(seconds(59.9))
    again = run(db, call)
    clock.advance(seconds(0.1))
    anew = run(db, call)

    assert first == again != anew
    assert run(db, call) == anew, "the new key counts from the new start"
    assert keys(db) == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_key_without_a_time_outlives_what_it_started(db: DB, clock: Clock, way: str) -> None:
    """X-16: and the id that it gives is known to be pruned."""
    call = start_by(way, None)
    (first,) = run(db, call)
    run(db, calls.cancel(str(first)))
    clock.advance(days(300))
    sweep(db)

    assert not is_there(db, first)
    assert run(db, call) == [first]
    with pytest.raises(errors.Pruned):
        run(db, calls.retry(str(first)))


def test_expired_keys_are_swept(db: DB, clock: Clock) -> None:
    for n in range(5):
        task(db, key=f"short {n}", key_for=days(1))
    task(db, key="long", key_for=days(9))
    task(db, key="forever")
    clock.advance(days(2))

    assert sweep(db, batch=2).keys == 5
    assert keys(db) == 2


def test_an_expired_key_is_taken_by_one_of_many(dsn: str, db: DB, clock: Clock) -> None:
    """R22: with an expired key as with a new one."""
    clock.freeze()
    old = start(db, key="k", key_for=seconds(1))
    clock.advance(seconds(2))

    ids = at_once(dsn, *[lambda c: start(c, key="k", key_for=seconds(60))] * 6)

    assert len(set(ids)) == 1
    assert ids[0] != old


@pytest.mark.parametrize(("key", "key_for"), [("k", seconds(0)), ("k", -seconds(1)), (None, seconds(5))])
@pytest.mark.parametrize("way", [calls.start_task, calls.start_run])
def test_a_time_that_is_none_is_refused(db: DB, way: Any, key: str | None, key_for: Any) -> None:
    arguments = ("mail",) if way is calls.start_task else ("flow.task", "order", "flow.step")
    more = {} if way is calls.start_task else {"steps": [node("a")]}
    with pytest.raises(errors.BadInput) as refused:
        run(db, way(*arguments, key=key, key_for=key_for, **more))

    assert (refused.value.where, bool(refused.value.next)) == ("key_for", True)
    assert (keys(db), value(db, "select count(*) from holdfast.steps")) == (0, 0)


def test_tasks_and_flows_take_it_from_python(dsn: str, db: DB, clock: Clock) -> None:
    app = Holdfast(dsn)
    mail = app.task(name="mail")(lambda: None)
    order = app.flow("order")
    order.step(name="pay")(lambda: None)
    clock.freeze()

    def started() -> list[int | UUID]:
        return [
            mail.options(key="m", key_for="1h").start().id,
            order.options(key="o", key_for=3600).start().id,
        ]

    first = started()
    assert started() == first
    clock.advance("1h")
    assert not set(started()) & set(first)
    with pytest.raises(errors.BadInput):
        mail.options(key_for="1h").start_many([{}])
    app.close()
