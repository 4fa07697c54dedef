"""Completion of flows and their tasks, from the database."""

from __future__ import annotations

from holdfast.cli.options import matching
from holdfast.flow import run_list


def flows(incomplete: str) -> list[str]:
    """Complete the name of a flow."""
    return matching(run_list.names(), incomplete)


def tasks(incomplete: str) -> list[str]:
    """Complete the id of a flow's task of late."""
    return matching(run_list.recent_ids(), incomplete)


def flows_and_tasks(incomplete: str) -> list[str]:
    """Complete the name of a flow, or the id of a task."""
    return [*flows(incomplete), *tasks(incomplete)]
