"""A type for the overloads of decorators: it distinguishes `Any` from real types."""

from __future__ import annotations

from typing import final


@final
class Untyped:
    """No value has this type, so only `Any`, `object` or a missing annotation fits it.

    Such a parameter would otherwise be taken for `ctx: Ctx`, and such a return type for that of an async function.
    """
