"""Completion of what is in the database; it gives nothing rather than an error, and starts no server."""

from __future__ import annotations

import warnings
from datetime import timedelta
from typing import Any

import psycopg
from pydantic import ValidationError

from holdfast import config, embedded
from holdfast.connections.deadline import connect
from holdfast.errors import HoldfastError
from holdfast.flow import run_list
from holdfast.kernel.query import Query, limit_time, query
from holdfast.reads import queues_workers, run_detail

PATIENCE = 2  # seconds to connect: libpq knows no less
ANSWER_WITHIN = timedelta(milliseconds=300)


def queues(incomplete: str) -> list[str]:
    """Complete the name of a queue."""
    return [name for name in _found(queues_workers.queue_names()) if name.startswith(incomplete) and name.isprintable()]


def ids(incomplete: str) -> list[str]:
    """Complete the id of a task or a run of late."""
    return [found for found in _found(run_detail.recent_ids()) if found.startswith(incomplete)]


def flows(incomplete: str) -> list[str]:
    """Complete the name of a flow."""
    return [name for name in _found(run_list.names()) if name.startswith(incomplete) and name.isprintable()]


def tasks(incomplete: str) -> list[str]:
    """Complete the id of a flow's task of late."""
    return [found for found in _found(run_list.recent_ids()) if found.startswith(incomplete)]


def flows_and_tasks(incomplete: str) -> list[str]:
    """Complete the name of a flow, or the id of a task."""
    return [*flows(incomplete), *tasks(incomplete)]


def _found(names: Query[str]) -> list[str]:
    try:
        address = _address()
        if address is None:
            return []
        with connect(address, timeout=PATIENCE) as connection:
            limit_time(connection, ANSWER_WITHIN)
            return query(connection, names)
    except (HoldfastError, psycopg.Error, OSError, ValidationError):
        return []


def _address() -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings: Any = config.load()
    if settings.dsn is None and not embedded.status(settings.home).running:
        return None
    return embedded.address(settings)
