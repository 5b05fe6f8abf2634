"""Changes of a bundle that must not change the answer, and one that must; over all samples.

The truth of a sample plays no part: each relation compares two analyses.
"""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest
import regex

from forensics import pipeline
from forensics.diagnosis.model import CONFIDENCE_ORDER
from forensics.errors import NothingReadableError
from forensics.model import Finding, Source
from forensics.report import Report

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
CASES = sorted(path.parent.name for path in SAMPLES.glob("*/case.toml"))

LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ENGINE_STAMP = regex.compile(r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (\d\d)-(\d\d) (\d\d):(\d\d):(\d\d) ")
_ENGINE_HEADER = regex.compile(r"^(?P<head>.*?)(?:DEBUG|INFO|WARNING|ERROR) (?P<stamp>\d\d-\d\d \d\d:\d\d:\d\d) \[?[\w./]+\.py:\d+\] ")


@dataclass(frozen=True)
class Answer:
    cause: str
    confidence: str
    report: Report

    @property
    def verdict(self) -> tuple[str, str]:
        return (self.cause, self.confidence)


def bundle_of(name: str) -> Path:
    folder = SAMPLES / name / "bundle"
    return folder if folder.is_dir() else next(p for p in sorted((SAMPLES / name).iterdir()) if p.name != "case.toml")


def truth_of(name: str) -> str:
    return str(tomllib.loads((SAMPLES / name / "case.toml").read_text(encoding="utf-8"))["cause"])


def files_of(bundle: Path) -> list[Path]:
    return sorted(p for p in bundle.rglob("*") if p.is_file()) if bundle.is_dir() else [bundle]


def ask(*paths: Path) -> Answer:
    report = pipeline.analyze(*paths)
    verdict = report.diagnosis.verdict
    return Answer(verdict.cause.id, verdict.confidence.value, report)


@cache
def original(name: str) -> Answer:
    return ask(bundle_of(name))


def copy_of(name: str, folder: Path) -> Path:
    """A copy of a sample's bundle that a test may change."""
    bundle = bundle_of(name)
    target = folder / "bundle"
    if bundle.is_dir():
        shutil.copytree(bundle, target)
    else:
        target.mkdir(parents=True)
        shutil.copy(bundle, target / bundle.name)
    return target


def file_of(bundle: Path, source: str) -> Path | None:
    """The file of a source; sources are named relative to the bundle, or to the folder that all of them share."""
    return next((p for p in files_of(bundle) if p.as_posix().endswith(f"/{source}")), None)


def except_for(reasons: dict[str, str]) -> list[object]:
    """All samples; those that cannot satisfy a relation are skipped with the reason."""
    unknown = reasons.keys() - set(CASES)
    assert not unknown, unknown
    return [
        pytest.param(name, marks=pytest.mark.skip(reason=reasons[name])) if name in reasons else name for name in CASES
    ]


# -- names and order of files

@pytest.mark.parametrize("name", CASES)
def test_names_of_files_do_not_matter(name: str, tmp_path: Path) -> None:
    """All files in one folder, called `a.txt`, `b.txt` … in an order that has nothing to do with their content."""
    files = sorted(files_of(bundle_of(name)), key=lambda p: (p.stat().st_size, p.name))
    for letter, path in zip(LETTERS, files, strict=False):
        shutil.copy(path, tmp_path / f"{letter}.txt")
    assert ask(tmp_path).verdict == original(name).verdict


@pytest.mark.parametrize("name", [name for name in CASES if len(files_of(bundle_of(name))) > 1])
def test_order_of_inputs_does_not_matter(name: str) -> None:
    """The files of a folder, given one by one and backwards."""
    folder, backwards = original(name), ask(*reversed(files_of(bundle_of(name))))
    assert backwards.verdict == folder.verdict
    assert _place(backwards) == _place(folder)


MERGED_MATTERS = {
    "sidecar-oomkilled-engine-fine": "a kernel line without a time in the middle of an engine's output may be a quotation",
}


@pytest.mark.parametrize("name", except_for(MERGED_MATTERS))
def test_one_file_of_all_logs_does_not_matter(name: str, tmp_path: Path) -> None:
    """`cat *.log`: all line logs in one file, in the order in which they begin; documents stay files."""
    answer, bundle = original(name), copy_of(name, tmp_path)
    begin: dict[str, float] = {}
    for event in answer.report.timeline:
        if event.time.utc_s is not None:
            begin.setdefault(event.locator.source, event.time.utc_s)
    sources = [source.path for source in answer.report.sources if source.format == "log"]
    found = [(begin.get(path, 0.0), path, file_of(bundle, path)) for path in sources]
    logs = [path for *_, path in sorted(item for item in found if item[2] is not None)]
    if len(logs) < 2:
        pytest.skip("fewer than two line logs")
    text = [path.read_bytes() for path in logs if path is not None]
    for path in logs:
        path.unlink()
    (bundle / "all.log").write_bytes(b"".join(part if part.endswith(b"\n") else part + b"\n" for part in text))
    assert ask(bundle).cause == answer.cause


def _place(answer: Answer) -> tuple[str, int] | None:
    """File name and line of the first cause; the second of two inputs of one name is called `x (2)`, whichever that is."""
    first = answer.report.diagnosis.first_cause
    return (Path(first.locator.source).name.removesuffix(" (2)"), first.locator.line) if first else None


# -- a neighbour

HEALTHY = "busy-but-healthy"
HEARSAY = "a line without any header is taken at its word only where no real source stands beside it"
NEIGHBOUR_MATTERS = {
    HEALTHY: "is the neighbour",
    "max-len-pasted-line": HEARSAY,
    "unknown-flag-pasted": HEARSAY,
}


@pytest.mark.parametrize("name", except_for(NEIGHBOUR_MATTERS))
def test_a_healthy_neighbour_does_not_matter(name: str, tmp_path: Path) -> None:
    """The log and the description of another pod that works, under a name of its own, at another time of the year."""
    bundle = copy_of(name, tmp_path)
    for path in files_of(bundle_of(HEALTHY)):
        if path.suffix != ".csv":
            text = path.read_text(encoding="utf-8")
            for old, new in _names_in(text):
                text = text.replace(old, new)
            (bundle / f"neighbour-{path.name}").write_text(text, encoding="utf-8")
    before, after = original(name), ask(bundle)
    if before.cause == "insufficient_evidence" and not before.report.diagnosis.incidents[0].deaths:
        assert after.cause in ("insufficient_evidence", "healthy")  # somebody was seen at work now
        return
    assert after.cause == before.cause
    assert CONFIDENCE_ORDER.index(after.report.diagnosis.verdict.confidence) <= 1 + CONFIDENCE_ORDER.index(
        before.report.diagnosis.verdict.confidence
    )


def _names_in(text: str) -> Iterator[tuple[str, str]]:
    """Pod and node of the healthy sample, and what they are called as somebody's neighbour."""
    for key, new in (("Name", "neighbour-5f6d7c8b99-n8bor"), ("Node", "node-of-the-neighbour")):
        found = regex.search(rf"^{key}: +([^\s/]+)", text, regex.MULTILINE)
        if found:
            yield found[1], new


# -- trouble of others

PYTHON_KILLED = (
    "Memory cgroup out of memory: Killed process 118204 (python3) total-vm:6120400kB, anon-rss:3911800kB, file-rss:0kB,"
    " shmem-rss:0kB, UID:0 pgtables:8212kB oom_score_adj:969"
)
"""What a ring buffer keeps of a kill when the lines above it are gone: neither whose, nor at which limit."""
LONG_BEFORE = timedelta(hours=8, minutes=7)
"""No whole quarter of an hour, so that no zone explains it."""


def _moment(report: Report) -> datetime:
    """When the main incident began, or the last line was written."""
    begun = report.diagnosis.incidents[0].start_s
    known = [e.time.utc_s for e in report.timeline if e.time.utc_s is not None]
    return datetime.fromtimestamp(begun or max(known, default=1_790_000_000.0), UTC)


def _described(moment: datetime) -> str:
    """Another pod, which ended for memory hours before and works since."""
    def told(hours: float) -> str:
        return f"{moment - timedelta(hours=hours):%a, %d %b %Y %H:%M:%S} +0000"

    return (
        "Name:             invoice-export-6b7d9f8c55-t4v2z\nNamespace:        billing\nNode:             cpu-node-2/10.44.9.9\n"
        "Containers:\n  export:\n    Image:         registry.example/invoice-export:4.2\n    Command:\n      python\n      -m\n"
        f"      invoice_export\n    State:          Running\n      Started:      {told(1.37)}\n    Last State:     Terminated\n"
        f"      Reason:       OOMKilled\n      Exit Code:    137\n      Started:      {told(8.12)}\n"
        f"      Finished:     {told(1.38)}\n    Ready:          True\n    Restart Count:  3\n    Limits:\n      memory:  2Gi\n"
        "    Requests:\n      memory:  2Gi\nEvents:          <none>\n"
    )


def _killed_iso(moment: datetime) -> str:
    return f"{moment - LONG_BEFORE:%Y-%m-%dT%H:%M:%S}+00:00 gpu-node-31 kernel: {PYTHON_KILLED}\n"


def _killed_yearless(moment: datetime) -> str:
    return f"{moment - LONG_BEFORE:%b %d %H:%M:%S} gpu-node-31 kernel: {PYTHON_KILLED}\n"


def _killed_since_boot(_: datetime) -> str:
    return f"[2911407.220190] {PYTHON_KILLED}\n[2940118.002211] cni0: port 9(veth0a1) entered disabled state\n"


def _listed(_: datetime) -> str:
    return (
        "NAME                              READY   STATUS      RESTARTS        AGE\n"
        "invoice-export-6b7d9f8c55-t4v2z   0/1     OOMKilled   6 (3m40s ago)   9h\n"
        "mailer-6c5d7f9b88-p4k2z           1/1     Running     0               12d\n"
    )


def _trained(moment: datetime) -> str:
    """A trainer's log that ran out of GPU memory, tried again with less, and went on for an hour."""
    def at(minutes: float) -> str:
        return f"{moment - timedelta(minutes=minutes):%Y-%m-%d %H:%M:%S},000"

    steps = "".join(f"{at(68 - n)} INFO ranker.train epoch 3 step {1200 + n} loss 0.2{n}\n" for n in range(60))
    return (
        f"{at(70)} INFO ranker.train epoch 3 step 1199 loss 0.231\n{at(69)} ERROR ranker.train step failed, again with batch 8\n"
        'Traceback (most recent call last):\n  File "/srv/ranker/train.py", line 88, in step\n    loss = model(batch)\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 23.69 GiB of"
        " which 402.12 MiB is free. Including non-PyTorch memory, this process has 23.10 GiB memory in use. Of the allocated"
        f" memory 21.90 GiB is allocated by PyTorch, and 312.40 MiB is reserved by PyTorch but unallocated.\n{steps}"
    )


def _faulted(moment: datetime) -> str:
    return (
        f"{moment - timedelta(minutes=7):%b %d %H:%M:%S} notebook-node-4 kernel: NVRM: Xid (PCI:0000:3b:00): 31, pid=77120,"
        " name=python3, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f1c_20000000."
        " Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ\n"
    )


TROUBLES = (_described, _killed_iso, _killed_yearless, _killed_since_boot, _listed, _trained, _faulted)
"""What a bundle may hold of others: a file each."""


def _silent(answer: Answer) -> bool:
    """True for an end that nothing explains: what cannot be placed may be its reason."""
    return answer.cause == "insufficient_evidence"


@pytest.mark.parametrize("name", except_for(dict.fromkeys(("max-len-pasted-line", "unknown-flag-pasted"), HEARSAY)))
def test_trouble_of_others_does_not_matter(name: str, tmp_path: Path) -> None:
    """Two of the troubles beside each sample that shows an engine's log; without one, it may be all there is to tell."""
    before = original(name)
    if not before.report.diagnosis.lives:
        pytest.skip("no log of an engine")
    number = CASES.index(name)
    for trouble in {TROUBLES[number % len(TROUBLES)], TROUBLES[(number * 3 + 2) % len(TROUBLES)]}:
        bundle = copy_of(name, tmp_path / trouble.__name__)
        (bundle / "of-others.txt").write_text(trouble(_moment(before.report)), encoding="utf-8")
        after = ask(bundle)
        told = (trouble.__name__, *after.verdict)
        assert after.cause == before.cause or (_silent(before) and after.confidence == "possible"), told


# -- a small table in the log

TABLES = (
    "memory.used [MiB], memory.total [MiB]\n4 MiB, 46068 MiB\n",
    "              total        used        free      shared  buff/cache   available\n"
    "Mem:           500Gi        14Gi       466Gi         1Gi        20Gi       480Gi\n",
    "Filesystem      Size  Used Avail Use% Mounted on\n/dev/nvme7n1    900G  300G  600G  34% /srv/other\n",
    "Package      Version\n------------ ---------\nattrs        24.2.0\n",
)


@pytest.mark.parametrize("name", CASES)
def test_a_small_table_does_not_take_the_log(name: str, tmp_path: Path) -> None:
    """Two lines that somebody pasted above, between or below the lines of an engine's log."""
    answer, bundle = original(name), copy_of(name, tmp_path)
    engine = {event.locator.source for event in answer.report.timeline if event.channel == "engine"}
    sources = [source.path for source in answer.report.sources if source.format == "log" and source.path in engine]
    path = next((found for source in sources if (found := file_of(bundle, source)) is not None), None)
    if path is None:
        pytest.skip("no log of an engine")
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    lines[-1] = lines[-1].rstrip("\n") + "\n"
    number = CASES.index(name)
    headed = [0, *(i for i, line in enumerate(lines) if _ENGINE_HEADER.match(line)), len(lines)]
    place = (headed[0], headed[len(headed) // 2], headed[-1])[number % 3]
    path.write_text("".join((*lines[:place], TABLES[number % len(TABLES)], *lines[place:])), encoding="utf-8")
    assert ask(bundle).cause == answer.cause


# -- what collectors put around a line


def _bare_engine_sources(answer: Answer) -> list[Source]:
    """Engine logs whose lines carry no stamp but the engine's own."""
    return [s for s in answer.report.sources if s.clocks and {c.layer for c in s.clocks} == {"engine"}]


def _instants(source: Source, lines: Sequence[str]) -> Iterator[datetime]:
    """The instant of each line by the clock that the analysis found; lines without a stamp take their predecessor's."""
    clock = source.clocks[0]
    assert clock.offset_s is not None
    year, last = clock.year or 2026, None
    for line in lines:
        found = _ENGINE_STAMP.search(line)
        if found:
            month, day, hour, minute, second = map(int, found.groups())
            moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
            if last is not None and (last - moment).days > 300:
                year, moment = year + 1, moment.replace(year=year + 1)
            last = moment
        yield (last or datetime(year, 1, 1, tzinfo=UTC)) + timedelta(seconds=clock.offset_s)


def _cri(moment: datetime, line: str) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}000Z stdout F {line}"


def _timestamps(moment: datetime, line: str) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}000Z {line}"


@pytest.mark.parametrize(
    ("name", "wrap"), [(name, (_cri, _timestamps)[n % 2]) for n, name in enumerate(CASES)], ids=CASES
)
def test_what_a_collector_puts_around_a_line_does_not_matter(
    name: str, wrap: Callable[[datetime, str], str], tmp_path: Path
) -> None:
    """The same lines behind the stamps of a container runtime or of `kubectl --timestamps`, at the same times."""
    before = original(name)
    after = ask(_collected(name, before, wrap, 1, tmp_path))
    assert after.cause == before.cause
    assert CONFIDENCE_ORDER.index(after.report.diagnosis.verdict.confidence) <= CONFIDENCE_ORDER.index(
        before.report.diagnosis.verdict.confidence
    ), "a surer clock makes nothing less sure"


def _collected(name: str, before: Answer, wrap: Callable[[datetime, str], str], step: int, folder: Path) -> Path:
    """A sample whose engine logs a collector has stamped; with `step` -1 the newest line comes first."""
    bare = _bare_engine_sources(before)
    if not bare:
        pytest.skip("no engine log without an outer stamp")
    folder.mkdir(exist_ok=True)
    bundle = copy_of(name, folder)
    for source in bare:
        path = file_of(bundle, source.path)
        assert path is not None
        lines = path.read_text(encoding="utf-8").split("\n")
        lines = lines[:-1] if lines[-1] == "" else lines
        if any(not _ENGINE_STAMP.search(line) for line in lines[:1]):
            pytest.skip("the first line has no stamp to wrap it with")
        moments = (m + timedelta(microseconds=n) for n, m in enumerate(_instants(source, lines)))
        stamped = [wrap(moment, line) + "\n" for moment, line in zip(moments, lines, strict=True)]
        path.write_text("".join(stamped[::step]), encoding="utf-8")
    return bundle


@pytest.mark.parametrize("name", CASES)
def test_the_direction_in_which_a_backend_shows_a_log_does_not_matter(name: str, tmp_path: Path) -> None:
    """Newest line first is the default of Grafana, Kibana and `journalctl -r`: the same runs, ends and first cause."""
    before = original(name)
    up = ask(_collected(name, before, _timestamps, 1, tmp_path / "up"))
    down = ask(_collected(name, before, _timestamps, -1, tmp_path / "down"))
    assert down.verdict == up.verdict
    assert _runs(down) == _runs(up)


def _runs(answer: Answer) -> list[tuple[object, ...]]:
    incident = answer.report.diagnosis.incidents[0]
    first = incident.chain[0].finding if incident.chain else None
    told = [(d.entity, d.time_s, d.exit_code, d.life is not None and d.life.start.text) for d in incident.deaths]
    return [*told, (first.signature, first.event.text) if first is not None else ()]


# -- the decisive line

DOCUMENTS = (".json", ".yaml", ".yml")


def _ground(findings: Sequence[Finding]) -> Iterator[Finding]:
    for finding in findings:
        yield finding
        yield from _ground(finding.rests_on)


def _take_out(bundle: Path, reading: pipeline.Reading, report: Report) -> bool:
    """Takes the decisive lines and their copies out of a bundle; False when there are none, or a document would break."""
    ground = list(_ground(report.diagnosis.verdict.decisive))
    signatures = {f.signature for f in ground if not f.signature.startswith("derived.")}
    doomed: dict[str, set[int]] = {}
    for finding in (*ground, *(f for f in report.diagnosis.findings if f.signature in signatures)):
        place, event = finding.locator, finding.event
        numbers = doomed.setdefault(place.source, set())
        if event.kind == "sample":  # a series is made of many lines
            for samples in reading.samples:
                if samples.source == place.source and samples.name == event.text.split()[0]:
                    numbers.update(samples.lines)
        elif event.kind == "access":  # refusals are counted
            numbers.update(
                e.locator.line
                for e in reading.events
                if e.kind == "access" and e.locator.source == place.source and e.fields["status"] >= 400
            )
        else:
            numbers.update(range(place.line, (event.last_line or place.line_end) + 1))
    for source, numbers in doomed.items():
        path = file_of(bundle, source)
        assert path is not None
        if path.suffix in DOCUMENTS:
            return False
        lines = path.read_bytes().split(b"\n")
        path.write_bytes(b"\n".join(line for number, line in enumerate(lines, 1) if number not in numbers))
    return bool(doomed)


UNDECIDED = ("healthy", "insufficient_evidence")
DECIDED = [name for name in CASES if truth_of(name) not in UNDECIDED]
ROUNDS = 5
"""A bundle may hold as many independent witnesses: the verdict falls with the last of them."""


@pytest.mark.parametrize("name", DECIDED)
def test_without_its_decisive_lines_a_verdict_falls(name: str, tmp_path: Path) -> None:
    """Another cause, or less confidence, and a gap that says what is missing; the rest of a traceback is no new cause."""
    bundle = copy_of(name, tmp_path)
    before = original(name).report.diagnosis.verdict
    for _ in range(ROUNDS + 1):
        try:
            reading = pipeline.read(bundle)
            report = pipeline.judge(reading)
        except NothingReadableError:
            return  # nothing but the decisive line was there
        after = report.diagnosis.verdict
        less = CONFIDENCE_ORDER.index(before.confidence) < CONFIDENCE_ORDER.index(after.confidence)
        if after.cause.id != before.cause.id or less:
            break
        if not _take_out(bundle, reading, report):
            pytest.skip("the decisive line is part of a JSON or YAML document")
    else:
        pytest.fail(f"still {after.cause.id}, {after.confidence} after {ROUNDS} rounds")
    if before.cause.id != "app_bug":
        assert "derived.uncaught_exception" not in {f.signature for f in after.decisive}
    if after.cause.id != "healthy":
        assert report.diagnosis.gaps


# -- talk about errors

PROMPT = (
    "Received request chatcmpl-5f1e: prompt: 'user: my server printed torch.OutOfMemoryError: CUDA out of memory. Tried"
    " to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 12.00 MiB is free. dmesg: Memory cgroup out"
    " of memory: Killed process 4122 (python3) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB. NVRM: Xid"
    " (PCI:0000:3b:00): 79, GPU has fallen off the bus. ValueError: No available memory for the cache blocks. NCCL error:"
    " unhandled system error. Container vllm failed liveness probe, will be restarted. Why?', params:"
    " SamplingParams(n=1, temperature=0.7), prompt_token_ids: None, lora_request: None."
)


def _with_prompts(lines: list[str]) -> list[str] | None:
    """A log with a prompt behind its first engine line, in its middle and before its last line; none for other logs."""
    headers = [(n, found) for n, line in enumerate(lines) if (found := _ENGINE_HEADER.match(line))]
    if not headers:
        return None
    out = list(lines)
    for n, found in sorted({headers[0], headers[len(headers) // 2], headers[-1]}, key=lambda item: -item[0]):
        out.insert(n, f"{found['head']}INFO {found['stamp']} [logger.py:43] {PROMPT}")
    return out


@pytest.mark.parametrize("name", CASES)
def test_prompts_that_quote_errors_do_not_matter(name: str, tmp_path: Path) -> None:
    """A user asks about every error there is, three times in each engine log."""
    bundle = copy_of(name, tmp_path)
    changed = False
    for path in files_of(bundle):
        if path.suffix in (".gz", *DOCUMENTS):
            continue
        lines = _with_prompts(path.read_text(encoding="utf-8", errors="surrogateescape").split("\n"))
        if lines is not None:
            path.write_text("\n".join(lines), encoding="utf-8", errors="surrogateescape")
            changed = True
    if not changed:
        pytest.skip("no engine log with vLLM's headers")
    assert ask(bundle).verdict == original(name).verdict


# -- hardly anything


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n\n",
        "hello\nthis is no log\n",
        '172.16.0.3 - - [12/May/2026:08:00:00 +0000] "GET / HTTP/1.1" 200 612\n' * 20,
        "2026-05-12 08:00:00 INFO worker ready\n" * 50,
        "oom oom oom OutOfMemory killer kill -9 exit\n" * 20,
    ],
    ids=["empty", "blank", "prose", "nginx", "another program", "words"],
)
def test_irrelevant_text_accuses_nobody(text: str, tmp_path: Path) -> None:
    """Nothing readable, insufficient evidence, or health: never a cause."""
    (tmp_path / "x.log").write_text(text, encoding="utf-8")
    try:
        answer = ask(tmp_path)
    except NothingReadableError:
        return
    assert answer.cause in UNDECIDED
    assert answer.confidence != "established"


def _one_liners() -> Iterator[tuple[str, str]]:
    """One true example of every third signature that can decide a cause."""
    library = pipeline.load_library()
    decisive = sorted({name for cause in library.causes.values() for name in cause.decisive if name in library.signatures})
    for name in decisive[::3]:
        example = next((e for e in library.signatures[name].examples if e.pattern), None)
        if example is not None and "\n" not in example.text:
            yield name, example.text


@pytest.mark.parametrize(("signature", "text"), list(_one_liners()), ids=[name for name, _ in _one_liners()])
def test_one_line_is_never_established(signature: str, text: str, tmp_path: Path) -> None:
    """A pasted error gives a cause that knows it, or none, and never more than `likely`."""
    (tmp_path / "error.txt").write_text(text + "\n", encoding="utf-8")
    try:
        answer = ask(tmp_path)
    except NothingReadableError:
        return
    assert answer.confidence != "established"
    assert answer.cause in UNDECIDED or answer.report.diagnosis.first_cause is not None


def test_relations_are_not_empty() -> None:
    """There is something to try them on."""
    assert len(CASES) >= 40
    assert len(DECIDED) >= 30
