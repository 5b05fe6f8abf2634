"""Answers of clouds about their machines."""

from __future__ import annotations

import pytest

from forensics import parsers
from forensics.parsers import cloud_notices
from forensics.sources import identify, make_head

REQUEST = """\
{
    "SpotInstanceRequests": [
        {
            "State": "closed",
            "Status": {
                "Code": "instance-terminated-by-price",
                "Message": "The Spot price is above your maximum.",
                "UpdateTime": "2026-05-12T09:30:00.000Z"
            }
        }
    ]
}
"""


def test_a_request_says_what_became_of_it() -> None:
    """The code, the words beside it, its line and its time."""
    (event,) = cloud_notices.read(REQUEST, "spot.json").events
    assert event.text == '"Code": "instance-terminated-by-price" The Spot price is above your maximum.'
    assert (event.locator.line, event.channel, len(event.stamps)) == (6, "host", 1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            '{"Reservations": [{"Instances": [{"StateReason": {"Code": "Server.SpotInstanceTermination", "Message": "x"}}]}]}',
            ['"Code": "Server.SpotInstanceTermination" x'],
        ),
        (
            '{"detail-type": "EC2 Spot Instance Interruption Warning", "time": "2026-05-12T09:30:00Z"}',
            ['"detail-type": "EC2 Spot Instance Interruption Warning"'],
        ),
        (
            '[{"operationType": "compute.instances.preempted", "statusMessage": "Instance was preempted."}]',
            ['"operationType": "compute.instances.preempted" Instance was preempted.'],
        ),
        ('{"Events": [{"EventType": "Preempt", "EventId": "A1"}]}', ['"EventType": "Preempt"']),
        ('{"action": "terminate", "time": "2026-05-12T09:30:00Z"}', ['"action": "terminate"']),
        ('{"Status": {"Code": "instance-terminated-no-capacity", ', ['"Code": "instance-terminated-no-capacity"']),
        ('{"models": [{"id": "chat"}]}', []),
        ('{"SpotInstanceRequests": 7, "Code": ["x"]}', []),
    ],
    ids=["instance", "event bridge", "gce", "azure", "metadata", "cut off", "nothing", "other types"],
)
def test_shapes(text: str, told: list[str]) -> None:
    assert [event.text for event in cloud_notices.read(text, "x.json").events] == told


def test_recognised_by_its_keys() -> None:
    assert cloud_notices.sniff(make_head("x.json", REQUEST.encode(), True)) == 60
    assert cloud_notices.sniff(make_head("x.json", b'{"error": {"Code": "bad"}}', True)) == 0
    assert cloud_notices.sniff(make_head("x.txt", b'the "EventType": "Preempt" of Azure', True)) == 0


def test_an_endpoint_that_failed_and_how_long_its_start_may_take() -> None:
    """SageMaker says that the container did not answer in time; another answer has the time that it was given."""
    text = '{"EndpointName": "chat", "EndpointStatus": "Failed", "FailureReason": "It did not pass the ping health check."}'
    (failed,) = cloud_notices.read(text, "endpoint.json").events
    assert failed.text == '"FailureReason": "It did not pass the ping health check."'
    text = '{"ProductionVariants": [{"VariantName": "blue", "ContainerStartupHealthCheckTimeoutInSeconds": 900}]}'
    (spec,) = cloud_notices.read(text, "config.json").events
    assert (spec.kind, spec.fields["health_period_s"]) == ("pod_spec", 900)
    assert all(cloud_notices.sniff(make_head("x.json", told.encode(), True)) == 60 for told in (text, '{"EndpointStatus": "Failed"}'))


def test_operations_of_compute_engine() -> None:
    """`gcloud compute operations list`: each row has its own time, and its target is the machine."""
    text = (
        "$ gcloud compute operations list --limit 2\n"
        "NAME                    TYPE                         TARGET                                HTTP_STATUS  STATUS  TIMESTAMP\n"
        "systemevent-17-64b-7f0  compute.instances.preempted  europe-west9-b/instances/gpu-node-7   200          DONE    2026-11-29T13:25:17.312-08:00\n"
        "operation-17-64b-e0f    delete                       europe-west9-b/instances/gpu-node-8   200          DONE    2026-11-29T12:53:42.841-08:00\n"
    )
    head = make_head("ops.txt", text.encode(), True)
    assert identify(head, parsers.FORMATS) is cloud_notices.OPERATIONS
    preempted, deleted = cloud_notices.read_operations(text, "ops.txt").events
    assert preempted.text == "operation compute.instances.preempted of europe-west9-b/instances/gpu-node-7: DONE"
    assert (preempted.scope.host, preempted.stamps[0].seconds, preempted.locator.line) == ("gpu-node-7", 1795987517.312, 3)
    assert deleted.scope.host == "gpu-node-8"
