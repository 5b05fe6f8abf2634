"""What kubectl says itself: files that hold an error instead of a log, and the sections of a cluster dump."""

from __future__ import annotations

import pytest

from forensics.parsers import kubectl_lines
from forensics.parsers.embedded import read_text
from forensics.parsers.kubectl_lines import MESSAGE, SECTIONS
from forensics.sources import make_head

MISSING = (
    'Error from server (BadRequest): previous terminated container "vllm" in pod "vllm-llama-0" not found\n'
)


def test_missing_previous_log() -> None:
    """The file of a log that does not exist names its pod and container."""
    (event,) = kubectl_lines.read(MISSING, "logs-previous.txt").events
    assert (event.kind, event.channel, event.text) == ("log", "k8s", MISSING.strip())
    assert (event.scope.pod, event.scope.container) == ("vllm-llama-0", "vllm")


@pytest.mark.parametrize("text", [
    MISSING,
    'Error from server (BadRequest): container "vllm" in pod "x" is waiting to start: PodInitializing\n',
    "No resources found in inference namespace.\n",
    'Error from server (NotFound): pods "vllm-llama-0" not found\n',
    "error: a container name must be specified for pod x, choose one of: [vllm proxy]\n",
    "Unable to connect to the server: dial tcp 10.0.0.1:6443: i/o timeout\n",
    "unable to retrieve container logs for containerd://0123abcd\n",
    'Defaulted container "vllm" out of: vllm, fetch (init)\n\n' + MISSING,
])  # fmt: skip
def test_recognised(text: str) -> None:
    assert MESSAGE.sniff(make_head("logs-previous.txt", text.encode(), True)) >= 90


def test_a_log_is_no_message() -> None:
    """A log that begins with such a line is a log."""
    text = 'Defaulted container "vllm" out of: vllm\nINFO 11-29 21:21:29 [api_server.py:1] hello\n'
    assert MESSAGE.sniff(make_head("x", text.encode(), True)) == 0
    first, second = read_text(text, "x", "plain").events
    assert (first.channel, second.channel) == ("k8s", "engine")


SECTIONED = """\
==== START logs for container vllm of pod inference/vllm-llama-0 ====
INFO 11-29 21:21:29 [api_server.py:1] hello
plain words
==== END logs for container vllm of pod inference/vllm-llama-0 ====
==== START logs for container proxy of pod inference/vllm-llama-0 ====
Request log error: the server rejected our request for an unknown reason (get pods vllm-llama-0)
==== END logs for container proxy of pod inference/vllm-llama-0 ====
outside
"""


def test_sections_own_their_lines() -> None:
    """Lines between START and END belong to that container; the marks themselves are no lines of a log."""
    events = read_text(SECTIONED, "logs.txt", "container").events
    assert [(e.locator.line, e.channel, e.scope.pod, e.scope.container) for e in events] == [
        (2, "engine", "vllm-llama-0", "vllm"),
        (3, "engine", "vllm-llama-0", "vllm"),
        (6, "k8s", "vllm-llama-0", "proxy"),
        (8, "container", "", ""),
    ]
    assert SECTIONS.sniff(make_head("logs.txt", SECTIONED.encode(), True)) > 0


def test_sections_of_errors_only() -> None:
    """A dump of pods without logs holds nothing but kubectl's words."""
    text = "\n".join(SECTIONED.split("\n")[4:7]) + "\n"
    assert MESSAGE.sniff(make_head("logs.txt", text.encode(), True)) >= 90
    (event,) = kubectl_lines.read(text, "logs.txt").events
    assert (event.locator.line, event.scope.container) == (2, "proxy")
