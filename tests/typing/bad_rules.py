"""Mistakes with rules, each with what the tools say on its line."""

from __future__ import annotations

from holdfast import Holdfast
from holdfast.rules import Guard, Rule, field, percent, price, tag
from holdfast.rules.table import Table

hf = Holdfast()
hf.rules.channel("shop", Table("products", key="sku"))  # mypy: call-arg, pyright: reportCallIssue
hf.rules.channel("shop", "products")  # mypy: arg-type, pyright: reportArgumentType

percent(-12.5)  # mypy: arg-type, pyright: reportArgumentType
dear = price >= 1.5  # mypy: operator, pyright: reportOperatorIssue
Guard(minimum=3.5)  # mypy: arg-type, pyright: reportArgumentType
Guard(min_price="3.50")  # mypy: call-arg, pyright: reportCallIssue
Rule("r", where="sale", change=percent(1))  # mypy: arg-type, pyright: reportArgumentType
Rule("r", where=tag("sale"), change=percent(1).rounded("up"))  # mypy: attr-defined, pyright: reportAttributeAccessIssue
field("brand").contains(7)  # mypy: arg-type, pyright: reportArgumentType


def run(rule: Rule) -> None:
    hf.rules.preview(rule)  # mypy: call-arg, pyright: reportCallIssue
    hf.rules.preview(rule, channel="shop").apply(hash="7f3a9c1e")  # mypy: call-arg, pyright: reportCallIssue
    number: int = hf.rules.preview(rule, channel="shop").id  # mypy: assignment, pyright: reportAssignmentType
    hf.rules.preview(rule, channel="shop").apply(only="SKU-1")  # a text is a sequence of texts: refused at run time
    print(number)
