"""Takes steps in: as many as there is room for, each to the lane of its handler."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

from holdfast.connections.worker import Link
from holdfast.failpoints import failpoint
from holdfast.handlers import inputs
from holdfast.handlers.registry import Handler, Registry
from holdfast.kernel import calls
from holdfast.kernel.arrays import Texts
from holdfast.models import DEFAULT_LEASE, ClaimedStep
from holdfast.worker.attempt import Attempt, Batch, Held, lease_clock
from holdfast.worker.batch_size import Pace
from holdfast.worker.desk import PoolDesk
from holdfast.worker.lanes import Lane
from holdfast.worker.options import Options
from holdfast.worker.places import Lanes
from holdfast.worker.settler import Settler, released

MOST_UNSETTLED = 4  # batches that may be through and not settled: beyond that a claim waits
SURPLUS_AFTER = 1.0  # seconds that a step may wait for a slot before it is given back to others


class Intake:
    """Claims for one worker."""

    def __init__(self, dsn: str, registry: Registry, options: Options, held: Held, settler: Settler) -> None:
        self.lanes = Lanes(registry, options.concurrency, settler.ended, dsn)
        self._desk = PoolDesk(dsn, options.identity, options.lease, options.call_deadline)
        self._options = options
        self._held = held
        self._settler = settler
        self._pace = Pace(self.lanes.capacity, options.largest_batch)
        self._handlers = {h.kind: h for h in registry}
        self._versions = {kind: registry.versions(kind) for kind in registry.kinds()}
        served = [h for versions in self._versions.values() for h in versions]
        self._places = {id(h): (self._lease(h), self.lanes.of(h)) for h in served}  # by identity: hashing one is slow
        self._is_completed = any(h.completes is not None for h in registry)
        self._kinds = Texts(registry.kinds())
        self.claimed: Callable[[list[ClaimedStep]], None] | None = None
        self.begun: Callable[[ClaimedStep], None] | None = None
        self.awaits_children = False  # nothing else is due, and what the last claim brought will soon free more

    def face_of(self, kind: str) -> str:
        """Name the face whose handler serves a kind."""
        return self._handlers[kind].face

    @property
    def unfinished(self) -> int:
        """How many steps are claimed and not through."""
        return len(self._held) - self._settler.waiting

    @property
    def is_backed_up(self) -> bool:
        """Whether some of them wait for a slot: soon they may have to be given back."""
        return self.unfinished > self.lanes.capacity

    def room(self) -> int:
        """How many steps to claim now."""
        if self._settler.waiting > MOST_UNSETTLED * self._options.largest_batch:
            return 0
        return self._pace.room(self.unfinished)

    async def claim(self, link: Link) -> Counter[str]:
        """Claim from one queue after the other until there is no room, and tell how many of which kind."""
        found: Counter[str] = Counter()
        in_runs = False
        room = self.room()
        for queue in self._options.queues:
            sent_at = lease_clock()
            steps = await link.make(
                calls.claim_steps(
                    self._options.identity,
                    queue,
                    self._kinds,
                    batch=room - found.total(),
                    lease=self._options.lease,
                    tenants=self._options.tenants,
                    keeps_json=True,
                )
            )
            if steps:
                in_runs = in_runs or any(step.run_id is not None for step in steps)
                found.update([step.kind for step in steps])
                if self.claimed is not None:
                    self.claimed(steps)
                failpoint("before_hand_out")
                self._hand_out(await self._taken(steps, sent_at, link))
                failpoint("after_hand_out")
            if found.total() >= room:
                break
        self.awaits_children = in_runs and found.total() < room and self._pace.is_at_once
        return found

    def ended(self, attempts: list[Attempt]) -> None:
        """Learn from attempts that are settled how many to take at a time."""
        for one in attempts:
            batch = one.batch
            batch.left -= 1
            if batch.left == 0:
                self._pace.batch_ended(batch.size, lease_clock() - batch.claimed_at)

    def give_back_surplus(self) -> None:
        """Hand back what waits for a slot behind long handlers: another worker may have one."""
        surplus = self.lanes.withdraw(claimed_before=lease_clock() - SURPLUS_AFTER)
        if surplus:
            self._pace.overfull()
            for one in released(surplus):
                self._settler.ended(one)

    def close(self) -> None:
        """Let the lanes end, and what handlers used."""
        self.lanes.close()
        self._desk.close()

    async def _taken(self, steps: list[ClaimedStep], sent_at: float, link: Link) -> list[Attempt]:
        """Begin an attempt for each step, its input completed where its handler wants more than that."""
        batch = Batch(len(steps), sent_at, self.begun)
        asked = []
        if self._is_completed:
            asked = inputs.questions(steps, self._versions.__getitem__, is_traced=batch.is_traced)
        if not asked:
            return [self._attempt(step, self._handlers[step.kind], batch) for step in steps]
        try:
            answers = {row.step_id: row for question in asked for row in await link.make(question)}
        except BaseException:
            for one in released([self._attempt(step, self._handlers[step.kind], batch) for step in steps]):
                self._settler.ended(one)
            raise
        attempts = []
        for step in steps:
            handler = self._handlers[step.kind]
            if (answer := answers.get(step.step_id)) is not None:
                step, handler = inputs.complete(step, answer, self._versions[step.kind])  # noqa: PLW2901
            attempts.append(self._attempt(step, handler, batch))
        return attempts

    def _attempt(self, step: ClaimedStep, handler: Handler, batch: Batch) -> Attempt:
        lease, _ = self._places[id(handler)]
        if handler.constants is not None:
            step = inputs.with_constants(step, handler.constants)
        one = self._held[step.lease_id] = Attempt(step, handler, self._desk, lease, batch)
        return one

    def _hand_out(self, attempts: list[Attempt]) -> None:
        by_lane: defaultdict[Lane, list[Attempt]] = defaultdict(list)
        for one in attempts:
            _, lane = self._places[id(one.handler)]
            by_lane[lane].append(one)
        for lane, taken in by_lane.items():
            lane.add(taken)

    def _lease(self, handler: Handler) -> float:
        return (self._options.lease or handler.lease or DEFAULT_LEASE).total_seconds()
