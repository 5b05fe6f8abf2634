"""JUnit reports of runs that passed: `<testsuite name="pytest" errors="0" failures="0" tests="6" time="214.1" …>`.

pytest's `--junitxml`, surefire, go-junit-report and others write the same attributes. What the tests printed
(`<system-out>`) was wanted, and is not read. A report that tells of a failure is a text like every other.
"""

from __future__ import annotations

from dataclasses import replace

import regex

from .. import stamps
from ..model import Event, Locator, Parsed, RawStamp
from ..regexes import lazy_regex
from ..sources import Format, Head
from .test_runs import CHANNEL

_SUITE = lazy_regex(r"<testsuite\s[^<>]{1,2000}>")
_ATTRIBUTE = lazy_regex(r"\s(?P<name>\w+)\s*=\s*\"(?P<value>[^\"<>]{0,200})\"")
_NOT_PASSED = ("failures", "errors")


_Suite = tuple[int, str, dict[str, str]]
"""Line, tag and attributes."""


def _suites(text: str) -> list[_Suite]:
    return [
        (1 + text.count("\n", 0, tag.start()), tag[0], {a["name"]: a["value"] for a in _ATTRIBUTE.finditer(tag[0])})
        for tag in _SUITE.finditer(text)
    ]


def _passed(suites: list[_Suite]) -> bool:
    counts = [suite.get(name, "0") for *_, suite in suites for name in _NOT_PASSED]
    return any(suite.get("tests", "0") != "0" for *_, suite in suites) and all(count == "0" for count in counts)


def sniff(head: Head) -> int:
    return 90 if "<testsuite" in head.text[:1000] and _passed(_suites(head.text)) else 0


def read(text: str, source: str) -> Parsed:
    """A `test_run` a suite, at its end: `tests_passed`, `tests_skipped`, `duration_s`."""
    suites = _suites(text)
    if not _passed(suites):
        return Parsed()
    return Parsed(tuple(_run(suite, source) for suite in suites if suite[2].get("tests", "0") != "0"))


def _run(found: _Suite, source: str) -> Event:
    line, tag, suite = found
    tests, skipped, seconds = _number(suite, "tests"), _number(suite, "skipped"), _number(suite, "time")
    stamp = _ended(suite.get("timestamp", ""), seconds)
    fields = {"tests_passed": int(tests - skipped), "duration_s": seconds}
    fields |= {"tests_skipped": int(skipped)} if skipped else {}
    text = f"{int(tests)} tests of {suite.get('name', 'a suite')} passed"
    own = (stamp,) if stamp else ()
    return Event(Locator(source, line, line), "test_run", CHANNEL, text, own, fields=fields, raw=tag)


def _number(suite: dict[str, str], name: str) -> float:
    text = suite.get(name, "").replace(",", "")
    return float(text) if regex.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", text) else 0.0


def _ended(began: str, seconds: float) -> RawStamp | None:
    stamp = stamps.iso(began, "junit")
    return replace(stamp, seconds=stamp.seconds + seconds) if stamp else None


FORMAT = Format("junit", "JUnit report of a run that passed", sniff, read, 16 << 20, begins="<")
