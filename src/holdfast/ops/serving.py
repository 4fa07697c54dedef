"""Serves the receiver of webhooks with uvicorn, which is in the extra `api` and imported on use."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from holdfast.connections.pool import PoolExecutor
from holdfast.env import Env
from holdfast.errors import BadInput
from holdfast.ops.trigger import Receiver

if TYPE_CHECKING:
    import uvicorn

MOST_AT_ONCE = 16  # requests: each may hold 25 MB
STOP_WITHIN = 10  # seconds for open requests to finish


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Open a socket; raise an error that says why that failed."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise BadInput(
            f"cannot listen on {host}:{port}: {error.strerror or error}", where="--port", next="choose another --port"
        ) from error
    with listener:
        yield listener


def make_server(receiver: Receiver) -> uvicorn.Server:
    """Return uvicorn's server, without its own log lines and signal handlers."""
    import uvicorn

    class Server(uvicorn.Server):
        def capture_signals(self) -> Any:
            """Leave the signals alone: uvicorn would end the process by the signal instead of with 0."""
            return nullcontext()

    return Server(
        uvicorn.Config(
            receiver,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="on",
            ws="none",
            limit_concurrency=MOST_AT_ONCE,
            timeout_graceful_shutdown=STOP_WITHIN,
        )
    )


@contextmanager
def receiving(dsn: str, *secrets: Env, **options: Any) -> Iterator[int]:
    """Receive webhooks on a free port of the loopback during the block; yield the port."""
    connections = PoolExecutor(lambda: dsn)
    server = make_server(Receiver(connections, secrets, **options))

    async def run() -> None:
        await server.serve(sockets=[listener])
        await connections.aclose()

    with listening("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=lambda: asyncio.run(run()), name="holdfast-webhooks", daemon=True)
        thread.start()
        try:  # requests that come before it is ready wait in the socket's queue
            yield int(listener.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join(2 * STOP_WITHIN)
