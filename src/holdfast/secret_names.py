"""Recognises secrets by their names: keys such as `api_key`, headers, and passwords in the text of a URL."""

from __future__ import annotations

import re
from functools import lru_cache

MASK = "***"
_WORDS = frozenset({
    "authorization", "password", "passwords", "passwd", "pwd", "passphrase", "secret", "secrets", "token", "cookie",
    "cookies", "credential", "credentials", "apikey", "accesskey", "secretkey", "privatekey", "sessionid", "otp", "dsn",
})  # fmt: skip
_BEFORE_KEY = frozenset({"api", "access", "secret", "private", "signing", "encryption", "account", "shared", "master"})
_ABOUT = frozenset({"value", "hash", "header", "old", "new", "current", "confirm", "confirmation", "text", "raw"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")  # of snake_case, kebab-case and camelCase
_NAMES = r"[\w.-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|signature)"
_IN_URL = re.compile(rf"(://[^\s/:@?#]*:)[^\s/@]+(?=@)|([?&;]{_NAMES}=)[^\s&;#\"']+", re.IGNORECASE)
_IN_HEADER = re.compile(
    r"""(\bauthorization['"]?\s*[:=]\s*(?:b?['"])?(?:bearer|basic|digest|token)\s+|\b(?:bearer|basic)\s+(?=\S*\d\S{5}))"""
    r"""[^\s'",;]{6,}""",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    rf"""(?P<q>["'])((?:{_NAMES}|[\w.-]*(?:authorization|cookie)))(?P=q)(\s*:\s*)(?P<v>b?["'])(?:\\.|(?!["']).)+(?=["'])""",
    re.IGNORECASE,
)
_HINTS = ("://", "?", "&", ";", "':", '":', "earer ", "asic ", "uthorization", "UTHORIZATION")  # without one: nothing


@lru_cache(4096)
def looks_secret(name: str) -> bool:
    """Return whether a key names a secret: `api_key` and `X-Auth-Token` do, `tokens` and `token_type` do not."""
    words = [word.lower() for word in _WORD.findall(name)]
    while words and words[-1] in _ABOUT:
        words.pop()
    if not words:
        return False
    return words[-1] in _WORDS or (words[-1] == "key" and len(words) > 1 and words[-2] in _BEFORE_KEY)


def mask_named_text(text: str) -> str:
    """Mask passwords and tokens of URLs, of authorization headers and of quoted fields in a text."""
    for hint in _HINTS:  # most texts have none, and a search by pattern takes ten times as long
        if hint in text:
            break
    else:
        return text
    text = _IN_URL.sub(lambda found: (found[1] or found[2]) + MASK, text)
    text = _IN_HEADER.sub(lambda found: found[1] + MASK, text)
    return _QUOTED.sub(lambda found: f"{found['q']}{found[2]}{found['q']}{found[3]}{found['v']}{MASK}", text)
