"""Reads the webhooks of GitHub and Gitea: checks a signature, and turns a signed request into a notice. Pure."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from holdfast.errors import InputRefused

FORM = "application/x-www-form-urlencoded"
LONGEST = 200  # characters of a text that people read
LONGEST_NAME = 400  # characters of a ref or a repository
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")  # SHA-1, or SHA-256
_ID = re.compile(r"[\x21-\x7e]{1,100}")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Delivery:
    """Where a request comes from, by its headers; the same delivery that is sent again has the same key."""

    source: str  # github or gitea
    event: str
    number: str
    hook: str | None = None

    @property
    def key(self) -> str:
        """The idempotency key of its runs; Gitea has no number of the hook."""
        return ":".join([self.source, *([] if self.source == "gitea" else [self.hook or ""]), self.number])


@dataclass(frozen=True, slots=True)
class Push:
    """A ref that now points to another commit."""

    repository: str
    git_ref: str
    git_sha: str
    actor: str | None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Nothing:
    """A notice that queues no run, and why."""

    reason: str
    repository: str | None = None
    git_ref: str | None = None
    is_ping: bool = False


Notice = Push | Nothing


def is_signed(body: bytes, signature: str | None, secrets: Iterable[str]) -> bool:
    """Return whether one of the secrets signed exactly these bytes: `sha256=` and the HMAC-SHA256 in hex."""
    claimed = (signature or "").encode("utf-8", "replace")
    keys = [secret.encode("utf-8", "surrogateescape") for secret in secrets if secret]
    matches = [
        hmac.compare_digest(b"sha256=" + _hmac(key, body), claimed) for key in keys
    ]  # all: equally long for each
    return any(matches)


def _hmac(key: bytes, body: bytes) -> bytes:
    return hmac.new(key, body, hashlib.sha256).hexdigest().encode()


def read_delivery(headers: Mapping[str, str]) -> Delivery:
    """Read the headers, whose names are in lower case."""
    source = "gitea" if "x-gitea-event" in headers else "github"
    event, number, hook = (headers.get(f"x-github-{name}") for name in ("event", "delivery", "hook-id"))
    for name, value in (("X-GitHub-Event", event), ("X-GitHub-Delivery", number), ("X-GitHub-Hook-ID", hook or "-")):
        if not _ID.fullmatch(value or ""):
            raise InputRefused(f"{name} is missing or not an id", where=name, next="send the headers that GitHub sends")
    return Delivery(source, str(event), str(number), hook)


def read_notice(delivery: Delivery, content_type: str, body: bytes) -> Notice:
    """Read a signed body: JSON, or a form with the JSON in its field `payload`."""
    payload = _payload(content_type, body)
    repository = _text(payload, "repository", "full_name")
    if delivery.event == "ping":
        return Nothing("ping", repository, is_ping=True)
    if delivery.event != "push":
        return Nothing(f"the event {delivery.event} queues no run", repository)
    after, git_ref = _required(payload, "after"), _required(payload, "ref")
    if not _SHA.fullmatch(after):
        raise InputRefused("after must be a commit's full id", where="after", next="send 40 or 64 hexadecimal digits")
    if payload.get("deleted") is True or set(after) == {"0"}:
        return Nothing("the ref was deleted", repository, git_ref)
    actor = _text(payload, "sender", "login") or _text(payload, "pusher", "login") or _text(payload, "pusher", "name")
    return Push(_required(payload, "repository", "full_name"), git_ref, after, actor, _metadata(delivery, payload))


def _payload(content_type: str, body: bytes) -> dict[str, Any]:
    try:
        text = body.decode("utf-8")
        if content_type.partition(";")[0].strip().lower() == FORM:
            (text,) = parse_qs(text, strict_parsing=True, max_num_fields=10).get("payload", [])
        payload = json.loads(text)
    except (ValueError, RecursionError):  # the body may hold anything, so nothing of it is repeated
        raise InputRefused(
            "the body is not JSON", where="body", next="send JSON, or a form with a field `payload`"
        ) from None
    if not isinstance(payload, dict):
        raise InputRefused("the body is not a JSON object", where="body", next="send the payload that GitHub sends")
    return payload


def _metadata(delivery: Delivery, payload: dict[str, Any]) -> dict[str, Any]:
    """Return what a run keeps of a push, for people."""
    commit = payload.get("head_commit")
    kept = {
        "trigger": "webhook",
        "source": delivery.source,
        "delivery": delivery.number,
        "repository": _text(payload, "repository", "full_name"),
        "author": _text(commit, "author", "username") or _text(commit, "author", "name"),
        "pusher": _text(payload, "pusher", "name") or _text(payload, "pusher", "login"),
        "message": _text(commit, "message"),
        "before": _text(payload, "before"),
        "compare": _text(payload, "compare") or _text(payload, "compare_url"),
        "forced": True if payload.get("forced") is True else None,
    }
    return {name: value for name, value in kept.items() if value is not None}


def _text(value: Any, *path: str) -> str | None:
    """Return the first line of the text at a path, if there is one, without characters that cannot be stored."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if not isinstance(value, str):
        return None
    return _CONTROL.sub("\ufffd", value.partition("\n")[0][:LONGEST]) or None


def _required(payload: dict[str, Any], *path: str) -> str:
    """Return the text at a path as it is, because it selects an environment; raise if it cannot be right."""
    value: Any = payload
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if not isinstance(value, str) or not value or len(value) > LONGEST_NAME or _CONTROL.search(value):
        name = ".".join(path)
        raise InputRefused(f"the push has no valid {name}", where=name, next="send the payload that GitHub sends")
    return value
