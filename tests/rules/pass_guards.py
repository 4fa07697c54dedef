"""What the guards of passes are for, as short stories, and engines that lack one: each fails its story."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from holdfast.models import ClaimedStep, Fail, Retry
from kernel.limits import limit
from kernel.steps import value
from properties.guards import login_for
from properties.mutants import Cut, mutant
from properties.scenarios import DB
from rules.plans import applied, claim, ids, preview, previewed, refused, rows, settle, work

PAGE = "select rules.page_targets(%s, %s, 10)"


def _sold(db: DB) -> UUID:
    run_id = previewed(db, 3)
    applied(db, run_id)
    work(db)
    return run_id


def _page_of(db: DB, run_id: UUID) -> ClaimedStep:
    """Begin a pass over a run, and claim its only page."""
    db.execute("select rules.reconcile(%s)", [run_id])
    (page,) = claim(db)
    return page


def who_lost_its_lease_reads_no_page(db: DB) -> None:
    """R3"""
    page = _page_of(db, _sold(db))
    assert refused(db, PAGE, [page.step_id, page.lease_id + 1000]) == "RN002"


def who_lost_its_lease_corrects_nothing(db: DB) -> None:
    """R3"""
    page = _page_of(db, _sold(db))
    statement = "select rules.pass_mismatches(%s, %s)"
    assert refused(db, statement, [page.step_id, page.lease_id + 1000]) == "RN002"


def a_login_reads_pages_of_its_tenants(db: DB) -> None:
    """R34"""
    page = _page_of(db, _sold(db))
    with login_for(db, "hf_worker", "b") as other:
        assert refused(other, PAGE, [page.step_id, page.lease_id]) == "RN002"


def what_a_later_run_wrote_is_superseded(db: DB) -> None:
    """A-81, C-12"""
    first = _sold(db)
    second = UUID(str(preview(db, rows(2))["run_id"]))
    applied(db, second)
    work(db)
    assert _standings(db, _page_of(db, first)) == ["superseded", "superseded", "check"]


def a_later_change_is_seen_though_an_own_one_is_gone(db: DB) -> None:
    """The ledger has as many changes of the page as it has targets, but not their own"""
    first = _sold(db)
    second = UUID(str(preview(db, rows(1))["run_id"]))
    applied(db, second)
    work(db)
    target = ids(db, first)[0]
    with db.transaction():
        db.execute("set local session_replication_role = replica")  # as if retention had removed it
        db.execute("delete from rules.ledger where step_id = %s", [target])
    # The other run's change gets a number before all of the run's own.
    with db.transaction():
        db.execute("set local session_replication_role = replica")
        db.execute("update rules.ledger set id = (select min(id) - 1 from rules.ledger) where run_id = %s", [second])
    assert _standings(db, _page_of(db, first)) == ["superseded", "check", "check"]


def a_page_is_full_though_most_targets_failed(db: DB) -> None:
    """A pass ends where a page is empty, and each page of a limited channel is a call"""
    run_id = previewed(db, 9)
    applied(db, run_id)
    steps = claim(db)
    settle(db, [each for place, each in enumerate(steps) if place in {3, 4, 8}])
    settle(db, [each for place, each in enumerate(steps) if place not in {3, 4, 8}],
           Fail({"message": "refused", "class": "VALIDATION"}))  # fmt: skip
    page = _page_of(db, run_id)
    targets = db.execute("select target_id from rules.page_targets(%s, %s, 2)", [page.step_id, page.lease_id])
    assert [target for (target,) in targets] == [steps[3].step_id, steps[4].step_id]
    _turn(db, page, steps[3].step_id)
    targets = db.execute("select target_id from rules.page_targets(%s, %s, 2)", [page.step_id, page.lease_id])
    assert [target for (target,) in targets] == [steps[4].step_id, steps[8].step_id]


def _standings(db: DB, page: ClaimedStep) -> list[str]:
    statement = "select standing from rules.page_targets(%s, %s, 10) order by target_id"
    return [standing for (standing,) in db.execute(statement, [page.step_id, page.lease_id]).fetchall()]


def _turn(db: DB, page: ClaimedStep, target: int) -> None:
    """Store a page that ends with a target."""
    db.execute("select rules.turn_page(%s, %s, %s, 1, 0, '[]', 0)", [page.step_id, page.lease_id, target])


def a_pass_reads_what_was_unknown_when_its_run_was_stopped(db: DB) -> None:
    """A-72: nobody tries it again, and the channel may show its new price"""
    run_id = previewed(db, 3)
    applied(db, run_id)
    first, second, third = claim(db)
    settle(db, [first])
    settle(db, [second], Retry({"message": "no answer", "class": "TIMEOUT", "unknown": True}))
    db.execute("select holdfast.stop_run(%s)", [str(run_id)])
    settle(db, [third])
    assert _standings(db, _page_of(db, run_id)) == ["check", "unknown", "check"]


def a_page_that_is_recorded_again_is_one_event(db: DB) -> None:
    """A-77: the key of a mismatch has no time in it"""
    run_id = _sold(db)
    page = _page_of(db, run_id)
    finding = {"target_id": ids(db, run_id)[0], "finding": "mismatch", "actual": 1, "actual_currency": "EUR"}
    for _ in range(2):
        db.execute("select rules.record_page(%s, %s, null, 3, 0, %s)", [page.step_id, page.lease_id, Jsonb([finding])])
    assert value(db, "select count(*) from rules.events where event_type like '%%mismatch'") == 1


def a_pass_by_hand_keeps_its_run(db: DB) -> None:
    """X-16: retention leaves a run alone that somebody has locked"""
    run_id = _sold(db)
    with psycopg.connect(db.info.dsn) as person:
        person.execute("select rules.reconcile(%s)", [run_id])
        assert refused(db, "select from holdfast.runs where id = %s for update nowait", [run_id]) == "55P03"


def _found(db: DB, page: ClaimedStep, target: int, actual: int) -> None:
    """Record that a channel shows another price for a target than was written."""
    finding = {"target_id": target, "finding": "mismatch", "actual": actual, "actual_currency": "EUR"}
    db.execute("select rules.record_page(%s, %s, null, 3, 0, %s)", [page.step_id, page.lease_id, Jsonb([finding])])


def _counted(db: DB, run_id: UUID) -> tuple[int, int, int]:
    """Return how many targets the only pass over a run that began has checked, found to differ, and superseded."""
    counts = "select total_checked, mismatches, superseded from rules.reconciliations"
    (row,) = db.execute(f"{counts} where run_id = %s and pass = 'manual'", [run_id]).fetchall()
    checked, differ, superseded = row
    return checked, differ, superseded


def what_a_run_wrote_while_a_pass_read_is_superseded(db: DB) -> None:
    """The pass read the channel before the other run's change was in the ledger, and records it afterwards"""
    run_id = _sold(db)
    page = _page_of(db, run_id)
    applied(db, UUID(str(preview(db, rows(1, before=800, after=600))["run_id"])))
    work(db)
    _found(db, page, ids(db, run_id)[0], 600)
    assert _counted(db, run_id) == (3, 0, 1)
    assert value(db, "select count(*) from rules.events where event_type like '%%mismatch'") == 0


def what_an_open_run_has_written_is_superseded(db: DB) -> None:
    """Its worker died after the write, or has not settled it yet; another price is still a mismatch"""
    run_id = _sold(db)
    page = _page_of(db, run_id)
    applied(db, UUID(str(preview(db, rows(2, before=800, after=600))["run_id"])))
    claim(db)
    first, second, _ = ids(db, run_id)
    _found(db, page, first, 600)
    assert _counted(db, run_id) == (3, 0, 1)
    _found(db, page, second, 601)
    assert _counted(db, run_id)[1:] == (1, 1)


def a_correction_leaves_alone_what_a_later_run_wrote(db: DB) -> None:
    """The finding was right when it was recorded; the later run then restored the price that it had found"""
    run_id = _sold(db)
    page = _page_of(db, run_id)
    _found(db, page, ids(db, run_id)[0], 700)
    applied(db, UUID(str(preview(db, rows(1, before=900, after=700))["run_id"])))
    work(db)
    assert value(db, "select rules.correct(%s, %s, true)", page.step_id, page.lease_id) is None


def _read_next(db: DB, page: ClaimedStep) -> int:
    """Store the first target as a page, and return how many targets the step reads next under the same claim."""
    given = [page.step_id, page.lease_id]
    ((first,),) = db.execute("select target_id from rules.page_targets(%s, %s, 1)", given).fetchall()
    found = db.execute("select target_id from rules.turn_page(%s, %s, %s, 1, 0, '[]', 10)", [*given, first]).fetchall()
    return len(found)


def a_limit_that_counts_nothing_lets_a_pass_read_on(db: DB) -> None:
    """Such as that of a channel with a breaker only"""
    limit(db, "rules:shop", breaker_after=6, breaker_for=timedelta(minutes=1))
    assert _read_next(db, _page_of(db, _sold(db))) == 2


def pages_under_a_rate_are_claimed_one_by_one(db: DB) -> None:
    """A-54: each read is charged, and targets come before it"""
    limit(db, "rules:shop", rate=100, per=timedelta(seconds=1))
    assert _read_next(db, _page_of(db, _sold(db))) == 0


def pages_with_few_slots_are_claimed_one_by_one(db: DB) -> None:
    """Targets that wait for the slot come before the next page"""
    limit(db, "rules:shop", concurrency=100)
    assert _read_next(db, _page_of(db, _sold(db))) == 0


def a_paused_channel_is_not_read_on(db: DB) -> None:
    """A-54: another worker was told to wait"""
    limit(db, "rules:shop", breaker_after=6, breaker_for=timedelta(minutes=1))
    page = _page_of(db, _sold(db))
    db.execute("select holdfast.pause_limit('rules:shop')")
    assert _read_next(db, page) == 0


def an_open_breaker_is_not_read_past(db: DB) -> None:
    """A-59: one probe follows, which a claim chooses"""
    limit(db, "rules:shop", breaker_after=6, breaker_for=timedelta(minutes=1))
    page = _page_of(db, _sold(db))
    db.execute("update holdfast.limit_states set open_until = holdfast.clock(), open_for = '1 minute'")
    assert _read_next(db, page) == 0


def a_paused_pass_is_not_read_on(db: DB) -> None:
    """A pause comes after the page that is being read"""
    page = _page_of(db, _sold(db))
    db.execute("select holdfast.pause_run(%s)", [str(page.run_id)])
    assert _read_next(db, page) == 0


def a_paused_queue_is_not_read_on(db: DB) -> None:
    """A pause comes after the page that is being read"""
    page = _page_of(db, _sold(db))
    db.execute("select holdfast.pause_queue('rules:shop')")
    assert _read_next(db, page) == 0


def targets_come_before_the_next_page(db: DB) -> None:
    """Passes have a lower priority than writes"""
    page = _page_of(db, _sold(db))
    applied(db, UUID(str(preview(db, rows(2, before=800, after=600))["run_id"])))
    assert _read_next(db, page) == 0
    claim(db)
    assert _read_next(db, page) == 1


def a_page_with_an_event_is_on_the_disk(db: DB) -> None:
    """X-07: the number of an event that somebody has read must not be given out again after a crash"""
    run_id = _sold(db)
    page = _page_of(db, run_id)
    first, second, _ = ids(db, run_id)
    finding = {"target_id": second, "finding": "mismatch", "actual": 1, "actual_currency": "EUR"}
    for target, findings in ((first, []), (second, [finding])):
        with db.transaction():
            given = [page.step_id, page.lease_id, target, Jsonb(findings)]
            db.execute("select rules.turn_page(%s, %s, %s, 1, 0, %s, 0)", given)
            waits = value(db, "select current_setting('synchronous_commit')") != "off"
        assert waits == bool(findings)


# fmt: off
PASS_GUARDS = [
    mutant("a page without the lease", who_lost_its_lease_reads_no_page,
           Cut("rules.held_part", "lease", "where p.step_id = held_part.step_id")),
    mutant("a correction without the lease", who_lost_its_lease_corrects_nothing,
           Cut("rules.held_pass", "lease", "where s.id = held_pass.step_id")),
    mutant("pages of any tenant", a_login_reads_pages_of_its_tenants, Cut("rules.held_part", "tenant", ";")),
    mutant("a pass over a run that retention removes", a_pass_by_hand_keeps_its_run,
           Cut("rules.reconcile", "kept", "select r.* into run from holdfast.runs r where r.id = facts.run_id;")),
    mutant("a pass without superseded", what_a_later_run_wrote_is_superseded,
           Cut("rules.page_targets", "superseded")),
    mutant("a pass that leaves out what was stopped", a_pass_reads_what_was_unknown_when_its_run_was_stopped,
           Cut("rules.next_page", "unknown", "or (s.state = 'FAILED' and rules.is_unknown(s.error)))")),
    mutant("a pass whose own changes count as later ones", what_a_later_run_wrote_is_superseded,
           Cut("rules.superseded_targets", "newest", "where true);")),
    mutant("a pass that counts changes of other runs as its own", a_later_change_is_seen_though_an_own_one_is_gone,
           Cut("rules.superseded_targets", "missing",
               "then 0 else (select min(o.id) from unnest(own) o (id)) end;")),
    mutant("pages that end with the first look", a_page_is_full_though_most_targets_failed,
           Cut("rules.next_page", "full", "exit;")),
    mutant("a pass that forgets what was written while it read", what_a_run_wrote_while_a_pass_read_is_superseded,
           Cut("rules.is_overtaken", "newest", "order by c.id desc limit 1), target.step_id) is null")),
    mutant("a pass that forgets what open runs wrote", what_an_open_run_has_written_is_superseded,
           Cut("rules.is_overtaken", "open", "and false")),
    mutant("a correction of what a later run wrote", a_correction_leaves_alone_what_a_later_run_wrote,
           Cut("rules.correct", "overtaken", ";")),
    mutant("pages that are not charged", pages_under_a_rate_are_claimed_one_by_one,
           Cut("rules.may_read_on", "rate", "and (false")),
    mutant("pages that keep a slot", pages_with_few_slots_are_claimed_one_by_one, Cut("rules.may_read_on", "slots")),
    mutant("pages of a paused channel", a_paused_channel_is_not_read_on, Cut("rules.may_read_on", "pause")),
    mutant("pages past an open breaker", an_open_breaker_is_not_read_past, Cut("rules.may_read_on", "breaker", "))")),
    mutant("pages of a paused pass", a_paused_pass_is_not_read_on, Cut("rules.may_read_on", "halt", ")")),
    mutant("pages of a paused queue", a_paused_queue_is_not_read_on, Cut("rules.may_read_on", "queue")),
    mutant("pages before targets", targets_come_before_the_next_page,
           Cut("rules.may_read_on", "order", "and false) s));")),
    mutant("pages that are claimed one by one", a_limit_that_counts_nothing_lets_a_pass_read_on,
           Cut("rules.turn_page", "smooth", "if false then")),
    mutant("events that a crash takes back", a_page_with_an_event_is_on_the_disk,
           Cut("rules.turn_page", "events", "if true then")),
    mutant("a mismatch key with a time", a_page_that_is_recorded_again_is_one_event,
           Cut("rules.record_page", "key",
               "select clock, format('%s:%s:mismatch:%s:%s', x.run_id, x.step_id, pass.no, clock), pass.tenant,")),
]
# fmt: on
