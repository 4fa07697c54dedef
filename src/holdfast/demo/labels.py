"""The demo's labels: one call of a batch handler prints up to 20 labels of a carrier, in one transaction."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.demo.tasks import hf
from holdfast.handlers.batch import Batch
from holdfast.models import Fail
from holdfast.reads import demo_labels

CARRIERS = ("dart", "heron", "swift")
SIZE = 20  # labels per call


@dataclass(frozen=True, slots=True)
class Label:
    """The input of one step."""

    batch: str  # the demo that it belongs to
    carrier: str
    address: str


@hf.task(name="demo.print_label", queue="demo", batch=SIZE, by="carrier")
def print_label(batch: Batch, labels: list[Label]) -> list[str | Fail]:
    """Print labels. One without an address fails, and the others of its call are printed."""
    good = [(label, ctx) for label, ctx in zip(labels, batch.steps, strict=True) if label.address]
    first = batch.steps[0]
    with batch.transaction() as tx:
        demo_labels.add_printed(
            tx,
            labels[0].batch,
            f"{first.step_id}/{first.attempt}",
            [label.carrier for label, _ in good],
            [ctx.step_id for _, ctx in good],
        )
    missing = Fail({"type": "NoAddress", "message": "the label has no address"})
    return [f"label for {label.address}" if label.address else missing for label in labels]
