"""The reference of the Python API has each public name, with its signature as it is."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Iterator
from typing import get_overloads

import holdfast
from docs.pages import DOCS
from holdfast import Batch, Continue, Ctx, Env, Fail, Handle, Holdfast, Retry, RetryPolicy, Snooze, errors
from holdfast.flow.api import Flows
from holdfast.flow.backoff import Backoff, ReenqueueDelays, StepRetry
from holdfast.flow.define import Flow
from holdfast.flow.handle import FlowRun
from holdfast.ops.api import Ops
from holdfast.ops.context import OpsCtx
from holdfast.ops.handle import OpsHandle
from holdfast.ops.run import OpsRun
from holdfast.ops.shell import ShellResult
from holdfast.rules.api import Rules
from holdfast.rules.handle import RuleRun
from holdfast.rules.language.guard import Guard
from holdfast.rules.table import Table
from holdfast.work.define import Task

TEXT = (DOCS / "reference" / "python.md").read_text("utf-8")
WIRING = {"make", "amake", "tell_to_stop", "waits", "pinned", "definition", "read_result"}  # for our own parts
WIRING |= {
    "release_secrets",
    "begin",
    "append",
    "append_all",
    "ask",
    "stop_now",
    "metadata",
    "failure_metadata",
    "connection",
    "transaction_open",
}


def signature(name: str, function: object) -> str:
    """Write a signature as the page does: annotations as they were written, `self` left out."""
    given = inspect.signature(function)  # type: ignore[arg-type]
    kept = [p for p in given.parameters.values() if p.name != "self"]
    told = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(given.replace(parameters=kept)))
    told = told.replace("datetime.timedelta", "timedelta").replace("'", '"')
    return f"{'async ' if inspect.iscoroutinefunction(function) else ''}{name}{told}".removesuffix(" -> None")


def members(name: str, owner: type) -> Iterator[str]:
    """Give a line for each public method and property of a class."""
    for key, member in vars(owner).items():
        if key.startswith("_") or key in WIRING:
            continue
        if isinstance(member, property):
            yield signature(f"{name}.{key}", member.fget).replace("()", "")
        elif callable(member):
            forms = [form for form in get_overloads(member) if "function" not in inspect.signature(form).parameters]
            yield from (signature(f"{name}.{key}", form) for form in forms or [member])  # bare decorators left out


def there() -> set[str]:
    owners = {
        "hf": Holdfast,
        "task": Task,
        "handle": Handle,
        "ctx": Ctx,
        "flow": Flow,
        "run": FlowRun,
        "env": Env,
        "batch": Batch,
    }
    makers = [
        Holdfast,
        Env,
        RetryPolicy,
        Retry,
        Snooze,
        Fail,
        Continue,
        Backoff,
        ReenqueueDelays,
        StepRetry,
        Table,
        Guard,
    ]
    lines = {line for name, owner in owners.items() for line in members(name, owner)}
    ops = [("hf.ops", Ops), ("ctx", OpsCtx), ("handle", OpsHandle), ("run", OpsRun), ("result", ShellResult)]
    lines |= {line for name, owner in ops for line in members(name, owner)}
    lines |= {line for name, owner in [("hf.rules", Rules), ("run", RuleRun)] for line in members(name, owner)}
    lines |= {signature("hf.flow", Flows.__call__), signature("hf.ops", Ops.__call__)}
    return lines | {signature(each.__name__, each) for each in makers}


def told() -> set[str]:
    blocks = re.findall(r"(?:^    .*\n)+", TEXT, re.MULTILINE)
    whole = "\n".join(re.sub(r"\n {5,}", " ", block).replace("( ", "(") for block in blocks)
    return {line.strip() for line in whole.splitlines() if line.strip()}


def test_each_public_method_is_there_with_its_signature() -> None:
    """Deliver: reference of the Python API."""
    assert told() == there()


def test_each_public_name_is_there() -> None:
    assert [name for name in holdfast.__all__ if f"`{name}`" not in TEXT and f"    {name}(" not in TEXT] == []


def test_each_field_of_a_policy_is_explained() -> None:
    fields = {field.name for field in dataclasses.fields(RetryPolicy)}

    assert fields == set(re.findall(r"^\| `(\w+)` \|", TEXT.partition("## Retry policies")[2].partition("##")[0], re.M))


def test_each_attribute_of_a_backoff_is_explained_with_its_default() -> None:
    """T-93, T-127"""
    guide = (DOCS / "guides" / "flow-backoff.md").read_text("utf-8").partition("## ")[0]
    backoff = dataclasses.asdict(Backoff())
    told = {name: default.replace("`", "") for name, default in re.findall(r"^\| `(\w+)` \| (.*?) \|", guide, re.M)}
    delays = ", ".join(str(delay) for delay in backoff.pop("reenqueue_delays").values())

    assert told.pop("reenqueue_delays") == delays
    assert {name: ast.literal_eval(default) for name, default in told.items()} == {
        **backoff,
        "default_backoff_seconds": list(backoff["default_backoff_seconds"]),
    }


def test_each_error_that_waiting_raises_is_there() -> None:
    assert all(f"`{error.__name__}`" in TEXT for error in (errors.RunFailed, errors.RunCancelled, errors.WaitTimedOut))
