"""`serve status`, the dashboard's answer and a RayService: what Serve says, and the exception in its message."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from forensics import parsers
from forensics.model import Parsed
from forensics.sources import Head, identify

ERROR = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`."
MESSAGE = (
    "The deployment failed to start 3 times in a row. See controller logs for details. Error:\n"
    "\x1b[36mray::ServeReplica:chat:LLM.initialize_and_get_metadata()\x1b[39m (pid=3021, ip=10.2.0.8)\n"
    '  File "/usr/lib/python3/site-packages/vllm/v1/engine/core.py", line 231, in _initialize_kv_caches\n'
    f"{ERROR}"
)


def applications(status: str, message: str = "", deployments: str = "deployments") -> dict[str, Any]:
    part = {"status": status, "status_trigger": "X", "replica_states": {"RUNNING": 2}, "message": message}
    return {"chat": {"status": "RUNNING", "message": "", deployments: {"LLM": part}}}


def read(text: str, path: str = "status.yaml") -> tuple[str, Parsed]:
    form = identify(Head(path, text, tuple(text.split("\n")), True), parsers.FORMATS)
    assert form is not None
    assert form.read is not None
    return form.name, form.read(text, path)


def service(status: dict[str, Any]) -> dict[str, Any]:
    meta = {"name": "chat", "namespace": "serving"}
    return {"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": meta, "status": {"activeServiceStatus": status}}


FORMS = {
    "yaml": lambda status, message: yaml.safe_dump({"proxies": {}, "applications": applications(status, message)}),
    "json": lambda status, message: json.dumps({"applications": applications(status, message)}, indent=1),
    "service": lambda status, message: yaml.safe_dump(
        service({"applicationStatuses": applications(status, message, "serveDeploymentStatuses")})
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_exception_of_what_failed_to_start(form: str) -> None:
    """The message of a deployment ends with the replica's traceback; its place is the line of the message."""
    text = FORMS[form]("DEPLOY_FAILED", MESSAGE)
    _, parsed = read(text)
    told = [event for event in parsed.events if event.channel == "ray"]
    assert {event.text for event in told} == {
        "Serve application 'chat' is RUNNING", "Serve deployment 'LLM' of 'chat' is DEPLOY_FAILED",
    }  # fmt: skip
    (error,) = (event for event in parsed.events if event.kind == "traceback")
    assert (error.text, error.fields["exception"]) == (ERROR, "ValueError")
    assert "message:" in text.split("\n")[error.locator.line - 1].replace('"', "")


@pytest.mark.parametrize("form", FORMS)
def test_a_deployment_that_is_well(form: str) -> None:
    """No message, no exception; how many replicas run."""
    name, parsed = read(FORMS[form]("HEALTHY", ""))
    assert name == ("k8s.objects" if form == "service" else "ray.serve_status")
    (told,) = (event for event in parsed.events if "deployment" in event.text)
    assert (told.text, told.fields["replicas_running"]) == ("Serve deployment 'LLM' of 'chat' is HEALTHY", 2)


def test_other_documents_with_applications() -> None:
    """A list of applications is no status of Serve."""
    text = "applications:\n- name: chat\n  import_path: app:build\n  deployments:\n  - name: LLM\n    num_replicas: 2\n"
    _, parsed = read(text)
    assert parsed.events == ()
