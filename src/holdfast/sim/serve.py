"""Serves a simulated system on a loopback socket until a signal ends it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

try:
    import uvicorn
except ImportError as error:
    raise ImportError("holdfast.sim needs uvicorn; pip install 'holdfast-pg[sim]'") from error

BACKLOG = 1024


def serve(app: Any, port: int, announce: Callable[[str], None]) -> None:
    """Serve an app; `announce` receives its address once it accepts connections. Port 0 takes a free one."""
    listening = socket.create_server(("127.0.0.1", port), backlog=BACKLOG)
    config = uvicorn.Config(
        app, log_level="critical", access_log=False, lifespan="off", date_header=False, server_header=False,
        proxy_headers=False, timeout_keep_alive=60,
    )  # fmt: skip
    announce(f"http://127.0.0.1:{listening.getsockname()[1]}")
    uvicorn.Server(config).run(sockets=[listening])
