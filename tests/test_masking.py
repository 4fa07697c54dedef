"""Masking: no secret survives, in whatever form it is written and wherever its output is cut (R37)."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.masking import LEAST, MASK, RECENT, Masker, forms
from holdfast.secret_names import looks_secret, mask_named_text

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
CANARY = "hf-canary-\"7'é\n/+ 1"
# Few letters, so that secrets overlap, repeat and begin like each other.
letters = st.sampled_from('ab"\\\né %')
secrets = st.lists(st.text(letters, min_size=LEAST, max_size=12).filter(lambda s: len(s.strip()) >= LEAST), max_size=4)
plain = st.text(letters, max_size=30)


@st.composite
def outputs(draw: st.DrawFn) -> tuple[list[str], str]:
    """Some secrets, and a text that contains them, parts of them and other things."""
    chosen = draw(secrets)
    halves = [secret[: len(secret) // 2] for secret in chosen]
    parts = st.one_of(plain, *([st.sampled_from(chosen), st.sampled_from(halves)] if chosen else []))
    return chosen, "".join(draw(st.lists(parts, max_size=6)))


@PATIENT
@given(outputs(), st.data())
def test_a_stream_in_any_chunks_equals_the_masked_text(example: tuple[list[str], str], data: st.DataObject) -> None:
    chosen, text = example
    masker, raw = Masker(chosen), text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    stream = masker.stream()
    chunks = [raw[start:end] for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True)]

    written = "".join(map(stream.feed, chunks)) + stream.close()

    assert written == masker.text(text)
    assert not any(form in written for secret in chosen for form in forms(secret))


def test_a_stream_cut_at_every_byte_hides_the_secret_and_delays_nothing_else() -> None:
    masker = Masker([CANARY])
    raw = f"before {CANARY}{CANARY} after, {CANARY[:9]}".encode()

    for cut in range(len(raw) + 1):
        stream = masker.stream()
        assert stream.feed(raw[:cut]) + stream.feed(raw[cut:]) + stream.close() == f"before ****** after, {CANARY[:9]}"
    one_by_one = masker.stream()
    written = [one_by_one.feed(raw[at : at + 1]) for at in range(len(raw))]
    assert "".join([*written, one_by_one.close()]) == f"before ****** after, {CANARY[:9]}"
    assert "".join(written[:7]) == "before "


def _grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(plain, inner, max_size=2)


@PATIENT
@given(outputs(), st.recursive(st.just("secret"), _grown))
def test_no_secret_survives_in_json(example: tuple[list[str], str], shape: Any) -> None:
    chosen, text = example
    masker = Masker(chosen)
    value = _filled(shape, text)
    for written in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        masked = masker.json(written)
        assert json.loads(masked) == json.loads(json.dumps(masker.value(value)))
        texts = list(_texts(json.loads(masked)))
        assert not any(form in text for text in texts for secret in chosen for form in forms(secret))


@pytest.mark.parametrize(
    "written",
    [
        CANARY, json.dumps(CANARY), json.dumps(CANARY, ensure_ascii=False), json.dumps({"a": json.dumps(CANARY)}),
        repr(CANARY), shlex.quote(CANARY), json.dumps(shlex.quote(CANARY)),
        f"https://host/?key={quote(CANARY, safe='')}", f"https://u:{quote(CANARY)}@host/",
    ],
)  # fmt: skip
def test_every_form_of_a_secret_is_masked(written: str) -> None:
    masked = Masker([CANARY]).text(f"<{written}>")

    assert "canary" not in masked
    assert MASK in masked


def test_each_line_of_a_long_secret_is_masked_by_itself() -> None:
    key = "-----BEGIN KEY-----\n  MIIEvQIBADAN\n  x\n-----END KEY-----"

    assert Masker([key]).text("log: MIIEvQIBADAN, x") == "log: ***, x"


def test_a_short_value_is_not_masked_and_the_caller_learns_it() -> None:
    masker = Masker()

    assert not masker.add("12345")
    assert not masker.hold(" 12345\n")
    assert masker.add("123456")
    assert masker.value({"short": 12345, "long": 1234567, "is": True}) == {"short": 12345, "long": MASK, "is": True}
    assert masker.json('{"n": 91234560.5, "m": [1.50, 12345]}') == '{"n": "***", "m": [1.50, 12345]}'.replace("50", "5")


def test_what_has_no_secret_stays_the_same_object() -> None:
    masker = Masker(["abcdef"])
    value = {"at": datetime.now(UTC), "rows": [(1, "x"), {"y"}], "n": 2.5}

    assert masker.value(value) is value
    assert masker.shown(value) is value
    assert Masker().value(value) is value
    assert masker.value({"abcdef": [b"abcdef", ("abcdef", 1)]}) == {MASK: [MASK, [MASK, 1]]}


def test_a_held_value_stays_masked_for_a_while_after_its_attempt() -> None:
    masker = Masker()
    masker.hold("session-1")
    masker.hold("session-1")
    masker.release(["session-1"])
    assert masker.text("session-1") == MASK
    masker.release(["session-1"])
    assert masker.text("session-1") == MASK
    for number in range(RECENT):
        masker.hold(f"token-{number:03}")
        masker.release([f"token-{number:03}"])

    assert masker.text("session-1 token-000 token-099") == "session-1 *** ***"


def test_only_a_named_secret_is_found_in_an_argument() -> None:
    masker = Masker(["postgres"])
    masker.add(CANARY, "STRIPE_KEY")

    assert masker.stored_name(json.dumps({"user": "postgres"})) is None
    assert masker.stored_name(json.dumps({"nested": [f"key {CANARY}"]})) == "STRIPE_KEY"
    copy = Masker()
    for value, name in masker.values():
        copy.add(value, name)
    assert copy.stored_name(json.dumps(CANARY)) == "STRIPE_KEY"


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("authorization", True), ("Proxy-Authorization", True), ("password", True), ("db_password", True),
        ("passwordHash", True), ("X-Api-Key", True), ("apiKey", True), ("AWS_SECRET_ACCESS_KEY", True),
        ("access_token", True), ("Set-Cookie", True), ("cookies", True), ("clientSecret", True), ("private_key", True),
        ("tokens", False), ("token_type", False), ("prompt_tokens", False), ("key", False), ("primary_key", False),
        ("secret_name", False), ("monkey", False), ("message", False), ("", False),
    ],
)  # fmt: skip
def test_names_that_look_secret(name: str, is_secret: bool) -> None:
    assert looks_secret(name) is is_secret


def test_values_are_masked_by_name_where_people_read_them() -> None:
    fields = {"headers": {"Authorization": "Bearer x", "Accept": "*/*"}, "password": "pw", "token": None, "tokens": 12}

    assert Masker().shown(fields) == {
        "headers": {"Authorization": MASK, "Accept": "*/*"}, "password": MASK, "token": None, "tokens": 12,
    }  # fmt: skip
    assert Masker().value(fields) is fields


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("GET https://ann:pa%20ss@host/a failed", "GET https://ann:***@host/a failed"),
        ("GET /a?access_token=abc&page=2", "GET /a?access_token=***&page=2"),
        ("headers: {'Authorization': 'Bearer abc.def'}", "headers: {'Authorization': '***'}"),
        ('{"password": "a\\"b", "user": "ann"}', '{"password": "***", "user": "ann"}'),
        ("Authorization: Bearer abcdef.ghi", "Authorization: Bearer ***"),
        ("sent Bearer eyJ0eXAiOiJKV1QifQ.e30", "sent Bearer ***"),
        ("the token: it expired; basic functionality", "the token: it expired; basic functionality"),
        ("postgresql://ann@host:5432/db", "postgresql://ann@host:5432/db"),
    ],
)
def test_passwords_in_a_text_are_masked_by_name(text: str, masked: str) -> None:
    assert mask_named_text(text) == masked


def _filled(shape: Any, text: str) -> Any:
    match shape:
        case list():
            return [_filled(each, text) for each in shape]
        case dict():
            return {key: _filled(each, text) for key, each in shape.items()}
    return text


def _texts(value: Any) -> Iterator[str]:
    """All texts in a value, the names of its fields included."""
    match value:
        case list():
            yield from (text for each in value for text in _texts(each))
        case dict():
            yield from (text for pair in value.items() for each in pair for text in _texts(each))
        case _:
            yield str(value)
