"""Whether a line was written by a person: sentences, headings, list items in words."""

from __future__ import annotations

from collections.abc import Iterable

import regex

from ..regexes import lazy_regex

_WORD = lazy_regex(r"[\"'(*_`]*[\p{L}][\p{L}'’-]*[\"')*_`]*[.,;:?!]*")
_CJK = lazy_regex(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]")
_PASTED = lazy_regex(
    r"\s{4,}|\t|>|[\w.]*(?:Error|Exception|Warning|Interrupt)\b|(?i:error|fatal|warning|killed|panic)\b|[A-Z]{3,} |"
    r"(?:Value error|Assertion failed), |"  # pydantic's
    r"[\w.-]+\[\d+\]: |"
    r"\([\w-]+(?: \w+)? pid=\d+[^)]*\) |\[rank\d+\]: |"  # of which process
    r"[\w./-]+(?:: |[:-](?:\d+[:-])?)(?:[\w.]*(?:Error|Exception)\b|(?i:error|fatal)\b)|"  # a program or `grep -H`
    r"[a-z][^\W_]*(?:[_-][^\W_]+)+: (?!.{0,200}\b(?:is|are|was|were)\b)"  # `llama_context: `, `nvidia-container-cli: `
)
"""How a line begins that was pasted rather than written."""
_LEVEL = lazy_regex(r"\d\d:\d\d:\d\d\S{0,8}\]? +\[?(?:ERROR|CRITICAL|FATAL|WARN(?:ING)?|INFO)\b")
"""A logger's stamp and level, behind whatever label."""
EXCEPTION = r"[A-Za-z_][\w.]*(?:Error|Exception)"
"""The name of an exception, as a traceback's last line begins."""
ERROR = rf"Traceback \(most recent call last\):|{EXCEPTION}: \S|Killed$|Aborted "
"""How an error begins that a program, or the shell around it, printed in column 0."""
FENCES = ("```", "~~~")
"""What opens and closes a pasted piece in Markdown."""
_ERROR = lazy_regex(rf"(?:\([\w-]+(?: \w+)? pid=\d+[^)]*\) |\[rank\d+\]: )?(?:{ERROR})")
_RAISED = lazy_regex(rf"(?<![\w.]){EXCEPTION}: \S+ \S+ \S")
_TALK = lazy_regex(
    r"\b(?i:I|I'm|I've|we|we've|our|my|you|please|looks?|seems?|maybe|perhaps|think|guess|suspect|because|but|so|tried|"
    r"yesterday|today|tonight|noticed|collected|attached|see|saw|asked|said)\b"
)
_PROGRAMS = lazy_regex(r"\.(?:log|err|out|json|ya?ml|csv|tsv)(?:[.\d-].*)?!?$", regex.IGNORECASE)
_OUTPUTS = lazy_regex(
    r"\.(?:log|err|out)(?:[.\d-].*)?!?$"
    r"|(?:^|[/_.-])(?:logs?|std(?:out|err)|console|output|driver|nohup)(?:[_.-][\w.-]*)?!?$",
    regex.IGNORECASE,
)
_OTHERS = lazy_regex(r"(?:^|[/_.-])(?:git|change|dpkg|apt|commit|chat|irc)[_-]?logs?\b", regex.IGNORECASE)


def is_prose(line: str) -> bool:
    """A line of words; false for what a program printed and for an empty one."""
    text = line.strip()
    if not text or _PASTED.match(line) or _PASTED.match(text) or is_logged(text):
        return False
    if len(_CJK.findall(text)) >= 4:
        return True
    words = text.lstrip("#*-+0123456789.) ").split()
    plain = sum(1 for word in words if _WORD.fullmatch(word))
    return len(words) >= 3 and plain >= 0.6 * len(words)


def is_logged(line: str) -> bool:
    """Whether a line holds a stamp and a level as a logger writes them."""
    return _LEVEL.search(line) is not None


def is_error(line: str) -> bool:
    """Whether a line in column 0 is an error that a program printed, or its traceback."""
    return _ERROR.match(line) is not None


def quotes_error(line: str) -> bool:
    """Whether a line holds an exception with its message, whatever somebody wrote around it."""
    return _RAISED.search(line) is not None


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
