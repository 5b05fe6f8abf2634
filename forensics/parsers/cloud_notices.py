"""What a cloud's own tools answer about a machine: that it was taken back, stopped or scheduled for maintenance.

Shapes: EC2 `describe-spot-instance-requests`, `describe-instances` (`StateReason`), `describe-instance-status`
(`Events`) and the instance action of its metadata, EventBridge (`detail-type`), Compute Engine operations
(`operationType`, or the table of `gcloud compute operations list`), Azure scheduled events (`EventType`), SageMaker
`describe-endpoint` (`FailureReason`; its times are not that of the failure) and `describe-endpoint-config` (how long a
start may take). One key of each notice says what happened; its siblings say when, and in words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..model import Event, Locator, Parsed, Scope
from ..regexes import lazy_regex
from ..sources import Format, Head
from .envelopes.shippers import moment
from .json_yaml import read_json
from .k8s_values import known
from .located import Array, Object, int_at, text_at
from .tables import Header, header_of

_TELLING = ("Code", "detail-type", "operationType", "EventType", "action", "FailureReason")
"""Keys that say what happened, by a word of the cloud's list."""
_IN_WORDS = ("Message", "Description", "statusMessage")
_WHEN = ("UpdateTime", "time", "startTime", "insertTime", "NotBefore")
_START_CHECK = "ContainerStartupHealthCheckTimeoutInSeconds"
_MARK = lazy_regex(
    r'"(?:SpotInstanceRequests|InstanceStatuses|StateReason|StateTransitionReason|EndpointStatus|ContainerStartupHealthCheckTimeoutInSeconds|detail-type|operationType|EventType)"\s*:'
    r'|"action"\s*:\s*"(?:terminate|stop|hibernate)"\s*,\s*"time"'
)
_CODE_IN_WORDS = lazy_regex(r'"Code"\s*:\s*"(?:instance|system|marked-for|Server\.|Client\.)[\w.-]+"')


def read(text: str, source: str) -> Parsed:
    """A `log` event on `host` for each notice: `"Code": "<word>" <what it says>`."""
    return Parsed(tuple(event for document in read_json(text) for event in _notices(document.value, source)))


def _notices(value: Any, source: str) -> Iterator[Event]:
    if isinstance(value, Array):
        for item in value:
            yield from _notices(item, source)
    if not isinstance(value, Object):
        return
    key = next((key for key in _TELLING if isinstance(value.get(key), str)), "")
    if key:
        words = next((text_at(value, name) for name in _IN_WORDS if name in value), "")
        stamp = next((found for name in _WHEN if (found := moment(text_at(value, name))) is not None), None)
        line = value.lines.get(key, value.line)
        told = f'"{key}": "{value[key]}"' + (f" {words}" if words else "")
        yield Event(Locator(source, line, line), "log", "host", told, (stamp,) if stamp else (), raw=told)
    if _START_CHECK in value:
        line = value.lines.get(_START_CHECK, value.line)
        seconds = int_at(value, _START_CHECK)
        yield Event(
            Locator(source, line, line), "pod_spec", "host", f"{_START_CHECK}: {seconds}",
            fields=known({"health_period_s": seconds, "health_failure": 1, "health_action": "stop"}),
        )  # fmt: skip
    for item in value.values():
        yield from _notices(item, source)


_COLUMNS = frozenset({"TYPE", "TARGET", "STATUS", "TIMESTAMP"})


def read_operations(text: str, source: str) -> Parsed:
    """A `log` event on `host` for each row: what was done to which machine, and when."""
    return Parsed(tuple(_operations(text.split("\n"), source)))


def _operations(lines: list[str], source: str) -> Iterator[Event]:
    header: Header | None = None
    for number, line in enumerate(lines, 1):
        if (new := _operations_header(line)) is not None:
            header = new
        elif header is not None and (stamp := moment((row := header.cells(line.rstrip()))["TIMESTAMP"])) is not None:
            told = f"operation {row['TYPE']} of {row['TARGET']}: {row['STATUS']}"
            scope = Scope(host=row["TARGET"].rpartition("/")[2])
            yield Event(Locator(source, number, number), "log", "host", told, (stamp,), scope, raw=line.strip())


def _operations_header(line: str) -> Header | None:
    header = header_of(line)
    return header if header is not None and frozenset(header.names) >= _COLUMNS else None


def sniff(head: Head) -> int:
    if head.text.lstrip()[:1] not in ("{", "["):
        return 0
    return 60 if _MARK.search(head.text) or _CODE_IN_WORDS.search(head.text) else 0


OPERATIONS = Format(
    "cloud.operations", "gcloud compute operations list",
    lambda head: 93 if any(map(_operations_header, head.lines[:5])) else 0, read_operations, 4 << 20,
)  # fmt: skip
FORMAT = Format("cloud.notice", "answer of a cloud about its machines", sniff, read, 16 << 20, begins="{[", most=60)
