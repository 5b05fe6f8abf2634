"""The last report of a job: where nothing of it failed, it got over what it met before."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import pipeline

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.20 GiB. GPU 0 has a total capacity of 23.60 GiB of"
    " which 1.10 GiB is free. Of the allocated memory 21.02 GiB is allocated by PyTorch, and 210.00 MiB is reserved by"
    " PyTorch but unallocated."
)
HEAD = (
    "2026-04-02 09:00:03,114 INFO  index.main  reading 90112 texts",
    "2026-04-02 09:10:07,310 INFO  index.feed  item 20480/90112",
    "Traceback (most recent call last):",
    '  File "/srv/index/encode.py", line 71, in encode',
    "    return model(**batch)",
    OOM,
    "2026-04-02 09:10:08,420 WARN  index.encode again with batch=16",
    "2026-04-02 09:30:08,420 INFO  index.feed  item 61440/90112",
)


def cause_of(folder: Path, *last: str) -> str:
    (folder / "index.log").write_text("\n".join((*HEAD, *last)), encoding="utf-8")
    return pipeline.analyze(folder).diagnosis.verdict.cause.id


@pytest.mark.parametrize(
    "report",
    [
        "2026-04-02 09:52:11,002 INFO  index.main  done. oom_retries=1 rows=90112 rows_failed=0",
        "2026-04-02 09:52:11,002 [INFO] Finished in 52 min: items=90112, errors=0",
        "2026-04-02 09:52:11,002 Summary: written: 90112, failed: 0",
    ],
)
def test_a_job_that_got_over_it(tmp_path: Path, report: str) -> None:
    assert cause_of(tmp_path, report) == "healthy"


@pytest.mark.parametrize(
    "report",
    [
        "2026-04-02 09:52:11,002 INFO  index.main  done. rows=90112 rows_failed=256",
        "2026-04-02 09:52:11,002 INFO  index.feed  item 81920/90112 errors=0",
        "2026-04-02 09:52:11,002 INFO  index.main  not done. rows=81920 rows_failed=0",
        "finished: rows=90112 rows_failed=0",
        f"2026-04-02 09:52:11,002 INFO  index.main  done. rows=90112 rows_failed=0\nTraceback (most recent call last):\n{HEAD[3]}\n{OOM}",
    ],
    ids=["some failed", "in the middle", "not done", "no program's line", "and then it failed"],
)
def test_a_job_that_may_not_have(tmp_path: Path, report: str) -> None:
    assert cause_of(tmp_path, report).startswith("gpu_oom")


def test_the_counters(tmp_path: Path) -> None:
    cause_of(tmp_path, "2026-04-02 09:52:11,002 INFO  index.main  done. oom_retries=1 rows=90112 rows_failed=0")
    (done,) = [event for event in pipeline.read(tmp_path).events if event.kind == "job_done"]
    assert done.fields == {"items_failed": 0, "retries": 1}
