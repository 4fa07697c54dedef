"""One call of a handler for many steps: what the handler receives, and the options that shape its calls."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast import log
from holdfast.durations import Duration, duration
from holdfast.errors import BadDefinition, BadInput, LeaseLost
from holdfast.kernel import calls
from holdfast.models import DEFAULT_LEASE

if TYPE_CHECKING:
    from holdfast.connections.handler_tx import HandlerExecutor
    from holdfast.handlers.context import Ctx
    from holdfast.handlers.transaction import Transaction
    from holdfast.kernel.call import Call

T = TypeVar("T")
MOST = 10_000
LONGEST_KEY = 400
NOW = timedelta(0)


class Batch:
    """The steps of one call, in the order of its items. A batch handler receives it in a parameter annotated `Batch`.

    Each step keeps its own lease, attempt and outcome. A step that was cancelled or has lost its lease is marked in
    `steps`; what the handler returns for it is dropped, and the other steps go on.
    """

    __slots__ = ("_executor", "_open", "steps")

    def __init__(self, steps: tuple[Ctx, ...], executor: HandlerExecutor) -> None:
        self.steps = steps
        self._executor = executor
        self._open: Transaction | None = None

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def kind(self) -> str:
        """The name of the task or step."""
        return self.steps[0].kind

    @property
    def key(self) -> str | None:
        """The value of the field `by`, which all items share; None without one."""
        return self.steps[0].step.batch_key or None

    @property
    def worker(self) -> str:
        """The name of the worker."""
        return self._executor.worker

    @property
    def deadline(self) -> datetime | None:
        """When the call must end, by this machine's clock; None without a timeout."""
        return self.steps[0].deadline

    def time_left(self) -> timedelta | None:
        """The time left until the deadline."""
        return self.steps[0].time_left()

    @property
    def cancelled(self) -> bool:
        """Whether the handler should stop, because no step is left to work on."""
        return all(step.cancelled for step in self.steps)

    @property
    def log(self) -> log.Logger:
        """A logger that adds the kind and the number of steps to each line."""
        return log.get(log.HANDLER).bind(kind=self.kind, steps=len(self.steps))

    def heartbeat(self) -> None:
        """Renew the leases of all steps now, and mark those that are lost; raise LeaseLost if none is left.

        The worker also renews them.
        """
        self._renew([step for step in self.steps if not step.cancelled])
        self._check_any_is_left()

    def hold(self, at_least: Duration) -> None:
        """Check that the steps stay ours for that long, and mark those that are lost; raise LeaseLost if none is left.

        A lease that would run out sooner is renewed. The others are only read, which is much cheaper.
        """
        held = [step for step in self.steps if not step.cancelled]
        call = calls.leases_left([step.step_id for step in held], [step.lease_id for step in held],
                                 duration(at_least, "at_least"))  # fmt: skip
        lasting = set(self._executor.make(call)) if held else set()
        self._renew([step for step in held if step.lease_id not in lasting])
        self._check_any_is_left()

    def _renew(self, held: list[Ctx]) -> None:
        if not held:
            return
        executor = self._executor
        leases, ids = [step.lease_id for step in held], [step.step_id for step in held]
        granted = set(executor.make(calls.renew_leases(executor.worker, leases, lease=executor.lease, step_ids=ids)))
        for step in held:
            if step.lease_id not in granted:
                step.tell_to_stop("its lease is lost")

    def _check_any_is_left(self) -> None:
        if self.cancelled:
            raise LeaseLost(
                f"no step of this call of {self.kind} is held any more", where=self.kind, next="stop working on them"
            )

    def make(self, call: Call[T]) -> list[T]:
        """Make a call to the database, outside the batch's transaction."""
        return self._executor.make(call)

    def transaction(self) -> Transaction:
        """Open a transaction that commits together with the outcomes of all steps, or not at all.

        `with batch.transaction() as tx: tx.execute(…)`, or `async with` in an async handler. It commits after the
        handler has returned its list. If the handler raises, or one step has lost its lease, it is rolled back.
        """
        from holdfast.handlers.transaction import Transaction

        if self._open is None:
            self._open = Transaction(self._executor.connections, "batch.transaction()")
            for step in self.steps:
                step.transaction_open = self._open
        return self._open

    @property
    def transaction_open(self) -> Transaction | None:
        """The transaction, once it was asked for."""
        return self._open


@dataclass(frozen=True, slots=True)
class Batching:
    """How the steps of a kind share calls: up to `most`, with the same value in the field `by`."""

    most: int
    by: str | None = None
    wait: timedelta = NOW

    def key_of(self, written: str) -> str:
        """Return the key of a step, as SQL does: the database may not know this kind yet."""
        return "" if self.by is None else self.key_in(json.loads(written))

    def key_in(self, fields: Any, source: str = "input") -> str:
        """Return the key from an object with the field; `source` is its name in an error."""
        match fields.get(self.by) if isinstance(fields, dict) else None:
            case bool(value):
                key = "true" if value else "false"
            case str(value):
                key = value
            case int(value):
                key = str(value)
            case float(value):
                key = format(Decimal(repr(value)), "f")
            case _:
                raise BadInput(
                    f"the {source} has no {self.by}, which groups its steps into batches",
                    where=self.by,
                    next="pass it as text, a number or a boolean",
                )
        if len(key) > LONGEST_KEY:
            raise BadInput(
                f"batch_key must have at most {LONGEST_KEY} characters, got {len(key)}",
                where=self.by,
                next="group steps by a shorter field",
            )
        return key


def read_batching(
    batch: Any, by: Any, batch_wait: Duration | None, *, lease: timedelta | None = None
) -> Batching | None:
    """Check the options of a batch handler; None without `batch`."""
    if batch is None:
        for option, given in (("by", by), ("batch_wait", batch_wait)):
            if given is not None:
                raise BadDefinition(
                    f"{option} needs a batch, got {option}={given!r} alone",
                    where=option,
                    next=f"add batch=250, or remove {option}",
                )
        return None
    if isinstance(batch, bool) or not isinstance(batch, int) or not 1 <= batch <= MOST:
        raise BadDefinition(f"batch must be 1 to {MOST}, got {batch!r}", where="batch", next="use 250")
    if by is not None and (not isinstance(by, str) or not by):
        raise BadDefinition(f"by must be a field of the item, got {by!r}", where="by", next='use by="product"')
    wait = NOW if batch_wait is None else duration(batch_wait, "batch_wait", error=BadDefinition)
    longest = (lease or DEFAULT_LEASE) / 3
    if not NOW <= wait <= longest:
        raise BadDefinition(
            f"batch_wait must be 0 to a third of the lease ({longest.total_seconds():g} s), got {batch_wait!r}",
            where="batch_wait",
            next='use "200ms", or a longer lease',
        )
    return Batching(batch, by, wait)
