"""The limits of a handler's steps, and what the steps take from them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from holdfast.durations import Duration, duration
from holdfast.errors import BadDefinition, BadInput, HoldfastError
from holdfast.kernel import limit_calls
from holdfast.kernel.call import Call, problem

MOST = 3
MILLISECOND = timedelta(milliseconds=1)
LONGEST = timedelta(days=366)
IMPLICIT = ("queue:", "kind:", "tenant:")


@dataclass(frozen=True, slots=True)
class KindLimits:
    """The default limits of a kind's steps; `{field}` is replaced by a field of the input."""

    limits: tuple[str, ...] | None = None
    weight: str | None = None
    call_weight: float | None = None

    def of(self, written: str) -> tuple[list[str] | None, float | None]:
        """Fill in the fields of an input, as SQL does: the database may not know this kind yet."""
        if self.limits is None and self.weight is None:
            return None, None
        return self.filled(json.loads(written))

    def filled(self, fields: Any, source: str = "input") -> tuple[list[str] | None, float | None]:
        """Fill in the fields of an object; `source` is its name in an error."""
        names = None if self.limits is None else [filled_in(template, fields, source) for template in self.limits]
        return names, None if self.weight is None else _number(filled_in(self.weight, fields, source))

    def fields(self) -> dict[str, str]:
        """Map each field that its templates name to the template."""
        templates = [*(self.limits or ()), *([] if self.weight is None else [self.weight])]
        return {field: template for template in templates for field in _FIELD.findall(template)}


NONE = KindLimits()
_FIELD = re.compile(r"\{([^{}]+)\}")


def filled_in(template: str, fields: Any, source: str) -> str:
    """Replace each field that a template names by its value."""

    def value(match: re.Match[str]) -> str:
        field = _found(fields, match[1])
        if isinstance(field, bool) or not isinstance(field, (str, int, float)):
            raise BadInput(
                f"the {source} has no {match[1]}, which {template} needs",
                where=match[1],
                next="pass it as text or a number",
            )
        return str(field)

    return _FIELD.sub(value, template)


def _found(fields: Any, path: str) -> Any:
    """Return a field, or a field of a field: `order.shop`."""
    if isinstance(fields, dict) and path in fields:
        return fields[path]
    for name in path.split("."):
        fields = fields.get(name) if isinstance(fields, dict) else None
    return fields


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        next_ = "name a field that is a number"
        raise BadInput(f"weight must be a number, got {text!r}", where="weight", next=next_) from None


def read_limits(
    limits: Sequence[str] | None, weight: float | str | None, call_weight: float | None = None
) -> KindLimits:
    """Check the limits of `@hf.task`."""
    if isinstance(weight, str):
        if "{" not in weight:
            raise BadDefinition(
                f"weight must be a number or name a field of the input, got {weight!r}",
                where="weight",
                next='use 2, or "{tokens}"',
            )
    else:
        check_weight("weight", weight)
    check_weight("call_weight", call_weight)
    if weight == 0 and not call_weight:
        raise BadDefinition("weight must be above 0 where a call has no weight, got 0", where="weight", next="use 1")
    names = None if limits is None else check_limits(limits, BadDefinition)
    return KindLimits(names, None if weight is None else str(weight), call_weight)


def check_limits(limits: Any, error: type[HoldfastError]) -> tuple[str, ...]:
    """Raise for limits that a step cannot name."""
    if isinstance(limits, str) or not all(isinstance(name, str) for name in limits):
        raise error(f"limits must be a list of names, got {limits!r}", where="limits", next='use ["shop:acme"]')
    names = tuple(limits)
    if len(names) > MOST:
        raise error(
            f"a step names up to three limits, got {len(names)}: {', '.join(names)}",
            where="limits",
            next="limits of its queue, kind and tenant apply without being named",
        )
    for name in names:
        reason = problem("limit", name)
        if reason or "*" in name or name.startswith(IMPLICIT) or names.count(name) > 1:
            raise error(
                reason or f"limit {name} cannot be named by a step",
                where="limits",
                next="name each limit once, by its value: shop:acme; queue:, kind: and tenant: always apply",
            )
    return names


def check_weight(what: str, given: Any, error: type[HoldfastError] = BadDefinition) -> None:
    """Raise for a weight that cannot be charged."""
    is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
    if given is not None and not (is_number and 0 <= given < math.inf):
        raise error(f"{what} must be a number from 0, got {given!r}", where=what, next="leave it out for the default")


def limit_definition(
    name: str,
    *,
    concurrency: int | None,
    rate: float | None,
    per: Duration | None,
    burst: float | None,
    breaker_after: int | None,
    breaker_for: Duration | None,
    breaker_counts: Sequence[str] | None,
    tenant: str | None,
) -> Call[None]:
    """Check a rule here, before the database rejects it each time a worker connects, and return its call."""
    _check_rule_name(name)
    _check_number("concurrency", concurrency, least=0, is_whole=True, next="0 admits nothing")
    _check_number("rate", rate, next="to admit nothing, pause the limit")
    _check_number("burst", burst, next="leave it out for what comes in one `per`")
    _check_number("breaker_after", breaker_after, least=1, is_whole=True, next="use 6")
    if (rate is None) != (per is None):
        raise BadDefinition(f"limit {name}: rate and per go together", where="per", next="use rate=40, per=1")
    if rate is None and burst is not None:
        raise BadDefinition(f"limit {name}: burst goes with a rate", where="burst", next="use rate=40, per=1, burst=80")
    if (breaker_after is None) != (breaker_for is None):
        raise BadDefinition(
            f"limit {name}: breaker_after and breaker_for go together",
            where="breaker_after",
            next="use breaker_after=6, breaker_for=60",
        )
    _check_counts(name, breaker_counts, has_breaker=breaker_after is not None)
    if tenant is not None and (reason := problem("tenant", tenant)):
        raise BadDefinition(reason, where="tenant", next='use a name, or "*" for all tenants together')
    return limit_calls.define_limit(
        name,
        concurrency=concurrency,
        rate=rate,
        per=_span("per", per),
        burst=burst,
        breaker_after=breaker_after,
        breaker_for=_span("breaker_for", breaker_for),
        breaker_counts=breaker_counts,
        tenant=tenant,
        of_app=True,
    )


def _check_rule_name(name: Any) -> None:
    reason = problem("limit", name)
    if reason is None and "*" in name and (name != f"{name.partition(':')[0]}:*" or name.startswith(":")):
        reason = f"limit must be one name or a family, got {name}"
    if reason:
        raise BadDefinition(reason, where="name", next="use a name such as shop:acme, or shop:* for a family")


def _check_number(what: str, given: Any, *, least: int | None = None, is_whole: bool = False, next: str) -> None:  # noqa: A002
    """Raise for a number that is out of range; without `least` it must be above 0."""
    if given is None:
        return
    is_number = isinstance(given, int if is_whole else (int, float)) and not isinstance(given, bool)
    if not is_number or not (given >= least if least is not None else 0 < given < math.inf):
        wanted = "above 0" if least is None else f"a whole number from {least}"
        raise BadDefinition(f"{what} must be {wanted}, got {given!r}", where=what, next=next)


def _check_counts(name: str, counts: Any, *, has_breaker: bool) -> None:
    if counts is None:
        return
    if isinstance(counts, str) or not all(isinstance(each, str) and not problem("error", each) for each in counts):
        next_ = 'use ["RateLimited"]'
        raise BadDefinition(
            f"breaker_counts must be a list of error types, got {counts!r}", where="breaker_counts", next=next_
        )
    if not has_breaker:
        raise BadDefinition(
            f"limit {name}: breaker_counts goes with a breaker",
            where="breaker_counts",
            next="use breaker_after=6, breaker_for=60",
        )


def _span(what: str, given: Duration | None) -> timedelta | None:
    if given is None:
        return None
    span = duration(given, what, error=BadDefinition)
    if not MILLISECOND <= span <= LONGEST:
        raise BadDefinition(f"{what} must be a millisecond to a year, got {given!r}", where=what, next="use 60")
    return span
