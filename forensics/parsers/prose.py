"""Whether a line was written by a person: sentences, headings, list items in words."""

from __future__ import annotations

from collections.abc import Iterable

import regex

_WORD = regex.compile(r"[\"'(*_`]*[\p{L}][\p{L}'’-]*[\"')*_`]*[.,;:?!]*")
_CJK = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]")
_PASTED = regex.compile(
    r"\s{4,}|\t|>|[\w.]*(?:Error|Exception|Warning|Interrupt)\b|(?i:error|fatal|warning|killed|panic)\b|[A-Z]{3,} |"
    r"(?:Value error|Assertion failed), |"  # pydantic's
    r"[\w.-]+\[\d+\]: "
)
"""How a line begins that was pasted rather than written."""
_TALK = regex.compile(
    r"\b(?i:I|I'm|I've|we|we've|our|my|you|please|looks?|seems?|maybe|perhaps|think|guess|suspect|because|but|so|tried|"
    r"yesterday|today|tonight|noticed|collected|attached|see|saw|asked|said)\b"
)
_PROGRAMS = regex.compile(r"\.(?:log|err|out|json|ya?ml|csv|tsv)(?:[.\d-].*)?!?$", regex.IGNORECASE)
_OUTPUTS = regex.compile(
    r"\.(?:log|err|out)(?:[.\d-].*)?!?$"
    r"|(?:^|[/_.-])(?:logs?|std(?:out|err)|console|output|driver|nohup)(?:[_.-][\w.-]*)?!?$",
    regex.IGNORECASE,
)
_OTHERS = regex.compile(r"(?:^|[/_.-])(?:git|change|dpkg|apt|commit|chat|irc)[_-]?logs?\b", regex.IGNORECASE)


def is_prose(line: str) -> bool:
    """A line of words; false for what a program printed and for an empty one."""
    text = line.strip()
    if not text or _PASTED.match(line) or _PASTED.match(text):
        return False
    if len(_CJK.findall(text)) >= 4:
        return True
    words = text.lstrip("#*-+0123456789.) ").split()
    plain = sum(1 for word in words if _WORD.fullmatch(word))
    return len(words) >= 3 and plain >= 0.6 * len(words)


def talks(line: str) -> bool:
    """Whether a line has words that people use of themselves and of what they think, and programs hardly ever."""
    return _TALK.search(line) is not None


def is_output(path: str) -> bool:
    """Whether a file is what a program printed by its name: `vllm.log`, `logs.txt`, `stderr`, `console-output.txt`."""
    return _OUTPUTS.search(path) is not None and not _OTHERS.search(path)


def is_notes(path: str, lines: Iterable[str]) -> bool:
    """Whether a file of any name was written by a person: mostly sentences, and words that programs do not use."""
    filled = [line for line in lines if line.strip()]
    talk = sum(talks(line) or len(_CJK.findall(line)) >= 4 for line in filled)
    prose = sum(map(is_prose, filled))
    return not _PROGRAMS.search(path) and prose >= 0.7 * len(filled) > 0 and talk >= 0.3 * len(filled)
