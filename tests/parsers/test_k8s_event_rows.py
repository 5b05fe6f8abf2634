"""The Events table of `kubectl describe`, pasted without its object."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import analyze
from forensics.parsers import k8s_event_rows as rows

HEADER = "Events:\n  Type     Reason     Age                   From     Message\n  ----     ------     ----                  ----     -------\n"
KILL = "  Normal   Killing    6m20s (x4 over 31m)   kubelet  Container chat failed liveness probe, will be restarted\n"
SLOW = '  Warning  Unhealthy  9s (x17 over 33m)     kubelet  Liveness probe failed: Get "http://10.1.2.3:8000/health": EOF\n'
EVICTED = (
    "Warning  Evicted  2m40s  kubelet  The node was low on resource: ephemeral-storage. Threshold quantity: 9000000000, "
    "available: 812000Ki. Container chat was using 52000000Ki, request is 0, has larger consumption of ephemeral-storage. \n"
)
LOG = """INFO 03-02 09:00:01 [api_server.py:1034] vLLM API server version 0.8.4
INFO 03-02 09:00:09 [gpu_model_runner.py:1329] Starting to load model acme/chat-8b...
INFO 03-02 09:01:02 [core.py:159] init engine (profile, create kv cache, warmup model) took 40.1 seconds
INFO:     Application startup complete.
INFO 03-02 09:31:02 [loggers.py:111] Engine 000: Avg prompt throughput: 510.1 tokens/s, Avg generation throughput: 120.5 tokens/s, Running: 40 reqs, Waiting: 90 reqs, GPU KV cache usage: 51.3%, Prefix cache hit rate: 0.0%
INFO 03-02 09:31:32 [launcher.py:110] Shutting down FastAPI HTTP server.
INFO:     Shutting down
INFO:     Application shutdown complete.
INFO:     Finished server process [1]
"""


def verdict(folder: Path, **files: str) -> str:
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text, encoding="utf-8")
    return str(analyze(folder).to_dict()["verdict"]["cause"])


def test_rows_are_events_of_the_container_that_the_table_names() -> None:
    """A row that names none is of the only one that the others name."""
    kill, slow = (e for e in rows.read(HEADER + KILL + SLOW, "x").events if e.kind == "k8s_event")
    assert (kill.locator.line, kill.fields["reason"], kill.fields["count"], kill.scope.container) == (4, "Killing", 4, "chat")
    assert (slow.fields["component"], slow.level, slow.scope.container) == ("kubelet", "WARNING", "chat")


def test_two_containers_keep_their_own_rows() -> None:
    """Then a row that names none is nobody's."""
    events = rows.read(HEADER + KILL + KILL.replace("chat", "proxy") + SLOW, "x").events
    assert [e.scope.container for e in events if e.kind == "k8s_event"] == ["chat", "proxy", ""]


@pytest.mark.parametrize(
    "line",
    [
        "INFO 03-02 09:00:01 [api_server.py:1034] Normal  Mode  5s  kubelet  x",
        "Normal   operation resumes after 5s of waiting",
        "Warning  Deprecated  option is used",
        "  5m   Normal   Killing   pod/chat-0   Stopping container chat",  # of `kubectl get events`
        "Normal Killing",
    ],
)
def test_other_lines_are_no_rows(line: str) -> None:
    """The type, a reason, an age and who says it: all of them, in this order."""
    assert not rows.is_row(line)


@pytest.mark.parametrize(
    "text",
    [
        LOG + "\n" + HEADER + KILL + SLOW,
        HEADER + KILL + SLOW + "\n" + LOG,
        KILL + SLOW + "\n" + LOG,
        "It restarts and I do not know why.\n\n```\n" + LOG + "```\n\n```\n" + HEADER + KILL + SLOW + "```\n",
    ],
)
@pytest.mark.parametrize("name", ["a_log", "a_txt", "a_md"])
def test_a_probe_kill_beside_the_log_is_no_orderly_stop(tmp_path: Path, text: str, name: str) -> None:
    """The engine says farewell when the kubelet kills it, too."""
    assert verdict(tmp_path, **{name: text}) == "probe_kill"


def test_the_table_may_be_a_file_of_its_own(tmp_path: Path) -> None:
    """Its ages are counted from a moment that nobody noted: minutes apart is not long before."""
    assert verdict(tmp_path, vllm_log=LOG, events_txt=HEADER + KILL + SLOW) == "probe_kill"


def test_a_described_object_without_containers_is_a_pod(tmp_path: Path) -> None:
    """Only its head and its events were pasted; the kubelet speaks of pods."""
    described = "Name:             chat-0\nNamespace:        llm\nStatus:           Running\n" + HEADER + KILL + SLOW
    assert verdict(tmp_path, vllm_log=LOG, describe_txt=described) == "probe_kill"


@pytest.mark.parametrize("text", [EVICTED + "\nmy pod is gone, why?\n\n" + LOG, LOG + "\n" + HEADER + "  " + EVICTED])
def test_an_eviction_beside_the_log(tmp_path: Path, text: str) -> None:
    """Without a header as well."""
    assert verdict(tmp_path, a_txt=text) == "eviction"


STATES = "    Last State:     Terminated\n      Reason:       Error\n      Exit Code:    137\n    Restart Count:  6\n"


@pytest.mark.parametrize("text", [STATES + "\n" + HEADER + KILL, HEADER + KILL + "\n" + STATES + "\n" + LOG])
def test_states_beside_the_table_are_the_same_container_s(tmp_path: Path, text: str) -> None:
    """An exit code that nothing explains, and the kill that explains it."""
    assert verdict(tmp_path, a_txt=text) == "probe_kill"


@pytest.mark.parametrize(
    "rows_of_others",
    [
        KILL.replace("chat", "redis"),
        "  Normal   Killing    6m20s   kubelet  Stopping container chat\n",
        SLOW.replace("Liveness", "Readiness"),
        "  Normal   Started    40m   kubelet  Started container chat\n",
    ],
)
def test_near_misses_stay_healthy(tmp_path: Path, rows_of_others: str) -> None:
    """Another container's kill, an orderly stop, a readiness probe, a start."""
    assert verdict(tmp_path, a_log=LOG + "\n" + HEADER + rows_of_others) == "healthy"


def test_rows_inside_a_prompt_are_no_events(tmp_path: Path) -> None:
    """A user asked about them."""
    request = f"INFO 03-02 09:02:00 [logger.py:39] Received request 7: prompt: 'why?\n{KILL}', params: SamplingParams(n=1)\n"
    head, mark, tail = LOG.partition("INFO 03-02 09:31:02")
    assert verdict(tmp_path, a_txt=head + request + mark + tail) == "healthy"
