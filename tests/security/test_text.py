"""Text that means to break parsers: bombs, absurd numbers, impossible dates, wrong encodings."""

from __future__ import annotations

import gzip
import io
import json
import random
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import regex

from forensics import analyze
from forensics.errors import NothingReadableError
from forensics.model import Severity
from forensics.parsers import DIALECTS, FORMATS, embedded
from forensics.parsers.numerals import is_whole
from forensics.parsers.records import unwrap
from forensics.report.render import render

SAMPLES = Path(__file__).resolve().parent.parent.parent / "samples"
DOCUMENTS = {form.name: form.read for form in FORMATS if form.read is not None}
HUGE = "9" * 5000
"""More digits than `int` takes."""


def problems(path: Path) -> list[str]:
    """What the analysis calls its own defects; the report of whatever was read can be written."""
    try:
        report = analyze(path)
    except NothingReadableError:
        return []
    for form in ("md", "json"):
        render(report, form)
    return [d.message for d in report.diagnostics if d.severity is Severity.ERROR]


def pod(state: object = None, spec: object = None, **meta: object) -> str:
    """`kubectl get pod -o json` with one container."""
    return json.dumps({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "vllm-0", "namespace": "inference", "creationTimestamp": "2026-11-29T21:00:00Z", **meta},
        "spec": spec or {"containers": [{"name": "vllm", "resources": {"limits": {"memory": "64Gi"}}}]},
        "status": {"phase": "Running", "containerStatuses": [state or {"name": "vllm", "restartCount": 1}]},
    })  # fmt: skip


def terminated(**state: object) -> dict[str, object]:
    return {"name": "vllm", "restartCount": state.pop("restarts", 1), "lastState": {"terminated": state}}


def probe(**numbers: object) -> dict[str, object]:
    return {"containers": [{"name": "vllm", "livenessProbe": {"httpGet": {"path": "/health", "port": 8000}, **numbers}}]}


DESCRIBE = """Name:             vllm-0
Namespace:        inference
Node:             gpu-node-7/10.0.0.7
Start Time:       {date}
Status:           Running
Containers:
  vllm:
    Container ID:  containerd://{id}
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    {number}
      Started:      {date}
      Finished:     {date}
    Restart Count:  {number}
    Limits:
      memory:  {number}Gi
    Liveness:   http-get http://:8000/health delay={number}s timeout={number}s period={number}s #success={number} #failure={number}
Events:
  Type     Reason   Age                    From     Message
  ----     ------   ----                   ----     -------
  Warning  BackOff  {number}m (x{number} over {number}d)  kubelet  Back-off restarting failed container
"""
KERNEL = (
    "[{number}.123456] python3 invoked oom-killer: gfp_mask=0xcc0, order={number}, oom_score_adj={number}\n"
    "[  100.123456] memory: usage {number}kB, limit {number}kB, failcnt {number}\n"
    "[  100.123456] [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name\n"
    "[  100.123456] [{number}] {number} {number} {number} {number} {number} {number} {number} python3\n"
    "[  100.123456] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/a,task_memcg=/a/b,task=x,pid={number},uid=0\n"
    "[  100.123456] Memory cgroup out of memory: Killed process {number} (x) total-vm:{number}kB, anon-rss:{number}kB, "
    "file-rss:{number}kB, shmem-rss:{number}kB, UID:{number} pgtables:{number}kB oom_score_adj:{number}\n"
    "[  100.123456] NVRM: Xid (PCI:0000:3b:00): {number}, pid={number}, name=x, GPU has fallen off the bus.\n"
)
NVIDIA = "timestamp, index, memory.used [MiB], memory.total [MiB]\n" + "2026/11/29 21:24:17.000, {number}, {number} MiB, {number} MiB\n" * 3
METRICS = (
    "# TYPE vllm:num_requests_running gauge\n"
    'vllm:num_requests_running{{engine="{number}",pid="{number}"}} {number}\n'
    "# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc{{engine=\"0\"}} {number} {number}\n"
)
ENGINE = (
    "(EngineCore_DP0 pid={number}) INFO 11-29 21:24:17 [gpu_worker.py:298] Available KV cache memory: {number} GiB\n"
    "(APIServer pid=1) INFO 11-29 21:24:17 [utils.py:233] non-default args: {{'max_model_len': {number}, 'port': {number}}}\n"
    "(EngineCore_DP0 pid=1) ERROR 11-29 21:24:17 [core.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate "
    "{number} GiB. GPU 0 has a total capacity of {number} GiB of which {number} MiB is free.\n"
    "(APIServer pid=1) INFO 11-29 21:24:17 [loggers.py:127] Engine {number}: Avg prompt throughput: {number} tokens/s, Avg "
    "generation throughput: {number} tokens/s, Running: {number} reqs, Waiting: {number} reqs, GPU KV cache usage: {number}%\n"
    "(EngineCore_DP0 pid=1) ValueError: To serve at least one request with the models's max seq len ({number}), "
    "({number} GiB KV cache is needed, which is larger than the available KV cache memory ({number} GiB).\n"
)
JOURNAL = '{{"__REALTIME_TIMESTAMP":"{number}","_PID":"{number}","MESSAGE":"x","SYSLOG_IDENTIFIER":"kubelet"}}\n' * 3
MEMINFO = "MemTotal: {number} kB\nMemFree: {number} kB\nMemAvailable: {number} kB\nSwapTotal: {number} kB\n"
TEMPLATES = {
    "describe.txt": DESCRIBE, "dmesg.txt": KERNEL, "gpu.csv": NVIDIA, "metrics.txt": METRICS, "vllm.log": ENGINE,
    "journal.json": JOURNAL, "meminfo": MEMINFO,
}  # fmt: skip
NUMBERS = ("-1", "0", HUGE, "9" * 18, "9" * 19, "1e308", "1e400", "NaN", "inf", "-inf", "٣", "²", "1,024", "1_000", "0x7f", "", "1.2.3")
DATES = (
    "Sun, 29 Nov 2026 21:24:17 +0000", "Mon, 30 Feb 2026 25:61:61 +0000", "Mon, 01 Jan 0001 00:00:00 +2359",
    "Fri, 31 Dec 9999 23:59:60 -2359", "Thu, 01 Jan 1970 00:00:00 +9999", "",
)  # fmt: skip


@pytest.mark.parametrize("name", TEMPLATES)
def test_absurd_numbers(name: str, tmp_path: Path) -> None:
    """Negative, endless, not finite, of other scripts, none at all: what is readable is read, the report can be written."""
    for index, number in enumerate(NUMBERS):
        folder = tmp_path / str(index)
        folder.mkdir()
        text = TEMPLATES[name].format(number=number, date=DATES[index % len(DATES)], id="ab" * 32)
        (folder / name).write_text(text, encoding="utf-8")
        assert problems(folder) == [], number[:20]


PODS = {
    "negative": pod(terminated(exitCode=-1, restarts=-5, finishedAt="2026-11-29T21:00:00Z")),
    "huge": pod(terminated(exitCode=10**30, restarts=10**30)),
    "fractions": pod(terminated(exitCode=1.5, restarts=2.5)),
    "texts": pod(terminated(exitCode="137", restarts="many")),
    "lists": pod(terminated(exitCode=[137], restarts={"a": 1}, reason=["OOMKilled"], message={"a": "b"})),
    "booleans": pod(terminated(exitCode=True, restarts=False, reason=True)),
    "nothing": pod(terminated(exitCode=None, restarts=None, reason=None, finishedAt=None)),
    "dates": pod(terminated(exitCode=137, startedAt="0000-00-00T00:00:00Z", finishedAt="9999-12-31T23:59:60Z")),
    "more dates": pod(terminated(exitCode=137, startedAt="2026-02-30T25:61:61Z", finishedAt=17)),
    "probe": pod(None, probe(initialDelaySeconds=-1, periodSeconds=10**25, failureThreshold=0, timeoutSeconds="1")),
    "probe of nothing": pod(None, probe(initialDelaySeconds=None, periodSeconds=0, failureThreshold=1e300)),
    "sizes": pod(None, {"containers": [{"name": "v", "resources": {"limits": {"memory": "1e999Gi", "nvidia.com/gpu": "-1"}}}]}),
    "wrong types": pod(None, {"containers": {"name": "v"}, "volumes": "x", "nodeName": 7, "tolerations": 1}),
    "names": pod(None, None, name=["a"], uid=5, labels=[1], ownerReferences={"kind": 1}),
    "items": '{"apiVersion": "v1", "kind": "PodList", "items": [1, null, "x", [], {"kind": "Pod"}, {"metadata": 3, "status": []}]}',
    "not finite": pod().replace('"restartCount": 1', '"restartCount": Infinity, "x": NaN, "y": -Infinity'),
    "endless number": pod().replace('"restartCount": 1', f'"restartCount": {HUGE}'),
    "exponent": pod().replace('"restartCount": 1', '"restartCount": 1e999'),
    "twice": pod().replace('"restartCount": 1', '"restartCount": 1, "restartCount": 2'),
    "surrogates": pod(terminated(exitCode=1, message="\ud800 \udfff")),
    "nul": pod(terminated(exitCode=1, message="\x00\x1b[2J\u202e")),
    "deep": pod().replace('"restartCount": 1', '"restartCount": ' + '[{"a":' * 60_000 + "1" + "}]" * 60_000),
    "deep and cut": pod() + '[{"a":' * 60_000,
    "a million keys": "{" + ",".join(f'"k{i}":{{}}' for i in range(200_000)) + "}",
    "a long key": json.dumps({"k" * 1_000_000: 1, "kind": "Pod"}),
}  # fmt: skip


@pytest.mark.parametrize("case", PODS)
def test_json_bombs_and_wrong_types(case: str, tmp_path: Path) -> None:
    """Depth, size, numbers without end, values of every wrong type: no exception, and an end."""
    (tmp_path / "pod.json").write_bytes(PODS[case].encode("utf-8", "surrogatepass"))
    assert problems(tmp_path) == []


ALIASES = "\n".join(["a: &a [x, x, x, x, x, x, x, x, x]", *(f"{c}: &{c} [*{b}, *{b}, *{b}, *{b}, *{b}, *{b}, *{b}, *{b}]"
                     for b, c in zip("abcdefghijklmno", "bcdefghijklmnop", strict=True))])  # fmt: skip
YAMLS = {
    "aliases": f"apiVersion: v1\nkind: Pod\nmetadata: {{name: v}}\nspec: {{containers: [{{name: v}}]}}\n{ALIASES}\n",
    "aliases in the middle": f"apiVersion: v1\nkind: Pod\nx:\n  {ALIASES}\nstatus: *p\n".replace("\n", "\n  "),
    "an alias of itself": "apiVersion: v1\nkind: Pod\nspec: &s\n  containers: *s\n  volumes: [*s, *s]\n",
    "merges": "a: &a {k: 1}\n" + "".join(f"m{i}: &m{i}\n  <<: [*a{', *m' + str(i - 1) if i else ''}]\n  k{i}: 1\n" for i in range(3000)),
    "depth": "apiVersion: v1\nkind: Pod\nspec: " + "[" * 50_000,
    "indents": "apiVersion: v1\nkind: Pod\n" + "".join(" " * i + "a:\n" for i in range(2000)),
    "tags": "apiVersion: v1\nkind: Pod\nspec: !!python/object/apply:os.system ['touch x']\nstatus: !!binary x\n",
    "keys": "apiVersion: v1\nkind: Pod\n? [a, b]\n: c\n? {d: e}\n: f\n1: 2\nnull: 3\n",
    "documents": "---\napiVersion: v1\nkind: Pod\n" * 20_000,
    "dates": "apiVersion: v1\nkind: Pod\nmetadata: {creationTimestamp: 2026-02-30 25:61:61}\nstatus: {startTime: 0000-00-00}\n",
    "numbers": f"apiVersion: v1\nkind: Pod\nspec: {{a: {HUGE}, b: 1e999, c: .inf, d: 0o777, e: 190:20:30, f: 1_0}}\n",
}


@pytest.mark.parametrize("case", YAMLS)
def test_yaml_bombs(case: str, tmp_path: Path) -> None:
    """Aliases are shared, tags do nothing, depth and merges are bounded."""
    (tmp_path / "pod.yaml").write_text(YAMLS[case], encoding="utf-8")
    assert problems(tmp_path) == []
    assert not Path("x").exists()


TABLES: dict[str, Callable[[], str]] = {
    "a million columns": lambda: "timestamp, " + ", ".join(["memory.used [MiB]"] * 1_000_000) + "\n2026/11/29 21:24:17.000, 5 MiB\n",
    "a million cells": lambda: "timestamp, index, memory.used [MiB]\n2026/11/29 21:24:17.000, 0" + ", 5 MiB" * 1_000_000 + "\n",
    "thousands of GPUs": lambda: "timestamp, index, memory.used [MiB]\n"
    + "".join(f"2026/11/29 21:24:17.000, {i}, 5 MiB\n" for i in range(3_000)),
    "quotes": lambda: 'timestamp,index,"memory.used [MiB]\n2026/11/29 21:24:17.000,0,"""\n' * 50,
    "a header only": lambda: "timestamp, index, memory.used [MiB]\n",
    "equal columns": lambda: "timestamp, timestamp, index, index\n2026/11/29 21:24:17.000, x, 0, 1\n",
    "metrics with labels": lambda: "# TYPE vllm:num_requests_running gauge\n"
    + "vllm:num_requests_running{" + ",".join(f'l{i}="x"' for i in range(50_000)) + "} 1\n",
    "kubectl table": lambda: "NAME" + " " * 60_000 + "READY   STATUS    RESTARTS   AGE\nvllm-0   1/1   Running   0   5m\n",
    "samples": lambda: "time,value\n" + "".join(f"{10**18 + i},1e{i}\n" for i in range(400)),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLES)
def test_tables_without_end(case: str, tmp_path: Path) -> None:
    """Columns, cells, rows: no exception, and an end."""
    (tmp_path / "table.csv").write_text(TABLES[case](), encoding="utf-8")
    assert problems(tmp_path) == []


BYTES = {
    "NUL bytes": b"\x00INFO 11-29 21:24:17 [a.py:1] x\x00\n" * 50,
    "UTF-16 without BOM": "INFO 11-29 21:24:17 [a.py:1] x\n".encode("utf-16-le") * 50,
    "UTF-16, torn": b"\xff\xfe" + "INFO 11-29 21:24:17 [a.py:1] x\n".encode("utf-16-le")[:-1] * 50,
    "UTF-32": "INFO 11-29 21:24:17 [a.py:1] 显存\n".encode("utf-32") * 50,
    "GBK": "ERROR 11-29 21:24:17 [a.py:1] 显存不足\n".encode("gbk") * 50,
    "invalid UTF-8": b"INFO 11-29 21:24:17 [a.py:1] \xff\xc0\xaf\xed\xa0\x80\n" * 50,
    "CR only": b"INFO 11-29 21:24:17 [a.py:1] x\r" * 50,
    "mixed ends": b"INFO 11-29 21:24:17 [a.py:1] x\r\nINFO 11-29 21:24:17 [a.py:1] y\n\rz\r\r\n" * 50,
    "an endless line": b"INFO 11-29 21:24:17 [a.py:1] " + b"x" * 3_000_000,
    "an endless line of headers": b"INFO 11-29 21:24:17 [a.py:1] " * 100_000,
    "empty lines": b"\n" * 1_000_000,
    "blanks": (b" " * 60_000 + b"\n") * 30,
    "brackets": (b"[" * 60_000 + b"\n") * 30,
    "quotes": (b"'\"" * 30_000 + b"\n") * 30,
    "one traceback": b"Traceback (most recent call last):\n" + b'  File "x.py", line 1, in f\n    g()\n' * 50_000,
    "tracebacks": b"Traceback (most recent call last):\n" * 50_000,
    "stars": (b"Running: " + b"1" * 60_000 + b" reqs, GPU KV cache usage: " + b"9" * 60_000 + b"%\n") * 10,
}


@pytest.mark.parametrize("case", BYTES)
def test_bytes_of_every_kind(case: str, tmp_path: Path) -> None:
    """Encodings, line ends, lines without end: no exception, and an end."""
    (tmp_path / "vllm.log").write_bytes(BYTES[case])
    assert problems(tmp_path) == []


FRAME = '  File "/opt/vllm/engine.py", line 8, in run'
SHAPES = (*{line for template in TEMPLATES.values() for line in template.splitlines()}, FRAME, '2026-11-29T21:24:17.1Z stderr F x')


@pytest.mark.parametrize("run", [" ", "\t", "1", "a.", "a ", "[", "\"", ","])
def test_long_runs_inside_lines(run: str) -> None:
    """What a regex repeats, repeated without end, at the borders of words: time grows with the length, not faster."""
    rng = random.Random(run)
    for line in sorted(SHAPES):
        at = rng.choice([found.start() for found in regex.finditer(r"\b", line)] or [0])
        text = f"{line[:at]}{(run * 30_000)[:30_000]}{line[at:]}"
        embedded.read_text(text, "x.log", unwrap(text).channel or "plain")


@pytest.mark.parametrize("line", [FRAME, "[1.000001] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=x, GPU has fallen off"])
def test_blanks_at_the_end_cost_nothing(line: str) -> None:
    """A lazy repetition before optional blanks at the end of a line took seconds."""
    for _ in range(20):
        embedded.read_text(f"{line}{' ' * 60_000}x", "x.log", unwrap(line).channel or "plain")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_document_reader_takes_every_text(name: str) -> None:
    """Also what it would not recognise: another format's text, nothing, noise."""
    noise = random.Random(7).randbytes(4000).decode("latin-1")
    for text in ("", "\n", "\x00", noise, HUGE, "{", "[" * 500, "- " * 500, DESCRIBE, KERNEL, PODS["lists"], YAMLS["aliases"], *TEMPLATES.values()):
        DOCUMENTS[name](text, "x.txt")


@pytest.mark.parametrize("channel", DIALECTS)
def test_every_dialect_takes_every_text(channel: str) -> None:
    """The same for the speakers of line logs."""
    for text in ("", "\n\n", HUGE, *(template.replace("{number}", HUGE) for template in TEMPLATES.values())):
        embedded.read_text(text, "x.log", channel)


def test_whole_numbers_are_what_int_takes() -> None:
    """Superscripts and digits of other scripts are none, and neither is a number without end."""
    assert [text for text in ("0", "7", "9" * 18, "", "-1", "²", "٣", "1.5", "9" * 19, HUGE) if is_whole(text)] == ["0", "7", "9" * 18]


def packed(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                info = tarfile.TarInfo(f"bundle/{path.relative_to(folder).as_posix()}")
                info.size, info.mtime = path.stat().st_size, 1_700_000_000
                tar.addfile(info, io.BytesIO(path.read_bytes()))
    return gzip.compress(buffer.getvalue(), mtime=0)


CONFIDENCES = ("undetermined", "possible", "likely", "established")


@pytest.mark.parametrize("case", ["kv-cache-startup", "container-limit-after-recovered-oom"])
def test_damage_never_makes_the_verdict_surer(case: str, tmp_path: Path) -> None:
    """A flipped bit or a cut end: the same verdict, or a less certain one and a diagnostic that says why."""
    data, path, rng = packed(SAMPLES / case / "bundle"), tmp_path / "b.tar.gz", random.Random(case)
    path.write_bytes(data)
    whole = analyze(path).diagnosis.verdict
    for number in range(16):
        at = rng.randrange(len(data))
        flipped = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        path.write_bytes(flipped if number % 2 else data[:at])
        try:
            report = analyze(path)
        except NothingReadableError:
            continue
        verdict = report.diagnosis.verdict
        if (verdict.cause.id, verdict.confidence) != (whole.cause.id, whole.confidence):
            assert CONFIDENCES.index(verdict.confidence) < CONFIDENCES.index(whole.confidence)
            assert any(d.severity in (Severity.WARNING, Severity.ERROR) for d in report.diagnostics)
