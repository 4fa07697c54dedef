"""Answers a supervisor over HTTP: whether the worker is alive and ready, and its metrics."""

from __future__ import annotations

import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from holdfast import masking
from holdfast.errors import BadInput
from holdfast.worker import forks
from holdfast.worker.metrics import Meters
from holdfast.worker.states import State

if TYPE_CHECKING:
    from holdfast.worker.loop import Worker

TEXT = "text/plain; charset=utf-8"


class Probe:
    """A small server alongside the worker: /healthz, /readyz and /metrics. It answers before the worker exists."""

    def __init__(self, host: str, port: int) -> None:
        # A class per probe, because two probes answer for two workers.
        self._answers: type[_Answers] = type("Answers", (_Answers,), {})
        try:
            self._server = ThreadingHTTPServer((host, port), self._answers)
        except (OSError, OverflowError) as error:
            raise BadInput(
                f"the probe cannot listen on {host}:{port}: {error}",
                where="--probe-port",
                next="choose another --probe-port",
            ) from error
        forks.own(self._server)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="holdfast-probe", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The address it listens on, with the real port if 0 was requested."""
        port: int = self._server.server_address[1]
        return port

    def start(self, worker: Worker) -> None:
        """Answer for a worker."""
        worker.is_probed = True
        setattr(self._answers, "worker", worker)  # noqa: B010 - the class was just created

    def stop(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()


class _Answers(BaseHTTPRequestHandler):
    worker: Worker | None = None

    def do_GET(self) -> None:
        """Answer."""
        worker = self.worker
        match self.path.partition("?")[0]:
            case "/healthz":
                self._answer(HTTPStatus.OK, "alive\n")
            case "/readyz" if worker is not None and worker.is_ready:
                self._answer(HTTPStatus.OK, f"ready: {worker.state}\n")
            case "/readyz":
                state = worker.state if worker is not None else "startup"
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE, f"not ready: {state}\n")
            case "/metrics":
                self._answer(HTTPStatus.OK, _measured(worker), CONTENT_TYPE_LATEST)
            case _:
                self._answer(HTTPStatus.NOT_FOUND, "use /healthz, /readyz or /metrics\n")

    def _answer(self, status: HTTPStatus, body: str, kind: str = TEXT) -> None:
        content = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_args: object) -> None:
        """Log nothing, because every probe would add a line."""


def _measured(worker: Worker | None) -> str:
    meters = Meters() if worker is None else worker.meters
    state: State = "startup" if worker is None else worker.state
    meters.stands(state, in_flight=0 if worker is None else worker.in_flight)
    return masking.known.text(generate_latest(meters.registry).decode())
