"""Previews a rule: reads items, evaluates them and stores the plan. It writes nothing outside Holdfast.

Everything is read and evaluated before the transaction begins, because a channel may be slow and a transaction must not
be long. Until then results are spooled to a temporary file, so that memory stays flat.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from psycopg import Connection
from psycopg.pq.abc import PGconn
from psycopg.waiting import Ready, Wait

from holdfast.connections.deadline import within
from holdfast.errors import BadInput, TooLarge
from holdfast.failpoints import failpoint
from holdfast.kernel import db
from holdfast.kernel.call import Call
from holdfast.rules import calls
from holdfast.rules.channel import KeyOf
from holdfast.rules.language.evaluate import Change, Refusal, Unchanged, evaluator
from holdfast.rules.language.items import LONGEST_ID, Item, ItemRefused, check_item
from holdfast.rules.language.money import LARGEST_AMOUNT
from holdfast.rules.language.rule import Rule
from holdfast.rules.language.write_json import to_json

PATIENCE = timedelta(minutes=10)  # for one answer: a million targets take a minute
IN_MEMORY = 4_000_000  # bytes of a spool; beyond them it is a file
FLUSH_AFTER = 2_000  # lines
BLOCK = 262_144
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": None})
LONGEST_KEY = 400  # characters of a key that targets share calls by
_TAGS = (tuple, frozenset)


@dataclass(frozen=True, slots=True)
class Request:
    """A preview as it is stored: everything but its targets."""

    rule: Rule
    channel: str
    source: str = "api"
    metadata: Mapping[str, Any] | None = None
    project_id: str | None = None
    expires_in: timedelta = timedelta(hours=24)
    parent_run_id: Any = None
    key: str | None = None
    actor: str | None = None
    tenant: str = "default"


class Spool:
    """Lines for COPY, in memory while they are few."""

    def __init__(self, stack: ExitStack) -> None:
        self._file: IO[bytes] = stack.enter_context(SpooledTemporaryFile(max_size=IN_MEMORY))  # noqa: SIM115 - the stack's
        self._lines: list[str] = []
        self.count = 0

    def add(self, line: str) -> None:
        """Add a line that ends in a newline."""
        self._lines.append(line)
        self.count += 1
        if len(self._lines) >= FLUSH_AFTER:
            self._flush()

    def blocks(self) -> Iterator[bytes]:
        """Return everything, in blocks."""
        self._flush()
        self._file.seek(0)
        while block := self._file.read(BLOCK):
            yield block

    def _flush(self) -> None:
        self._file.write("".join(self._lines).encode("utf-8", "replace"))
        self._lines.clear()


class Evaluated:
    """The result of a rule on many items: targets and refusals as spools, everything else as counts."""

    def __init__(self, rule: Rule, stack: ExitStack, by: KeyOf | None = None) -> None:
        self._rule = rule
        self._by = by
        self._evaluate = evaluator(rule)
        self._flags = f"{'t' if rule.writes_price else 'f'}\t{'t' if rule.writes_compare_at else 'f'}"
        self.copy_targets = calls.COPY_TARGETS if by is None else calls.COPY_KEYED_TARGETS
        self.targets = Spool(stack)
        self.refusals = Spool(stack)
        self.unchanged = 0
        self.not_selected = 0
        self._unmatched = dict.fromkeys(rule.prices or ())  # in the order of the list

    @property
    def unmatched(self) -> list[str]:
        """The skus of a list of prices that no item has."""
        return list(self._unmatched)

    def take(self, items: Iterator[Item | Refusal]) -> None:
        """Evaluate all items."""
        most = self._rule.guard.most_targets
        sound = _checked(items)
        for item in self._matched(sound) if self._unmatched else sound:
            verdict = item if isinstance(item, Refusal) else self._evaluate(item)
            if type(verdict) is Change:
                self._add_target(verdict)
                if most is not None and self.targets.count > most:
                    raise TooLarge(
                        f"rule {self._rule.name} would change more than {most} items in one run",
                        where="most_targets",
                        next="select fewer items, or raise most_targets",
                    )
            elif type(verdict) is Unchanged:
                if verdict.is_selected:
                    self.unchanged += 1
                else:
                    self.not_selected += 1
            elif type(verdict) is Refusal:
                self._add_refusal(verdict)

    def _matched(self, items: Iterator[Item | Refusal]) -> Iterator[Item | Refusal]:
        for item in items:
            self._unmatched.pop(item.item_id if isinstance(item, Refusal) else item.sku or item.id, None)
            yield item

    def _add_target(self, change: Change) -> None:
        item, before, after = change
        was, now = before.compare_at, after.compare_at
        key = "" if self._by is None else _key(self._by, item)
        self.targets.add(
            f"{_text(item.id)}\t{before.currency}\t{before.unit_amount}\t{after.unit_amount}\t"
            f"{chr(92) + 'N' if was is None else was}\t{chr(92) + 'N' if now is None else now}\t{self._flags}{key}\n"
        )

    def _add_refusal(self, refusal: Refusal) -> None:
        before, after = refusal.before, refusal.after
        values = (
            _text(refusal.item_id),
            _text(refusal.reason),
            _text(refusal.message),
            None if before is None else before.currency,
            None if before is None else before.unit_amount,
            None if after is None else _stored(after.unit_amount),
        )
        self.refusals.add("\t".join("\\N" if value is None else str(value) for value in values) + "\n")


def _checked(items: Iterator[Any]) -> Iterator[Item | Refusal]:
    """Return the items; a malformed one becomes a refusal."""
    for item in items:
        if type(item) is Refusal or (type(item) is Item and _is_sound(item)):
            yield item
            continue
        try:
            check_item(item)
        except ItemRefused as error:
            yield Refusal(error.item_id, error.reason, error.what)
        else:
            yield item


def _is_sound(item: Item) -> bool:
    """Return whether an item is certainly right, by a glance: `check_item`, which names what is wrong, is slow."""
    item_id, price, currency, compare_at, cost, sku, tags, fields = item
    return (
        type(item_id) is str and item_id.isprintable() and 0 < len(item_id) <= LONGEST_ID and item_id != "*"
        and type(price) is int and -LARGEST_AMOUNT <= price <= LARGEST_AMOUNT
        and type(currency) is str
        and (compare_at is None or (type(compare_at) is int and -LARGEST_AMOUNT <= compare_at <= LARGEST_AMOUNT))
        and (cost is None or (type(cost) is int and -LARGEST_AMOUNT <= cost <= LARGEST_AMOUNT))
        and (sku is None or type(sku) is str)
        and type(tags) in _TAGS and type(fields) is dict
    )  # fmt: skip


def _key(by: KeyOf, item: Item) -> str:
    """Return the column that says which targets share calls."""
    key: Any = by(item)
    if not isinstance(key, str) or len(key) > LONGEST_KEY or "\0" in key:
        raise BadInput(f"by must return text of at most {LONGEST_KEY} characters, got {key!r:.60} for {item.id}",
                       where="by", next="group items by a shorter field")  # fmt: skip
    return f"\t{_text(key)}"


def _text(value: str) -> str:
    return value if value.isalnum() else value.translate(_ESCAPES)


def _stored(units: int | None) -> int | None:
    """Leave out a refused amount that the database could not hold."""
    return units if units is not None and abs(units) < 2**63 else None


@contextmanager
def evaluated(rule: Rule, items: Iterator[Item | Refusal], by: KeyOf | None = None) -> Iterator[Evaluated]:
    """Evaluate a rule on all items; the spools live as long as the block. Targets of one key `by` share calls."""
    with ExitStack() as stack:
        verdicts = Evaluated(rule, stack, by)
        verdicts.take(items)
        yield verdicts


def stored(connection: Connection[Any], verdicts: Evaluated, request: Request, *, apply: bool = False) -> calls.Preview:
    """Store a preview in one transaction, and with `apply` queue it in the same one."""
    with within(connection, PATIENCE), connection.transaction():
        db.run(connection, calls.stage_targets(request.channel, request.tenant))
        with connection.cursor() as cursor:
            for statement, spool in (
                (verdicts.copy_targets, verdicts.targets),
                (calls.COPY_REFUSALS, verdicts.refusals),
            ):
                if spool.count:
                    with cursor.copy(statement) as copy:
                        for block in spool.blocks():
                            copy.write(block)
                            connection.wait(_sent(connection.pgconn))
        preview = db.run(connection, _take(request, verdicts))[0]
        if apply:
            db.run(connection, calls.apply(preview.run_id, actor=request.actor))
        failpoint("before_preview_commit")
    failpoint("after_preview_commit")
    return preview


def _sent(pgconn: PGconn) -> Generator[Wait, Ready | int, None]:
    """Wait until the server has taken what was written: libpq keeps all of it in memory if the server is slower."""
    while pgconn.flush():
        while not (yield Wait.W):
            continue


def _take(request: Request, verdicts: Evaluated) -> Call[calls.Preview]:
    return calls.take_preview(
        to_json(request.rule),
        request.channel,
        unchanged=verdicts.unchanged,
        unmatched=verdicts.unmatched,
        source=request.source,
        metadata=request.metadata,
        project_id=request.project_id,
        expires_in=request.expires_in,
        parent_run_id=request.parent_run_id,
        key=request.key,
        actor=request.actor,
        tenant=request.tenant,
    )
