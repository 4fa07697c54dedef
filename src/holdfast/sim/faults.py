"""What can go wrong in a simulated shop: faults by name, each with its share, count and seed."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from holdfast.errors import BadInput

CALLS = {
    "rate_limited": "429, with `retry_after` if given (seconds, junk, or date+3 for a date in 3 s)",
    "busy": "503, with `retry_after` if given",
    "error_before": "`status` (500), and nothing is written",
    "error_after": "everything is written, then `status` (500)",
    "reset": "the connection is reset before anything is written",
    "slow": "the answer comes after `seconds` (1)",
    "lost_after": "everything is written, and the connection closes without an answer",
    "lost_before": "nothing is written, and the connection closes without an answer",
    "late": "the connection closes without an answer, and everything is written `seconds` (1) later",
    "short": "the answer lacks its last result",
    "foreign": "the answer's last result has the id of another item",
    "unauthorized": "401",
    "rejected": "`status` (422) for a call with one of `items`; for any call without `items`",
    "not_json": "everything is written, and the answer is not JSON",
    "cut_off": "everything is written, and the answer ends in its middle",
    "huge": "everything is written, and the answer has 100 MB",
    "other_currency": "prices come in another currency",
    "number_price": "prices are numbers instead of text",
    "redirect": "302 to another address",
    "clock_off": "the Date header is `seconds` (3600) off",
}
ITEMS = {
    "refused": "the item gets error `status` (422) and keeps its price",
    "edited": "a third party changes the item's price just before the write",
}
PLACES = ("write", "read", "list", "health", "all")


@dataclass
class Fault:
    """One fault. `share` is of the calls, or of the items of a call; `count` bounds how often it happens."""

    name: str
    share: float = 1.0
    count: int | None = None
    seed: int = 0
    on: str = "write"
    status: int | None = None
    retry_after: str | None = None
    seconds: float | None = None
    items: tuple[str, ...] = ()
    happened: int = 0
    chance: random.Random = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.name not in CALLS and self.name not in ITEMS:
            raise BadInput(f"there is no fault {self.name!r:.40}", where="fault",
                           next=f"use one of {', '.join([*CALLS, *ITEMS])}")  # fmt: skip
        if self.on not in PLACES:
            raise BadInput(f"on must be one of {', '.join(PLACES)}, got {self.on!r:.40}", where="on",
                           next=f"use on={PLACES[0]}")  # fmt: skip
        if not 0 <= self.share <= 1:
            raise BadInput(f"share must be 0 to 1, got {self.share}", where="share", next="use 0.1")
        self.chance = random.Random(f"{self.name} {self.seed}")  # noqa: S311 - it must be repeatable

    def happens(self, place: str, ids: Iterable[str] = ()) -> bool:
        """Draw whether it happens to a call, or to an item."""
        if self.on not in {place, "all"} or (self.count is not None and self.happened >= self.count):
            return False
        if self.items and set(self.items).isdisjoint(ids):
            return False
        if self.share < 1 and self.chance.random() >= self.share:
            return False
        self.happened += 1
        return True

    def shown(self) -> dict[str, Any]:
        """Return it as `/_sim` shows it."""
        return {**{each.name: getattr(self, each.name) for each in fields(self) if each.init}, "items": [*self.items]}


class Faults:
    """The faults of a shop, in order: of the faults of whole calls, the first that happens applies."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self.all = list(faults)

    def of_call(self, place: str, ids: Iterable[str]) -> Fault | None:
        """Return what happens to a call; None if nothing does."""
        return next((fault for fault in self.all if fault.name in CALLS and fault.happens(place, ids)), None)

    def of_item(self, name: str, item_id: str) -> Fault | None:
        """Return whether a fault of that name happens to an item of a write."""
        return next((fault for fault in self.all if fault.name == name and fault.happens("write", (item_id,))), None)


def read_fault(text: str) -> Fault:
    """Read a fault as the command line writes it: `rate_limited:share=0.1,count=5,retry_after=3`."""
    name, _, options = text.partition(":")
    values: dict[str, Any] = {}
    for option in filter(None, options.split(",")):
        key, sign, value = option.partition("=")
        if not sign:
            raise BadInput(f"a fault's options must be written name=value, got {option!r:.40}", where="fault",
                           next="write share=0.1")  # fmt: skip
        values[key.strip()] = value.strip()
    return fault_of({"name": name.strip(), **values})


def fault_of(given: Mapping[str, Any]) -> Fault:
    """Read a fault as `/_sim` takes it, or with its options as text; `items` in text are separated by |."""
    known = {each.name for each in fields(Fault) if each.init}
    odd = next((name for name in given if name not in known), None)
    if odd is not None:
        raise BadInput(f"a fault has no option {odd!r:.40}", where="fault", next=f"use {', '.join(sorted(known))}")
    made = dict(given)
    try:
        for name, kind in (("share", float), ("seconds", float), ("count", int), ("seed", int), ("status", int)):
            if made.get(name) is not None:
                made[name] = kind(made[name])
    except (TypeError, ValueError):
        raise BadInput(f"{name} must be a number, got {made[name]!r:.40}", where=name, next=f"write {name}=1") from None
    items = made.get("items") or ()
    made["items"] = tuple(items.split("|") if isinstance(items, str) else items)
    return Fault(**made)
