"""Write the reference pages that come from the code and the database (`make docs`); a test compares them."""

from __future__ import annotations

import inspect
import re
import sys
import tempfile
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any, LiteralString

import defaults
import function_map
import psycopg
from psycopg import Connection
from pydantic_core import PydanticUndefined

from holdfast import config, errors, faces
from holdfast.embedded.owned import owned_server
from holdfast.kernel import migrate
from holdfast.worker.metrics import DURATIONS, Meters

REFERENCE = Path(__file__).parent / "reference"
NOTE = "<!-- Written by docs/generate.py: run `make docs` instead of editing it. -->"
_LEAF = re.compile(r"^[│ ]*[├└]── (\w+) +(?:RN\d{3} +)?(.+)$", re.MULTILINE)

CONFIGURATION = """\
# Settings

Settings are environment variables. A process reads them once, when it starts. `holdfast config`
shows the current values and their sources. Write a duration as `200ms`, `30s`, `5m`, `1h30m` or
`2d`; a bare number means seconds. An empty variable counts as unset. An unknown name that begins
with `HOLDFAST_` causes a warning that suggests the right one.
"""
CONFIGURATION_END = """
To keep the DSN in a file, as is usual for secrets, set `HOLDFAST_DSN_FILE` to its path.
`HOLDFAST_DSN` takes precedence over the file.

Command-line options take precedence over settings: `holdfast worker --app` over `HOLDFAST_APP`, and
`--grace` over `HOLDFAST_GRACE`. The lease of a task is the worker's `HOLDFAST_LEASE` if it is set,
otherwise the task's own (`@hf.task(lease=…)`), otherwise 300 s.
"""
ERRORS = """\
# Errors

Every error is a subclass of `holdfast.HoldfastError` and is defined in `holdfast.errors`. Errors
that the database raises have a SQLSTATE, which is the same in every language. The exit code is that
of the `holdfast` command. Each error has three fields: `what` happened, `where` (the field or id at
fault, or None) and `next`, what to do about it (or None). Its text is `what`, or `what; next`. The
database sends these fields as the message, the column and the hint.
"""
MACHINES = """\
# Machines

A machine lists the states and the legal moves of one kind of row. The database rejects every other
move and journals each legal one. These tables and diagrams come from the rows that the database
itself uses: `holdfast.machine_states` and `holdfast.machine_moves`.

The phase says what a state means to the kernel:

- *open*: waiting to be claimed
- *held*: under a lease, or for a run, in progress
- *over*: finished
- *open or over*: failed; `finished_at` says whether for good
"""
METRICS = """\
# Metrics

`holdfast worker --probe-port 8080` serves these metrics at `/metrics`, in the Prometheus text
format. Each worker process counts from its own start. Each counter also has a `…_created` series
with the time at which it began.
"""
METRICS_END = """
Buckets of `holdfast_handler_seconds`, in seconds:
{buckets}.

What to watch:

- `holdfast_heartbeat_timestamp_seconds` does not change for more than a minute: the worker's loop
  hangs.
- `holdfast_worker_state{{state="error_wait"}}` is 1: the worker cannot use the database.
- `holdfast_settle_refused_total` or `holdfast_leases_lost_total` rises: handlers outlive their
  leases, workers are frozen, or steps are cancelled while they run.
- `holdfast_rescued_total` rises: workers die.
- `holdfast_exhausted_total` rises: steps fail for good. `holdfast dlq list` shows them.
- `holdfast_backlog` grows: the queue needs more workers. All workers of a queue report it, so use
  the maximum. It is counted once per `HOLDFAST_RECOVERY_INTERVAL`, and 10000 means 10000 or more.
- `holdfast_loop_blocked_total` rises: an async handler blocks the loop. The log names the line.
"""
EVENTS = """\
# Events

Each face publishes events about its runs, steps and tasks. Subscribe to one event with
`@hf.on("flow.run.completed")`, or to several with a pattern, `@hf.on("work.*")`. See
[listen to events](../guides/events.md).

A `holdfast.Event` has these fields:

- `name` and `at`, its time
- `run_id`: None for a task
- `step_id`: the number of the task or step; None if the event is about a whole run
- `payload`: the fields that the tables below list with their types

In a payload, `step` is the step's name in its run, such as `charge`, `ship[3]` or `bill.send`, and
`attempt` counts executions from 1. Names without a face, such as `task.completed`, are deprecated.
They still subscribe, with a warning that shows the new name.
"""
STATES: LiteralString = """
select machine, state, phase, coalesce(outcome, ''), is_initial from holdfast.machine_states
 order by machine, phase = 'over', not is_initial, phase, state
"""
MOVES: LiteralString = """
select machine, from_state, event, to_state, actors from holdfast.machine_moves order by machine, from_state, event
"""


def configuration() -> str:
    """List the settings."""
    rows = [
        (f"`{config.variable(name)}`", _default(name), field.description or "")
        for name, field in config.Config.model_fields.items()
    ]
    return _page(CONFIGURATION, _table(("setting", "unset", "meaning"), rows), CONFIGURATION_END)


def _default(name: str) -> str:
    default = config.Config.model_fields[name].default
    match default:
        case _ if default is PydanticUndefined:
            return "the user's data directory"
        case None:
            return ""
        case timedelta():
            seconds = default.total_seconds()
            return f"`{seconds:g}s`" if seconds >= 1 else f"`{seconds * 1000:g}ms`"
        case _:
            return f"`{str(default).lower()}`"


def error_tree() -> str:
    """List the errors, with the descriptions of the tree at the top of errors.py."""
    told = dict(_LEAF.findall(errors.__doc__ or ""))
    rows = [
        (
            f"`{each.__name__}`",
            f"`{each.__bases__[0].__name__}`",
            f"`{each.sqlstate}`" if issubclass(each, errors.RefusedError) and each.sqlstate else "",
            str(each.exit_code),
            told[each.__name__],
        )
        for _, each in inspect.getmembers(errors, inspect.isclass)
        if issubclass(each, errors.HoldfastError) and each is not errors.HoldfastError
    ]
    rows.sort(key=lambda row: list(told).index(row[0].strip("`")))
    return _page(ERRORS, _table(("error", "is a", "SQLSTATE", "exit code", "what happened"), rows))


def machines(connection: Connection[Any]) -> str:
    """Draw the machines of a database."""
    states: dict[str, list[tuple[Any, ...]]] = {}
    moves: dict[str, list[tuple[Any, ...]]] = {}
    for machine, *row in connection.execute(STATES):
        states.setdefault(machine, []).append(tuple(row))
    for machine, *row in connection.execute(MOVES):
        moves.setdefault(machine, []).append(tuple(row))
    return _page(MACHINES, *(_machine(machine, states[machine], moves[machine]) for machine in sorted(states)))


def _machine(machine: str, states: list[tuple[Any, ...]], moves: list[tuple[Any, ...]]) -> str:
    begins = [f"  [*] --> {state}" for state, _, _, is_initial in states if is_initial]
    arrows = [f"  {come} --> {to}: {event}" for come, event, to, _ in moves]
    ends = [f"  {state} --> [*]" for state, phase, _, _ in states if phase == "over"]
    known = [
        (f"`{state}`" + (", the initial state" if is_initial else ""), phase.replace("_", " "), outcome)
        for state, phase, outcome, is_initial in states
    ]
    legal = [(f"`{come}`", f"`{event}`", f"`{to}`", ", ".join(actors)) for come, event, to, actors in moves]
    diagram = "\n".join(["```mermaid", "stateDiagram-v2", *begins, *arrows, *ends, "```"])
    face = faces.face_of(machine)
    of_face = "" if face is None else f"The states of a {face.machines[machine]}. `{face.name}`: {face.summary}.\n\n"
    return (
        f"\n## `{machine}`\n\n{of_face}{diagram}\n\n"
        + _table(("state", "phase", "outcome"), known)
        + "\n"
        + _table(("from", "event", "to", "made by"), legal)
    )


def metrics() -> str:
    """List the meters, each used once so that it shows its labels."""
    rows = [
        (f"`{_scraped(family.name, family.type)}`", family.type, ", ".join(_labels(family)), family.documentation)
        for family in _used().registry.collect()
    ]
    buckets = ", ".join(f"{bound:g}" for bound in DURATIONS)
    return _page(
        METRICS, _table(("name", "type", "labels", "meaning"), sorted(rows)), METRICS_END.format(buckets=buckets)
    )


def events() -> str:
    """List the events of each face."""
    return _page(EVENTS, *(_events(face) for face in faces.all_faces() if face.events is not None))


def _events(face: faces.Face) -> str:
    rows = [
        (
            f"`{name}`",
            entry.published_when,
            ", ".join(f"`{field}`: {_typed(kind)}" for field, kind in entry.fields.items()),
        )
        for name, entry in face.load("events").items()
    ]
    return f"\n## `{face.name}`\n\n" + _table(("event", "published when", "payload"), rows)


def _typed(kind: Any) -> str:
    return str(getattr(kind, "__name__", kind)).replace("datetime.", "").replace("uuid.", "").replace("|", "or")


def _used() -> Meters:
    meters = Meters()
    meters.claimed({"kind": 1})
    meters.settled.labels("kind", "succeeded").inc()
    meters.durations.add("kind", [1.0])
    meters.timed_out.labels("kind").inc()
    meters.exhausted.labels("kind").inc()
    meters.waiting({"queue": 1})
    meters.notified(ok=True)
    meters.moves.labels("startup", "connecting").inc()
    return meters


def _scraped(name: str, sort: str) -> str:
    return f"{name}_total" if sort == "counter" else name


def _labels(family: Any) -> list[str]:
    return sorted({label for sample in family.samples for label in sample.labels if label != "le"})


def _page(*parts: str) -> str:
    opening, *rest = parts
    title, _, text = opening.partition("\n")
    return f"{title}\n\n{NOTE}\n{text}\n" + "".join(rest)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n".replace("|  |", "| |") for line in lines)


def pages(connection: Connection[Any]) -> dict[str, str]:
    """Write each page's text."""
    return {
        "configuration.md": configuration(),
        "defaults.md": defaults.page(connection, NOTE),
        "errors.md": error_tree(),
        "events.md": events(),
        "machines.md": machines(connection),
        "metrics.md": metrics(),
        **{name: faces.load(dotted)() for face in faces.all_faces() for name, dotted in face.pages.items()},
    }


def main() -> None:
    """Write them, from a database of their own."""
    with tempfile.TemporaryDirectory(prefix="hf-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        with owned_server(Path(folder, "home")) as dsn:
            migrate.run(dsn)
            with psycopg.connect(dsn, autocommit=True) as connection:
                for name, text in pages(connection).items():
                    (REFERENCE / name).write_text(text, "utf-8")
                    sys.stdout.write(f"{name}\n")
                function_map.PLACE.write_text(function_map.function_map(connection), "utf-8")


if __name__ == "__main__":
    main()
