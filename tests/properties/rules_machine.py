"""The machine of test_rules.py: it previews, applies, edits, kills, pauses, stops and retries, and follows a model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import ClaimedStep, Done, Fail, Outcome, Retry, Settlement
from properties.database import Database
from properties.rules_model import LEASE, Run, Shop, Target
from rules.plans import called, define, preview, refused, row

TARGET = "rules:shop"  # the kind of a channel's targets; passes share its queue
ITEMS = [f"SKU-{number}" for number in range(1, 7)]
BATCH = 3  # targets of a call
RUNS = "select id, status from rules.rule_runs"
TARGETS = "select id, status, included from rules.rule_targets"
LEDGER = "select target_id, effect from rules.price_changes"
FATES = ("settled", "settled", "settled", "lost", "timeout", "timeout after", "409")
places = st.integers(0, 10**6)
some_items = st.sets(st.sampled_from(ITEMS), min_size=1)
Write = Callable[[Shop, Target], Outcome]
Lease = Callable[[ClaimedStep, Sequence[ClaimedStep]], int]


def own_lease(step: ClaimedStep, call: Sequence[ClaimedStep]) -> int:
    """Settle each target under its own lease, as every worker must."""
    return step.lease_id


def compare_and_set(shop: Shop, target: Target) -> Outcome:
    """Write a price as every worker must: only over `before`, and not again where `after` is found."""
    shown = shop.prices.get(target.item)
    if shown == target.before:
        shop.set(target.item, target.after, target.id)
        return Done({"effect": "written"})
    if shown == target.after:
        return Done({"effect": "found"})
    reason = "not_found" if shown is None else "stale"
    return Fail({"message": reason, "reason": reason, "class": "VALIDATION", "found": {"unit_amount": shown}})


class Rules(RuleBasedStateMachine):
    def __init__(self, database: Database, write: Write = compare_and_set, lease: Lease = own_lease) -> None:
        super().__init__()
        self.database = database
        self.db = database.person
        self.write = write
        self.lease = lease
        self.now: datetime = database.wipe()
        define(self.db)
        run(self.db, calls.define_kind("rules:shop", batch=BATCH))
        self.shop = Shop({item: 1000 + place for place, item in enumerate(ITEMS)})
        self.runs: dict[UUID, Run] = {}
        self.targets: dict[int, Target] = {}
        self.calls: list[list[ClaimedStep]] = []  # that a worker holds
        self.late: list[ClaimedStep] = []  # under leases that ran out

    @invariant()
    def database_is_as_the_model_says(self) -> None:
        assert dict(self.db.execute(RUNS).fetchall()) == {run_id: each.state for run_id, each in self.runs.items()}
        told = {target: (state, is_in) for target, state, is_in in self.db.execute(TARGETS)}
        assert told == {each.id: (each.state, each.is_included) for each in self.targets.values()}
        ledger = dict(self.db.execute(LEDGER).fetchall())
        assert set(ledger) == {each.id for each in self.targets.values() if each.state in ("APPLIED", "ROLLED_BACK")}

    @invariant()
    def each_target_wrote_at_most_once_and_over_nothing_foreign(self) -> None:
        writers = [target for _, _, target in self.shop.log if target is not None]
        assert len(writers) == len(set(writers))
        shown = {}
        for item, price, target in self.shop.log:
            if target is not None:
                assert shown.get(item, self.targets[target].before) == self.targets[target].before
            shown[item] = price

    @invariant()
    def nothing_is_broken(self) -> None:
        assert {v for v in self.database.violations() if v[0] != "lease_was_rescued"} == set()

    def teardown(self) -> None:
        """Let workers finish what is left: then no open run may be left that nobody halted."""
        for _ in range(40):
            if not any(target.is_live for target in self.targets.values()):
                break
            self._claim(100)
            while self.calls:
                self._settle_call([*self.calls.pop()])
            self._wait(10)
        stuck = [each for each in self.runs.values() if each.is_open and each.halt is None]
        assert stuck == []
        self.database_is_as_the_model_says()
        self.nothing_is_broken()

    @rule(items=some_items)
    @precondition(lambda self: len(self.runs) < 6)
    def preview(self, items: set[str]) -> None:
        chosen = [item for item in sorted(items) if item in self.shop.prices]
        planned = [(item, self.shop.prices[item], self.shop.fresh()) for item in chosen]
        answer = preview(self.db, [row(item, before, after) for item, before, after in planned])
        rows = self.db.execute(
            "select id, item_id from rules.rule_targets where rule_run_id = %s", [answer["run_id"]]
        ).fetchall()
        by_item = {item: number for number, item in rows}
        each = Run([Target(by_item[item], item, before, after) for item, before, after in planned])
        self.runs[answer["run_id"]] = each
        self.targets |= {target.id: target for target in each.targets}

    @rule(place=places, only=st.none() | some_items, first=st.none() | st.integers(1, 3), leaves=st.booleans())
    @precondition(lambda self: self._in("PREVIEW"))
    def apply(self, place: int, only: set[str] | None, first: int | None, leaves: bool) -> None:
        run_id, each = self._pick(place, "PREVIEW")
        chosen = None if only is None else [t.id for t in each.targets if t.item in only]
        wanted = [t for t in each.targets if chosen is None or t.id in chosen]
        taken = set().union(*(other.items for other in self.runs.values() if other.is_open))
        statement = "select rules.apply(%s, only_ids => %s, first => %s, leave_out_shared => %s)"
        code = refused(self.db, statement, [run_id, chosen, first, leaves])
        if not leaves and taken & {t.item for t in wanted}:
            assert code == "RN010"
            return
        assert code is None
        for target in each.targets:
            target.is_included = target in wanted and not (leaves and target.item in taken)
        each.state = "QUEUED"
        admitted = sorted(each.included, key=lambda t: t.id)[: first or None]
        for target in admitted:
            target.queue(self.now)
        each.halt = "first" if each.waiting else None
        each.close()

    @rule(place=places)
    @precondition(lambda self: self.runs)
    def apply_again(self, place: int) -> None:
        run_id, each = [*self.runs.items()][place % len(self.runs)]
        if each.state != "PREVIEW":
            assert [answer["is_new"] for answer in called(self.db, "apply", run_id=run_id)] == [False]

    @rule(item=st.sampled_from(ITEMS), gone=st.booleans())
    def edit(self, item: str, gone: bool) -> None:
        if gone:
            self.shop.prices.pop(item, None)
            self.shop.log.append((item, -1, None))
        else:
            self.shop.edit(item)

    @rule(batch=st.integers(1, 6))
    def claim(self, batch: int) -> None:
        self._claim(batch)

    @rule(place=places, fate=st.sampled_from(FATES))
    @precondition(lambda self: self.calls)
    def call(self, place: int, fate: str) -> None:
        """Call the shop: its answer arrives, it refuses one item, the answer is lost, or the worker dies after it."""
        steps = self.calls.pop(place % len(self.calls))
        match fate:
            case "settled":
                self._settle_call(steps)
            case "409":
                refusal = Fail({"message": "refused", "class": "VALIDATION"})
                self._settle_call(steps, {steps[place % len(steps)].step_id: refusal})
            case "timeout":
                self._settle_call(steps, {step.step_id: Retry({"class": "TIMEOUT"}) for step in steps})
            case _:
                wrote = {step.step_id: self.write(self.shop, self.targets[step.step_id]) for step in steps}
                if fate == "lost":
                    self.late += steps
                else:
                    late = {target: Retry({"class": "TIMEOUT"}) for target, o in wrote.items() if isinstance(o, Done)}
                    self._settle_call(steps, {**wrote, **late})

    @rule(place=places)
    @precondition(lambda self: any(step.step_id in self.targets for step in self.late))
    def settle_late(self, place: int) -> None:
        """A worker that was frozen reports what it did, after its leases ran out: nothing of it is accepted."""
        step = self.late[place % len(self.late)]
        if self.targets[step.step_id].lease_id != step.lease_id:
            outcome = Done({"effect": "written"})
            assert run(self.db, calls.settle_steps([Settlement(step.step_id, step.lease_id, outcome)])) == []

    @rule(span=st.sampled_from((1, 3, 10, 31)))
    def wait(self, span: int) -> None:
        self._wait(span)

    @rule(place=places, action=st.sampled_from(("pause", "resume", "stop")))
    @precondition(lambda self: any(each.is_open for each in self.runs.values()))
    def halt(self, place: int, action: str) -> None:
        run_id, each = self._pick(place, "QUEUED", "APPLYING")
        code = refused(self.db, f"select holdfast.{action}_run(%s)", [str(run_id)])
        if each.halt == "stopped":
            assert code == (None if action == "stop" else "RN010")
            return
        assert code is None
        if action == "pause":
            each.halt = "paused"
        elif action == "resume":
            for target in each.waiting:
                target.queue(self.now)
            each.halt = None
        else:
            each.stop()
            if each.state == "QUEUED" or not any(target.is_live for target in each.targets):
                each.close()

    @rule(place=places, everything=st.booleans())
    @precondition(lambda self: self._in("PARTIAL", "FAILED"))
    def retry(self, place: int, everything: bool) -> None:
        run_id, each = self._pick(place, "PARTIAL", "FAILED")
        function = "retry_all" if everything else "retry_failed"
        chosen = [t for t in each.included if t.state == "FAILED" and t.reason != "stale"]
        if everything:
            chosen += [t for t in each.included if t.state in ("PREVIEW", "QUEUED")]
        taken = set().union(*(other.items for other in self.runs.values() if other.is_open))
        code = refused(self.db, f"select * from rules.{function}(%s)", [run_id])
        if chosen and taken & each.items:
            assert code == "RN010"
            return
        assert code is None
        if chosen:
            each.state, each.halt = "APPLYING", None
            for target in chosen:
                target.reopen(self.now) if target.state == "FAILED" else target.queue(self.now)

    def _claim(self, batch: int) -> None:
        due = {t.id for t in self._due()}
        steps = run(self.db, calls.claim_steps("w", "rules:shop", [TARGET], batch=batch, lease=LEASE))
        assert {step.step_id for step in steps} <= due
        assert len(steps) <= batch
        assert steps or not due, "something due was not taken"
        numbered: defaultdict[int | None, list[ClaimedStep]] = defaultdict(list)
        for step in steps:
            target = self.targets[step.step_id]
            assert bool(step.is_alone) == target.is_alone
            target.claim(self.now, step.lease_id)
            self._run_of(step.step_id).state = "APPLYING"
            numbered[step.call].append(step)
        self._are_whole([*numbered.values()], due, batch)
        self.calls += numbered.values()

    def _are_whole(self, made: list[list[ClaimedStep]], due: set[int], batch: int) -> None:
        """Check that no call was split: one that is not full has the last of what may share it."""
        assert all(len(call) == 1 for call in made if call[0].is_alone)
        taken = {step.step_id for call in made for step in call}
        left = {target for target in due - taken if not self.targets[target].is_alone}
        is_cut = bool(left) and batch >= BATCH and all(each.halt is None for each in self.runs.values())
        sizes = [len(call) for call in made if not call[0].is_alone]
        assert all(size == BATCH if is_cut else size <= BATCH for size in sizes)

    def _due(self) -> list[Target]:
        return [
            target
            for each in self.runs.values()
            if each.halt in (None, "first") and each.is_open
            for target in each.targets
            if target.state == "QUEUED" and target.due_at is not None and target.due_at <= self.now
        ]

    def _settle_call(self, steps: list[ClaimedStep], known: dict[int, Outcome] | None = None) -> None:
        """Settle all targets of a call at once, each by what became of it."""
        outcomes: dict[int, Outcome] = {}
        for step in steps:
            known_outcome = (known or {}).get(step.step_id)
            outcomes[step.step_id] = known_outcome or self.write(self.shop, self.targets[step.step_id])
        settlements = [Settlement(s.step_id, self.lease(s, steps), outcomes[s.step_id]) for s in steps]
        settled = {row.step_id: row.state for row in run(self.db, calls.settle_steps(settlements))}
        for target_id, outcome in outcomes.items():
            self._settled(self.targets[target_id], outcome)
        assert settled == {target_id: self.targets[target_id].state for target_id in outcomes}
        for target_id in outcomes:
            self._run_of(target_id).close()

    def _settled(self, target: Target, outcome: Outcome) -> None:
        match outcome:
            case Done():
                target.succeed()
            case Fail(error):
                target.fail(error.get("reason"))
                assert target.reason != "stale" or self.shop.prices.get(target.item) != target.after
            case _:
                target.retry(self._due_at(target.id))

    def _wait(self, span: int) -> None:
        self.now += timedelta(seconds=span)
        self.database.set_clock(self.now)
        expired = [t for t in self.targets.values() if t.lease_until is not None and t.lease_until < self.now]
        run(self.db, calls.rescue_steps(batch=100))
        for call in self.calls:
            self.late += [step for step in call if self.targets[step.step_id] in expired]
        self.calls = [call for call in self.calls if not any(step in self.late for step in call)]
        for target in expired:
            target.is_alone = True
            target.retry(self._due_at(target.id))
            self._run_of(target.id).close()

    def _due_at(self, target_id: int) -> datetime:
        """Read when the kernel retries it: the jitter is its own."""
        query = "select coalesce(due_at, parked_due_at, holdfast.clock()) from holdfast.steps where id = %s"
        ((due_at,),) = self.db.execute(query, [target_id]).fetchall()
        moment: datetime = due_at
        return moment

    def _run_of(self, target_id: int) -> Run:
        return next(each for each in self.runs.values() if any(t.id == target_id for t in each.targets))

    def _in(self, *states: str) -> list[tuple[UUID, Run]]:
        return [(run_id, each) for run_id, each in self.runs.items() if each.state in states]

    def _pick(self, place: int, *states: str) -> tuple[UUID, Run]:
        runs = self._in(*states)
        return runs[place % len(runs)]
