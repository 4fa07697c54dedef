"""How the toy retries: a wish that was denied is asked for politely."""

from __future__ import annotations

from holdfast.kernel.call import Call


def grant_again(wish_id: str, reason: str | None) -> Call[str]:
    return Call("grant_again", str, {"wish_id": wish_id, "reason": reason}, schema="toy")
