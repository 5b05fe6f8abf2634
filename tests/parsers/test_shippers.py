"""Entries of log backends: pod, container and time of each kind; merged prefixes; exports; newest line first."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from forensics.bundle import Bundle
from forensics.ingest import ReadSource, read_bundle
from forensics.model import StampForm
from forensics.parsers import FORMATS, exports
from forensics.parsers.envelopes.shippers import moment
from forensics.parsers.records import unwrap
from forensics.sources import identify, make_head

LINE = "(EngineCore_DP0 pid=117) ERROR 11-18 02:41:07 [core.py:710] EngineCore encountered a fatal error."
WHEN = "2025-11-18T02:41:07.250Z"
UTC_S = 1763433667.25
POD, CID, UID = "chat-7b-6d5b9c7f4b-x2kqp", "9b1f" * 16, "7f3c9a52-1d0e-4b7b-9c55-2f6b1e0d9a41"
K8S = {"pod_name": POD, "namespace_name": "llm", "container_name": "vllm", "pod_id": UID, "docker_id": CID, "host": "gpu-node-7"}
STREAM = f"ip-10-0-1-1.internal-application.var.log.containers.{POD}_llm_vllm-{CID}.log"

ENTRIES: dict[str, Mapping[str, Any]] = {
    "fluent bit": {"date": 1763433667.25, "stream": "stderr", "log": f"{LINE}\n", "kubernetes": K8S},
    "fluent bit without a parser": {"log": f"{WHEN} stderr F {LINE}", "kubernetes": K8S},
    "filebeat": {"@timestamp": WHEN, "message": LINE, "log": {"file": {"path": "/x.log"}}, "kubernetes": {
        "pod": {"name": POD, "uid": UID}, "namespace": "llm", "container": {"name": "vllm"}, "node": {"name": "gpu-node-7"}}},
    "google text": {"textPayload": f"{LINE}\n", "timestamp": WHEN, "severity": "ERROR", "resource": {
        "type": "k8s_container", "labels": {"pod_name": POD, "container_name": "vllm", "namespace_name": "llm"}}},
    "google json": {"jsonPayload": {"message": LINE}, "timestamp": WHEN, "resource": {
        "labels": {"pod_name": POD, "container_name": "vllm"}}},
    "cloudwatch": {"logStreamName": STREAM, "timestamp": 1763433667250, "message": LINE, "ingestionTime": 1763433669000},
    "container insights": {"timestamp": 1763433667250, "logStreamName": "x", "message": json.dumps(
        {"log": LINE, "stream": "stdout", "kubernetes": K8S})},
    "logcli jsonl": {"labels": {"pod": POD, "container": "vllm"}, "line": LINE, "timestamp": WHEN},
    "splunk": {"preview": False, "result": {"_raw": LINE, "_time": "2025-11-18T02:41:07.250+00:00", "k8s.pod.name": POD,
                                            "k8s.container.name": "vllm"}},
    "datadog": {"content": {"timestamp": WHEN, "message": LINE, "tags": [f"pod_name:{POD}", "kube_container_name:vllm"]}},
    "victorialogs": {"_msg": LINE, "_time": WHEN, "kubernetes.pod_name": POD, "kubernetes.container_name": "vllm"},
    "opentelemetry": {"body": LINE, "timestamp": 1763433667250000000, "resources_string": {
        "k8s.pod.name": POD, "k8s.container.name": "vllm"}},
    "elasticsearch": {"_source": {"@timestamp": WHEN, "message": LINE, "kubernetes": K8S}},
}  # fmt: skip


@pytest.mark.parametrize("backend", ENTRIES)
def test_entry(backend: str) -> None:
    """Pod, container and instant, and the engine's own header behind them."""
    record = unwrap(json.dumps(ENTRIES[backend]))
    assert (record.text, record.channel, record.output) == ("EngineCore encountered a fatal error.", "engine", True)
    assert (record.scope.pod, record.scope.container, record.scope.process) == (POD, "vllm", "EngineCore_DP0")
    assert [(stamp.form, stamp.seconds) for stamp in record.stamps[:1]] == [(StampForm.INSTANT, UTC_S)]
    assert [stamp.layer for stamp in record.stamps[1:]] == ["engine"]


def test_owner_in_full() -> None:
    scope = unwrap(json.dumps(ENTRIES["fluent bit"])).scope
    assert (scope.namespace, scope.pod_uid, scope.container_id, scope.host) == ("llm", UID, CID, "gpu-node-7")
    assert unwrap(json.dumps(ENTRIES["cloudwatch"])).scope.container_id == CID


def test_stern_json_has_no_time() -> None:
    record = unwrap(json.dumps({"message": f"{LINE}\n", "nodeName": "gpu-node-7", "podName": POD, "containerName": "vllm"}))
    assert (record.scope.pod, record.scope.host, [stamp.layer for stamp in record.stamps]) == (POD, "gpu-node-7", ["engine"])


def test_a_node_speaks_for_itself() -> None:
    """A node's journal in a backend is the machine's word; a container that prints such a line is not."""
    line = 'I1118 02:41:07.100000    1184 kuberuntime_container.go:779] "Killing container with a grace period"'
    node = {"jsonPayload": {"MESSAGE": line, "_HOSTNAME": "gke-1", "SYSLOG_IDENTIFIER": "kubelet"}, "timestamp": WHEN}
    record = unwrap(json.dumps(node))
    assert (record.channel, record.machine, record.scope.host) == ("kubelet", True, "gke-1")
    assert unwrap(json.dumps({"log": line, "time": WHEN, "kubernetes": K8S})).channel == "container"


@pytest.mark.parametrize(("labels", "channel", "unit"), [
    ({"unit": "kubelet.service"}, "kubelet", "kubelet.service"), ({"unit": "kernel"}, "kernel", ""),
    ({"transport": "kernel"}, "kernel", ""), ({"unit": "chat@a.service"}, "host", "chat@a.service"),
    ({"unit": "seconds"}, "", ""), ({"unit": "kernel", "pod": POD}, "container", ""),
])  # fmt: skip
def test_a_journal_behind_lokis_labels(labels: dict[str, str], channel: str, unit: str) -> None:
    """Promtail and Alloy make labels of the journal's fields; `logcli` prints them as an object or in braces."""
    text = "usb 1-4: new high-speed USB device"
    labels = {"job": "journal", "nodename": "gpu-node-7", **labels}
    braces = ", ".join(f'{name}="{value}"' for name, value in labels.items())
    for line in (json.dumps({"labels": labels, "line": text, "timestamp": WHEN}), f"{WHEN} {{{braces}}} {text}"):
        record = unwrap(line)
        assert (record.text, record.channel, record.scope.unit, record.scope.host) == (text, channel, unit, "gpu-node-7")


@pytest.mark.parametrize("entry", [
    {"log": "x\n", "stream": "stdout", "time": WHEN},
    {"level": "INFO", "message": "hello", "timestamp": "2025-11-18T02:41:07.123"},
    {"ts": 1763433667250.1, "msg": "Killing container", "pod": {"name": POD, "namespace": "llm"}, "v": 2},
    {"kind": "Pod", "metadata": {"name": POD}, "spec": {"nodeName": "n"}},
    {"pod_name": POD, "memory": 12},
    {"message": {"pod": POD}, "container": [1]},
])  # fmt: skip
def test_other_objects(entry: Mapping[str, Any]) -> None:
    """docker's file, an engine's JSON, the kubelet's JSON and mere data are not a backend's entries."""
    assert all(stamp.layer != "shipper" for stamp in unwrap(json.dumps(entry)).stamps)


@pytest.mark.parametrize(("text", "seconds"), [
    (WHEN, UTC_S), ("1763433667", 1763433667.0), ("1763433667.25", UTC_S), ("1763433667250", UTC_S),
    ("1763433667250000", UTC_S), ("1763433667250000000", UTC_S), ("2025/11/18 02:41:07.250 UTC", UTC_S),
    ("11/18/2025, 2:41:07.250 AM", UTC_S), ("2025-11-18 02:41:07.250 +0000 UTC", UTC_S), ("2025-11-18 02:41:07.250", UTC_S), ("99999999999999999999999", None),
    ("Nov 18, 2025 @ 02:41:07.250", UTC_S), ("18/Nov/2025:10:41:07.25 +0800", UTC_S), ("November 18, 2025 2:41:07.250 am", UTC_S),
    ("Foo 18, 2025 @ 02:41:07.250", None), ("Nov 31, 2025 @ 02:41:07", None), ("Nov 18 02:41:07", None),
    ("13/45/2025, 2:41:07 AM", None), ("soon", None), ("", None),
])  # fmt: skip
def test_moments(text: str, seconds: float | None) -> None:
    """Unix time in any unit, and the ways in which backends write a date."""
    stamp = moment(text)
    assert (None if stamp is None else stamp.seconds) == seconds


ROWS = [(f"2025-11-18T02:41:{n:02d}.500Z", f"(EngineCore_DP0 pid=117) ERROR 11-18 02:41:{n:02d} [core.py:{n}] message {n}") for n in range(8)]
ROWS[3:3] = [
    ("2025-11-18T02:41:02.600Z", "Traceback (most recent call last):"),
    ("2025-11-18T02:41:02.700Z", '  File "/opt/vllm/engine/core.py", line 5, in run'),
    ("2025-11-18T02:41:02.800Z", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."),
]


def lines(shape: Callable[[str, str], str], rows: list[tuple[str, str]] = ROWS) -> str:
    return "".join(f"{shape(when, text)}\n" for when, text in rows)


def table(header: list[str], row: Callable[[str, str], list[str]], rows: list[tuple[str, str]] = ROWS) -> str:
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(header)
    writer.writerows(row(when, text) for when, text in rows)
    return out.getvalue()


def entry(when: str, text: str) -> dict[str, Any]:
    return {"textPayload": text, "timestamp": when, "resource": {"labels": {"pod_name": POD, "container_name": "vllm"}}}


OWNED = {
    "kubectl.log": lines(lambda when, text: f"[pod/{POD}/vllm] {when} {text}"),
    "stern.log": lines(lambda when, text: f"{POD} vllm {text}"),
    "stern-t.log": lines(lambda when, text: f"\x1b[36m{POD}\x1b[0m \x1b[35mvllm\x1b[0m {when} {text}"),
    "stern-A.log": f"+ llm {POD} › vllm\n" + lines(lambda when, text: f"llm {POD} vllm {when} {text}"),
    "kail.log": lines(lambda when, text: f"llm/{POD}[vllm]: {text}"),
    "logcli.log": lines(lambda when, text: f'{when} {{container="vllm", pod="{POD}"}} {text}'),
    "logcli-default.log": lines(lambda when, text: f'{when} {{container="vllm", pod="{POD}"}} {text}', ROWS[::-1]),
    "fluentbit.log": lines(lambda when, text: json.dumps({"time": when, "log": text, "kubernetes": K8S})),
    "google.json": json.dumps([entry(*row) for row in ROWS[::-1]], indent=2),
    "google.yaml": "".join(
        f"---\ninsertId: x{n}\nlogName: projects/acme/logs/stderr\n{yaml.safe_dump(entry(*row))}"
        for n, row in reversed(list(enumerate(ROWS)))
    ),
    "loki.json": json.dumps({"status": "success", "data": {"resultType": "streams", "result": [
        {"stream": {"pod": POD, "container": "vllm"}, "values": [
            [str(1763433660 + n) + "0" * 9, text] for n, (_, text) in reversed(list(enumerate(ROWS)))]}]}}),
    "hits.json": json.dumps({"hits": {"hits": [{"_source": {"@timestamp": when, "message": text, "kubernetes": K8S}} for when, text in ROWS]}}),
    "kibana.csv": table(["@timestamp", "kubernetes.pod.name", "kubernetes.container.name", "message"],
                        lambda when, text: [when, POD, "vllm", text], ROWS[::-1]),
    "explore.csv": table(["labels", "Time", "Line", "tsNs"],
                         lambda when, text: [json.dumps({"pod": POD, "container": "vllm"}), when, text, ""]),
}  # fmt: skip


def read(folder: Path, name: str, text: str) -> ReadSource:
    (folder / name).write_text(text)
    (item,) = read_bundle(Bundle((str(folder / name),)), ("message",))
    return item


@pytest.mark.parametrize("name", OWNED)
def test_whole_files(tmp_path: Path, name: str) -> None:
    """Every line with its pod; the traceback in one piece, whatever is in front of its lines and whichever way they run."""
    item = read(tmp_path, name, OWNED[name])
    assert (item.source.scope.pod, item.source.scope.container) == (POD, "vllm")
    (error,) = (event for event in item.parsed.events if event.kind == "traceback")
    assert (error.fields["exception"], error.fields["frames"]) == ("torch.OutOfMemoryError", ("/opt/vllm/engine/core.py:run",))
    texts = [event.text for event in item.parsed.events if event.channel == "engine" and event.kind == "log"]
    assert sorted(texts) == [f"message {n}" for n in range(8)]


@pytest.mark.parametrize("form", ["json", "labels"])
def test_the_machine_between_the_lines_of_its_only_container(tmp_path: Path, form: str) -> None:
    """A backend says of each line whose it is: the kernel's is no piece of the engine's output, nor the container's."""
    xid = "NVRM: Xid (PCI:0000:3b:00): 45, pid=48213, name=VLLM::EngineCor, Ch 00000010"
    labels = [{"pod": POD, "container": "vllm"}, {"job": "journal", "unit": "kernel", "node": "gpu-node-7"}]
    rows = [(labels[0], "vLLM API server version 0.12.0"), (labels[0], LINE), (labels[1], xid), (labels[0], LINE)]
    if form == "json":
        lines = [json.dumps({"labels": owner, "line": text, "timestamp": WHEN}) for owner, text in rows]
    else:
        lines = [f"{WHEN} {{{', '.join(f'{k}={json.dumps(v)}' for k, v in owner.items())}}} {text}" for owner, text in rows]
    told = [(e.kind, e.channel, e.scope.pod) for e in read(tmp_path, "x.log", "\n".join(lines)).parsed.events]
    assert told[2] == ("xid", "kernel", "")
    assert {(channel, pod) for _, channel, pod in (*told[:2], *told[3:])} == {("engine", POD)}


def test_lines_of_an_export_are_those_of_the_file(tmp_path: Path) -> None:
    """Newest first, cells of several lines: an event stands where its entry begins."""
    text = table(["Date", "Host", "Message"], lambda when, text: [when, "gpu-node-7", f"{text}\nsecond line"], ROWS[::-1])
    events = {e.text.partition("\n")[0]: e.locator.line for e in read(tmp_path, "x.csv", text).parsed.events}
    numbers = {line.partition(",gpu-node-7,")[2].strip('"'): n for n, line in enumerate(text.split("\n"), 1)}
    assert all(numbers[row[1]] == events[f"message {n}"] for n, row in enumerate([r for r in ROWS if "message" in r[1]]))


def other_way(name: str, text: str) -> str:
    """The same export with its entries in the opposite order."""
    if name.endswith(".json"):
        document = json.loads(text)
        entries = document
        if isinstance(document, dict):
            entries = document["hits"]["hits"] if "hits" in document else document["data"]["result"][0]["values"]
        entries.reverse()
        return json.dumps(document, indent=1)
    if name.endswith(".csv"):
        header, *rows = csv.reader(io.StringIO(text))
        out = io.StringIO(newline="")
        csv.writer(out).writerows([header, *reversed(rows)])
        return out.getvalue()
    if name.endswith(".yaml"):
        return "".join(f"---\n{part}" for part in reversed(text.split("---\n")[1:]))
    return "".join(reversed(text.splitlines(keepends=True)))


TIMED = [name for name in OWNED if not name.startswith(("stern.log", "stern-A", "kail"))]
"""Shapes whose entries bear a time; where only the engine's own header has one, lines cannot be turned."""


@pytest.mark.parametrize("name", TIMED)
def test_the_order_of_an_export_is_that_of_time(tmp_path: Path, name: str) -> None:
    """Whichever way the entries run, what was said later comes later in the order of events."""
    told = []
    turned = other_way(name, OWNED[name])
    for folder, text in ("one", other_way(name, turned)), ("other", turned):
        (tmp_path / folder).mkdir()
        events = read(tmp_path / folder, name, text).parsed.events
        ordered = sorted(events, key=lambda event: event.locator.order)
        told.append([event.text for event in ordered if event.kind in ("log", "traceback")])
    assert told[0] == told[1]
    assert [text for text in told[0] if text.startswith("message")] == [f"message {n}" for n in range(8)]


def test_interleaved_streams_newest_first(tmp_path: Path) -> None:
    """Two streams of Loki's answer, each newest first: each one's lines are in the order of time, at their own place."""
    moments = {"0": range(0, 8, 2), "1": range(1, 8, 2)}
    streams = [{"stream": {"pod": f"chat-{pod}", "container": "vllm"}, "values": [
        [f"{1763433660 + n}000000000", f"message {n}"] for n in reversed(seconds)]} for pod, seconds in moments.items()]
    text = json.dumps({"status": "success", "data": {"resultType": "streams", "result": streams}}, indent=1)
    events = read(tmp_path, "loki.json", text).parsed.events
    for pod, seconds in moments.items():
        own = sorted((e for e in events if e.scope.pod == f"chat-{pod}"), key=lambda event: event.locator.order)
        assert [e.text for e in own] == [f"message {n}" for n in seconds]
    lines = text.split("\n")
    assert all(e.text in lines[e.locator.line - 1] for e in events)


def test_newest_first_lines_are_true(tmp_path: Path) -> None:
    item = read(tmp_path, "x.log", OWNED["logcli-default.log"])
    (error,) = (event for event in item.parsed.events if event.kind == "traceback")
    assert (error.locator.line, error.fields["first_line"]) == (6, 8)


@pytest.mark.parametrize(("name", "text", "form"), [
    ("pods.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": [{"kind": "Pod", "metadata": {"name": POD}}]}), "k8s.objects"),
    ("alert.json", '{"status": "firing", "labels": {"pod": "x"}, "startsAt": "2025-11-18T02:41:07Z"}', "json"),
    ("mem.csv", "timestamp,pod,container,value\n1763433667,x,vllm,1000\n1763433727,x,vllm,2000\n", "metrics.csv"),
    ("nvidia.csv", "timestamp, index, memory.used [MiB]\n2025/11/18 02:41:07.1, 0, 74436 MiB\n", "nvidia.csv"),
    ("slack.json", '[{"type": "message", "text": "CUDA out of memory?", "user": "U1", "ts": "1763433667.000200"}]', "chat"),
    ("users.csv", "name,message,count\nann,hello,1\n", ""),
    ("x.log", lines(lambda when, text: json.dumps(entry(when, text))), "log"),
    ("x.json", '[{"message": 1}, null, ["x"]', ""),
    ("x.csv", '"@timestamp","message"\n"2025', ""),
])  # fmt: skip
def test_other_documents(name: str, text: str, form: str) -> None:
    """Kubernetes objects, series and alerts keep their formats; damage is no export."""
    found = identify(make_head(name, text.encode(), True), FORMATS)
    assert (found.name if found else "") == form


def test_grep_with_numbers(tmp_path: Path) -> None:
    """`grep -n` of a journal: the numbers go, the machine's headers are believed; a time is no number."""
    journal = [f"Nov 18 02:41:{n:02d} gpu-node-7 systemd[1]: vllm.service: message {n}" for n in range(9)]
    item = read(tmp_path, "a.txt", "".join(f"{20 + n}:{line}\n" for n, line in enumerate(journal)))
    assert {(e.channel, e.scope.host) for e in item.parsed.events} == {("systemd", "gpu-node-7")}
    item = read(tmp_path, "b.txt", "".join(f"02:41:{n:02d} message {n}\n" for n in range(9)))
    assert all(event.text.startswith("02:41:") for event in item.parsed.events)


def test_headings_of_tail(tmp_path: Path) -> None:
    """`tail /var/log/pods/*/*/*.log`: each part belongs to the pod that its path names."""
    paths = [f"/var/log/pods/llm_{name}_{UID}/vllm/0.log" for name in ("chat-7b-0", "other-0")]
    text = "\n".join(f"==> {path} <==\n{WHEN} stderr F {LINE}\n" for path in paths)
    events = [event for event in read(tmp_path, "tail.txt", text).parsed.events if event.level == "ERROR"]
    assert [(event.scope.pod, event.scope.namespace) for event in events] == [("chat-7b-0", "llm"), ("other-0", "llm")]


def test_otlp(tmp_path: Path) -> None:
    """One object a line with several records; the resource names the pod."""
    record = {"timeUnixNano": "1763433667250000000", "body": {"stringValue": LINE}}
    resource = {"attributes": [{"key": "k8s.pod.name", "value": {"stringValue": POD}}]}
    row = json.dumps({"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": [record, record]}]}]})
    item = read(tmp_path, "otel.json", f"{row}\n{row}\n")
    assert item.source.format == "log.export"
    assert [(e.locator.line, e.scope.pod, e.stamps[0].seconds) for e in item.parsed.events] == [
        (line, POD, UTC_S) for line in (1, 1, 2, 2)]


def test_ordinary_text_has_no_owner(tmp_path: Path) -> None:
    """Words that look like a pod and a container in front of ordinary lines."""
    text = "".join(f"step-{n} of the run took {n} seconds\n" for n in range(30))
    assert read(tmp_path, "x.txt", text).source.scope.pod == ""


@pytest.mark.parametrize("entry", [
    {"time": WHEN, "level": "ERROR", "msg": "it failed", "err": LINE},
    {"ts": 1763433667.25, "level": "error", "msg": "it failed", "error": LINE},
    {"timestamp": WHEN, "event": "it failed", "exception": LINE, "user": "u-7", "level": "error"},
    {"time": WHEN, "stderr": LINE},
    {"time": WHEN, "description": LINE},
    {"TimeStamp": "2025-11-18 02:41:07.250 +0000 UTC", "ContainerAppName": "chat", "Msg": LINE},
])  # fmt: skip
def test_lines_of_any_logger(entry: Mapping[str, Any]) -> None:
    """The message, what went wrong beside it, and the time."""
    record = unwrap(json.dumps(entry))
    assert LINE.rsplit("] ", 1)[1] in record.text
    assert record.stamps[0].seconds == UTC_S


@pytest.mark.parametrize("entry", [
    {"timestamp": WHEN, "role": "user", "content": LINE},
    {"ts": "1763433667.25", "user": "U1", "text": LINE},
    {"time": WHEN, "prompt": "why?", "output": LINE},
    {"message": LINE},
])  # fmt: skip
def test_what_somebody_wrote_is_no_line_of_a_log(entry: Mapping[str, Any]) -> None:
    assert unwrap(json.dumps(entry)).envelopes == ()


EVENT = {
    "apiVersion": "v1", "kind": "Event", "involvedObject": {"kind": "Pod", "name": POD, "namespace": "llm"},
    "reason": "Preempted", "message": "Preempted by pod 5b0e on node n1", "type": "Normal",
}  # fmt: skip


@pytest.mark.parametrize("document", [
    [{"insertId": "a", "jsonPayload": EVENT, "logName": "projects/p/logs/events", "timestamp": WHEN}],
    {"hits": {"hits": [{"_index": "e", "_source": EVENT}]}},
])  # fmt: skip
def test_an_event_inside_an_entry_is_no_object(tmp_path: Path, document: object) -> None:
    """The kind and the version are those of what the backend was sent."""
    text = json.dumps(document, indent=1)
    item = read(tmp_path, "x.json", text)
    (event,) = item.parsed.events
    assert (item.source.format, event.kind, event.fields["reason"]) == ("log.export", "k8s_event", "Preempted")
    assert "Preempted by" in text.split("\n")[event.locator.line - 1]


def test_an_entry_is_cited_where_its_message_stands(tmp_path: Path) -> None:
    document = {"data": [{"id": n, "attributes": {"timestamp": WHEN, "service": "x", "message": LINE}} for n in range(2)]}
    text = json.dumps(document, indent=1)
    cited = [event.locator.line for event in read(tmp_path, "x.json", text).parsed.events]
    assert cited == [n for n, line in enumerate(text.split("\n"), 1) if '"message"' in line]


def test_an_event_without_a_time_has_that_of_its_entry() -> None:
    """Cloud Logging keeps the kubelet's events; who shortens them cuts their times, the entry keeps its own."""
    inner = {
        "kind": "Event", "reason": "Killing", "message": "Container v failed liveness probe, will be restarted",
        "involvedObject": {"kind": "Pod", "name": POD, "namespace": "llm"}, "source": {"component": "kubelet"},
    }  # fmt: skip
    entries = [{"jsonPayload": inner, "timestamp": WHEN, "insertId": str(n)} for n in range(2)]
    events = exports.read(json.dumps(entries, indent=1), "logs.json").events
    assert [e.fields.get("last_seen_s") for e in events] == [UTC_S, UTC_S]
