"""Random work of batch handlers on the real SQL, held against a model that knows only keys, calls and outcomes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from hypothesis import note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from holdfast.kernel import calls, limit_calls
from holdfast.kernel.db import run
from holdfast.models import ClaimedStep, Done, Fail, Outcome, Release, Retry, Settlement, Snooze
from properties.database import Database

LEASE = timedelta(seconds=30)
SIZES = {"by": 3, "any": 4, "one": 1}  # kinds: with a field, without one, without a batch
KEYS = "xyz"
EVENTS = {Done: "succeeded", Fail: "failed", Retry: "retried", Snooze: "snoozed", Release: "released"}
places = st.integers(0, 10**6)


@dataclass
class Step:
    id: int
    group: tuple[str, str, str]  # kind, tenant, key
    due: datetime
    held: ClaimedStep | None = None
    is_alone: bool = False
    is_over: bool = False

    def may_share(self) -> bool:
        return SIZES[self.group[0]] > 1 and not self.is_alone


class Batches(RuleBasedStateMachine):
    def __init__(self, database: Database) -> None:
        super().__init__()
        self.database = database
        self.db = database.person
        self.now = database.wipe()
        self.steps: dict[int, Step] = {}
        self.lost: list[ClaimedStep] = []  # under leases that are over
        self.told: dict[int, list[str]] = defaultdict(list)
        self.most_held: int | None = None  # of the kind `any`, by a limit
        run(self.db, calls.define_policy("often", tries=1000, base=timedelta(0), jitter=0))
        run(self.db, calls.define_kind("by", policy="often", batch=SIZES["by"], batch_by="key"))
        run(self.db, calls.define_kind("any", policy="often", batch=SIZES["any"]))
        run(self.db, calls.define_kind("one", policy="often", batch=1))

    @invariant()
    def the_database_is_sound(self) -> None:
        assert {v for v in self.database.violations() if v[0] != "lease_was_rescued"} == set()

    @rule(kind=st.sampled_from([*SIZES]), tenant=st.sampled_from("tu"), keys=st.text(KEYS, min_size=1, max_size=5))
    def start(self, kind: str, tenant: str, keys: str) -> None:
        for key in keys:
            (step_id,) = run(self.db, calls.start_task(kind, {"key": key}, tenant=tenant))
            self.steps[step_id] = Step(step_id, (kind, tenant, key if kind == "by" else ""), self.now)

    @rule(concurrency=st.integers(1, 6))
    def limit(self, concurrency: int) -> None:
        """From here on calls of a kind are also formed under a limit."""
        run(self.db, limit_calls.define_limit("kind:any", concurrency=concurrency, tenant="*"))
        self.most_held = concurrency

    @rule(batch=st.integers(1, 8), most=st.none() | st.integers(1, 3))
    def claim(self, batch: int, most: int | None) -> None:
        due = [step for step in self.steps.values() if not step.held and not step.is_over and step.due <= self.now]
        counts: defaultdict[tuple[str, str, str], int] = defaultdict(int)
        for step in due:
            counts[step.group] += step.may_share()

        taken = run(self.db, calls.claim_steps("a", batch=batch, lease=LEASE, calls=most))

        note(f"claimed {[(step.step_id, step.call) for step in taken]}")
        assert len(taken) <= batch
        held = sum(step.held is not None for step in self.steps.values() if step.group[0] == "any")
        if self.most_held is None or held == 0:  # else a call may wait until all of it fits
            assert taken or not due, "something due was not taken"
        else:
            assert taken or not [step for step in due if step.group[0] != "any"], "something due was not taken"
        numbered: defaultdict[int, list[Step]] = defaultdict(list)
        for claimed in taken:
            step = self.steps[claimed.step_id]
            assert step in due
            numbered[-claimed.step_id if claimed.call is None else claimed.call].append(step)
            step.held = claimed
        assert most is None or len(numbered) <= most
        held = sum(step.held is not None for step in self.steps.values() if step.group[0] == "any")
        gone = [claimed for claimed in taken if claimed.kind == "any"]
        assert self.most_held is None or not gone or held <= self.most_held
        for together in numbered.values():
            group = together[0].group
            assert {step.group for step in together} == {group}
            assert len(together) <= SIZES[group[0]]
            if any(not step.may_share() for step in together):
                assert len(together) == 1
            elif counts[group] <= min(SIZES[group[0]], batch, self._limit_of(group[0])):
                assert len(together) == counts[group], "a key that fits a call was split"

    def _limit_of(self, kind: str) -> int:
        return self.most_held if kind == "any" and self.most_held is not None else 10**6

    @rule(place=places, outcomes=st.lists(st.sampled_from("dfrsx"), min_size=1, max_size=6), alone=st.booleans())
    @precondition(lambda self: any(step.held for step in self.steps.values()))
    def settle(self, place: int, outcomes: str, alone: bool) -> None:
        """Settle several at once, with a result that tells whose it is, and some under leases that are lost."""
        held = [step for step in self.steps.values() if step.held]
        chosen = {held[(place + n) % len(held)].id: each for n, each in enumerate(outcomes)}
        made = {
            "d": lambda step: Done({"of": step.id}), "f": lambda _: Fail({"type": "E"}), "s": lambda _: Snooze(0),
            "r": lambda _: Retry({"type": "E"}, timedelta(0)), "x": lambda _: Release(),
        }  # fmt: skip
        stale = [Settlement(old.step_id, old.lease_id, Done({"of": "nobody"})) for old in self.lost[-3:]]
        settlements: list[Settlement] = []
        for step_id, each in chosen.items():
            step = self.steps[step_id]
            assert step.held is not None
            outcome: Outcome = made[each](step)
            is_late = alone and isinstance(outcome, Retry)
            settlements.append(Settlement(step_id, step.held.lease_id, outcome, is_late))
            self._moved(step, EVENTS[type(outcome)], is_alone=is_late)

        settled = run(self.db, calls.settle_steps([*stale, *settlements]))

        assert {(row.step_id, row.event) for row in settled} == {
            (one.step_id, EVENTS[type(one.outcome)]) for one in settlements
        }

    @rule()
    @precondition(lambda self: any(step.held for step in self.steps.values()))
    def kill(self) -> None:
        """The worker falls silent, and each of its steps runs alone from then on."""
        self.now += LEASE + timedelta(seconds=1)
        self.database.set_clock(self.now)
        run(self.db, calls.rescue_steps(batch=None))
        for step in self.steps.values():
            if step.held:
                self._moved(step, "expired", is_alone=SIZES[step.group[0]] > 1)

    @rule(place=places)
    @precondition(lambda self: any(not step.is_over for step in self.steps.values()))
    def cancel(self, place: int) -> None:
        open_steps = [step for step in self.steps.values() if not step.is_over]
        step = open_steps[place % len(open_steps)]
        run(self.db, calls.cancel(str(step.id)))
        self._moved(step, "cancelled")

    def _moved(self, step: Step, event: str, *, is_alone: bool = False) -> None:
        if step.held:
            self.lost.append(step.held)
        step.held = None
        step.due = self.now
        step.is_alone = step.is_alone or (is_alone and SIZES[step.group[0]] > 1)
        step.is_over = event in {"succeeded", "failed", "cancelled"}
        self.told[step.id].append(event)

    def teardown(self) -> None:
        """At rest nothing that could run waits, and each outcome was recorded once and for its own step."""
        for _ in range(200):
            held = [step for step in self.steps.values() if step.held]
            if held:
                settlements = [Settlement(s.id, s.held.lease_id, Done({"of": s.id})) for s in held if s.held]
                run(self.db, calls.settle_steps(settlements))
                for step in held:
                    self._moved(step, "succeeded")
            taken = run(self.db, calls.claim_steps("a", batch=100, lease=LEASE))
            if not taken:
                break
            for claimed in taken:
                self.steps[claimed.step_id].held = claimed
        rows = self.db.execute("select id, state, result from holdfast.steps").fetchall()
        assert {step_id for step_id, *_ in rows} == self.steps.keys()
        for step_id, _, result in rows:
            assert result in (None, {"of": step_id})
            events = self.db.execute(
                "select event from holdfast.journal where step_id = %s and event <> 'claimed' order by id", [step_id]
            ).fetchall()
            assert [event for (event,) in events] == self.told[step_id]


@pytest.mark.one_server
@pytest.mark.timeout(600)
def test_calls_keep_their_promises(dsn: str) -> None:
    """R11, R24: whatever is started, claimed, settled, lost and cancelled."""
    database = Database(dsn)

    def machine() -> Batches:
        return Batches(database)

    try:
        run_state_machine_as_test(  # type: ignore[no-untyped-call]
            machine, settings=settings(max_examples=20, stateful_step_count=25, deadline=None)
        )
    finally:
        database.close()
