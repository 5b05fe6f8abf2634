"""Access logs of gateways: server errors become `access` events with their own time."""

from __future__ import annotations

import pytest

from forensics import pipeline
from forensics.model import Event
from forensics.stamps import iso_utc


def answers(tmp_path: object, text: str) -> list[Event]:
    path = tmp_path / "gateway.log"  # type: ignore[operator]
    path.write_text(text, encoding="utf-8")
    return [e for e in pipeline.read(str(path)).events if e.kind == "access"]


@pytest.mark.parametrize(
    ("line", "status", "path"),
    [
        (
            '10.1.2.3 - - [11/Jun/2025:09:05:14 +0200] "POST /v1/chat/completions HTTP/1.1" 502 157 "-" "client/0.27"',
            502, "/v1/chat/completions",
        ),
        ('[2025-06-11T07:05:14.000Z] "POST /v1/completions HTTP/2" 503 UF reset - "-" 0 91 3 - "-" "c" "id"', 503, "/v1/completions"),
        ('2025-06-11T07:05:14Z gw-1 10.2.0.3 "GET /v1/models" 504 0 upstream=10.4.1.6:8000', 504, "/v1/models"),
        ('{"start_time":"2025-06-11T07:05:14Z","method":"POST","path":"/v1/chat/completions","response_code":503}', 503, "/v1/chat/completions"),
        ('{"time_iso8601": "2025-06-11T07:05:14+00:00", "request_method": "POST", "status": "502", "uri": "/v1/x"}', 502, "/v1/x"),
    ],
    ids=["nginx", "envoy", "own format", "envoy json", "nginx json"],
)  # fmt: skip
def test_server_errors_of_a_gateway(tmp_path: object, line: str, status: int, path: str) -> None:
    """Method, path, status, and the time that the line holds."""
    (event,) = answers(tmp_path, f"{line}\n")
    assert (event.fields["status"], event.fields["path"]) == (status, path)
    assert event.time.utc_s is not None
    assert iso_utc(event.time.utc_s, 0) == "2025-06-11T07:05:14Z"


@pytest.mark.parametrize(
    "line",
    [
        '10.1.2.3 - - [11/Jun/2025:09:05:14 +0200] "POST /v1/chat/completions HTTP/1.1" 200 502 "-" "client/0.27"',
        '{"level":"info","status":500,"msg":"page size"}',
        'the user wrote "POST it" 502 times',
        '10.1.2.3 - - [99/Xyz/2025:09:05:14 +0200] "STEAL /v1 HTTP/1.1" 502 157',
    ],
    ids=["bytes sent", "json without a method", "prose", "no method"],
)
def test_what_is_no_answer(tmp_path: object, line: str) -> None:
    """A number that looks like a status is none without its request."""
    assert answers(tmp_path, f"{line}\n") == []


def test_a_time_outside_the_calendar_is_none(tmp_path: object) -> None:
    """The answer stays, without a time."""
    (event,) = answers(tmp_path, '1.2.3.4 - - [31/Feb/2025:09:05:14 +0200] "GET /x HTTP/1.1" 502 157\n')
    assert event.time.utc_s is None
