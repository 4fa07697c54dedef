"""Replaces secrets by `***` before they leave the process: in texts, in JSON and in streams of output.

`known` holds the secrets of this process. `Env.read`, the opener of connections and `ctx.mask` add to it, and each exit
(outcomes, notes, events, log lines, spans, metrics, output of programs) passes through it. Without secrets it costs
nothing but the call.
"""

from __future__ import annotations

import codecs
import json
import threading
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus

from holdfast.secret_names import MASK, looks_secret, mask_named_text

LEAST = 6  # characters: shorter values would also be found inside ordinary words
HELD = "ctx.mask"  # the name of values that handlers pass to it
RECENT = 100  # values of ended attempts that stay masked, for lines that arrive late


class Masker:
    """A set of secrets. All methods may be called from any thread."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._kept: dict[str, str | None] = {}  # with the name of each, if callers must not store it as an argument
        self._held: Counter[str] = Counter()  # of running attempts
        self._recent: deque[str] = deque(maxlen=RECENT)
        self._needles: tuple[str, ...] = ()  # all forms of all secrets; replaced as a whole, so readers need no lock
        self._lock = threading.Lock()
        for value in values:
            self.add(value)

    def add(self, value: str, name: str | None = None) -> bool:
        """Mask a value from now on; return False if it is too short for that.

        A value with a name is also refused as an argument of a start: see `stored_name`.
        """
        if value in self._kept and (name is None or self._kept[value] is not None):
            return True
        if not is_maskable(value):
            return False
        with self._lock:
            self._kept[value] = name
            self._rebuild()
        return True

    def hold(self, value: str) -> bool:
        """Mask a value until `release`; return False if it is too short for that."""
        if not is_maskable(value):
            return False
        with self._lock:
            self._held[value] += 1
            self._rebuild()
        return True

    def release(self, values: Iterable[str]) -> None:
        """Give up values that were held; the last hundred stay masked."""
        with self._lock:
            for value in values:
                self._held[value] -= 1
                if not self._held[value]:
                    del self._held[value]
                    self._recent.append(value)
            self._rebuild()

    def values(self) -> list[tuple[str, str | None]]:
        """Return the secrets with their names, for a process that has to mask them too."""
        with self._lock:
            return list((dict.fromkeys([*self._held, *self._recent], HELD) | self._kept).items())

    def text(self, text: str) -> str:
        """Mask the secrets in a text."""
        for needle in self._needles:
            if needle in text:
                masked, _ = _masked(text, self._needles, 0, len(text))
                return masked
        return text

    def value(self, value: Any) -> Any:
        """Mask the secrets in a value and in all that it contains; what has none stays the same object."""
        return self._value(value) if self._needles else value

    def json(self, text: str) -> str:
        """Mask the secrets in JSON that is given as text; it stays valid JSON."""
        for needle in self._needles:  # not any(…), which takes longer than all of this for most results
            if needle in text:
                break
        else:
            return text
        try:
            return json.dumps(self._value(json.loads(text, parse_int=self._int, parse_float=self._float)))
        except (RecursionError, ValueError):
            return json.dumps(MASK)

    def shown(self, value: Any) -> Any:
        """Mask what people read (errors, notes, log fields): also the values under names that look secret."""
        return self._value(value, by_name=True)

    def stored_name(self, text: str) -> str | None:
        """Return the name of the first named secret that JSON contains, because nobody may store it as an argument."""
        for needle in self._needles:  # not any(…), as in `json`: every start passes here
            if needle in text:
                break
        else:
            return None
        named = ((value, name) for value, name in self.values() if name is not None)
        return next((name for value, name in named if any(form in text for form in forms(value))), None)

    def stream(self) -> MaskedStream:
        """Return a stream that masks output as it appears, however it is cut into chunks."""
        return MaskedStream(self)

    @property
    def needles(self) -> tuple[str, ...]:
        """All forms of all secrets."""
        return self._needles

    def _rebuild(self) -> None:
        secrets = {*self._kept, *self._held, *self._recent}
        self._needles = tuple(sorted({form for each in secrets for form in forms(each)}))

    def _value(self, value: Any, *, by_name: bool = False) -> Any:
        match value:
            case str():
                return self.text(mask_named_text(value) if by_name else value)
            case None | bool():
                return value
            case int() | float():
                return value if self.text(text := repr(value)) == text else MASK
            case Mapping():
                pairs = [(self._value(k), self._member(k, v, by_name=by_name)) for k, v in value.items()]
                is_same = all(k is k_ and v is v_ for (k, v), (k_, v_) in zip(pairs, value.items(), strict=True))
                return value if is_same else dict(pairs)
            case list() | tuple() | set() | frozenset() | deque():
                items = [self._value(each, by_name=by_name) for each in value]
                return value if all(a is b for a, b in zip(items, value, strict=True)) else items
            case bytes() | bytearray():
                return self._object(value, bytes(value).decode("utf-8", "replace"))
        return self._object(value, str(value)) if self._needles else value

    def _object(self, value: Any, text: str) -> Any:
        """Mask what is written of an object, if that contains a secret."""
        return value if (masked := self.text(text)) == text else masked

    def _member(self, key: Any, value: Any, *, by_name: bool) -> Any:
        if by_name and isinstance(key, str) and not _says_nothing(value) and looks_secret(key):
            return MASK
        return self._value(value, by_name=by_name)

    def _int(self, written: str) -> int | str:
        return int(written) if self.text(written) == written else MASK

    def _float(self, written: str) -> float | str:
        return float(written) if self.text(written) == written else MASK


class MaskedStream:
    """Masks output that arrives in chunks, bytes or text. It holds back what may be the beginning of a secret."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""  # not yet written
        self._covered = 0  # so many of its characters belong to a secret whose mask was written

    def feed(self, chunk: bytes | str) -> str:
        """Take a chunk, and return the text that can be shown now."""
        return self._written(chunk if isinstance(chunk, str) else self._decoder.decode(chunk), is_last=False)

    def close(self) -> str:
        """Return the rest."""
        return self._written(self._decoder.decode(b"", final=True), is_last=True)

    def is_idle_after(self, end: str) -> bool:
        """Return whether it holds back nothing now, and would hold back nothing of a text that ends so."""
        return not (self._text or self._covered or _unfinished(end, self._masker.needles))

    @property
    def longest(self) -> int:
        """The most characters that it may hold back at the end of a line: the length of a secret of several lines."""
        return max((len(needle) for needle in self._masker.needles if "\n" in needle), default=0)

    def _written(self, chunk: str, *, is_last: bool) -> str:
        needles = self._masker.needles
        text = self._text + chunk if self._text else chunk
        limit = len(text) if is_last else len(text) - _unfinished(text, needles)
        written, at = _masked(text, needles, self._covered, limit)
        self._text, self._covered = text[limit:], max(0, at - limit)
        return written


known = Masker()


def is_maskable(value: str) -> bool:
    """Return whether a value is long enough to be masked."""
    return len(value.strip()) >= LEAST


@lru_cache(1024)
def forms(value: str) -> frozenset[str]:
    """Return the ways in which a secret may be written: as it is, line by line, and quoted for JSON, shells or URLs."""
    parts = {part for part in (value, value.strip(), *map(str.strip, value.splitlines())) if is_maskable(part)}
    replaced = {_bytes(part).decode("utf-8", "replace") for part in parts}  # as output is decoded
    replaced |= {part.replace("'", quoted) for part in parts for quoted in ("'\"'\"'", "'\\''")}  # as shells write it
    escaped = {form for part in parts | replaced for form in (*_in_json(part), repr(part)[1:-1])}
    twice = {form for part in escaped for form in _in_json(part)}  # JSON inside JSON
    in_urls = {form for part in map(_bytes, parts) for form in (quote(part), quote(part, safe=""), quote_plus(part))}
    return frozenset(parts | replaced | escaped | twice | in_urls)


def _in_json(text: str) -> tuple[str, str]:
    return json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]


def _bytes(text: str) -> bytes:
    """Return the bytes of a text, also if they are not UTF-8, as a variable's may be."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _says_nothing(value: Any) -> bool:
    """Return whether a value is not worth a mask: it only says whether there is a secret."""
    return value is None or isinstance(value, bool) or value == ""


def _masked(text: str, needles: Iterable[str], covered: int, limit: int) -> tuple[str, int]:
    """Mask a text up to a limit, except its first characters, which are covered by a mask already.

    Secrets that overlap get one mask. Also return where the last of them ends, perhaps beyond the limit.
    """
    parts: list[str] = []
    at = covered
    for start, end in sorted(_spans(text, needles)):
        if start >= max(limit, at):
            break
        if start >= at:
            parts += text[at:start], MASK
        at = max(at, end)
    parts.append(text[at:limit])
    return "".join(parts), at


def _spans(text: str, needles: Iterable[str]) -> list[tuple[int, int]]:
    spans = []
    for needle in needles:
        at = text.find(needle)
        while at >= 0:
            spans.append((at, at + len(needle)))
            at = text.find(needle, at + 1)
    return spans


def _unfinished(text: str, needles: Iterable[str]) -> int:
    """Return how many characters at the end of a text may be the beginning of a secret."""
    longest = 0
    for needle in needles:
        at = text.find(needle[0], max(0, len(text) - len(needle) + 1))
        while at >= 0 and len(text) - at > longest:
            if needle.startswith(text[at:]):
                longest = len(text) - at
                break
            at = text.find(needle[0], at + 1)
    return longest
