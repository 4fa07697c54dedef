"""Short stories about large runs that each hold one property (see scenarios.py)."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import ClaimedStep, Done, Fail, Outcome, Release, Retry, Snooze
from holdfast.testing import Clock
from kernel.limits import held, limit
from kernel.plans import begun, draft, halt, install, queue
from kernel.retention import sweep
from kernel.steps import claim, counts, rescue, run_row, settle, settlement, stage, start, value
from properties.guards import login_for
from properties.limit_stories import overlapping
from properties.scenarios import DB, refused, sound

DUE = "select count(*) from holdfast.steps where run_id = %s and due_at is not null"
SOON = timedelta(seconds=2)
QUEUE_LIMIT = "queue:default"


def due(db: DB, run_id: UUID) -> int:
    return int(value(db, DUE, run_id))


def work(db: DB, most: int = 10**6, outcome: Outcome | None = None) -> int:
    """Claim and settle one by one until nothing is due, or so many are done."""
    done = 0
    while done < most and (steps := claim(db)):
        assert settle(db, steps[0], outcome or Done())
        done += 1
    return done


def settle_all(db: DB, steps: list[ClaimedStep], outcome: Outcome) -> None:
    run(db, calls.settle_steps([settlement(step, outcome) for step in steps]))


def state(db: DB, run_id: UUID) -> str:
    return str(run_row(db, run_id)["state"])


def a_window_admits_all_in_turn(db: DB) -> None:
    install(db, 10)
    run_id = begun(db, 35)
    assert due(db, run_id) == 10
    most = 0
    for _ in range(35):
        most = max(most, run_row(db, run_id)["live"])
        assert settle(db, claim(db)[0], Done()) == ["succeeded"]
    assert (most, state(db, run_id), counts(db, run_id)) == (10, "done", {"total": 35, "succeeded": 35})
    sound(db)


def a_window_goes_on_when_all_of_it_is_held(db: DB) -> None:
    """Each claim takes all that is due, so none of them ever meets a step of the run at half its window."""
    install(db, 10)
    run_id = begun(db, 24)
    taken = []
    while steps := claim(db, batch=50):
        taken.append(len(steps))
        settle_all(db, steps, Done())
    assert (taken, state(db, run_id)) == ([10, 10, 4], "done")
    sound(db)


def a_lot_is_due_while_the_last_is_in_work(db: DB) -> None:
    install(db, 8)
    run_id = begun(db, 30)
    held = claim(db, batch=8)
    settle_all(db, held[:2], Done())
    assert len(claim(db, batch=1)) == 1
    assert (due(db, run_id), run_row(db, run_id)["live"]) == (1, 8)
    sound(db)


def a_run_is_open_until_its_last_lot(db: DB) -> None:
    install(db, 4)
    run_id = begun(db, 9)
    settle_all(db, claim(db, batch=4), Done())
    assert (state(db, run_id), run_row(db, run_id)["to_admit"]) == ("going", 5)
    sound(db)


def a_draft_is_not_closed(db: DB) -> None:
    """Not even if its machine has the move."""
    install(db)
    db.execute("insert into holdfast.machine_moves values ('test.plan', 'draft', 'none_succeeded', 'lost', '{api}')")
    try:
        run_id = draft(db, 3)
    finally:
        db.execute("delete from holdfast.machine_moves where from_state = 'draft' and event = 'none_succeeded'")
    Clock(db).advance(timedelta(days=30))
    assert claim(db, batch=5) == []
    run(db, calls.upkeep())
    assert (state(db, run_id), counts(db, run_id)) == ("draft", {"total": 3})
    sound(db)


def lots_follow_each_other(db: DB) -> None:
    install(db, 4)
    begun(db, 12)
    taken = []
    while steps := claim(db, batch=2):
        taken += [step.step_id for step in steps]
        settle_all(db, steps, Done())
    assert taken == sorted(taken)
    assert len(set(taken)) == 12


def _is_quiet(db: DB, run_id: UUID) -> None:
    """Nothing of the run is due, and nothing is claimed."""
    assert due(db, run_id) == 0
    assert claim(db, batch=50) == []
    run(db, calls.upkeep())
    Clock(db).advance(timedelta(minutes=5))
    rescue(db)
    assert due(db, run_id) == 0
    assert claim(db, batch=50) == []


OUTCOMES: list[Outcome] = [Retry("e", after=timedelta(0)), Snooze(after=timedelta(0)), Release()]


def nothing_of_a_paused_run_becomes_due(db: DB) -> None:
    install(db, 6)
    run_id = begun(db, 20)
    held = claim(db, batch=4)
    assert halt(db, "pause", run_id, "lunch") == "going"
    assert claim(db, batch=50) == []
    for step, outcome in zip(held, OUTCOMES, strict=False):
        settle(db, step, outcome)
    _is_quiet(db, run_id)
    sound(db)
    halt(db, "resume", run_id)
    assert work(db) == 20
    assert state(db, run_id) == "done"
    sound(db)


def a_claim_gets_past_a_paused_run(db: DB) -> None:
    install(db, 3000)
    run_id = begun(db, 3000)
    stage(db, [("mail", "{}")] * 3)
    halt(db, "pause", run_id)
    assert [step.kind for step in claim(db, batch=2)] == ["mail", "mail"]
    halt(db, "resume", run_id)
    assert due(db, run_id) == 3000
    sound(db)


def a_stopped_run_keeps_what_was_not_tried(db: DB) -> None:
    install(db, 6)
    run_id = begun(db, 20)
    done, *held = claim(db, batch=4)
    settle(db, done, Done())
    assert halt(db, "stop", run_id, "enough") == "going"
    for step, outcome in zip(held, OUTCOMES, strict=False):
        settle(db, step, outcome)
    assert (state(db, run_id), counts(db, run_id)) == ("mixed", {"total": 20, "succeeded": 1})
    assert value(db, "select count(*) from holdfast.steps where state in ('draft', 'ready')") == 19
    _is_quiet(db, run_id)
    sound(db)
    run(db, calls.retry(str(run_id)))
    assert work(db) == 19
    assert (state(db, run_id), run_row(db, run_id)["halt"]) == ("done", None)
    sound(db)


def a_claim_does_not_cancel_what_was_stopped(db: DB) -> None:
    """Also if the step became due by hand, after the stop had looked."""
    install(db, 6)
    run_id = begun(db, 3)
    halt(db, "stop", run_id)
    assert state(db, run_id) == "lost"
    with db.transaction():
        db.execute("alter table holdfast.steps disable trigger user")
        db.execute("update holdfast.steps set due_at = holdfast.clock() where run_id = %s", [run_id])
        db.execute("update holdfast.runs set live = 3 where id = %s", [run_id])
        db.execute("alter table holdfast.steps enable trigger user")
    assert claim(db, batch=5) == []
    assert set(db.execute("select state, due_at from holdfast.steps").fetchall()) == {("ready", None)}
    sound(db)


def chunks_go_on_where_they_were(db: DB) -> None:
    """A chunk reads the steps after the last one before it."""
    install(db, 5)
    run_id = begun(db, 2500)
    run(db, calls.cancel(str(run_id)))
    seen = [(row["moved_until"], row["cancelled"]) for row in [run_row(db, run_id)]]
    for _ in range(2):
        assert run(db, calls.upkeep())[0].moved
        seen.append((run_row(db, run_id)["moved_until"], run_row(db, run_id)["cancelled"]))
    assert [cancelled for _, cancelled in seen] == [1000, 2000, 2500]
    assert seen[0][0] < seen[1][0]
    assert seen[-1][0] == 0
    assert run_row(db, run_id)["moving"] is None
    sound(db)


def one_worker_at_a_time_moves_a_run(db: DB) -> None:
    install(db, 5)
    run_id = begun(db, 1500)
    run(db, calls.cancel(str(run_id)))
    with psycopg.connect(db.info.dsn) as other:
        other.execute("select pg_advisory_xact_lock(holdfast.run_lock(%s))", [run_id])
        assert run(db, calls.upkeep())[0].moved == 0
    assert run(db, calls.upkeep())[0].moved == 500
    sound(db)


def a_retry_admits_what_failed(db: DB) -> None:
    install(db, 4)
    run_id = begun(db, 15)
    for number in range(15):
        settle(db, claim(db)[0], Done() if number % 3 else Fail("no"))
    assert (state(db, run_id), counts(db, run_id)) == ("mixed", {"total": 15, "succeeded": 10, "failed": 5})
    began = run_row(db, run_id)["started_at"]
    Clock(db).advance(timedelta(hours=1))
    run(db, calls.retry(str(run_id)))
    row = run_row(db, run_id)
    assert (row["state"], row["started_at"], row["live"], row["to_admit"]) == ("going", began, 4, 1)
    assert work(db) == 5
    assert state(db, run_id) == "done"
    sound(db)


def a_retry_takes_only_what_was_chosen(db: DB) -> None:
    install(db, 4)
    run_id = begun(db, 9)
    work(db, outcome=Fail("no"))
    ids = [row[0] for row in db.execute("select step_id from holdfast.run_steps order by step_id")]
    done = ids[:6:2]
    run(db, calls.retry_steps(str(run_id), done))
    assert work(db) == 3
    assert (state(db, run_id), counts(db, run_id)) == ("mixed", {"total": 9, "succeeded": 3, "failed": 6})
    for odd in (done[:1], [10**9]):
        with refused(errors.BadInput):
            run(db, calls.retry_steps(str(run_id), odd))
    sound(db)


def the_first_steps_run_alone(db: DB) -> None:
    install(db, 10)
    run_id = draft(db, 30)
    queue(db, run_id, first=3)
    assert work(db) == 3
    assert (state(db, run_id), run_row(db, run_id)["halt"]) == ("going", "first")
    sound(db)
    halt(db, "resume", run_id)
    assert work(db) == 27
    assert state(db, run_id) == "done"
    sound(db)


def a_clock_that_steps_back_fails_no_settle(db: DB) -> None:
    install(db, 5)
    now = Clock(db).freeze()
    run_id = begun(db, 2)
    Clock(db).set(now - timedelta(minutes=3))
    db.execute("update holdfast.steps set due_at = holdfast.clock() where due_at is not null")
    steps = claim(db, batch=2)
    Clock(db).set(now - timedelta(minutes=6))
    settle_all(db, steps, Done())
    row = run_row(db, run_id)
    assert (row["state"], row["queued_at"], row["started_at"]) == ("done", row["started_at"], row["finished_at"])
    sound(db)


def a_run_belongs_to_its_tenant(db: DB) -> None:
    install(db, 5)
    run_id = draft(db, 2)
    with login_for(db, "hf_operator", "b") as other:
        for call in (calls.queue_run, calls.pause_run, calls.resume_run, calls.stop_run):
            with refused(errors.NotFound):
                run(other, call(str(run_id)))


def a_queue_of_two_is_shared(db: DB) -> None:
    """A small run that is queued behind a large one does not wait for all of it."""
    install(db, 10)
    begun(db, 200)
    small = begun(db, 5)
    done = 0
    while state(db, small) != "done":
        settle_all(db, claim(db, batch=3), Done())
        done += 3
    assert done < 40


def the_choices_of_a_run_go_with_it(db: DB) -> None:
    install(db, 2)
    run_id = begun(db, 3)
    work(db, outcome=Fail("no"))
    run(db, calls.retry_steps(str(run_id), [row[0] for row in db.execute("select id from holdfast.steps")]))
    work(db)
    Clock(db).advance(timedelta(days=100))
    sweep(db)
    assert value(db, "select count(*) from holdfast.run_choices") == 0
    sound(db)


def a_lot_ends_between_two_keys(db: DB) -> None:
    """A window of 4 admits the whole key that it ends in, if one call can take it."""
    install(db, 4)
    run(db, calls.define_kind("bulky", batch=5, batch_by="shop"))
    run_id = UUID(str(run(db, calls.start_run("test.plan", "plan", "test.item"))[0]))
    shops = ["a", "a", "b", "b", "b", "c", "c"]
    stage(db, [("bulky", f'{{"shop": "{shop}"}}') for shop in shops], run_id=run_id, machine="test.item")
    queue(db, run_id)
    rows = db.execute("select batch_key, due_at is not null from holdfast.steps order by id").fetchall()
    assert [is_due for _, is_due in rows] == [True] * 5 + [False] * 2, rows
    sound(db)


def lacking(db: DB, items: int, window: int = 10) -> UUID:
    """Make a run whose first window is done, and whose next lot nobody has admitted."""
    install(db, window)
    run_id = begun(db, items)
    settle_all(db, claim(db, batch=window), Done())
    assert (due(db, run_id), run_row(db, run_id)["live"]) == (0, 0)
    return run_id


def a_lot_is_claimed_at_once(db: DB) -> None:
    """Its steps are never due, and the journal has both moves of each."""
    run_id = lacking(db, 35)
    steps = claim(db, "b", batch=50)
    assert (len(steps), due(db, run_id), run_row(db, run_id)["live"]) == (10, 0, 10)
    sound(db)
    rows = db.execute(
        "select from_state, event, to_state, actor_kind, actor, attempt, lease_id from holdfast.journal "
        "where step_id = %s order by id",
        [steps[0].step_id],
    ).fetchall()
    assert rows == [
        ("draft", "queued", "ready", "system", "window", 0, None),
        ("ready", "claimed", "going", "worker", "b", 1, steps[0].lease_id),
    ]
    settle_all(db, steps, Done())
    assert work(db) == 15
    assert (state(db, run_id), counts(db, run_id)) == ("done", {"total": 35, "succeeded": 35})
    sound(db)


def a_last_lot_fills_the_window(db: DB) -> None:
    run_id = lacking(db, 20)
    assert (len(claim(db, batch=50)), run_row(db, run_id)["to_admit"]) == (10, 0)
    sound(db)


def _lot_under(db: DB, **rule: Any) -> list[ClaimedStep]:
    """Claim the next lot of a run, whose queue has a limit."""
    lacking(db, 35)
    limit(db, QUEUE_LIMIT, **rule)
    steps = claim(db, "b", batch=50)
    sound(db)
    assert held(db, QUEUE_LIMIT)[0] == len(steps)
    return steps


def _tokens(db: DB) -> int:
    return round(
        value(db, "select coalesce(max(tokens), 1000) from holdfast.limit_states where name = %s", QUEUE_LIMIT)
    )


def a_lot_under_a_limit_is_claimed_at_once(db: DB) -> None:
    """A breaker counts what is held and how it ends."""
    steps = _lot_under(db, breaker_after=2, breaker_for=SOON)
    assert len(steps) == 10
    assert value(db, "select count(*) from holdfast.journal where event = 'queued' and step_id = %s", steps[0].step_id)
    assert value(db, "select claimed_at is not null and due_at is null from holdfast.steps where id = %s",
                 steps[0].step_id)  # fmt: skip
    settle_all(db, steps[:2], Fail({"type": "RateLimited", "message": "429"}))
    assert held(db, QUEUE_LIMIT)[0] == 8
    assert value(db, "select open_until is not null from holdfast.limit_states where name = %s", QUEUE_LIMIT)
    settle_all(db, steps[2:], Done())
    sound(db)


def a_lot_takes_the_slots_of_its_limit(db: DB) -> None:
    assert len(_lot_under(db, concurrency=5)) == 5


def a_lot_is_charged_to_its_bucket(db: DB) -> None:
    steps = _lot_under(db, rate=1000, per=timedelta(days=300))
    assert (len(steps), _tokens(db)) == (10, 990)


def a_lot_is_charged_by_the_weight_of_its_calls(db: DB) -> None:
    run(db, calls.define_kind("item", call_weight=2))
    steps = _lot_under(db, rate=1000, per=timedelta(days=300))
    assert (len(steps), _tokens(db)) == (10, 970)


def a_lot_of_a_limit_that_was_paused_meanwhile_waits(db: DB) -> None:
    run_id = lacking(db, 35)
    limit(db, QUEUE_LIMIT, breaker_after=2, breaker_for=SOON)
    settle_all(db, claim(db, batch=10), Done())
    paused = "select holdfast.pause_limit(%s)"
    assert overlapping(db, lambda one: one.execute(paused, [QUEUE_LIMIT]), lambda two: claim(two, "b", batch=50)) == []
    sound(db)
    assert run_row(db, run_id)["live"] == 10


def a_claim_with_limits_waits_for_no_more(db: DB) -> None:
    """Two claims that hold some limits each would wait for each other."""
    lacking(db, 35)
    limit(db, QUEUE_LIMIT, breaker_after=2, breaker_for=SOON)
    settle_all(db, claim(db, batch=10), Done())
    with psycopg.connect(db.info.dsn) as other:
        other.execute("select from holdfast.limit_states for update")
        with db.transaction():
            db.execute("set local lock_timeout = '200ms'")
            db.execute("select set_config('holdfast.has_limits', 'yes', true)")
            assert claim(db, "b", batch=50) == []
    sound(db)


def two_runs_go_on_in_turn(db: DB) -> None:
    install(db, 10)
    runs = [begun(db, 24), begun(db, 24)]
    while steps := claim(db, batch=50):
        settle_all(db, steps, Done())
    assert [state(db, run_id) for run_id in runs] == ["done", "done"]
    sound(db)


def a_lot_of_another_tenant_is_not_claimed(db: DB) -> None:
    lacking(db, 20)
    assert claim(db, batch=50, tenants=["b"]) == []
    assert len(claim(db, batch=50)) == 10


def a_paused_queue_claims_no_lot(db: DB) -> None:
    lacking(db, 20)
    run(db, calls.pause_queue("default"))
    assert claim(db, batch=50) == []
    run(db, calls.resume_queue("default"))
    assert len(claim(db, batch=50)) == 10


def a_step_that_waits_is_not_claimed_with_a_lot(db: DB) -> None:
    run_id = lacking(db, 20)
    with db.transaction():
        db.execute("alter table holdfast.steps disable trigger user")
        db.execute("update holdfast.steps set waits = 1 where id = (select max(id) - 3 from holdfast.steps)")
        db.execute("alter table holdfast.steps enable trigger user")
    assert (len(claim(db, batch=50)), run_row(db, run_id)["live"]) == (9, 9)


def a_lot_may_not_make_a_move_that_is_not_listed(db: DB) -> None:
    lacking(db, 20)
    move = "update holdfast.machine_moves set actors = %s where machine = 'test.item' and event = 'queued'"
    db.execute(move, [["api"]])
    try:
        with refused(errors.IllegalTransition):
            claim(db, batch=50)
    finally:
        db.execute(move, [["api", "user", "scheduler", "system"]])
    assert len(claim(db, batch=50)) == 10


def keyed(db: DB, window: int, shops: str) -> UUID:
    """Make a run of items of shops, whose calls have up to 5 items of one shop; its first window is done."""
    install(db, window)
    run(db, calls.define_kind("bulky", batch=5, batch_by="shop"))
    run_id = UUID(str(run(db, calls.start_run("test.plan", "plan", "test.item"))[0]))
    stage(db, [("bulky", f'{{"shop": "{shop}"}}') for shop in shops], run_id=run_id, machine="test.item")
    queue(db, run_id)
    settle_all(db, claim(db, batch=50), Done())
    return run_id


def a_claimed_lot_has_whole_calls(db: DB) -> None:
    keyed(db, 13, "a" * 60)
    sizes = Counter(step.call for step in claim(db, batch=50))
    assert sorted(sizes.values()) == [5, 5], sizes
    sound(db)


def a_claimed_lot_has_one_key(db: DB) -> None:
    """A lot of several keys is made due, so that its calls have whole keys."""
    keyed(db, 6, "aaaaaa" + "bcbcbb" + "dddd")
    calls_by_key = Counter(step.call for step in claim(db, batch=50) if step.batch_key == "b")
    assert list(calls_by_key.values()) == [4]
    sound(db)


def a_lot_is_claimed_by_priority(db: DB) -> None:
    run_id = lacking(db, 20)
    with db.transaction():
        db.execute("update holdfast.queues set top_priority = 9")
        db.execute("alter table holdfast.steps disable trigger user")
        db.execute("update holdfast.steps set priority = 9 where id = (select max(id) from holdfast.steps)")
        db.execute("alter table holdfast.steps enable trigger user")
    taken = [step.step_id for step in claim(db, batch=3)]
    assert value(db, "select max(id) from holdfast.steps where run_id = %s", run_id) in taken


def a_claim_finds_what_is_left_of_a_lot(db: DB) -> None:
    """Steps that were cancelled before their lot lie in front of the others."""
    run_id = lacking(db, 18)
    gone = [row[0] for row in db.execute("select id from holdfast.steps where state = 'draft' order by id limit 5")]
    for step_id in gone:
        run(db, calls.cancel(str(step_id)))
    assert len(claim(db, batch=5)) == 3
    assert (run_row(db, run_id)["to_admit"], due(db, run_id)) == (0, 0)
    sound(db)


def a_step_cancelled_before_its_lot_leaves_the_window(db: DB) -> None:
    install(db, 10)
    run_id = begun(db, 35)
    run(db, calls.cancel(str(value(db, "select max(id) from holdfast.steps"))))
    assert run_row(db, run_id)["to_admit"] == 24
    sound(db)
    assert work(db) == 34
    assert (state(db, run_id), counts(db, run_id)) == ("mixed", {"total": 35, "succeeded": 34, "cancelled": 1})


def a_window_admits_all_beside_steps_that_wait(db: DB) -> None:
    """Children become due with their parents' settles, and are passed over by the lots."""
    install(db, 10)
    db.execute("update holdfast.machine_moves set actors = actors || '{worker}' "
               "where machine = 'test.item' and event = 'queued'")  # fmt: skip
    steps = [{"kind": "item", "name": f"p{n}", "input": {}} for n in range(40)]
    for place in range(39, -1, -1):
        steps[place + 1 : place + 1] = [
            {"kind": "item", "name": f"c{place}.{n}", "after": [f"p{place}"], "input": {}} for n in range(4)
        ]
    run_id = UUID(str(run(db, calls.start_run("test.rush", "plan", "test.item", steps=steps))[0]))
    turn = 0
    while taken := claim(db, batch=1 if turn % 7 == 0 else 50):
        settle_all(db, taken, Done())
        sound(db)
        turn += 1
    assert (state(db, run_id), counts(db, run_id)) == ("done", {"total": 200, "succeeded": 200})


def a_face_may_move_steps_while_a_lot_is_claimed(db: DB) -> None:
    """The state between the two moves of a lot is that of its own steps only."""
    run_id = lacking(db, 20)
    other = start(db, "mail", queue="elsewhere")
    db.execute("""
        create or replace function public.hears(moves holdfast.shared_move[]) returns void language plpgsql as $$
        begin
          if exists (select from unnest(moves) m where m.event = 'claimed') then
            perform holdfast.set_actor('user', 'face');
            perform from holdfast.move_steps(array(
              select (s.id, null, 'cancelled', null, null, null, null)::holdfast.step_move
                from holdfast.steps s where s.queue = 'elsewhere'));
          end if;
        end $$""")
    db.execute("update holdfast.machines set moved = 'public.hears' where machine = 'test.item'")
    try:
        assert len(claim(db, batch=50)) == 10
    finally:
        db.execute("update holdfast.machines set moved = null where machine = 'test.item'")
    assert value(db, "select state from holdfast.steps where id = %s", other) == "cancelled"
    assert run_row(db, run_id)["live"] == 10
    sound(db)


def steps_with_low_ids_are_admitted(db: DB) -> None:
    """Their ids were drawn before those of steps that another transaction added."""
    install(db, 10)
    run_id = UUID(str(run(db, calls.start_run("test.rush", "plan", "test.item"))[0]))
    with psycopg.connect(db.info.dsn) as first:
        run(first, calls.stage_steps())
        with first.cursor() as cursor, cursor.copy("copy pg_temp.staged_steps (kind, input) from stdin") as copy:
            for _ in range(3):
                copy.write_row(("item", "{}"))
        stage(db, [("item", "{}")] * 20, run_id=run_id, machine="test.item")
        run(first, calls.take_staged("test.item", run_id=run_id))
    sound(db)
    assert work(db) == 23
    assert (state(db, run_id), counts(db, run_id)) == ("done", {"total": 23, "succeeded": 23})
    sound(db)


def keys_of_a_lot_are_claimed_by_due_time(db: DB) -> None:
    keyed(db, 6, "aaaaaa" + "bbbccc" + "dddd")
    assert [step.batch_key for step in claim(db, batch=50)] == ["b"] * 3 + ["c"] * 3
    sound(db)
