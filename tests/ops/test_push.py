"""What a webhook says, read without a socket: signatures, and bodies of every kind (R36)."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import InputRefused
from holdfast.ops.push import Delivery, Notice, is_signed, read_notice
from ops.hooks import OLD, SECRET, push, signed

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
GITHUB = Delivery("github", "push", "d1", "7")


def test_the_signature_is_that_of_githubs_own_example() -> None:
    digest = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"

    assert is_signed(b"Hello, World!", digest, [SECRET])
    assert is_signed(b"Hello, World!", digest, [OLD, SECRET])
    assert not is_signed(b"Hello, World! ", digest, [SECRET])
    assert not is_signed(b"Hello, World!", digest, [OLD])
    assert not is_signed(b"Hello, World!", digest, [])
    assert not is_signed(b"Hello, World!", signed(b"Hello, World!", ""), [""])
    assert not is_signed(b"Hello, World!", digest.removeprefix("sha256="), [SECRET])
    assert not is_signed(b"Hello, World!", "sha256=é", [SECRET])
    assert not is_signed(b"Hello, World!", None, [SECRET])


@PATIENT
@given(st.binary(max_size=200), st.sampled_from(["push", "ping"]), st.booleans())
def test_no_body_breaks_the_reader(body: bytes, event: str, is_form: bool) -> None:
    kind = "application/x-www-form-urlencoded" if is_form else "application/json"
    try:
        notice: Notice | None = read_notice(Delivery("github", event, "d"), kind, body)
    except InputRefused:
        notice = None
    assert notice is None or event == "ping"


_scalars = st.none() | st.booleans() | st.integers() | st.text("a/\x00\n\udc80é", max_size=5)


def _grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=2) | st.dictionaries(st.just("name"), inner)


@PATIENT
@given(st.sampled_from(sorted(json.loads(push()))), st.recursive(_scalars, _grown))
def test_no_payload_breaks_the_reader(field: str, value: Any) -> None:
    """What it returns can be stored."""
    body = json.dumps({**json.loads(push()), field: value}).encode()
    try:
        notice = read_notice(GITHUB, "application/json", body)
    except InputRefused:
        return
    assert "\x00" not in repr(notice)
    repr(notice).encode()
