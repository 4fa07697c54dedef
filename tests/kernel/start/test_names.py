"""Names, keys, due times and types of arguments: what is out of bounds is refused by each way that takes it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from holdfast import Holdfast, RetryPolicy, errors
from holdfast.flow import calls as flow
from holdfast.kernel import bulk, calls
from holdfast.kernel.call import Call
from holdfast.kernel.db import run
from holdfast.models import Json, Retry
from kernel.start.test_bad_input import refused
from kernel.steps import DB, claim_one, column, fingerprint, seconds, settle, start

NAME, KEY = 200, 400
PLAN = Json('[{"kind": "a", "name": "a"}]')
Way = Callable[[str], Call[Any]]


def flow_plan(**step: Any) -> Call[Any]:
    return calls.start_run("flow.task", "f", "flow.step", steps=[{"kind": "a", **step}])


def title(**given: Any) -> dict[str, Any]:
    return {"namespace": "default", "version": "1", **given}


# Each way that takes one, by what it names.
NAMED: dict[str, Way] = {
    "task": calls.start_task,
    "queue of a task": lambda n: calls.start_task("a", queue=n),
    "queue of tasks": lambda n: calls.start_tasks([{"name": "a", "queue": n}]),
    "queue of a planned step": lambda n: flow_plan(queue=n),
    "queue of a claim": lambda n: calls.claim_steps("w", n),
    "queue of a worker": lambda n: calls.enlist_worker("w", [n]),
    "queue of a kind": lambda n: calls.define_kind("a", queue=n),
    "queue to pause": calls.pause_queue,
    "queue to resume": calls.resume_queue,
    "queue to sleep on": lambda n: calls.mark_asleep("w", n),
    "worker that claims": calls.claim_steps,
    "worker that renews": lambda n: calls.renew_leases(n, [1]),
    "worker that enlists": lambda n: calls.enlist_worker(n, ["default"]),
    "worker that sleeps": calls.mark_asleep,
    "worker that retires": calls.retire_worker,
    "worker that keeps up": lambda n: calls.upkeep(worker=n),
    "worker with namesakes": calls.namesakes,
    "kind that is claimed": lambda n: calls.claim_steps("w", kinds=[n]),
    "kind that is enlisted": lambda n: calls.enlist_worker("w", ["default"], kinds=[n]),
    "kind that is defined": calls.define_kind,
    "kind that is planned": lambda n: flow_plan(kind=n),
    "policy": calls.define_policy,
    "tenant of a task": lambda n: calls.start_task("a", tenant=n),
    "tenant of tasks": lambda n: calls.start_tasks([{"name": "a", "tenant": n}]),
    "tenant of a run": lambda n: calls.start_run("flow.task", "f", "flow.step", tenant=n),
    "tenant of a flow": lambda n: flow.initialize_task("f", PLAN, Json("{}"), tenant=n),
    "tenant that is claimed": lambda n: calls.claim_steps("w", tenants=[n]),
    "tenant that is enlisted": lambda n: calls.enlist_worker("w", ["default"], tenants=[n]),
    "run": lambda n: calls.start_run("flow.task", n, "flow.step"),
    "flow": lambda n: flow.initialize_task(n, PLAN, Json("{}")),
    "flow's namespace": lambda n: flow.initialize_task("f", PLAN, Json("{}"), namespace=n),
    "flow's version": lambda n: flow.initialize_task("f", PLAN, Json("{}"), version=n),
    "flow that is defined": lambda n: flow.define_flow(n, [{"kind": "a"}], **title()),
    "namespace that is defined": lambda n: flow.define_flow("f", [{"kind": "a"}], **title(namespace=n)),
    "version that is defined": lambda n: flow.define_flow("f", [{"kind": "a"}], **title(version=n)),
}
KEYED: dict[str, Way] = {
    "key of a task": lambda n: calls.start_task("a", key=n),
    "unique key of a task": lambda n: calls.start_task("a", unique_key=n),
    "key of tasks": lambda n: calls.start_tasks([{"name": "a", "key": n}]),
    "key of a run": lambda n: calls.start_run("flow.task", "f", "flow.step", key=n),
    "key of a flow": lambda n: flow.initialize_task("f", PLAN, Json("{}"), key=n),
    "key of a note": lambda n: calls.note(1, 1, "info", "m", key=n),
    "planned step": lambda n: flow_plan(name=n),
    "step of a flow": lambda n: flow.define_flow("f", [{"kind": "a", "name": n}], **title()),
}
STAGED = {"kind": NAME, "queue": NAME, "name": KEY, "unique_key": KEY}
ODD = ["", "a\nb", "a\x7fb", "a\x85b", "x" * 9000, "x" * 2**16]


def test_a_name_out_of_bounds_is_refused_with_the_limit_by_each_way(db: DB) -> None:
    """RN005: empty, with a control character, too long for a hint or for an index."""
    start(db)
    for ways, longest in ((NAMED, NAME), (KEYED, KEY)):
        for what, way in ways.items():
            for odd in (*ODD, "ü" * (longest + 1)):
                (said,) = refused(db, errors.BadInput, way(odd))
                assert str(longest) in said, (what, odd[:9])


def test_a_name_of_the_full_length_is_taken(db: DB) -> None:
    """Also of letters that take four bytes each: hints and indexes hold them."""
    name, key = "\U0001f5dd" * NAME, "\U0001f5dd" * KEY
    run(db, calls.enlist_worker(name, [name], tenants=[name]))
    run(db, calls.mark_asleep(name, name))

    run(db, calls.start_task(name, queue=name, key=key, unique_key=key, tenant=name))

    assert len(run(db, calls.claim_steps(name, name, [name], tenants=[name]))) == 1


def take_for_tenant(db: DB, tenant: str) -> None:
    run(db, calls.stage_steps())
    run(db, calls.take_staged("work.task", tenant=tenant))


def stage_one(db: DB, **row: Any) -> None:
    """Stage one step with these columns, and take it over."""
    with db.transaction():
        run(db, calls.stage_steps())
        statement = f"insert into pg_temp.staged_steps ({', '.join(row)}) values ({', '.join(['%s'] * len(row))})"
        db.execute(statement, list(row.values()))
        run(db, calls.take_staged("work.task"))


@pytest.mark.parametrize("field", STAGED)
def test_a_staged_name_out_of_bounds_is_refused_with_the_limit(db: DB, field: str) -> None:
    before = fingerprint(db)

    for odd in ODD:
        with pytest.raises(errors.BadInput, match=str(STAGED[field])):
            stage_one(db, **{"kind": "a", field: odd})

    assert fingerprint(db) == before


def test_a_star_is_no_name_by_any_way(db: DB) -> None:
    """It stands for all: `queue:*` is a family of limits, and tenant `*` is every tenant."""
    start(db)
    before = fingerprint(db)
    ways = [way for each in (NAMED, KEYED) for way in each.values()]

    for call in [way("*") for way in ways]:
        with pytest.raises(errors.BadInput) as caught:
            run(db, call)
        assert "*" in caught.value.what, call
        assert "*" in str(caught.value.next), call

    with pytest.raises(errors.BadInput, match=r"\*"), db.transaction():
        take_for_tenant(db, "*")
    for field in STAGED:
        with pytest.raises(errors.BadInput, match=r"\*"):
            stage_one(db, **{"kind": "a", field: "*"})
    assert fingerprint(db) == before


@pytest.mark.one_server
@pytest.mark.parametrize(
    ("odd", "shown"),
    [("", "1 to 200"), ("a\nb", "line breaks"), ("x" * 201, "200 characters or fewer"), ("*", "*")],
    ids=["empty", "control character", "too long", "star"],
)
def test_a_refused_name_says_what_to_do_about_it(db: DB, odd: str, shown: str) -> None:
    with pytest.raises(errors.BadInput) as caught:
        run(db, calls.start_task("a", queue=odd))

    assert caught.value.where == "queue"
    assert shown in str(caught.value.next)


STAGE = "select holdfast.stage_steps(); insert into pg_temp.staged_steps"
DUE = ["infinity", "-infinity", "9999-06-01", "1899-06-01", "20000-01-01"]


@pytest.mark.parametrize("due", DUE)
def test_a_due_time_out_of_range_is_our_own_error_by_each_way(db: DB, due: str) -> None:
    """RN005 and not a broken constraint: who calls by plain SQL reads the code."""
    before = fingerprint(db)
    task, plan = f'[{{"name": "a", "due_at": "{due}"}}]', f'[{{"kind": "a", "due_at": "{due}"}}]'

    for statement in (
        f"select holdfast.start_task('a', due_at => '{due}')",
        f"select holdfast.start_tasks('{task}')",
        f"select holdfast.start_run('flow.task', 'f', 'flow.step', '{plan}')",
        f"select flow.define_flow('f', '{plan}')",
        f"{STAGE} (kind, due_at) values ('a', '{due}'); select holdfast.take_staged()",
    ):
        with pytest.raises(psycopg.Error) as caught, db.transaction():
            db.execute(statement)
        assert caught.value.sqlstate == "RN005", statement

    assert fingerprint(db) == before


def test_a_policy_that_waits_for_ever_makes_no_step_unreachable(db: DB) -> None:
    """Its settle is not refused for a due time out of range."""
    ages = timedelta(days=365 * 10_000)
    run(db, calls.define_policy("slow", base=ages, longest=ages * 3, longest_retry_after=ages))
    run(db, calls.define_kind("mail", policy="slow"))
    ids = [start(db), start(db)]

    for after in (None, ages):
        assert settle(db, claim_one(db), Retry("bad", after)) == ["retried"]

    assert [column(db, i, "due_at").year < 3000 for i in ids] == [True, True]


WRONG: dict[str, tuple[Call[Any], str]] = {
    "priority": (calls.start_task("a", priority=1.5), "1.5"),  # type: ignore[arg-type]
    "key": (calls.start_task("a", key=42), "42"),  # type: ignore[arg-type]
    "queue": (calls.start_task("a", queue={"a": 1}), "a"),  # type: ignore[arg-type]
    "due_at": (calls.start_task("a", due_at=timedelta(1)), "1"),  # type: ignore[arg-type]
    "batch": (calls.claim_steps("w", batch=True), "True"),
    "lease": (calls.claim_steps("w", lease=30), "30"),  # type: ignore[arg-type]
    "kinds": (calls.claim_steps("w", kinds=["a", 7]), "7"),  # type: ignore[list-item]
    "step_ids": (calls.step_results(["x"]), "x"),  # type: ignore[list-item]
    "tenant": (flow.initialize_task("f", PLAN, Json("{}"), tenant=5), "5"),  # type: ignore[arg-type]
}


@pytest.mark.one_server
@pytest.mark.parametrize("argument", WRONG)
def test_an_argument_of_the_wrong_type_is_named(db: DB, argument: str) -> None:
    """Inside a transaction too, which then is the caller's to end; it is not told as a missing migration."""
    call, shown = WRONG[argument]
    blocks: list[AbstractContextManager[Any]] = [nullcontext(), db.transaction()]

    for block in blocks:
        with pytest.raises(errors.BadInput, match=argument) as caught, block:
            run(db, call)
        assert shown in str(caught.value)


@pytest.mark.one_server
def test_a_function_that_is_missing_is_a_missing_migration(db: DB) -> None:
    db.execute("drop function holdfast.start_task")

    with pytest.raises(errors.NotMigrated):
        run(db, calls.start_task("a", priority=1))


OPTIONS: list[tuple[str, Any]] = [
    *((name, odd) for name in ("queue", "tenant", "key", "unique_key") for odd in ("", "*", "a\nb", "x" * 401, 42)),
    ("tenant", None),
    *(("priority", odd) for odd in (1.5, -1, 10, True, None, "1")),
    ("due_at", seconds(5)),
    ("due_at", "tomorrow"),
]


@pytest.mark.parametrize(("name", "odd"), OPTIONS, ids=lambda value: repr(value)[:12])
def test_a_start_refuses_an_option_where_it_is_given(name: str, odd: Any) -> None:
    """Before there is a connection, with the option named."""

    def mail() -> None: ...

    hf = Holdfast("host=nowhere")
    task, order = hf.task(mail), hf.flow("order")

    with pytest.raises(errors.BadInput, match=name):
        task.options(**{name: odd})
    if name in {"key", "tenant"}:
        with pytest.raises(errors.BadInput, match=name):
            order.options(**{name: odd})


@pytest.mark.parametrize("name", ["", "*", "a\nb", "x" * 201])
def test_a_task_refuses_a_name_that_none_can_be(name: str) -> None:
    def mail() -> None: ...

    with pytest.raises(errors.BadDefinition, match="name"):
        Holdfast("host=nowhere").task(name=name)(mail)


@pytest.mark.parametrize("queue", ["", "*", "a\nb", "x" * 201, 5])
def test_a_task_refuses_a_queue_that_none_can_be(queue: Any) -> None:
    def mail() -> None: ...

    with pytest.raises(errors.BadDefinition, match="queue"):
        Holdfast("host=nowhere").task(queue=queue)(mail)


def test_a_policy_refuses_a_limit_that_counts_nothing() -> None:
    def mail() -> None: ...

    with pytest.raises(errors.BadDefinition, match=r"limit.*1\.5"):
        Holdfast("host=nowhere").task(retry=RetryPolicy(limit=1.5))(mail)  # type: ignore[arg-type]


def test_options_in_bounds_are_taken() -> None:
    def mail() -> None: ...

    due = datetime(2026, 1, 1, tzinfo=UTC)
    Holdfast("host=nowhere").task(mail).options(
        queue="x" * NAME, key="x" * KEY, unique_key="ü", priority=9, tenant="x" * NAME, due_at=due
    )


def test_a_reservation_has_a_bound(db: DB) -> None:
    for amount in (-1, 1_000_001, 2_000_000_000, None):
        with pytest.raises(psycopg.Error, match="1000000") as caught:
            db.execute("select holdfast.reserve_step_ids(%s::int)", [amount])
        assert caught.value.sqlstate == "RN005"

    assert bulk.start_tasks(db, [bulk.Start("a", "{}")]) == 1
