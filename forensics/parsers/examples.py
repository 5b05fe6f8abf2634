"""What tells what may happen, or what was mended, and not what happened: manuals, release notes, alert rules, comments.

They name errors in a program's own words, often whole lines of a log. Judged by what they say, line by line and as a
whole, since the same text comes as `runbook.md` and as `paste.txt`. A report – "when I start it I get …", a line with
a time – is none of these.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..regexes import lazy_regex
from . import prose

_CONDITION = lazy_regex(
    r"[\s*+•\-_>]*(?:\(?\d{1,2}[.)]\s+)?[*_]*"
    r"(?:(?i:if|in case|whenever|wenn|falls|sollte|si|s'il|en cas)\b|When (?:you|the logs?)\b|"
    r"如果|若|假如|当您?看到|もし|[QA]\d{0,2}: )"
)
"""How an instruction begins that holds for some day, or a question that many have."""
_SHOULD_SEE = lazy_regex(
    r"\b[Ii]f (?:you|it|they|(?:the|a|any|your) [\w.-]+|logs?|vLLM) "
    r"(?:sees?|shows?|has|says?|contains?|hits?|gets?|finds?|prints?|reports?|(?:fails?|dies|crashes) with)\b"
)
_FIRST_PERSON = lazy_regex(r"\b(?i:I|I'm|I've|we|we've|my|ich|wir|mein|je|nous|mon|yo|nosotros)\b|我|私")
_VERBS = (
    r"(?i:(?:bug|hot)?fix(?:e[sd]|ing)?|avoid(?:s|ed)?|prevent(?:s|ed)?|handle[sd]?|catch(?:es)?|resolve[sd]?|"
    r"no longer)"
)
_SCOPE = r"(?:[*_`]*[a-z][\w./-]*(?:\([\w./, -]+\))?[*_`]*!?:\s+)?"
_FAULT = r"(?:[\w.]*(?:Error|Exception)\b|CUDA|OOM|(?i:out of memory|killed)|Xid)"
_CHANGE = lazy_regex(
    rf"\s*(?:[-*+•]\s+)?{_SCOPE}[*_]*{_VERBS}(?:\([\w./, -]+\))?!?:?[*_]*\s+(?:[a-z][\w-]*\s+){{0,4}}[`'\"]?{_FAULT}"
    r"|\s*[-*+•]\s+.*(?:\(\[?(?:GH-|gh-|PR ?)?[#!]\d+\]?(?:\([^)]*\))?(?:, ?[#!]\d+)*\)"
    r"|\bby @[\w-]+ in (?:#\d+|https?:\S+/pull/\d+))\.?\s*$"
)
"""A line of release notes or of a commit: what was mended, or the number of the change."""
_ADVICE = lazy_regex(r"\s*(?:->|=>|→|⇒)\s+\p{L}")
"""What to do about the error in the line above."""
_TEMPLATE = lazy_regex(r"\{\{-? ?(?:\$(?:labels|value)|\.(?:Labels|Values|Annotations|CommonLabels))\b")
"""What an alert's text is made from."""
_COMMENT = lazy_regex(r"\s*(?:#|//|;)+\s")
_SETS = lazy_regex(
    r"\s*(?:- )?(?:--[\w-]+(?:[= ].*)?|export \w+=.*|[A-Za-z]\w*=\S.*|[a-z][\w./-]*:(?: .*)?|[a-z][\w.-]* = .*|"
    r"[\w-]+: ?\[.*\]|\[[\w.-]+\])\s*"
)
"""A line of settings: YAML, an environment file, arguments."""
_INTRODUCES = lazy_regex(
    r"(?i:\b(?:examples?|e\.g\.|for instance|such as|looks? like(?: this)?|beispiel)|例如|比如|示例|例)\W{0,4}$"
)
_REMEDIES = lazy_regex(
    r"\s*\|.*(?:(?i:\b(?:actions?|fix|remedy|solution|meaning|what to do|resolution|mitigation)\b)|处理|解决).*\|\s*$"
)
"""The header of a table that says what to do about which error."""
_MANUAL = lazy_regex(
    r"(?i:\b(?:run-?book|play-?book|faq|sop|standard operating procedure|change-?log|release notes?|what'?s new|"
    r"trouble-?shooting guide|known (?:issues|errors)|common (?:errors|problems|failures)|cheat-?sheet)\b"
    r"|\bwhat to do (?:when|if)\b|\bhow to (?:handle|react|respond|debug|diagnose)\b)"
    r"|(?:运维|排障|故障处理)手册|常见(?:问题|错误)|更新日志|发布说明"
)
INTRODUCTION = 40
_HEAD_LINES = 3
_VERSION = lazy_regex(
    r"\W{0,6}(?:[A-Za-z][\w -]{0,30} )?v?\d+\.\d+(?:\.\d+)?(?:[.-]?\w{1,12})?\W{0,6}"
    r"(?:\d{4}-\d\d-\d\d|\([^)]{0,30}\))?\W{0,3}"
)
_ITEM = lazy_regex(r"\s*(?:#{1,6}\s|[-*+•]\s|\d{1,2}[.)]\s|\|)")
_RULE = lazy_regex(r"\s*(?:- )?(?:alert|record): ?\S")
_EXPRESSION = lazy_regex(r"\s*(?:- )?expr: ?\S")
_ANNOTATIONS = lazy_regex(r"\s*annotations:\s*$")
_YAML = lazy_regex(r"\s*(?:- |#|[A-Za-z][\w./-]*:(?:\s|$))")
_FIRED = lazy_regex(r"(?i:\bfiring\b|startsAt|activeAt|\bresolved\b)")
_STAMP = lazy_regex(r"(?<![\d:])[0-2]\d:[0-5]\d:[0-5]\d|\[ *\d+\.\d{3,}\]|\d\d-\d\dT\d\d:?\d\d")
MAX_CHARS = 2000
"""So much of a line is looked at."""
MIN_EXAMPLES, EXAMPLE_SHARE = 2, 0.4


def _says_so(line: str) -> bool:
    """Whether a line says what to do some day, or what was changed."""
    if ("{{" in line and _TEMPLATE.search(line)) or _CHANGE.match(line) or _ADVICE.match(line):
        return True
    conditional = _CONDITION.match(line) or (("if " in line or "If " in line) and _SHOULD_SEE.search(line))
    return bool(conditional) and not _FIRST_PERSON.search(line)


def in_lines(lines: Sequence[str]) -> frozenset[int]:
    """Indices of the lines that are examples where they stand: by themselves, as comments, behind "Example:"."""
    found = set()
    remedies = False
    for index, line in enumerate(lines):
        if not line or line.isspace():
            remedies = False
            continue
        remedies = line.lstrip().startswith("|") and (remedies or _REMEDIES.match(line) is not None)
        told = remedies or _says_so(line) or _is_comment(lines, index) or _is_introduced(lines, index)
        if told and not _STAMP.search(line):
            found.add(index)
    return frozenset(found)


def _is_comment(lines: Sequence[str], index: int) -> bool:
    """A remark in settings: behind one on its line, or between them."""
    line = lines[index]
    setting, mark, _ = line.partition(" # ")
    if mark and setting.strip():
        return _is_setting(setting)
    around = (lines[i] for i in (index - 1, index + 1) if 0 <= i < len(lines))
    return _COMMENT.match(line) is not None and any(map(_is_setting, around))


def _is_introduced(lines: Sequence[str], index: int) -> bool:
    """An indented or quoted line below a step that ends in "Example:"."""
    below = index > 0 and lines[index][:1] in " \t`"
    return below and introduces(lines[index - 1])


def _is_setting(line: str) -> bool:
    return _SETS.fullmatch(line) is not None and not prose.is_error(line.strip())


def introduces(line: str) -> bool:
    """Whether a line ends in words behind which an example follows, on it or below."""
    return _INTRODUCES.search(line[-INTRODUCTION:]) is not None


def is_manual(lines: Sequence[str]) -> bool:
    """Whether a whole text is a manual, release notes or a file of alert rules: nothing in it happened."""
    filled = [line[:MAX_CHARS] for line in lines if line.strip()]
    if not filled or any(map(_STAMP.search, filled)):
        return False
    if _is_rules(filled):
        return True
    examples = len(in_lines([line[:MAX_CHARS] for line in lines]))
    if examples == 0:
        return False
    titled = _MANUAL.search(filled[0]) is not None and "?" not in filled[0]
    versioned = any(map(_VERSION.fullmatch, filled[:_HEAD_LINES]))
    items = sum(_ITEM.match(line) is not None for line in filled)
    if titled or (versioned and items >= 0.5 * len(filled)):
        return True
    return examples >= max(MIN_EXAMPLES, EXAMPLE_SHARE * len(filled)) and not any(map(prose.is_error, filled))


def _is_rules(filled: Sequence[str]) -> bool:
    """Alert rules, or the text of one: annotations that nothing fired."""
    if any(map(_RULE.match, filled)) and any(map(_EXPRESSION.match, filled)):
        return True
    template = _ANNOTATIONS.match(filled[0]) is not None and all(map(_YAML.match, filled))
    return template and not any(map(_FIRED.search, filled))
