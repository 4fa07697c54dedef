"""Claims as many steps as there is room for, and passes each to the lane of its handler."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from holdfast.connections.handler_tx import MOST, HandlerExecutor
from holdfast.connections.worker import WorkerConnection
from holdfast.failpoints import failpoint
from holdfast.handlers import inputs
from holdfast.handlers.registry import Handler, Registry
from holdfast.kernel import calls
from holdfast.kernel.arrays import Texts
from holdfast.models import DEFAULT_LEASE, ClaimedStep, Retry
from holdfast.worker.attempt import Attempt, Claim, Held, Unit, lease_clock
from holdfast.worker.calls import Calls, count_calls
from holdfast.worker.fetch_ahead import FetchAhead
from holdfast.worker.hooks import WorkerHooks
from holdfast.worker.lanes import Lane, Lanes
from holdfast.worker.options import Options
from holdfast.worker.settler import Settler, released

MOST_STEPS = 10_000  # of one claim
OPEN_PER_SLOT = 2  # calls that wait for more steps; beyond that the oldest begins
MOST_UNSETTLED = 4  # finished batches that may be unsettled; beyond that a claim waits
SURPLUS_AFTER = 1.0  # seconds that a step may wait for a slot before it is released to other workers
HALTS_EACH = 0.3  # seconds between looks whether the run of a step that waits for a slot was paused
SOON = 0.1  # seconds: if a batch finishes earlier, the next may be larger
LATE = 0.3
AT_ONCE = 0.02  # seconds: a batch that finishes earlier is awaited if only its steps' children are left


class BatchSize:
    """How many steps to claim at a time: as many as handlers finish in a moment; the rest is left to other workers.

    Begins with what can run at once. Doubles while batches finish soon, halves when they are late. If handlers are
    quick, one batch is fetched while another runs, so that neither side waits for the other.
    """

    def __init__(self, concurrency: int, largest: int) -> None:
        self._least = min(concurrency, largest)
        self._largest = largest
        self.size = self._least
        self.is_at_once = True  # until a batch proves otherwise

    def room(self, unfinished: int) -> int:
        """Return how many to claim now: what can run at once, or a batch while at most one is waiting."""
        if self.size == self._least:
            return max(0, self.size - unfinished)
        return self.size if unfinished <= self.size else 0

    def batch_ended(self, size: int, took: float) -> None:
        """Adjust the size to how long a batch took."""
        self.is_at_once = took <= AT_ONCE
        if took <= SOON and size >= self.size // 2:
            self.size = min(self._largest, self.size * 2)
        elif took >= LATE:
            self.size = max(self._least, self.size // 2)

    def overfull(self) -> None:
        """Start again with what can run at once, because further steps had to be released."""
        self.size = self._least


class Claimer:
    """Claims for one worker."""

    def __init__(
        self, dsn: str, registry: Registry, options: Options, held: Held, settler: Settler, *, hooks: WorkerHooks
    ) -> None:
        self.lanes = Lanes(registry, options.concurrency, settler.ended, dsn)
        self._executor = HandlerExecutor(
            dsn, options.identity, options.lease, options.call_deadline, most=max(MOST, options.concurrency)
        )
        self._options = options
        self._held = held
        self._settler = settler
        self._hooks = hooks
        self._batch_size = BatchSize(self.lanes.capacity, options.largest_batch)
        self._handlers = {h.kind: h for h in registry}
        self._versions = {kind: registry.versions(kind) for kind in registry.kinds()}
        served = [h for versions in self._versions.values() for h in versions]
        # By identity, because hashing a handler is slow.
        self._served = {id(h): (self._lease(h), self.lanes.of(h)) for h in served}
        self._ahead = {queue: FetchAhead() for queue in options.queues}
        self._unreleasable_queues = {h.queue for h in served if not h.is_releasable}
        self._is_completed = any(h.completes is not None for h in registry)
        self._largest_call = max((h.batching.most for h in served if h.batching is not None), default=None)
        waits = not options.burst and options.most_steps is None
        most_open = OPEN_PER_SLOT * self.lanes.capacity
        self._calls = Calls(self._executor, self._dispatch, self._release, waits=waits, most_open=most_open)
        self._kinds = Texts(registry.kinds())
        self._most_left = options.most_steps
        self._halts_at = 0.0  # when it last looked for steps whose run may be paused or stopped
        self.lacks_slots = False  # the last claim left out a queue from which nothing may be fetched ahead
        self.awaits_children = False  # nothing else is due, and the last claim's steps will soon free their children

    @property
    def unfinished(self) -> int:
        """Return how many calls are claimed and unfinished, without those that wait for more steps."""
        return len(self._held) - self._settler.waiting - self._calls.surplus()

    @property
    def is_backed_up(self) -> bool:
        """Return whether steps wait for a slot, or for others of their call; they may soon have to be released."""
        return self.lanes.waiting > 0 or self._calls.may_be_halted

    @property
    def is_through(self) -> bool:
        """Return whether it has claimed all that it may."""
        return self._most_left == 0

    def room(self) -> int:
        """Return how many steps to claim now."""
        room = self._room()
        return room if self._most_left is None else min(room, self._most_left)

    def _room(self) -> int:
        if self._settler.waiting > MOST_UNSETTLED * self._options.largest_batch:
            return 0
        room = self._batch_size.room(self.unfinished)
        return max(ahead.most(room, self._free) for ahead in self._ahead.values())

    @property
    def _free(self) -> int:
        return max(0, self.lanes.capacity - self.unfinished)

    async def claim(self, connection: WorkerConnection) -> Counter[str]:
        """Claim from one queue after the other until there is no room, and count the steps by kind."""
        counts: Counter[str] = Counter()
        in_runs = self.lacks_slots = False
        claimed = 0
        room = self.room()
        for queue in self._options.queues:
            sent_at = lease_clock()
            free = self._free  # without the steps of the queues before
            left = self._ahead[queue].most(room - claimed, free)
            if queue in self._unreleasable_queues:
                left = 0 if self._is_pushed_back(queue) else min(left, free)
            if left == 0:
                self.lacks_slots = True
                continue
            steps = await connection.make(
                calls.claim_steps(
                    self._options.identity,
                    queue,
                    self._kinds,
                    batch=left if self._largest_call is None else self._most_steps(left),
                    calls=None if self._largest_call is None else left,
                    lease=self._options.lease,
                    tenants=self._options.tenants,
                    free=free,
                    keeps_json=True,
                )
            )
            self._ahead[queue].claimed(left, free, len(steps))
            if steps:
                in_runs = in_runs or any(step.run_id is not None for step in steps)
                counts.update([step.kind for step in steps])
                self._hooks.claimed(steps)
                failpoint("before_hand_out")
                self._hand_out(await self._taken(steps, sent_at, connection))
                failpoint("after_hand_out")
                claimed += count_calls(steps)
            if claimed >= room:
                break
        if self._most_left is not None:
            self._most_left -= counts.total()
        self.awaits_children = in_runs and claimed < room and self._batch_size.is_at_once
        return counts

    def _is_pushed_back(self, queue: str) -> bool:
        """Return whether a call of the queue ended by closing a limit, which the database does not know yet."""
        return self._settler.waiting > 0 and any(
            isinstance(attempt.outcome, Retry) and attempt.outcome.pause is not None and attempt.handler.queue == queue
            for attempt in list(self._held.values())
        )

    def ended(self, attempts: list[Attempt]) -> None:
        """Adjust the batch size to the settled attempts."""
        for attempt in attempts:
            claim = attempt.claim
            if (call := attempt.call) is not None:
                attempt.call = attempt.interrupt = None  # no cycle: what is settled is freed at once
                call.unsettled -= 1
                if call.unsettled:
                    continue
                claim = call.claim
            claim.left -= 1
            if claim.left == 0:
                self._batch_size.batch_ended(claim.size, lease_clock() - claim.claimed_at)

    def withdraw(self) -> list[Unit]:
        """Take back all calls that were not begun, for a stop."""
        return [*self._calls.withdraw(), *self.lanes.withdraw()]

    def give_back_surplus(self) -> None:
        """Release steps that wait behind long handlers, because another worker may have a free slot."""
        surplus = self.lanes.withdraw(claimed_before=lease_clock() - SURPLUS_AFTER)
        if surplus:
            self._batch_size.overfull()
            self._release(surplus)

    def _release(self, units: Sequence[Unit]) -> None:
        for attempt in released(units):
            self._settler.ended(attempt)

    async def give_back(self, connection: WorkerConnection) -> None:
        """Release steps that wait too long, or whose run was paused or stopped since they were claimed."""
        self.give_back_surplus()
        now = lease_clock()
        if now - self._halts_at < HALTS_EACH or (self.unfinished == 0 and not self._calls.may_be_halted):
            return
        self._halts_at = now
        waiting = {
            attempt.step.run_id
            for attempt in list(self._held.values())
            if attempt.step.run_id is not None
            and attempt.began_at is None
            and attempt.outcome is None
            and now - attempt.claim.claimed_at >= HALTS_EACH
        }
        if not waiting:
            return
        if halted := set(await connection.make(calls.halted_runs(list(waiting)))):
            self._release([*self._calls.withdraw_runs(halted), *self.lanes.withdraw_runs(halted)])

    def close(self) -> None:
        """Close the lanes and the handlers' connections."""
        self._calls.close()
        self.lanes.close()
        self._executor.close()

    async def _taken(self, steps: list[ClaimedStep], sent_at: float, connection: WorkerConnection) -> list[Attempt]:
        """Create an attempt per step, with the extra input that its handler asks for."""
        batch = Claim(len(steps), sent_at, self._hooks.begun if self._hooks.is_watched else None)
        queries = []
        if self._is_completed:
            queries = inputs.queries(steps, self._versions.__getitem__, is_traced=batch.is_traced)
        if not queries:
            return [self._attempt(step, self._handlers[step.kind], batch) for step in steps]
        try:
            answers = {row.step_id: row for query in queries for row in await connection.make(query)}
        except BaseException:
            for attempt in released([self._attempt(step, self._handlers[step.kind], batch) for step in steps]):
                self._settler.ended(attempt)
            raise
        attempts = []
        for step in steps:
            handler = self._handlers[step.kind]
            if (answer := answers.get(step.step_id)) is not None:
                step, handler = inputs.complete(step, answer, self._versions[step.kind])  # noqa: PLW2901
            attempts.append(self._attempt(step, handler, batch))
        return attempts

    def _attempt(self, step: ClaimedStep, handler: Handler, claim: Claim) -> Attempt:
        lease, _ = self._served[id(handler)]
        if handler.constants is not None:
            step = inputs.with_constants(step, handler.constants)
        attempt = self._held[step.lease_id] = Attempt(step, handler, self._executor, lease, claim)
        return attempt

    def _hand_out(self, attempts: list[Attempt]) -> None:
        if self._largest_call is None:
            self._dispatch(attempts)
            return
        alone = [attempt for attempt in attempts if attempt.handler.batching is None]
        if attempts:
            attempts[0].claim.size = attempts[0].claim.left = len(alone)
        self._dispatch(alone)
        self._calls.add([attempt for attempt in attempts if attempt.handler.batching is not None])

    def _dispatch(self, units: Sequence[Unit]) -> None:
        by_lane: defaultdict[Lane, list[Unit]] = defaultdict(list)
        for unit in units:
            _, lane = self._served[id(unit.handler)]
            by_lane[lane].append(unit)
        for lane, waiting in by_lane.items():
            lane.add(waiting)

    def _most_steps(self, room: int) -> int:
        # More calls than can run at once are fetched only if they are small: as many steps as those might have.
        most = min(MOST_STEPS, min(room, self.lanes.capacity) * (self._largest_call or 1))
        return most if self._most_left is None else min(most, self._most_left)

    def _lease(self, handler: Handler) -> float:
        return (self._options.lease or handler.lease or DEFAULT_LEASE).total_seconds()
