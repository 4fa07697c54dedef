"""Prints the output of commands: data on stdout, for people on a terminal or as JSON; everything else on stderr.

Text from the database is untrusted: characters that control a terminal are escaped, and nothing is read as markup.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.console import Console
from rich.text import Text

from holdfast import masking
from holdfast.errors import HoldfastError
from holdfast.kernel.query import JsonText
from holdfast.reads.run_page import span_text

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
# Control characters, changes of the writing direction, and surrogates.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_NO_JSON_ESCAPE = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_quiet: list[bool] = []


def be_quiet() -> None:
    """Print only data and errors from now on."""
    _quiet.append(True)


def is_quiet() -> bool:
    """Return whether only data and errors are printed."""
    return bool(_quiet)


def drop_colour() -> None:
    """Print without colour from now on."""
    os.environ["NO_COLOR"] = "1"


def is_terminal() -> bool:
    """Return whether people read our data, not a program."""
    return Console().is_terminal


def plain(text: str, *, keep: str = "") -> str:
    """Escape characters that control a terminal; `keep` lists characters that may stay."""
    return _STEERING.sub(lambda found: found[0] if found[0] in keep else _escape(found[0]), text)


def data(text: str) -> None:
    """Print a line of data."""
    sys.stdout.write(f"{text}\n")


def data_json(value: object) -> None:
    """Print data as JSON: times in ISO 8601 and UTC, JSON from the database unchanged."""
    data(as_json(value, indent=2))


def data_line(value: object) -> None:
    """Print data as one line of JSON, and flush it for followers."""
    data(as_json(value, indent=None))
    sys.stdout.flush()


def as_json(value: object, *, indent: int | None) -> str:
    """Return JSON without characters that control a terminal."""
    raw: list[str] = []

    def keep(found: Any) -> Any:
        match found:
            case JsonText():
                raw.append(found.text)
                return f"\x00{len(raw) - 1}\x00"  # no text from the database has a NUL
            case _ if is_dataclass(found) and not isinstance(found, type):
                return keep(asdict(found))
            case dict():
                return {name: keep(member) for name, member in found.items()}
            case list() | tuple():
                return [keep(member) for member in found]
            case _:
                return found

    text = json.dumps(keep(value), default=text_of, ensure_ascii=False, indent=indent)
    text = re.sub(r'"\\u0000(\d+)\\u0000"', lambda mark: raw[int(mark[1])], text)
    return _NO_JSON_ESCAPE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def data_pairs(pairs: Mapping[str, object]) -> None:
    """Print names and values, one per line, without missing values."""
    width = max(map(len, pairs), default=0)
    for name, value in pairs.items():
        if value is not None:
            data(f"{name.replace('_', ' '):<{width}}  {plain(text_of(value))}")


@dataclass(frozen=True, slots=True)
class Styled:
    """A cell with a style; its sign is shown only on a terminal."""

    text: str
    style: str
    sign: str = ""


def cut(text: str, longest: int) -> str:
    """Shorten a text."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def folded(text: str, *, lines: int) -> Iterator[str]:
    """Yield the first lines of a long text, and how many more there are."""
    parts = text.splitlines()
    yield from (plain(line, keep="\t") for line in parts[:lines])
    if len(parts) > lines:
        yield f"… {len(parts) - lines} more lines; --json has them all"


def heading(text: str) -> None:
    """Print the name of a section."""
    data("")
    Console(highlight=False, soft_wrap=True).print(Text(text, style="bold"))


def say(text: str) -> None:
    """Print a message for people, which is not data."""
    if not is_quiet():
        masked = plain(masking.known.text(text), keep="\n")
        Console(stderr=True, highlight=False, soft_wrap=True).print(Text(masked))


def show_error(error: HoldfastError, *, as_json: bool) -> None:
    """Print an error and what to do next."""
    what, notes = masking.known.shown([error.what, getattr(error, "__notes__", [])])
    if as_json:
        parts = {"error": type(error).__name__, "what": what, "where": error.where, "next": error.next}
        sys.stderr.write(json.dumps(parts | {"exit_code": error.exit_code, "notes": notes}) + "\n")
        return
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(Text.assemble(("error: ", "bold red"), plain(what, keep="\n")))
    for note in notes:
        console.print(Text(plain(note, keep="\n\t")))
    if error.next is not None:
        console.print(Text.assemble(("next:  ", "bold"), plain(error.next, keep="\n")))


def text_of(value: object) -> str:
    """Format a value as text: a time in ISO 8601 and UTC, a list with commas, None as nothing."""
    match value:
        case None:
            return ""
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case bool():
            return "yes" if value else "no"
        case timedelta():
            return span_text(value)
        case Path() | str() | int() | float() | UUID():
            return str(value)
        case list():
            return ", ".join(map(str, value)) or "none"
        case _:
            raise TypeError(f"cannot print a {type(value).__name__}")


def _escape(character: str) -> str:
    number = ord(character)
    return {9: r"\t", 10: r"\n", 13: r"\r"}.get(number) or (
        f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
    )
