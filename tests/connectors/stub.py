"""A server on loopback that answers as it is told, and remembers what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Stub:
    """What it answers, and what came."""

    url: str
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    asked: list[Asked] = field(default_factory=list)

    def answers(self, status: int, body: bytes = b"{}", **headers: str) -> None:
        """Answer so from now on; an underscore in a header's name is a dash."""
        self.status, self.body = status, body
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


@contextmanager
def stub_server() -> Iterator[Stub]:
    """Have one for as long as the block lasts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    stub = Stub(f"http://127.0.0.1:{server.server_port}")
    server.RequestHandlerClass = _handler(stub)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(stub: Stub) -> type[BaseHTTPRequestHandler]:
    class Answering(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            stub.asked.append(Asked(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response_only(stub.status)
            if "Date" not in stub.headers:
                self.send_header("Date", self.date_time_string())
            for name, value in stub.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(stub.body)))
            self.end_headers()
            self.wfile.write(stub.body)

        do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815 - the names are the server's

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    return Answering
