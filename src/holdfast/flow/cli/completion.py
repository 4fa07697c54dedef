"""Completion of flows and their runs, from the database."""

from __future__ import annotations

from holdfast.cli.options import matching
from holdfast.flow import run_list


def flows(incomplete: str) -> list[str]:
    """Complete the name of a flow."""
    return matching(run_list.names(), incomplete)


def runs(incomplete: str) -> list[str]:
    """Complete the id of a recent run of a flow."""
    return matching(run_list.recent_ids(), incomplete)


def flows_and_runs(incomplete: str) -> list[str]:
    """Complete the name of a flow, or the id of a run."""
    return [*flows(incomplete), *runs(incomplete)]
