"""Flows as YAML that cannot work: refused, with the file, the place and the way on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from flow.define.test_yaml import BILLING, ORDER
from holdfast import Holdfast
from holdfast.errors import BadDefinition
from holdfast.flow import schema
from holdfast.flow.yaml import document, parse

NOWHERE = "postgresql:///none"  # nothing is connected before the first use
SMALL = """
name: small
version: '1'
steps:
  - name: first
    config: {a: 1}
    retry: 2
  - name: second
    after: [first]
"""


def nothing() -> None: ...


HANDLERS = {"first": nothing, "second": nothing}


REFUSED = {
    "unknown key": ("after:", "aftr:", r"steps\[1\]\.aftr is not known; did you mean after\?"),
    "unknown key at the top": ("name: small", "name: small\nstep: 1", r"step is not known; did you mean steps\?"),
    "a number for a version": ("'1'", "1.10", r"version is not in quotes, .* 1\.10 as the number 1\.1"),
    "no name": ("name: small", "", "name is missing"),
    "no step name": ("name: second", "queue: mail", r"steps\[1\]\.name is missing"),
    "no steps": (SMALL, "name: small\nsteps: []\n", "steps: .*at least 1 item"),
    "a word for a number": ("retry: 2", "retry: yes", r"steps\[0\]\.retry: input should be a valid integer"),
    "negative retry": ("retry: 2", "retry: -2", "retry .*-2"),
    "a number for names": ("[first]", "5", r"steps\[1\]\.after: .*string"),
    "no duration": ("retry: 2", "timeout: soon", r"steps\[0\]\.timeout: .*duration"),
    "an empty duration": ("retry: 2", "lease: 0", r"steps\[0\]\.lease: .*longer than 0"),
    "priority": ("retry: 2", "priority: 10", r"steps\[0\]\.priority: .* 9"),
    "key twice": ("retry: 2", "retry: 2\n    retry: 3", "line 8: .*retry"),
    "name twice": ("name: second", "name: first", r"steps\[1\]\.name .*first.* steps\[0\]\.name"),
    "unknown parent": ("[first]", "[frist]", "second .*frist, .*first, second"),
    "itself": ("[first]", "[second]", "second .*itself"),
    "each of itself": ("after: [first]", "each: second", "second .*itself"),
    "a cycle": ("retry: 2", "after: second", "(first → second → first|second → first → second)"),
    "a bad name": ("name: second", "name: to-day\n    handler: first", "'to-day'"),
    "no item": ("after: [first]", "each: first", "called item"),
    "no handler": (
        "name: second", "name: secnd", r"steps\[1\]\.handler: .*secnd; .*second",
    ),
    "no module": (
        "retry: 2", "handler: no.such:one", r"steps\[0\]\.handler: no\.such:one",
    ),
    "no function": ("retry: 2", "handler: flow.yaml_handlers:x", "flow.yaml_handlers:x"),
    "not callable": (
        "retry: 2", "handler: flow.yaml_handlers:SHOP", "flow.yaml_handlers:SHOP .*str",
    ),
    "no condition": ("retry: 2", "when: maybe", r"steps\[0\]\.when: .*maybe"),
    "no flow": ("retry: 2", "flow: other", "other .*default"),
    "no file": ("retry: 2", "flow: other.yaml", "other.yaml .*file"),
    "cpu with when": ("retry: 2", "cpu: true\n    when: second", r"steps\[0\]\.cpu: "),
    "an unknown backoff": (
        "version: '1'", "backoff: {max_backof: 1}", r"backoff\.max_backof .*max_",
    ),
    "a bad backoff": (
        "version: '1'", "backoff: {max_backoff_seconds: -1}", r"max_backoff_seconds: .*-1",
    ),
    "a text for seconds": (
        "version: '1'", "backoff: {buffer_seconds: five}", r"backoff\.buffer_seconds: ",
    ),
    "no schema": ("version: '1'", "context: {type: objet}", "small .*type: 'objet'"),
    "no object": (
        "version: '1'", "context: {type: array}", "type: object",
    ),
    "a schema elsewhere": (
        "version: '1'", "context: {type: object, properties: {a: {$ref: other.json}}}", "other.json",
    ),
    "another dialect": ("version: '1'", "context: {$schema: 'x', type: object}", "dialect"),
    "a python object": ("{a: 1}", "{a: !!python/name:os.system x}", "line 6: .*!!python/name:os.system"),
    "bytes": ("{a: 1}", "{a: !!binary aGk=}", "!!binary"),
    "a key that is no text": ("{a: 1}", "{1: a}", "'1'.*quotes"),
    "an environment's key": ("version: '1'", "environments: {e: {setps: {}}}", r"environments\.e\.setps "),
    "an environment's step": (
        "version: '1'", "environments: {e: {steps: {frist: {}}}}",
        r"environments\.e\.steps\.frist .*first",
    ),
    "an environment's value": (
        "version: '1'", "environments: {e: {steps: {first: {retry: no}}}}",
        r"e: steps\[0\]\.retry: .*integer",
    ),
    "no YAML": ("[first]", "[first", r"line \d+, column \d+: "),
    "no mapping": (SMALL, "- a\n- b\n", "mapping"),
    "nothing": (SMALL, "# to do\n", "is empty"),
    "too long": (SMALL, "#" * 1_000_001 + "\n", "1000000 .* 1000002"),
    "too deep": ("[first]", "[" * 5000, "too deep"),
    "inside itself": ("{a: 1}", "&a {a: *a}", "itself"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_document_that_cannot_work_is_refused_with_its_file_and_place(tmp_path: Path, case: str) -> None:
    """T-01, T-17, T-18, T-23, C-56, C-57."""
    old, new, said = REFUSED[case]
    assert old in SMALL
    path = tmp_path / "small.yaml"
    path.write_text(SMALL.replace(old, new, 1), "utf-8")

    with pytest.raises(BadDefinition, match=said) as refused:
        Holdfast(NOWHERE).flow_from(path, handlers=HANDLERS)
    assert str(refused.value).startswith(str(tmp_path))


@pytest.mark.parametrize("merge", [False, True], ids=["in lists", "by merge keys"])
def test_aliases_that_multiply_are_counted_before_they_are_read(merge: bool) -> None:
    """A billion values out of a page of text."""
    first = "a0: &a0 {x: 1}\n" if merge else "a0: &a0 [x]\n"
    opening, closing = ("{<<: [", "]}") if merge else ("[", "]")
    lines = [f"a{n}: &a{n} {opening}{', '.join([f'*a{n - 1}'] * 10)}{closing}\n" for n in range(1, 10)]

    with pytest.raises(BadDefinition, match="100000 values"):
        parse.read(first + "".join(lines), "it")


def test_words_are_words() -> None:
    """As YAML 1.2 has it: no Norway problem, no minutes, no dates, no octal numbers; JSON's own are read."""
    text = "a: [no, on, 12:30, 2026-01-01, 010, 1_000, .inf, ~, null, true, -1, 1.5, 1e3, 1.10]"

    assert parse.read(text, "it") == {
        "a": ["no", "on", "12:30", "2026-01-01", "010", "1_000", ".inf", None, None, True, -1, 1.5, 1000.0, 1.1]
    }


def test_the_schema_for_editors_is_current_and_says_what_the_check_says() -> None:
    """It is written by `make docs`."""
    path = Path(__file__).parents[3] / "docs" / "reference" / "flow.schema.json"
    assert path.read_text("utf-8") == schema.written(), "run `make docs`"

    validator = Draft202012Validator(json.loads(schema.written()))
    Draft202012Validator.check_schema(document.schema())
    for text in (ORDER, BILLING, SMALL):
        assert list(validator.iter_errors(parse.read(text, "it"))) == []
    for case in ("unknown key", "a number for a version", "no step name", "no steps", "an unknown backoff", "priority"):
        old, new, _ = REFUSED[case]
        assert list(validator.iter_errors(parse.read(SMALL.replace(old, new, 1), "it"))), case
