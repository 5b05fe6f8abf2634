"""One reading of a bundle: the same whatever it is packed in, however it is cut, with and without the prefilter."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from forensics import ingest
from forensics.bundle import Bundle
from forensics.ingest import ReadSource, read_bundle
from forensics.model import Parsed
from forensics.sources import Format

ANCHORS = ("OutOfMemoryError", "oom-killer", "Killed process", "CrashLoopBackOff")
ENGINE = "".join(
    f"(EngineCore_DP0 pid=71) INFO 06-11 06:{i // 60 % 60:02d}:{i % 60:02d} [loggers.py:259] Engine 000: Avg prompt throughput: "
    f"{i % 97}.0 tokens/s, Avg generation throughput: 1.0 tokens/s, Running: 3 reqs, Waiting: 0 reqs, "
    f"GPU KV cache usage: {i % 100}.5%, Prefix cache hit rate: 0.0%\n"
    + ("(EngineCore_DP0 pid=71) ERROR 06-11 07:00:00 [core.py:71] torch.OutOfMemoryError: CUDA out of memory. Tried to "
       f"allocate {i}.00 GiB\n" if i % 500 == 499 else "")
    for i in range(3000)
)  # fmt: skip
KERNEL = (
    "[ 100.000001] VLLM::EngineCor invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=936\n"
    "[ 100.000002] Tasks state (memory values in pages):\n"
    "[ 100.000003] [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name\n"
    "[ 100.000004] [    187]     0   187    77000    24000    450560        0           936 VLLM::EngineCor\n"
    "[ 100.000005] Memory cgroup out of memory: Killed process 187 (VLLM::EngineCor) total-vm:308000kB, anon-rss:96000kB, "
    "file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:440kB oom_score_adj:936\n"
)
FILES = {
    "incident-7/engine.log": ENGINE.encode(),
    "incident-7/node/dmesg.txt": KERNEL.encode(),
    "incident-7/node/memory.max": b"100663296\n",
    "incident-7/old/engine.log.1.gz": gzip.compress(ENGINE[:90_000].encode(), mtime=0),
    "incident-7/empty.txt": b"",
    "incident-7/core.bin": b"\x7fELF" + bytes(range(256)) * 64,
}


def write_folder(top: Path, files: dict[str, bytes] = FILES) -> Path:
    for name, data in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(data)
    return top


def read(path: Path, **options: object) -> tuple[list[ReadSource], list[str]]:
    """What is read, without the file times, and what is remarked."""
    bundle = Bundle((str(path),))
    found = read_bundle(bundle, ANCHORS, **options)
    return [replace(item, source=replace(item.source, mtime_s=None)) for item in found], [d.message for d in bundle.diagnostics]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("bundle"))


def pack(kind: str, target: Path) -> Path:
    if kind == "zip":
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in FILES.items():
                archive.writestr(name, data)
    else:
        with tarfile.open(target, kind) as tar:
            for name, data in reversed(FILES.items()):
                info = tarfile.TarInfo(f"./{name}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return target


@pytest.mark.parametrize("kind", ["w", "w:gz", "w:xz", "zip"])
def test_archive_reads_like_its_folder(folder: Path, tmp_path: Path, kind: str) -> None:
    """Same sources, paths, events, series and checksums; the top folder is no part of the paths."""
    whole, remarks = read(folder)
    assert [item.source.path for item in whole] == sorted(name.removeprefix("incident-7/").replace(".gz", ".gz!") for name in FILES)
    assert read(pack(kind, tmp_path / "upload")) == (whole, remarks)
    assert sum(len(item.parsed.events) for item in whole) > 10
    assert sum(len(samples.values) for item in whole for samples in item.parsed.samples) > 3000


@pytest.mark.parametrize("block_bytes", [64 << 10, (1 << 20) + 1, 64 << 20])
def test_blocks_do_not_matter(folder: Path, block_bytes: int) -> None:
    """Blocks of 64 KiB, of an odd size, and of 64 MiB give the same."""
    assert read(folder, block_bytes=block_bytes) == read(folder)


def test_prefilter_does_not_matter(folder: Path) -> None:
    """Without the prefilter every line becomes an event; those that a signature may look at are the same, and all facts."""
    with_filter, _ = read(folder)
    without, _ = read(folder, prefilter=False)
    assert [item.source for item in with_filter] == [item.source for item in without]
    for one, other in zip(with_filter, without, strict=True):
        assert one.parsed.samples == other.parsed.samples
        wanted = [event for event in one.parsed.events if any(anchor in event.text for anchor in ANCHORS) or event.kind != "log"]
        found = [event for event in other.parsed.events if any(anchor in event.text for anchor in ANCHORS) or event.kind != "log"]
        assert wanted == found


def test_hole_at_the_beginning_of_a_log(tmp_path: Path) -> None:
    """A log that was truncated while it was written begins with megabytes of NULs; its lines are read."""
    (tmp_path / "x.log").write_bytes(bytes(700_000) + ENGINE.encode())
    for block_bytes in (64 << 10, 8 << 20):
        (item,), remarks = read(tmp_path / "x.log", block_bytes=block_bytes)
        assert item.source.format == "log"
        assert any(event.locator.line == 1 for event in item.parsed.events)
        assert remarks == [] or "NUL bytes left out" in remarks[0]


def test_nothing_but_nul_bytes(tmp_path: Path) -> None:
    """Such a file is empty, and says why."""
    (tmp_path / "x.log").write_bytes(bytes(1000))
    (item,), _ = read(tmp_path / "x.log")
    assert (item.source.format, item.source.reason) == ("empty", "nothing but NUL bytes")


def test_binary_is_skipped_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture, a core dump, another archive: named, with what to do; a large one is not read to its end."""
    monkeypatch.setattr(ingest, "BINARY_BYTES", 1 << 20)
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 100)
    (tmp_path / "logs.7z").write_bytes(b"7z\xbc\xaf\x27\x1c" + bytes(200) + bytes(range(256)) * 100)
    (tmp_path / "core.71").write_bytes(b"\x7fELF" + bytes(range(256)) * 20_000)
    found, _ = read(tmp_path, block_bytes=1 << 20)
    by_name = {item.source.path: item.source for item in found}
    assert {source.format for source in by_name.values()} == {"unrecognised"}
    assert by_name["a.png"].reason == "PNG picture, no text; paste the text instead of a picture of it"
    assert "pack it as .tar.gz" in by_name["logs.7z"].reason
    assert by_name["core.71"].size_bytes < 4 << 20


def test_remarks_on_text(tmp_path: Path) -> None:
    """What of a text was not read as it stands is told."""
    (tmp_path / "cr.log").write_bytes(ENGINE[:2000].replace("\n", "\r").encode())
    (tmp_path / "long.log").write_bytes(b"INFO 06-11 06:00:00 [a.py:1] x\n" + b"y" * 100_000 + b"\n")
    (tmp_path / "latin.log").write_bytes("INFO 06-11 06:00:00 [a.py:1] épuisée\n".encode("latin-1"))
    _, remarks = read(tmp_path)
    assert remarks == [
        "cr.log: no LF but many CR, read as one line",
        "latin.log: lines that are not UTF-8, read as well as possible: 1",
        "long.log: overlong lines of which only the beginning was read: 1",
    ]


def test_cut_member_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """Events before the damage are there; the source says what happened to it."""
    (tmp_path / "engine.log.gz").write_bytes(gzip.compress(ENGINE.encode())[:-5000])
    (item,), remarks = read(tmp_path / "engine.log.gz")
    assert any("OutOfMemoryError" in event.text for event in item.parsed.events)
    assert item.source.reason == "ends before its gzip stream does"
    assert remarks == ["engine.log.gz! ends before its gzip stream does"]


def test_defect_in_a_parser_costs_one_file_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document that makes its parser fail is reported, and read as text; the other files are not touched."""

    def fails(text: str, source: str) -> Parsed:
        raise ZeroDivisionError("as documents may")

    broken = Format("broken", "broken document", lambda head: 100 if head.path.endswith("broken.json") else 0, read=fails)
    monkeypatch.setattr(ingest, "FORMATS", (broken, *ingest.FORMATS))
    write_folder(tmp_path, {"broken.json": b"{}\ntorch.OutOfMemoryError: CUDA out of memory.\n", "dmesg.txt": KERNEL.encode()})
    found, remarks = read(tmp_path)
    assert remarks == ["broken.json: reading it as broken document failed (ZeroDivisionError: as documents may)"]
    assert ["OutOfMemoryError" in event.text for item in found for event in item.parsed.events if event.kind == "log"].count(True)
    assert any(event.kind == "kernel_oom" for item in found for event in item.parsed.events)


def test_large_document_is_cut_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of a document does not depend on the blocks."""
    seen = []
    form = Format("doc", "document", lambda head: 100, read=lambda text, source: seen.append(len(text)) or Parsed(), max_bytes=300_000)
    monkeypatch.setattr(ingest, "FORMATS", (form,))
    (tmp_path / "x").write_bytes(b"a" * 1_000_000)
    for block_bytes in (64 << 10, 8 << 20):
        _, remarks = read(tmp_path / "x", block_bytes=block_bytes)
        assert remarks == ["x: only the first 300,000 of 1,000,000 bytes were read"]
    assert seen == [300_000, 300_000]


def test_remarks_follow_their_files(tmp_path: Path) -> None:
    """When the top folder is taken off the paths, it is taken off the remarks on them, and off no other name."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in ("top/x.log", "top/link", "elsewhere"):
            info = tarfile.TarInfo(name)
            info.type = tarfile.REGTYPE if name == "top/x.log" else tarfile.SYMTYPE
            tar.addfile(info)
    (tmp_path / "dump.tar").write_bytes(buffer.getvalue()[:1536])
    _, remarks = read(tmp_path / "dump.tar")
    assert remarks == [
        "link is a link and was not followed",
        "elsewhere is a link and was not followed",
        "dump.tar ends without an end mark, so its last part may be missing",
    ]


def test_hostile_texts(captures: Path) -> None:
    """Every text trap is read without a failing parser; the encodings of one log give the same lines."""
    folder = captures / "hostile/text"
    for trap in sorted(folder.iterdir()):
        if trap.name != "lines_2000000_short.log.gz":
            _, remarks = read(trap)
            assert not any("failed" in remark for remark in remarks), trap.name
    texts = [
        [event.text for event in read(folder / name)[0][0].parsed.events]
        for name in ("utf16be_bom.log", "utf16le_bom_powershell.log", "utf16le_no_bom.log", "utf32le_bom.log")
    ]
    assert len(texts[0]) == 6
    assert texts.count(texts[0]) == len(texts)
