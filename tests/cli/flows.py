"""Flows and tasks that the command line's tests look at."""

from __future__ import annotations

from cli.rows import FAULT
from holdfast.flow import calls
from holdfast.kernel.calls import add_awaited
from holdfast.kernel.db import run
from holdfast.models import Continue, Done, Fail
from kernel.steps import claim, claim_one, node, settle

STEPS = (
    node("reserve", kind="order.reserve", retry_limit=3),
    node("charge", "reserve", kind="order.charge", retry_limit=3),
    node("greet", "reserve", kind="order.greet", skippable=True),
    node("ship", "charge", "greet", kind="order.ship", description="to the door"),
)
CONTEXT = {"type": "object", "properties": {"order_id": {"type": "integer"}}, "required": ["order_id"]}


def define(db, name="order", steps=STEPS, *, namespace="default", version="0.1.0", **options):
    """Say a flow, as a worker does at its start."""
    run(db, calls.define_flow(name, steps, namespace=namespace, version=version, **options))


def begin(db, name="order", context=None, **options):
    """Start a task of a flow that was defined."""
    (task_id,) = run(db, calls.start_task(name, {"order_id": 7} if context is None else context, **options))
    return str(task_id)


def work(db, *kinds, outcome=None, worker="w1"):
    """Claim a step of each kind, and settle it as done unless another outcome is given."""
    for kind in kinds:
        settle(db, claim_one(db, worker, kinds=[kind]), outcome or Done({"by": kind}))


def failed_task(db, **options):
    """A task that ended with one step failed for good."""
    define(db)
    task_id = begin(db, **options)
    work(db, "order.reserve", "order.greet")
    work(db, "order.charge", outcome=Fail(FAULT))
    return task_id


def mapped_task(db, items, *, failing=()):
    """A task whose step planned items, some of which failed."""
    each = node("ship", "list", kind="parcels.ship:each", each="list")
    define(db, "parcels", (node("list", kind="parcels.list"), each))
    task_id = begin(db, "parcels", {})
    work(db, "parcels.list")
    held = claim_one(db, kinds=["parcels.ship:each"])
    parts = [{"name": f"ship[{n}]", "kind": "parcels.ship", "input": {"item": n}} for n in range(items)]
    with db.transaction():
        run(db, add_awaited(held.step_id, held.lease_id, parts))
    settle(db, held, Continue({"mapped": items}))
    for number, step in enumerate(sorted(claim(db, kinds=["parcels.ship"], batch=items), key=lambda s: s.step_id)):
        settle(db, step, Fail(FAULT) if number in failing else Done(number))
    return task_id
