"""Compose files, and documents that are recognised by their syntax only."""

from __future__ import annotations

import pytest

from forensics.parsers import documents
from forensics.sources import make_head

COMPOSE = """\
x-base: &base
  restart: unless-stopped
services:
  vllm:
    <<: *base
    image: vllm/vllm-openai:v0.6.3
    command: >
      --model Qwen/Qwen2.5-14B-Instruct --max-model-len 32768
    environment:
      HF_HOME: /models
    shm_size: 8gb
    stop_grace_period: 1m30s
    deploy:
      resources:
        limits:
          memory: 64G
        reservations:
          devices:
            - driver: nvidia
              device_ids: ["0", "1"]
  gateway:
    image: nginx:1.27
    ipc: host
    environment: ["A=1", "B"]
"""


def test_compose() -> None:
    """A service is a container's spec, with sizes in docker's units."""
    vllm, gateway = documents.read_compose(COMPOSE, "docker-compose.yml").events
    assert (vllm.kind, vllm.channel, vllm.scope.container, vllm.locator.line) == (
        "pod_spec",
        "runtime",
        "vllm",
        4,
    )
    assert vllm.fields == {
        "container": "vllm", "image": "vllm/vllm-openai:v0.6.3", "env": {"HF_HOME": "/models"},
        "args": ("--model", "Qwen/Qwen2.5-14B-Instruct", "--max-model-len", "32768"),
        "memory_limit_bytes": 64 << 30, "shm_size_bytes": 8 << 30, "gpus": 2, "grace_s": 90,
        "restart_policy": "unless-stopped",
    }  # fmt: skip
    assert "shm_size_bytes" not in gateway.fields
    assert gateway.fields["env"] == {"A": "1"}


def test_a_health_check_of_compose() -> None:
    """The times of a health check; what is not set has docker's defaults; a disabled one is none."""
    text = """services:
  chat:
    image: vllm/vllm-openai:v0.11.0
    healthcheck:
      test: ["CMD", "curl", "-f", "http://localhost:8000/health"]
      interval: 15s
      start_period: 5m
"""
    (chat,) = documents.read_compose(text, "docker-compose.yml").events
    assert {k: v for k, v in chat.fields.items() if k.startswith("health_")} == {
        "health_delay_s": 300, "health_period_s": 15, "health_timeout_s": 30.0, "health_failure": 3,
    }  # fmt: skip
    (off,) = documents.read_compose(text + "      disable: true\n", "docker-compose.yml").events
    assert "health_period_s" not in off.fields


def test_backup_of_a_compose_file() -> None:
    """An old copy describes no container that runs."""
    (vllm, _) = documents.read_compose(COMPOSE, "docker-compose.yml.bak-20241120").events
    assert vllm.scope.container == ""
    assert vllm.fields["backup"] is True


@pytest.mark.parametrize(("text", "size"), [
    ("8gb", 8 << 30), ("512m", 512 << 20), ("64M", 64 << 20), ("1024", 1024), ("1.5g", 3 << 29),
    ("half", None),
])  # fmt: skip
def test_sizes(text: str, size: int | None) -> None:
    assert documents.size_bytes(text) == size


def test_generic_documents_are_weak() -> None:
    """They win only where nothing else knows the file, and YAML needs its name."""
    assert documents.JSON.sniff(make_head("a.json", b'[{"a": 1}]', True)) == 22
    assert documents.JSON.sniff(make_head("a.json", b'{"a": ', True)) == 0
    assert documents.JSON.sniff(make_head("a.json", b'{"a": 1, "b": [1,', False)) == 22
    assert documents.YAML.sniff(make_head("values.yaml", b"replicas: 2\nimage: {}\n", True)) == 22
    assert documents.YAML.sniff(make_head("meminfo", b"MemTotal: 263 kB\n", True)) == 0
    assert documents.YAML.sniff(make_head("notes.yml", b"just words\n", True)) == 0


def test_compose_sniff() -> None:
    assert documents.COMPOSE.sniff(make_head("x", COMPOSE.encode(), True)) >= 90
    assert documents.COMPOSE.sniff(make_head("x", b"services: two of them\nimage: none\n", True)) == 0
