"""`holdfast worker`: runs a worker process."""

from __future__ import annotations

import sys
import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast import embedded, log
from holdfast.cli.connection import load_settings
from holdfast.cli.options import output_options, parse_duration
from holdfast.cli.render import AsJson, data_json, say
from holdfast.config import Config
from holdfast.connections.deadline import connection_to
from holdfast.errors import BadInput, DatabaseError, Unreachable
from holdfast.kernel import migrate
from holdfast.kernel.call import check_names
from holdfast.worker.options import Options, new_identity

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.worker.probe import Probe

App = Annotated[str, typer.Option("--app", "-a", envvar="HOLDFAST_APP", help="The app, as module:name.")]
Queues = Annotated[list[str], typer.Option("--queue", "-q", help="A queue to serve. May be repeated.")]
Tenants = Annotated[list[str], typer.Option("--tenant", help="Serve only this tenant. May be repeated.")]
Concurrency = Annotated[
    int, typer.Option("--concurrency", "-c", min=1, max=10_000, help="Handlers that run at the same time.")
]
Processes = Annotated[int, typer.Option("--processes", "-p", min=1, max=256, help="Worker processes to keep alive.")]
Burst = Annotated[bool, typer.Option("--burst", help="Work until nothing is due, then exit.")]
Name = Annotated[str | None, typer.Option("--name", help="The worker's name; by default host and process id.")]
ProbePort = Annotated[
    int | None, typer.Option("--probe-port", min=0, max=65535, help="Serve /healthz, /readyz and /metrics there.")
]
ProbeHost = Annotated[str, typer.Option("--probe-host", help="The address for --probe-port.")]
Grace = Annotated[
    timedelta | None,
    typer.Option(
        "--grace",
        parser=parse_duration,
        metavar="DURATION",
        help="Time for handlers to finish after SIGTERM, such as 25s or 2m.",
    ),
]
Supervised = Annotated[bool, typer.Option("--supervised", hidden=True)]
OfGroup = Annotated[str | None, typer.Option("--group", hidden=True)]


@output_options
def worker(
    *,
    app: App,
    queue: Queues = ["default"],  # noqa: B006 - typer copies it
    concurrency: Concurrency = 10,
    processes: Processes = 1,
    burst: Burst = False,
    tenant: Tenants = [],  # noqa: B006
    name: Name = None,
    probe_port: ProbePort = None,
    probe_host: ProbeHost = "127.0.0.1",
    grace: Grace = None,
    supervised: Supervised = False,
    group: OfGroup = None,
    as_json: AsJson = False,
) -> None:
    """Claim steps, run their handlers and settle the outcomes.

    On SIGTERM or Ctrl-C it stops in an orderly way: it claims nothing more, lets running handlers finish within the
    grace period, and releases the rest without a failure. A second signal does not wait. Exit codes: 0 orderly stop, 7
    the database could not be reached, 130 interrupted by a second signal.

    Examples:

        holdfast worker --app shop.tasks:hf

        holdfast worker --app shop.tasks --queue mail --queue default --concurrency 50 --probe-port 8080

        holdfast worker --app shop.tasks --processes 4

        holdfast worker --app shop.tasks --burst
    """
    from holdfast.cli.app_loader import load_app
    from holdfast.worker.probe import Probe
    from holdfast.worker.process import Supervisor

    config = load_settings()
    log.configure(config.log_level, "json" if as_json else config.log_format)
    if processes > 1:
        raise typer.Exit(Supervisor(_commands(processes, probe_port), burst=burst).run())
    hf = load_app(app)
    if not hf._engine.registry.kinds():
        raise BadInput(
            f"{app} has no tasks",
            where=app,
            next="decorate a function with @hf.task, and check that its module is imported",
        )
    options = options_of(config, queue, tenant, concurrency, burst=burst, name=name, group=group, grace=grace)
    probe = None if probe_port is None else Probe(probe_host, probe_port)
    if probe is not None:
        say(f"probe: http://{probe_host}:{probe.port}/healthz, /readyz, /metrics")
    code = serve(hf, config, options, probe=probe, is_supervised=supervised)
    if as_json:
        data_json({"worker": options.identity, "exit_code": code})
    raise typer.Exit(code)


def new_app() -> Holdfast:
    """Create an empty app for a command that serves its own handlers."""
    from holdfast.app import Holdfast

    return Holdfast()


def serve(
    app: Holdfast, config: Config, options: Options, *, probe: Probe | None = None, is_supervised: bool = False
) -> int:
    """Run a worker for an app until it is stopped, and return the exit code."""
    from holdfast.worker.process import run_worker

    engine = app._engine
    return run_worker(
        _address(config), engine.registry, options, hooks=engine.hooks, probe=probe, is_supervised=is_supervised
    )


def options_of(
    config: Config,
    queues: list[str],
    tenants: list[str],
    concurrency: int,
    *,
    burst: bool = False,
    name: str | None = None,
    group: str | None = None,
    grace: timedelta | None = None,
    most_steps: int | None = None,
) -> Options:
    """Return the options from the command line and HOLDFAST_*."""
    check_names([("name", name), *(("queue", queue) for queue in queues), *(("tenant", tenant) for tenant in tenants)])
    return Options(
        identity=new_identity(name, group=group),
        queues=tuple(dict.fromkeys(queues)),
        tenants=tuple(tenants) or None,
        concurrency=concurrency,
        burst=burst,
        lease=config.lease,
        recovery_interval=config.recovery_interval,
        poll_min=config.poll_min,
        poll_factor=config.poll_factor,
        poll_max=config.poll_max,
        error_wait=config.error_wait,
        call_deadline=config.call_deadline,
        grace=config.grace if grace is None else grace,
        listens=config.listen,
        most_steps=most_steps,
    )


def _address(config: Config) -> str:
    """Return the address. Migrate the embedded database; if another is unreachable, the worker waits for it."""
    address = embedded.address(config)
    if config.dsn is None:
        migrate.run(address)
        return address
    try:
        with connection_to(address) as connection:
            migrate.check(connection)
    except DatabaseError as error:
        if error.exit_code != Unreachable.exit_code:  # waiting does not help
            raise
        say(f"waiting for the database: {error}")
    return address


def _commands(processes: int, probe_port: int | None) -> list[list[str]]:
    """Return each child's arguments: the same, except for what must be unique; of a repeated option the last counts."""
    own = ["--processes", "1", "--supervised", "--group", uuid.uuid4().hex[:8]]
    commands = [[sys.executable, "-m", "holdfast", *sys.argv[1:], *own] for _ in range(processes)]
    if probe_port is not None:
        for place, command in enumerate(commands):
            command += ["--probe-port", str(probe_port + place if probe_port else 0)]
    return commands
