"""Explains a price: every step of the calculation, recomputed from the rule and the price before."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.rules.language.arithmetic import NoSuchAmount
from holdfast.rules.language.checks import Check
from holdfast.rules.language.evaluate import (
    Change,
    Compiled,
    Refusal,
    Unchanged,
    Verdict,
    compiled,
    evaluate,
    listed_transform,
)
from holdfast.rules.language.items import Item
from holdfast.rules.language.money import Price, shown, shown_exactly
from holdfast.rules.language.rule import Rule
from holdfast.rules.language.selectors import everything
from holdfast.rules.language.transforms import Transform


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """One line of an explanation: `percent`, `-20 %`, `39.92`."""

    name: str
    detail: str
    value: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a rule arrives at a price, and the verdict."""

    rule: str
    currency: str
    steps: tuple[ExplainedStep, ...]
    verdict: Verdict


def explain(
    rule: Rule, before: Price, *, item_id: str = "", sku: str | None = None, cost: int | None = None
) -> Explanation:
    """Recompute a selected item's new price, step by step.

    The steps are not stored with a plan: the rule and the price before are, and give the same steps again.
    """
    item = Item(item_id, before.unit_amount, before.currency, before.compare_at, cost, sku)
    chosen = Rule(rule.name, everything, rule.change, rule.guard, rule.currency, rule.prices)
    verdict = evaluate(chosen, item)
    steps = [ExplainedStep("before", "price", shown(before.unit_amount, before.currency))]
    transform = _transform(rule, item)
    if transform is not None and before.unit_amount is not None:
        plan = compiled(chosen, transform, before.currency)
        steps += _calculation(plan, before.unit_amount, before.currency)
        steps += _result(plan, transform, verdict, item)
    return Explanation(rule.name, before.currency, tuple(steps), verdict)


def _transform(rule: Rule, item: Item) -> Transform | None:
    if rule.prices is None:
        return rule.change
    entry = rule.prices.get(item.sku or item.id)
    return None if entry is None else listed_transform(entry)


def _calculation(plan: Compiled, old: int, currency: str) -> list[ExplainedStep]:
    steps: list[ExplainedStep] = []
    n, d = old, 1
    for step in plan.steps:
        try:
            n, d = step.calculate(n, d)
        except NoSuchAmount:
            steps.append(ExplainedStep(step.name, step.detail, "-"))
            break
        steps.append(ExplainedStep(step.name, step.detail, shown_exactly(n, d, currency)))
    return steps


def _result(plan: Compiled, transform: Transform, verdict: Verdict, item: Item) -> list[ExplainedStep]:
    match verdict:
        case Unchanged():
            return [ExplainedStep("result", "the price is that already", shown(item.unit_amount, item.currency))]
        case Refusal(after=None):
            return [ExplainedStep("refused", verdict.message, "-")]
        case Change(before=before, after=after) | Refusal(before=Price() as before, after=Price() as after):
            compare = ExplainedStep("compare at", f"{transform.compare}", shown(after.compare_at, after.currency))
            return [compare, *_guarded(plan.checks, before, after, item), *_refused(verdict)]
        case _:
            return []


def _guarded(checks: list[Check], before: Price, after: Price, item: Item) -> list[ExplainedStep]:
    old, new = before.unit_amount, after.unit_amount
    if old is None or new is None or old == new:
        return []
    return [
        ExplainedStep("guardrail", check.message, "refused" if check.breaks(old, new, item.cost) else "ok")
        for check in checks
        if check.reason not in {"negative", "too_large"} and (check.reason != "below_cost" or item.cost is not None)
    ]


def _refused(verdict: Verdict) -> list[ExplainedStep]:
    return [ExplainedStep("refused", verdict.message, "-")] if isinstance(verdict, Refusal) else []
