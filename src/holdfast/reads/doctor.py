"""The doctor: checks server, schema, settings and every invariant, and returns each finding as a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

import psycopg

from holdfast import embedded
from holdfast.config import Config
from holdfast.connections.deadline import connection_to
from holdfast.errors import HoldfastError
from holdfast.kernel import migrate
from holdfast.reads import pooler
from holdfast.reads.retention_checks import RETENTION_CHECKS
from holdfast.reads.schema_checks import CHECKS, NEEDS_SCHEMA, Check, schema_version, server_version
from holdfast.reads.server_settings import server_checks

Subject = TypeVar("Subject")


def examine(config: Config) -> Iterator[Check]:
    """Run the checks in order; without a server only the first."""
    try:
        address = embedded.address(config)
        status = migrate.status(address)
    except HoldfastError as error:
        yield Check("server", "fail", error.what, error.next or "")
        return
    yield server_version(status)
    yield schema_version(status)
    with connection_to(address) as connection:
        for name, check in (CHECKS | RETENTION_CHECKS | server_checks(config.call_deadline)).items():
            if status.schema_version is not None or name not in NEEDS_SCHEMA:
                yield attempt(name, check, connection)
    yield attempt("hints", pooler.hints, address)
    yield attempt("statements", partial(pooler.statements, prepares=config.prepare_statements), address)


def attempt(name: str, check: Callable[[Subject], Check], subject: Subject) -> Check:
    """Run a check; it fails if the server rejects it or the driver cannot read the answer."""
    try:
        return check(subject)
    except psycopg.Error as error:
        return Check(name, "fail", str(error).splitlines()[0], "log in as a role that may read it, such as hf_operator")
    except NotImplementedError as error:
        return Check(name, "fail", str(error).splitlines()[0], "reset intervalstyle and datestyle: see `session`")
