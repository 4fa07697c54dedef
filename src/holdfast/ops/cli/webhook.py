"""`holdfast ops webhook`: receives the webhooks of GitHub and Gitea."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from holdfast import embedded, log
from holdfast.cli.connection import load_settings
from holdfast.cli.render import AsJson, data_line, say
from holdfast.config import Config
from holdfast.connections.deadline import connection_to
from holdfast.connections.pool import PoolExecutor
from holdfast.env import Env
from holdfast.errors import BadInput
from holdfast.kernel import migrate
from holdfast.kernel.call import check_tenant
from holdfast.ops.serving import listening, make_server
from holdfast.ops.trigger import Receiver

Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes any free one.")]
Host = Annotated[str, typer.Option("--host", help="The address to listen on, such as 0.0.0.0 for all.")]
Secrets = Annotated[
    list[str],
    typer.Option(
        "--secret",
        metavar="NAME",
        help="The environment variable with the webhook's secret (or NAME_FILE). Repeat it while you replace a secret.",
    ),
]
Tenant = Annotated[str, typer.Option("--tenant", help="Queue the runs for this tenant.")]


def webhook(
    *,
    port: Port = 8081,
    host: Host = "127.0.0.1",
    secret: Secrets = ["WEBHOOK_SECRET"],  # noqa: B006 - typer copies it
    tenant: Tenant = "default",
    as_json: AsJson = False,
) -> None:
    """Receive webhooks of GitHub and Gitea, and queue runs for pushes.

    A push to a repository queues a run for each environment of its project whose branch pattern matches. Set the same
    secret here and in the webhook. On SIGTERM or Ctrl-C it finishes open requests and exits with 0. It needs the extra
    `api`: pip install 'holdfast-pg[api]'.

    Examples:

        WEBHOOK_SECRET=… holdfast ops webhook --host 0.0.0.0 --port 8081

        holdfast ops webhook --secret WEBHOOK_SECRET --secret WEBHOOK_SECRET_OLD
    """
    with needs_extra():
        import uvicorn  # noqa: F401 - before anything else, so that a missing extra is named first
    config = load_settings()
    log.configure(config.log_level, "json" if as_json else config.log_format)
    check_tenant(tenant)
    secrets = [Env(name) for name in dict.fromkeys(secret)]
    for each in secrets:
        each.read()
    address = _address(config)
    connections = PoolExecutor(lambda: address)
    with listening(host, port) as listener:
        shown = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/webhook"
        if as_json:
            data_line({"url": shown})
        say(f"webhooks: {shown}")
        serve(Receiver(connections, secrets, tenant=tenant), listener)
    connections.close()


@contextmanager
def needs_extra() -> Iterator[None]:
    """Raise an error that names the missing package and how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise BadInput(
            f"receiving webhooks needs {error.name}", next="install it with pip install 'holdfast-pg[api]'"
        ) from error


def serve(receiver: Receiver, listener: socket.socket) -> None:
    """Serve until SIGTERM or SIGINT."""
    server = make_server(receiver)

    async def run() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, server.handle_exit, number, None)
        await server.serve(sockets=[listener])

    asyncio.run(run())


def _address(config: Config) -> str:
    address = embedded.address(config)
    if config.dsn is None:
        migrate.run(address)
        return address
    with connection_to(address) as connection:
        migrate.check(connection)
    return address
