"""Definitions that the database refuses: told where they are written, else by a worker that ends; never waited for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from holdfast import Holdfast, RetryPolicy
from holdfast.errors import BadDefinition, BadInput, PermissionMissing
from holdfast.kernel import calls
from holdfast.kernel.call import Call
from holdfast.testing import drain
from kernel.steps import DB
from worker.running import burst

pytestmark = pytest.mark.one_server
LONG = "n" * 201
Define = Callable[[Holdfast], Any]


def nothing() -> None: ...


@pytest.mark.parametrize(
    ("define", "limit"),
    [
        (lambda hf: hf.task(name=LONG)(nothing), "200"),
        (lambda hf: hf.task(queue=LONG)(nothing), "200"),
        (lambda hf: hf.flow("f" * 195).step(name="nothing")(nothing), "200"),  # the two together are too long
        (lambda hf: hf.flow(LONG), "200"),
        (lambda hf: hf.flow("order", version=LONG), "200"),
        (lambda hf: hf.task(lease=timedelta(days=400))(nothing), "365"),
        (lambda hf: hf.task(retry=RetryPolicy(growth=1001))(nothing), "1000"),
        (lambda hf: hf.task(retry=RetryPolicy(limit=2**31))(nothing), str(2**31 - 1)),
    ],
)
def test_a_definition_beyond_a_limit_is_refused_where_it_is_written(define: Define, limit: str) -> None:
    """C-65: the database would refuse it each time that a worker connects."""
    with pytest.raises(BadDefinition) as raised:
        define(Holdfast("postgresql://nowhere"))

    assert limit in str(raised.value)


def test_names_of_the_longest_length_are_served(hf: Holdfast) -> None:
    hf.task(name="n" * 200, queue="q" * 200)(nothing)

    burst(hf, queues=("q" * 200,))


def refused(definition: Call[None]) -> Define:
    return lambda hf: hf._engine.registry.add_definition(lambda: definition)


DEFINITIONS = {
    "'bad kind'": calls.define_kind("bad kind", policy="none of that name"),
    "'bad policy'": calls.define_policy("bad policy", growth=2000),
    "'bad flow'": Call(
        "define_flow", type(None), {"name": "bad flow", "version": "1", "steps": "[]", "namespace": "d"}, schema="flow"
    ),
}


@pytest.mark.parametrize("named", DEFINITIONS)
def test_a_worker_whose_definition_is_refused_ends_and_names_it(
    hf: Holdfast, log_lines: list[dict[str, object]], named: str
) -> None:
    """W-33: it is no outage; it repeated error_wait for ever, and so did whoever waited for it to end."""
    hf.task(nothing)
    refused(DEFINITIONS[named])(hf)

    with pytest.raises(BadInput, match=named):
        drain(hf)

    assert not [line for line in log_lines if line["event"] == "worker.error_wait"]
    assert [line["log_level"] for line in log_lines if line["event"] == "worker.refused"] == ["error"]


def test_a_worker_whose_login_lacks_the_right_ends(dsn: str, db: DB) -> None:
    """X-15."""
    db.execute("create role hf_only_reads login in role hf_reader")
    try:
        hf = Holdfast(make_conninfo(dsn, user="hf_only_reads"))
        hf.task(nothing)
        with pytest.raises(PermissionMissing, match="nothing"):
            burst(hf)
    finally:
        db.execute("drop role hf_only_reads")
