"""`holdfast worker`: a process that works."""

from __future__ import annotations

import sys
import uuid
from datetime import timedelta
from typing import Annotated

import typer

from holdfast import embedded, log
from holdfast.cli.connection import load_settings
from holdfast.cli.options import output_options, parse_duration
from holdfast.cli.render import AsJson, data_json, say
from holdfast.config import Config
from holdfast.connections.deadline import connection_to
from holdfast.errors import BadInput, DatabaseError, Unreachable
from holdfast.kernel import migrate
from holdfast.worker.options import Options, new_identity

App = Annotated[str, typer.Option("--app", "-a", envvar="HOLDFAST_APP", help="The app, as module:name.")]
Queues = Annotated[list[str], typer.Option("--queue", "-q", help="A queue to serve; may be given several times.")]
Tenants = Annotated[list[str], typer.Option("--tenant", help="Serve this tenant only; may be given several times.")]
Concurrency = Annotated[int, typer.Option("--concurrency", "-c", min=1, max=10_000, help="Handlers at the same time.")]
Processes = Annotated[int, typer.Option("--processes", "-p", min=1, max=256, help="Worker processes to keep alive.")]
Burst = Annotated[bool, typer.Option("--burst", help="Work until nothing is due, then exit.")]
Name = Annotated[str | None, typer.Option("--name", help="What to call it; host and process id by default.")]
ProbePort = Annotated[
    int | None, typer.Option("--probe-port", min=0, max=65535, help="Serve /healthz, /readyz and /metrics there.")
]
ProbeHost = Annotated[str, typer.Option("--probe-host", help="The address for --probe-port.")]
Grace = Annotated[
    timedelta | None,
    typer.Option(
        "--grace", parser=parse_duration, metavar="DURATION", help="For handlers to end after SIGTERM, as 25s or 2m."
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

    Stops in order on SIGTERM or Ctrl-C: no new claims, running handlers get their grace, the rest is handed back
    uncharged. A second signal does not wait. Exit codes: 0 in order, 7 the database could not be told, 130 told twice.

    Examples:

        holdfast worker --app shop.tasks:hf

        holdfast worker --app shop.tasks --queue mail --queue default --concurrency 50 --probe-port 8080

        holdfast worker --app shop.tasks --processes 4

        holdfast worker --app shop.tasks --burst
    """
    from holdfast.cli.app_loader import load_app
    from holdfast.worker.probe import Probe
    from holdfast.worker.process import Supervisor, run_worker

    config = load_settings()
    log.configure(config.log_level, "json" if as_json else config.log_format)
    if processes > 1:
        raise typer.Exit(Supervisor(_commands(processes, probe_port), burst=burst).run())
    found = load_app(app)
    if not found._engine.registry.kinds():
        raise BadInput(
            f"{app} has no tasks",
            where=app,
            next="decorate a function with @hf.task, and see that its module is imported",
        )
    options = options_of(config, queue, tenant, concurrency, burst=burst, name=name, group=group, grace=grace)
    probe = None if probe_port is None else Probe(probe_host, probe_port)
    if probe is not None:
        say(f"probe: http://{probe_host}:{probe.port}/healthz, /readyz, /metrics")
    code = run_worker(
        _address(config),
        found._engine.registry,
        options,
        hooks=found._engine.hooks,
        probe=probe,
        is_supervised=supervised,
    )
    if as_json:
        data_json({"worker": options.identity, "exit_code": code})
    raise typer.Exit(code)


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
) -> Options:
    """Put together what the command line and HOLDFAST_* say."""
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
    )


def _address(config: Config) -> str:
    """Give the address. The embedded database is ours to migrate; another that is away is waited for by the worker."""
    address = embedded.address(config)
    if config.dsn is None:
        migrate.run(address)
        return address
    try:
        with connection_to(address) as connection:
            migrate.check(connection)
    except DatabaseError as error:
        if error.exit_code != Unreachable.exit_code:  # what waiting does not mend
            raise
        say(f"the database is away, and is waited for: {error}")
    return address


def _commands(processes: int, probe_port: int | None) -> list[list[str]]:
    """Give each child the same arguments, but for what there can be only one of: of an option the last one counts."""
    own = ["--processes", "1", "--supervised", "--group", uuid.uuid4().hex[:8]]
    commands = [[sys.executable, "-m", "holdfast", *sys.argv[1:], *own] for _ in range(processes)]
    if probe_port is not None:
        for place, command in enumerate(commands):
            command += ["--probe-port", str(probe_port + place if probe_port else 0)]
    return commands
