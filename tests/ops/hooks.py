"""What the tests of webhooks arrange: a receiver on a real socket, and requests as GitHub and Gitea sign them."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from holdfast.env import Env
from holdfast.ops import serving

SECRET = "It's a Secret to Everybody"
OLD = "the-secret-before-that-one"
SHA = "a10867b14bb761a232cd80139fbd4c0d33264240"
ZEROS = "0" * 40
PUSH: dict[str, Any] = {
    "ref": "refs/heads/main", "before": "6113728f27ae82c7b1a177c8d03f9e96e0adf246", "after": SHA, "created": False,
    "deleted": False, "forced": False, "compare": "https://git.example/o/r/compare/6113728...a10867b",
    "head_commit": {"id": SHA, "message": "Fix\n\nlong", "author": {"name": "J", "username": "j"}},
    "repository": {"id": 1, "full_name": "o/r", "default_branch": "main"},
    "pusher": {"name": "j", "email": "j@example.com"}, "sender": {"login": "j", "id": 1},
}  # fmt: skip


class Response(NamedTuple):
    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def fields(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(self.body)
        return read


def push(**changes: Any) -> bytes:
    """A push as bytes; a change of None removes the field."""
    return json.dumps({name: value for name, value in {**PUSH, **changes}.items() if value is not None}).encode()


def signed(body: bytes, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def headers(body: bytes, **changes: str | None) -> dict[str, str]:
    """The headers of GitHub; `x_github_event="ping"` changes one, None removes it."""
    sent: dict[str, str | None] = {
        "User-Agent": "GitHub-Hookshot/1", "Content-Type": "application/json", "X-GitHub-Event": "push",
        "X-GitHub-Delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958", "X-GitHub-Hook-ID": "292430182",
        "X-Hub-Signature-256": signed(body), "X-Hub-Signature": "sha1=0000",
    }  # fmt: skip
    known = {name.lower(): name for name in sent}
    for name, value in changes.items():
        sent[known.get(name.replace("_", "-"), name.replace("_", "-"))] = value
    return {name: value for name, value in sent.items() if value is not None}


class Hook:
    """A client of one receiver."""

    def __init__(self, port: int) -> None:
        self.port = port

    def post(self, body: bytes, /, *, path: str = "/webhook", method: str = "POST", **changes: str | None) -> Response:
        return self.send(body, headers(body, **changes), path=path, method=method)

    def send(
        self, body: bytes | Iterable[bytes], sent: dict[str, str], *, path: str = "/webhook", method: str = "POST"
    ) -> Response:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        with suppress(BrokenPipeError, ConnectionResetError):  # it answered before it had read everything
            connection.request(method, path, body, sent, encode_chunked=not isinstance(body, bytes))
        answer = connection.getresponse()
        response = Response(answer.status, answer.read(), {k.lower(): v for k, v in answer.getheaders()})
        connection.close()
        return response


@contextmanager
def receiving(dsn: str, *secrets: str, **options: Any) -> Iterator[Hook]:
    """Serve a receiver by uvicorn on loopback for as long as the block lasts."""
    with serving.receiving(dsn, *map(Env, secrets or ["WEBHOOK_SECRET"]), **options) as port:
        yield Hook(port)
