"""The status of a feed's newest run as lines."""

from __future__ import annotations

from datetime import UTC, datetime

from holdfast.cli.table import age_text
from holdfast.ingest.reads import FailedPartition, RunRow

OVER = ("completed", "failed", "cancelled")


def lines(run: RunRow, failed: list[FailedPartition]) -> list[str]:
    """Return the lines: how far it is, its window and watermark, what failed, and what to do next."""
    workers = f"{run.completed_workers}/{run.expected_workers}"
    if run.failed_workers:
        workers += f", {run.failed_workers} failed"
    head = f"{run.feed}  {run.run_type}  {run.state}{' (forced)' if run.forced else ''}  {workers}   {_records(run)}"
    lines = [f"{head}   started {age_text(run.started_at, run.now)}"]
    lines.append(f"  window  {_moment(run.updated_from)} … {_moment(run.updated_to)}   {_watermark(run)}")
    if run.quarantined or run.deleted:
        lines.append(f"  records {run.quarantined:,} quarantined, {run.deleted:,} deleted")
    lines += [
        f"  failed  {part.partition_id} at offset {part.next_offset:,}, {part.tries} tries: {part.message}"
        for part in failed
    ]
    if run.reason is not None and (run.forced or not failed):
        lines.append(f"  reason  {run.reason}")
    then = next_step(run, failed)
    return lines if then is None else [*lines, f"  next:   {then}"]


def next_step(run: RunRow, failed: list[FailedPartition]) -> str | None:
    """Return what a person may do about a run."""
    if run.state == "failed" and run.reason is not None and (run.forced or not failed):
        return f"holdfast ingest resume-consolidation {run.feed}    (after the fix)"
    if failed and run.state == "failed":
        return f"holdfast ingest retry {run.feed}    (or: holdfast ingest force {run.feed}; the watermark stays)"
    if failed and run.state not in OVER:
        return f"wait for the rest, then: holdfast ingest retry {run.feed}"
    return None


def _records(run: RunRow) -> str:
    estimated = "" if run.estimated is None or run.state == "completed" else f" of ~{run.estimated:,}"
    seconds = ((run.completed_at or run.now) - run.started_at).total_seconds()
    return f"{run.records:,}{estimated} records, {run.records / max(seconds, 0.001):,.0f}/s"


def _watermark(run: RunRow) -> str:
    if run.state == "completed":
        return f"watermark {_moment(run.watermark)}"
    return f"watermark {_moment(run.watermark)}: stays until all {run.expected_workers} are in"


def _moment(at: datetime | None) -> str:
    return "-" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M}Z"
