"""Keep secrets out of every output: one gate that all formats pass.

Patterns cover what leaks in this field: Hugging Face and API tokens, bearer and basic credentials, cloud keys,
private keys, cookies, credentials in URLs, e-mail addresses, and the prompts that engines log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import regex

_RULES: tuple[tuple[str, regex.Pattern[str], str], ...] = tuple(
    (name, regex.compile(pattern), replacement)
    for name, pattern, replacement in (
        ("private key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)", "[private key]"),
        ("token", r"\b(?:hf_[A-Za-z0-9]{10,}|sk-[A-Za-z0-9_-]{12,}|gh[pousr]_[A-Za-z0-9]{16,}|glpat-[\w-]{12,}|xox[abpr]-[\w-]{10,}|nvapi-[\w-]{12,}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)", "[token]"),
        ("cloud key", r"\b(?:AKIA|ASIA|LTAI)[A-Z0-9a-z]{12,20}\b", "[cloud key]"),
        ("authorization", r"(?i)\b(authorization|proxy-authorization|x-api-key|api-key|cookie|set-cookie)(['\"]?\s*[:=]\s*['\"]?)(?:bearer |basic )?[^\s'\",;]{4,}", r"\1\2[redacted]"),
        ("bearer", r"(?i)\b(bearer|basic) [A-Za-z0-9._~+/=-]{8,}", r"\1 [redacted]"),
        ("secret", r"(?i)\b([\w-]*(?:password|passwd|secret|api_?key|access_?key|hf_?token|auth_?token|access_?token|credentials?))(['\"]?\s*[=:]\s*['\"]?)(?!None\b|\*\*\*|<)[^\s'\",;)]{3,}", r"\1\2[redacted]"),
        ("url credentials", r"\b([a-z][a-z0-9+.-]*://)[^\s/:@]+:[^\s/@]+@", r"\1[redacted]@"),
        ("e-mail", r"\b[A-Za-z0-9._%+-]+@(?!sha256)[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b", "[e-mail]"),
        ("prompt", r"(?i)(prompt(?:_text)?['\"]?\s*[:=]\s*)(?!tokens?\b)(?:'[^']*'?|\"[^\"]*\"?)", r"\1[prompt]"),
        ("message", r"(?i)(['\"](?:content|messages|input_text)['\"]\s*:\s*)(?:'[^']*'?|\"[^\"]*\"?|\[.*)", r"\1[message]"),
    )
)


def redact(value: Any) -> tuple[Any, dict[str, int]]:
    """A copy of JSON-like data with secrets replaced, and how often each rule fired."""
    counts: dict[str, int] = {}
    return _walk(value, counts), dict(sorted(counts.items()))


def _walk(value: Any, counts: dict[str, int]) -> Any:
    if isinstance(value, str):
        return redact_text(value, counts)
    if isinstance(value, Mapping):
        return {key: _walk(item, counts) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_walk(item, counts) for item in value]
    return value


def redact_text(value: str, counts: dict[str, int]) -> str:
    """One text with secrets replaced."""
    for name, pattern, replacement in _RULES:
        value, hits = pattern.subn(replacement, value)
        if hits:
            counts[name] = counts.get(name, 0) + hits
    return value
