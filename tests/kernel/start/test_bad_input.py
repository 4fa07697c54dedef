"""Bad input: each refused with its own error, in SQL and in Python, and nothing else touched."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from holdfast import errors
from holdfast.kernel import bulk, calls
from holdfast.kernel.call import Call
from holdfast.kernel.db import run, translate
from holdfast.models import Continue, Done, Fail, Outcome, Retry, Settlement, Snooze, Unreadable
from kernel.steps import (
    DB,
    claim,
    claim_one,
    column,
    fingerprint,
    node,
    settle,
    settlement,
    start,
    start_flow,
    step_row,
    value,
)

BIG, LONG = "x" * 10**7, "x" * 10**6
NUL, SURROGATE = "a\0b", "a\ud800b"


def refused(db: DB, error: type[errors.RefusedError], *asked: Call[Any]) -> list[str]:
    """Make calls that must be refused, and see that all is as it was; what they were told."""
    before = fingerprint(db)
    said = []
    for call in asked:
        with pytest.raises(error) as caught:
            run(db, call)
        said.append(str(caught.value))
    assert fingerprint(db) == before
    return said


def refused_sql(db: DB, error: type[errors.RefusedError], statement: str, *arguments: Any) -> None:
    """The same for a statement that is written by hand."""
    before = fingerprint(db)
    with pytest.raises(psycopg.Error) as caught:
        db.execute(statement, arguments)
    assert type(translate(caught.value)) is error
    assert fingerprint(db) == before


def deep(levels: int) -> Any:
    nest: Any = 1
    for _ in range(levels):
        nest = [nest]
    return nest


@pytest.mark.parametrize("odd", [NUL, SURROGATE], ids=["NUL", "lone surrogate"])
def test_text_that_cannot_be_stored_is_refused_wherever_it_stands(db: DB, odd: str) -> None:
    start(db)
    step = claim_one(db)

    refused(
        db,
        errors.BadInput,
        calls.start_task(odd),
        calls.start_task("mail", odd),
        calls.start_task("mail", {odd: 1}),
        *(calls.start_task("mail", **{name: odd}) for name in ("queue", "key", "unique_key", "tenant")),  # type: ignore[arg-type]
        calls.start_tasks([{"name": "mail"}, {"name": "mail", "input": [odd]}]),
        calls.start_run("flow.task", odd, "flow.step"),
        calls.start_run("flow.task", "order", "flow.step", steps=[{"kind": odd}]),
        calls.start_run("flow.task", "order", "flow.step", input=odd),
        calls.claim_steps(odd),
        calls.claim_steps("a", odd),
        calls.claim_steps("a", kinds=[odd]),
        calls.renew_leases(odd, [step.lease_id]),
        calls.note(step.step_id, step.lease_id, "info", odd),
        calls.note(step.step_id, step.lease_id, "info", "m", payload=odd),
        calls.note(step.step_id, step.lease_id, "info", "m", key=odd),
        calls.cancel(odd),
        calls.cancel(str(step.step_id), odd),
        *(calls.settle_steps([settlement(step, o)]) for o in (Done(odd), Fail(odd), Retry(odd), Continue(odd))),
    )

    assert settle(db, step, Done()) == ["succeeded"]


def test_json_that_cannot_be_read_is_refused_by_copy_too(db: DB) -> None:
    before = fingerprint(db)

    for odd in ('{"a": "\\u0000"}', '{"a": "\\ud800"}', "{", "", "NaN", '{"n": 1e999999}'):
        with pytest.raises(errors.BadInput):
            bulk.start_tasks(db, [bulk.Start("mail", "{}"), bulk.Start("mail", odd)])

    assert fingerprint(db) == before


def test_ten_megabytes_of_input_are_refused(db: DB) -> None:
    said = refused(
        db,
        errors.TooLarge,
        calls.start_task("mail", BIG),
        calls.start_task("mail", BIG, key="k"),
        calls.start_tasks([{"name": "mail"}, {"name": "mail", "input": BIG}]),
        calls.start_run("flow.task", "order", "flow.step", input=BIG),
        calls.start_run("flow.task", "order", "flow.step", steps=[node("a"), node("b", "a", input=BIG)]),
    )

    assert all("1048576" in words for words in said)
    refused_sql(db, errors.TooLarge, "select holdfast.start_task('mail', to_jsonb(repeat('x', 10000000)))")


def test_a_result_of_ten_megabytes_fails_only_its_step(db: DB) -> None:
    ids = [start(db) for _ in range(3)]
    steps = claim(db, batch=3)

    settled = run(db, calls.settle_steps([settlement(s, Done(r)) for s, r in zip(steps, (1, BIG, 3), strict=True)]))

    assert {s.step_id: s.event for s in settled} == {ids[0]: "succeeded", ids[1]: "failed", ids[2]: "succeeded"}
    row = step_row(db, ids[1])
    assert (row["state"], row["result"], row["error"]["type"]) == ("error", None, "TooLarge")
    assert [column(db, i, "result") for i in (ids[0], ids[2])] == [1, 3]


@pytest.mark.parametrize(
    ("outcome", "event", "state"),
    [(Fail(BIG), "failed", "error"), (Retry(BIG), "retried", "pending"), (Continue(BIG), "failed", "error")],
    ids=["fail", "retry", "continue"],
)
def test_an_error_or_cursor_of_ten_megabytes_is_not_kept(db: DB, outcome: Outcome, event: str, state: str) -> None:
    """The step is settled all the same, and says why"""
    step_id = start(db)
    other = start(db)
    steps = claim(db, batch=2)

    settled = run(db, calls.settle_steps([settlement(steps[0], outcome), settlement(steps[1], Fail("e"))]))

    assert {s.step_id: s.event for s in settled} == {step_id: event, other: "failed"}
    assert (column(db, step_id, "state"), column(db, step_id, "cursor")) == (state, None)
    assert column(db, step_id, "error")["type"] == "TooLarge"
    assert value(db, "select max(pg_column_size(error)) < 2000 from holdfast.journal")


def test_a_note_of_ten_megabytes_is_refused(db: DB) -> None:
    start(db)
    step = claim_one(db)

    refused(
        db,
        errors.TooLarge,
        calls.note(step.step_id, step.lease_id, "info", "m", payload=BIG),
        calls.note(step.step_id, step.lease_id, "info", BIG),
    )


def test_names_keys_and_reasons_of_a_megabyte_are_refused(db: DB) -> None:
    start(db)
    step = claim_one(db)
    run_id = start_flow(db, node("a"))

    refused(
        db,
        errors.BadInput,
        calls.cancel(str(step.step_id), LONG),
        calls.cancel(str(run_id), LONG),
        calls.pause_queue("default", LONG),
        calls.start_task(LONG),
        *(calls.start_task("mail", **{name: LONG}) for name in ("queue", "key", "unique_key", "tenant")),  # type: ignore[arg-type]
        calls.start_run("flow.task", LONG, "flow.step"),
        calls.start_run("flow.task", "order", "flow.step", steps=[{"kind": "a", "name": LONG}]),
        calls.claim_steps(LONG),
        calls.claim_steps("a", LONG),
        calls.note(step.step_id, step.lease_id, "info", "m", key=LONG),
    )


def test_a_batch_that_is_not_possible_is_refused(db: DB) -> None:
    start(db)

    for batch in (0, -1, -(10**9), 10001, 10**9, 10**12, 10**30):
        refused(
            db,
            errors.BadInput,
            calls.claim_steps("a", batch=batch),
            calls.rescue_steps(batch=batch),
            calls.upkeep(batch=batch),
        )


def test_a_null_where_there_must_be_something_is_refused(db: DB) -> None:
    start(db)
    step = claim_one(db)

    for statement in (
        "select holdfast.start_task(null)",
        "select holdfast.start_task('mail', priority => null)",
        "select holdfast.start_tasks(null)",
        "select holdfast.start_run(null, 'order', 'flow.step')",
        "select holdfast.start_run('flow.task', null, 'flow.step')",
        "select holdfast.start_run('flow.task', 'order', null, '[{\"kind\": \"a\"}]')",
        "select holdfast.claim_steps(null)",
        "select holdfast.claim_steps('a', batch => null)",
        "select holdfast.upkeep(null)",
        "select holdfast.renew_leases(null, '{1}')",
        "select holdfast.settle_steps(null)",
        f"select holdfast.note({step.step_id}, {step.lease_id}, null)",
    ):
        refused_sql(db, errors.BadInput, statement)
    refused_sql(db, errors.NotFound, "select holdfast.cancel(null)")
    refused_sql(db, errors.LeaseLost, f"select holdfast.note({step.step_id}, null)")


def test_a_lease_or_due_time_that_makes_no_sense_is_refused(db: DB) -> None:
    start(db)
    step = claim_one(db)

    for lease in ("0", "-1 s", "366 days", "10000 years"):
        refused_sql(db, errors.BadInput, "select holdfast.claim_steps('a', lease => %s)", lease)
        refused_sql(db, errors.BadInput, "select holdfast.renew_leases('a', %s, %s)", [step.lease_id], lease)
    for due in ("infinity", "-infinity", "20000-01-01", "0044-03-15 BC", "soon"):
        refused_sql(db, errors.BadInput, "select holdfast.start_task('mail', due_at => %s)", due)
        refused_sql(db, errors.BadInput, "select holdfast.start_tasks(%s)", Jsonb([{"name": "mail", "due_at": due}]))


def test_a_wait_for_ever_ends_within_reach(db: DB) -> None:
    """What a handler asks for does not make the row unreadable"""
    ids = [start(db), start(db)]
    one, two = claim(db, batch=2)

    run(db, calls.settle_steps([settlement(one, Snooze(timedelta.max)), settlement(two, Retry("e", timedelta.max))]))

    assert [column(db, i, "due_at").year < 3000 for i in ids] == [True, True]


def test_an_unknown_level_is_refused(db: DB) -> None:
    start(db)
    step = claim_one(db)
    odd: Any = ("", "warning", "INFO", "fatal")

    refused(db, errors.BadInput, *(calls.note(step.step_id, step.lease_id, level, "m") for level in odd))


@pytest.mark.parametrize("odd", ["[" * 3000 + "]" * 3000, '{"n": 1e5000}'], ids=["too deep", "too long a number"])
def test_one_input_that_python_cannot_read_costs_the_others_of_its_batch_nothing(db: DB, odd: str) -> None:
    """SQL may start it; a claim gives it out as Unreadable, and its worker can fail it alone"""
    fine = start(db)
    db.execute("select holdfast.start_task('mail', %s)", [odd])

    first, second = claim(db, batch=2)

    assert (first.step_id, first.input) == (fine, {"to": "a"})
    assert isinstance(second.input, Unreadable)
    assert settle(db, second, Fail(second.input.reason)) == ["failed"]


def test_json_too_deep_to_be_written_is_refused(db: DB) -> None:
    nest = "[" * 100_000 + "]" * 100_000
    refused_sql(db, errors.BadInput, "select holdfast.start_task('mail', %s)", nest)
    refused_sql(db, errors.BadInput, "select holdfast.start_tasks(%s)", f'[{{"name": "mail", "input": {nest}}}]')
    refused(db, errors.BadInput, calls.start_task("mail", deep(100_000)))


def test_a_number_comes_back_as_it_was(db: DB) -> None:
    numbers = [10**400, -(10**400), 1e-300, 123456789012345678901234567890, 0.1, -0.0]
    start(db, given=numbers)

    assert claim_one(db).input == numbers


def test_python_numbers_that_json_does_not_have_are_refused(db: DB) -> None:
    refused(db, errors.BadInput, *(calls.start_task("mail", float(n)) for n in ("nan", "inf", "-inf")))


def test_a_lease_that_is_not_the_callers_settles_and_renews_nothing(db: DB) -> None:
    start(db)
    step = claim_one(db)
    before = fingerprint(db)

    for lease in (0, -1, step.lease_id + 1, 2**62):
        assert run(db, calls.settle_steps([Settlement(step.step_id, lease, Done())])) == []
        assert run(db, calls.renew_leases("a", [lease])) == []
    assert run(db, calls.renew_leases("b", [step.lease_id])) == []

    assert fingerprint(db) == before
