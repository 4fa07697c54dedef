"""A type for overloads that decorators need: it tells `Any` apart from types that say something."""

from __future__ import annotations

from typing import final


@final
class Untyped:
    """No value has this type, so only `Any`, `object` or a missing annotation fits it.

    Such a parameter would otherwise be taken for `ctx: Ctx`, and such a return type for that of an async function.
    """
