"""Tables of kubectl: pods, nodes, events, workloads, top, revisions."""

from __future__ import annotations

import pytest

from forensics.model import Event, StampForm
from forensics.parsers import k8s_text
from forensics.parsers.tables import header_of
from forensics.sources import make_head
from forensics.stamps import iso_utc


def read(text: str) -> tuple[Event, ...]:
    return k8s_text.read(text, "table.txt").events


def pods(text: str) -> list[Event]:
    """What the rows say about pods, without the ends of containers."""
    return [event for event in read(text) if event.kind == "pod_status"]


def ends(text: str) -> list[tuple[str, str | None, int | None]]:
    """Pod, reason and exit code of the ends of containers."""
    found = [event for event in read(text) if event.kind == "container_terminated"]
    return [(e.scope.pod, e.fields.get("reason"), e.fields.get("exit_code")) for e in found]


PODS = """\
NAMESPACE   NAME           READY   STATUS             RESTARTS        AGE    IP            NODE         NOMINATED NODE   READINESS GATES
inference   vllm-llama-0   0/1     CrashLoopBackOff   5 (9m48s ago)   71m    10.244.3.41   gpu-node-7   <none>           <none>
inference   vllm-proxy-0   1/1     Running            0               5d3h   <none>        <none>       <none>           <none>
"""


def test_pods_wide() -> None:
    """RESTARTS holds a blank; `<none>` is nothing; STATUS is a phase only when it is one."""
    first, second = pods(PODS)
    assert first.text == "pod vllm-llama-0 CrashLoopBackOff"
    assert first.fields == {
        "reason": "CrashLoopBackOff", "node": "gpu-node-7", "pod_ip": "10.244.3.41", "restart_count": 5,
        "last_restart_age_s": 588.5, "created_age_s": 4290.0, "containers_ready": 0, "containers": 1,
    }  # fmt: skip
    assert first.scope.to_dict() == {"host": "gpu-node-7", "namespace": "inference", "pod": "vllm-llama-0"}
    assert second.fields["phase"] == "Running"
    assert "node" not in second.fields


def test_status_tells_of_an_end() -> None:
    """A terminated container's reason, its code or signal when it has none, and a restart loop; nothing else."""
    rows = (
        "vllm-0   0/1   OOMKilled                6 (91s ago)   3d",
        "vllm-1   0/1   Error                    0             3d",
        "vllm-2   0/1   Init:Error               2 (9s ago)    3d",
        "vllm-3   0/1   ExitCode:3               1 (9s ago)    3d",
        "vllm-4   0/1   Signal:9                 1 (9s ago)    3d",
        "vllm-5   0/1   CrashLoopBackOff         5 (9m ago)    3d",
        "vllm-6   0/1   CrashLoopBackOff         0             3d",
        "vllm-7   0/1   Completed                0             3d",
        "vllm-8   1/1   Running                  4 (2h ago)    3d",
        "vllm-9   0/1   ContainerStatusUnknown   1 (9s ago)    3d",
        "vllm-a   0/1   ExitCode:0               0             3d",
    )
    text = "NAME     READY   STATUS                   RESTARTS      AGE\n" + "\n".join(rows) + "\n"
    assert ends(text) == [
        ("vllm-0", "OOMKilled", None), ("vllm-1", "Error", None), ("vllm-2", "Error", None), ("vllm-3", None, 3),
        ("vllm-4", None, 137), ("vllm-5", None, None), ("vllm-9", "ContainerStatusUnknown", None),
    ]  # fmt: skip
    assert len(pods(text)) == len(rows)


def test_an_end_in_a_table_has_no_time() -> None:
    """The age beside RESTARTS is that of the run before."""
    (end,) = [e for e in read(PODS) if e.kind == "container_terminated"]
    assert end.text == "pod vllm-llama-0 container terminated: reason= exit_code="
    assert end.stamps == ()
    assert end.fields == {"last_state": True, "restart_count": 5}


def test_rows_that_do_not_line_up() -> None:
    """Later rows of `--watch` and pasted tables are cut at runs of blanks."""
    text = (
        PODS
        + "inference   vllm-a-much-longer-name-0   0/1   OOMKilled   6 (2s ago)   72m   10.0.0.1   gpu-node-7   <none>   <none>\n"
    )
    assert pods(text)[-1].text == "pod vllm-a-much-longer-name-0 OOMKilled"


def test_table_cut_by_a_pager() -> None:
    """`less -S` cuts at the screen's edge and marks it with `>`."""
    text = "\n".join(f"{line[:79]}>" for line in PODS.split("\n") if line)
    assert [e.fields["restart_count"] for e in pods(text)] == [5, 0]


def test_pods_without_header() -> None:
    text = "vllm-llama-0   0/1   Error   5 (9m48s ago)   71m\nvllm-proxy-0   1/1   Running   0   5d3h\n"
    assert k8s_text.TABLE.sniff(make_head("x", text.encode(), True)) >= 80
    assert [e.fields["restart_count"] for e in pods(text)] == [5, 0]


def test_get_all_prefixes() -> None:
    """`kubectl get all` prints several tables and puts the kind before the name."""
    text = (
        "NAME               READY   STATUS    RESTARTS   AGE\npod/vllm-llama-0   1/1     Running   0          5d\n\n"
        "NAME                   READY   UP-TO-DATE   AVAILABLE   AGE\ndeployment.apps/vllm   1/2     2            1           5d\n"
    )
    pod, workload = read(text)
    assert pod.scope.pod == "vllm-llama-0"
    assert workload.text == "deployment vllm 1/2 available"


@pytest.mark.parametrize(("table", "text"), [
    ("NAME   READY   UP-TO-DATE   AVAILABLE   AGE\nvllm   0/2     2            0           5d\n",
     "deployment vllm 0/2 available"),
    ("NAME       DESIRED   CURRENT   READY   AGE\nvllm-6d5   2         2         1       5d\n",
     "replicaset vllm-6d5 1/2 available"),
    ("NAME   READY   AGE\nvllm   1/1     5d\n", "statefulset vllm 1/1 available"),
    ("NAME   DESIRED   CURRENT   READY   UP-TO-DATE   AVAILABLE   NODE SELECTOR   AGE\n"
     "dcgm   3         3         3       3            2           <none>          5d\n",
     "daemonset dcgm 2/3 available"),
])  # fmt: skip
def test_workloads(table: str, text: str) -> None:
    """The columns tell the kind."""
    assert [e.text for e in read(table)] == [text]


EVENTS = """\
LAST SEEN              TYPE      REASON      OBJECT             MESSAGE
5m33s (x12 over 47m)   Warning   Unhealthy   Pod/vllm-llama-0   Liveness probe failed: first
second line of it
<unknown>              Normal    Scheduled   pod/vllm-llama-0   Successfully assigned inference/vllm-llama-0 to gpu-node-7
3s                     Warning   SystemOOM   node/gpu-node-7    System OOM encountered, victim process: python3, pid: 51822
"""


def test_events() -> None:
    """Ages, counts, messages of several lines; nodes are hosts."""
    _, unhealthy, scheduled, oom = read(EVENTS)
    assert unhealthy.text == "Unhealthy: Liveness probe failed: first\nsecond line of it"
    assert (unhealthy.locator.line, unhealthy.locator.line_end) == (2, 3)
    assert (unhealthy.fields["count"], unhealthy.fields["first_age_s"]) == (12, 2850.0)
    assert [(s.form, s.seconds) for s in unhealthy.stamps] == [(StampForm.AGE, 333.5)]
    assert scheduled.stamps == ()
    assert oom.scope.to_dict() == {"host": "gpu-node-7"}


def test_events_wide() -> None:
    """The wide form adds the container, the source with its node, the first time and the count."""
    text = (
        "LAST SEEN   TYPE     REASON    OBJECT             SUBOBJECT               SOURCE                MESSAGE   "
        "FIRST SEEN   COUNT   NAME\n"
        "6m19s       Normal   Created   pod/vllm-llama-0   spec.containers{vllm}   kubelet, gpu-node-7   Created   "
        "80m          7       vllm-llama-0.187bf3\n"
    )
    _, event = read(text)
    assert event.scope.to_dict() == {"host": "gpu-node-7", "pod": "vllm-llama-0", "container": "vllm"}
    assert (event.fields["count"], event.fields["first_age_s"]) == (7, 4830.0)


def test_first_occurrence() -> None:
    """An event that counts several occurrences tells two moments, each with its own age; a single one tells one."""
    first, last, *_ = read(EVENTS)
    assert (first.kind, first.text) == ("k8s_first_seen", "first of 12 Unhealthy events")
    assert (first.locator, first.scope) == (last.locator, last.scope)
    assert [stamp.seconds for stamp in (*first.stamps, *last.stamps)] == [2850.0, 333.5]
    once = EVENTS.replace("(x12 over 47m)", "")
    assert [event.kind for event in read(once)] == ["k8s_event"] * 3


@pytest.mark.parametrize(
    ("column", "cell", "form", "seconds", "zone"),
    [
        ("TIME (IST)", "17:53:48", StampForm.CLOCK, 64428.0, "IST"),
        ("LAST SEEN(UTC+8)", "07:00:09", StampForm.CLOCK, 82809.0, "UTC"),
        ("TIME (CST)", "2026-05-06 10:00:00", StampForm.LOCAL, 1778061600.0, "CST"),
        ("TIME (UTC+2)", "2026-05-06 10:00:00", StampForm.INSTANT, 1778054400.0, ""),
        ("TIME", "2026-05-06 10:00:00", StampForm.LOCAL, 1778061600.0, ""),
    ],
)
def test_events_in_local_time(column: str, cell: str, form: StampForm, seconds: float, zone: str) -> None:
    """Whoever turned the times into local ones says so in the header; an offset is known, an abbreviation is a hint."""
    text = (
        f"{column:<22} TYPE      REASON    OBJECT        MESSAGE\n"
        f"{cell:<22} Warning   Unhealthy pod/chat-0    Liveness probe failed: HTTP probe failed with statuscode: 404\n"
    )
    assert k8s_text.TABLE.sniff(make_head("ev.txt", text.encode(), True)) == 93
    (event,) = read(text)
    assert [(s.form, s.seconds, s.zone) for s in event.stamps] == [(form, seconds, zone)]


def test_a_time_of_nothing_dates_no_event() -> None:
    (event,) = read("TIME (IST)   TYPE     REASON   OBJECT       MESSAGE\nearlier      Normal   Pulled   pod/chat-0   done\n")
    assert event.stamps == ()


def test_custom_columns_with_instants() -> None:
    """People print events with absolute times: columns of any usual name are understood."""
    text = (
        "LASTSEEN               REASON    OBJECT             MESSAGE\n"
        "2026-11-29T21:25:17Z   Killing   pod/vllm-llama-0   Stopping container vllm\n"
    )
    (event,) = read(text)
    assert [iso_utc(s.seconds, 0) for s in event.stamps] == ["2026-11-29T21:25:17Z"]


def test_nodes() -> None:
    text = (
        "NAME         STATUS                        ROLES    AGE    VERSION   INTERNAL-IP   KERNEL-VERSION   CONTAINER-RUNTIME\n"
        "gpu-node-7   NotReady,SchedulingDisabled   <none>   104d   v1.31.6   10.20.0.17    6.1.0-57-amd64   containerd://1.7.27\n"
    )
    (event,) = read(text)
    assert event.fields["conditions"] == {"Ready": "False"}
    assert event.fields["unschedulable"] is True
    assert event.fields["kernel_version"] == "6.1.0-57-amd64"


@pytest.mark.parametrize("percent", ["CPU%   MEMORY(bytes)   MEMORY%", "CPU(%)   MEMORY(bytes)   MEMORY(%)"])
def test_top_node(percent: str) -> None:
    """Both headers (before and since 1.32)."""
    text = f"NAME         CPU(cores)   {percent}\ngpu-node-7   9583m        15%    357314Mi        70%\n"
    (event,) = read(text)
    assert event.text == "node gpu-node-7 uses 357314 MiB of memory"


def test_top_pod() -> None:
    text = "POD            NAME   CPU(cores)   MEMORY(bytes)\nvllm-llama-0   vllm   7583m        64345Mi\n"
    (event,) = read(text)
    assert event.fields == {"memory_mib": 64345, "cpu_millicores": 7583}
    assert (event.scope.pod, event.scope.container) == ("vllm-llama-0", "vllm")


def test_rollout_history() -> None:
    text = (
        "deployment.apps/vllm\nREVISION  CHANGE-CAUSE\n6         <none>\n7         max-num-seqs 256 -> 1024\n"
    )
    assert [e.text for e in read(text)] == [
        "revision 6: no change cause recorded", "revision 7: max-num-seqs 256 -> 1024"
    ]  # fmt: skip


@pytest.mark.parametrize("line", [
    "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND",
    "Filesystem     1K-blocks      Used Available Use% Mounted on",
    "UNIT LOAD ACTIVE SUB DESCRIPTION",
    "               total        used        free      shared  buff/cache   available",
    "INFO 11-29 21:21:29 [api_server.py:1] NAME READY STATUS RESTARTS",
    "NAME   MAJ:MIN RM   SIZE RO TYPE MOUNTPOINTS",
])  # fmt: skip
def test_foreign_tables_are_left_alone(line: str) -> None:
    """Tables of other tools are not claimed."""
    assert k8s_text.TABLE.sniff(make_head("x", f"{line}\nroot         1\n".encode(), True)) == 0


def test_header_needs_upper_case() -> None:
    assert header_of("NAME  READY") is not None
    assert header_of("Name  Ready") is None
    assert header_of("NAME") is None


ROWS = """\
12m         Normal    Preempted          pod/ocr-2      Preempted by pod 5b0e on node n1
llm   3m (x4 over 9m)   Warning   Unhealthy   Pod/chat-0   Liveness probe failed: timeout
"""


def test_events_whose_header_was_filtered_away() -> None:
    first, second = (event for event in read(ROWS) if event.kind == "k8s_event")
    assert (first.text, first.scope.pod) == ("Preempted: Preempted by pod 5b0e on node n1", "ocr-2")
    assert (second.scope.namespace, second.scope.pod, second.fields["count"]) == ("llm", "chat-0", 4)
    assert k8s_text.sniff_table(make_head("x", ROWS.encode(), True)) == 94


@pytest.mark.parametrize("line", ["12m after it Normal work went on", "Normal Preempted pod/x gone", "3m Normal reason pod/x y"])
def test_what_is_no_row_of_events(line: str) -> None:
    assert read(line) == ()


DATED_ROWS = """\
2026-05-03T02:30:00Z Normal ScaleDown pod/yak-0 deleting pod for node scale down
2026-05-03T02:30:00Z   Normal   Killing   pod/yak-0   Stopping container vllm
3m   Warning   BackOff   pod/yak-0   Back-off restarting failed container vllm
"""


def test_rows_of_events_with_a_date() -> None:
    assert k8s_text.TABLE.sniff(make_head("ev.txt", DATED_ROWS.encode(), True)) == 94
    events = read(DATED_ROWS)
    assert [(e.fields["reason"], e.scope.pod) for e in events] == [("ScaleDown", "yak-0"), ("Killing", "yak-0"), ("BackOff", "yak-0")]
    assert [e.fields.get("last_seen_s") for e in events][:2] == [1777775400.0] * 2


@pytest.mark.parametrize("text", [
    "2026-05-03T02:30:00Z Normal operation resumed\n", "2026-05-03T02:30:00Z Warning Low disk/space on node\n",
    "3m Normal pod/yak-0 Killing\n", DATED_ROWS + "and then it was gone\n",
])  # fmt: skip
def test_what_is_no_table_of_rows(text: str) -> None:
    assert k8s_text.TABLE.sniff(make_head("ev.txt", text.encode(), True)) < 94


def test_columns_of_ones_own() -> None:
    table = """NAMESPACE   NAME     LAST_REASON        EXIT_CODE   RESTARTS   FINISHED
llm         chat-0   <none>,OOMKilled   <none>,137  0,4        <none>,2026-06-03T12:44:08Z
llm         chat-1   <none>             <none>      0          <none>
"""
    (end,) = (event for event in read(table) if event.kind == "container_terminated")
    assert end.fields == {
        "reason": "OOMKilled", "exit_code": 137, "last_state": True, "restart_count": 4, "finished_s": 1780490648.0,
    }  # fmt: skip
    assert (end.scope.pod, end.locator.line) == ("chat-0", 2)


@pytest.mark.parametrize(
    ("remark", "noted"),
    [
        ("$ kubectl -n llm get events   (collected 2026-05-03T02:30:00Z)", "2026-05-03T02:30:00Z"),
        ("# ages are relative to 2026-05-03 04:30:00+02:00", "2026-05-03T02:30:00Z"),
        ("# taken on a laptop in May 2026", None),
        ("# the image was built 2026-05-03T02:30:00Z", None),
        ("# taken 2026-05-03 02:30:00", None),
    ],
)
def test_when_a_table_was_made_stands_above_it(remark: str, noted: str | None) -> None:
    """Ages count from there; a date of something else, or one without a zone, is no such moment."""
    captures = [event for event in read(f"{remark}\n{EVENTS}") if event.kind == "capture"]
    assert [iso_utc(event.stamps[0].seconds, 0) for event in captures] == ([noted] if noted else [])


def test_claims_on_volumes() -> None:
    """One that is still pending has no size."""
    bound, *rest = read(
        "NAME             STATUS    VOLUME     CAPACITY   ACCESS MODES   STORAGECLASS   AGE\n"
        "weights-vllm-0   Bound     pvc-1a2b   150Gi      RWO            fast           63d\n"
        "weights-vllm-1   Pending                                        fast           2m\n"
    )
    assert (bound.kind, bound.fields) == ("volume_claim", {"claim": "weights-vllm-0", "capacity_bytes": 150 << 30})
    assert rest == []
