"""What a test run prints: errors that fixtures raise on purpose, and the runner's last line that says all went well.

pytest, Python's unittest, `cargo test` and `go test`, alone or inside the log of a CI job. Between a runner's first
line and its count of tests that all passed nothing failed, whatever is printed there: tests of error handling print
whole errors of CUDA, of the kernel and of engines. Where a test failed, or the run came to no end, its output is read
like every other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..model import Event
from ..regexes import lazy_regex
from ..scan import Window
from .records import Record, is_engine

CHANNEL = "tests"
"""What a run of tests prints, which no signature hears."""
_OUTCOME = r"PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS|RERUN"
_BEGINS = lazy_regex(
    r"=+ test session starts =+|(?:##\[group\]Run |[$>+] |\S+[$#] )?(?:uv run |poetry run |python3? -m )?pytest(?: .*)?"
    rf"|(?:{_OUTCOME}) \S+\.py::\S.*|\S+\.py::\S+ (?:{_OUTCOME})\b.*|-+ live log (?:call|setup|teardown) -+"
    r"|(?:\S+\.py )?[.sxX]{3,}\s+\[ *\d+%\]"
    r"|=== RUN +Test\S*|test \S+ \.\.\. (?:ok|ignored|FAILED)|test_\w+ \([\w.]+\)(?: \.\.\. .*)?"
)
_PYTEST = lazy_regex(
    r"(?:=+ )?(?P<told>\d+ passed(?:, \d+ (?:skipped|deselected|xfailed|xpassed|warnings?|rerun))*)"
    r" in (?P<seconds>[\d.]+)s(?: \([\d:]+\))?(?: =+)?"
)
_CARGO = lazy_regex(r"test result: ok\. (?P<told>\d+ passed); 0 failed;.*?(?:finished in (?P<seconds>[\d.]+)s)?")
_GO = lazy_regex(r"ok\s+\S+\s+(?:(?P<seconds>[\d.]+)s|\(cached\))(?:\s.*)?")
_RAN = lazy_regex(r"Ran (?P<told>\d+) tests? in (?P<seconds>[\d.]+)s")
_OK = lazy_regex(r"OK(?: \([\w =,]+\))?")
_LOST = lazy_regex(
    r"(?:=+ )?(?:\d+ \w+, )*\d+ (?:failed|errors?)\b.* in [\d.]+s.*|FAILED \([\w =,]+\)|test result: FAILED.*"
    r"|FAIL(?:\s\S+\s+[\d.]+s)?"
)
_COUNT = lazy_regex(r"(\d+) (passed|skipped|xfailed|xpassed)")
ANCHORS = (
    "test session starts", "pytest ", ".py::", " live log ", "=== RUN ", " ... ok", " passed in ", " passed, ",
    "test result: ", "ok  \t", "FAIL", " failed, ", " failed in ", " error in ", " errors in ", "[100%]",
)  # fmt: skip

WINDOWS = (Window("Ran ", ("OK", "FAILED"), 4),)


def settle(records: Sequence[Record]) -> list[Record]:
    """Take what a run printed whose tests all passed from the log; only its count tells something (`refine`).

    What others print between its lines stays, and so does all that follows an engine's own lines: there, a runner's
    words may be those of a prompt.
    """
    found = list(records)
    for begin, end in _runs(records):
        voice = _voice(records[end])
        for index in range(begin, end + 1):
            if _voice(records[index]) == voice:
                found[index] = replace(records[index], channel=CHANNEL, output=True)
    return found


def _voice(record: Record) -> tuple[str, str, str, bool]:
    return (record.scope.pod, record.scope.container, record.ident, record.machine)


def _runs(records: Sequence[Record]) -> Iterator[tuple[int, int]]:
    """Places of the first line of each run that went well, and of its count."""
    begin = ran = -1
    for index, record in enumerate(records):
        text = record.text.strip()
        if begin < 0 and is_engine(record):
            return
        if _LOST.fullmatch(text):
            begin = ran = -1
        elif begin < 0:
            begin = index if _BEGINS.fullmatch(text) else -1
        elif _RAN.fullmatch(text):
            ran = index
        elif _is_count(text) or (ran >= 0 and _OK.fullmatch(text)):
            yield begin, ran if ran >= 0 else index
            begin = ran = -1


def _is_count(text: str) -> bool:
    return any(pattern.fullmatch(text) for pattern in (_PYTEST, _CARGO, _GO))


def refine(event: Event) -> Event:
    """The runner's count becomes a `test_run`: `tests_passed`, `tests_skipped`, `tests_xfailed` …, `duration_s`."""
    text = event.text.strip()
    found = next(filter(None, (p.fullmatch(text) for p in (_PYTEST, _CARGO, _GO, _RAN))), None)
    if found is None:
        return event
    told = found.groupdict()
    counts = {f"tests_{word}": int(number) for number, word in _COUNT.findall(told.get("told") or "")}
    if (told.get("told") or "").isdecimal():
        counts["tests_passed"] = int(told["told"])
    seconds = {"duration_s": float(told["seconds"])} if told["seconds"] else {}
    return replace(event, kind="test_run", fields={**event.fields, **counts, **seconds})
