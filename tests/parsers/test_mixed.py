"""A file with several outputs: each document by its own parser, the rest as a log, every line at its true number."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import analyze
from forensics.bundle import Bundle
from forensics.ingest import ReadSource, read_bundle
from forensics.model import Scope
from forensics.parsers import mixed
from forensics.parsers.commands import owner_of, title_of
from forensics.parsers.shapes import is_fence, may_begin, speaks

FATAL = "(EngineCore_DP0 pid=71) ERROR 06-11 06:04:09 [core.py:710] torch.OutOfMemoryError: CUDA out of memory. "
FATAL += "Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 44.39 GiB of which 1.10 GiB is free."
LOG = f"""(APIServer pid=1) INFO 06-11 06:03:00 [api_server.py:1839] vLLM API server version 0.11.0
(EngineCore_DP0 pid=71) INFO 06-11 06:03:10 [gpu_model_runner.py:2602] Starting to load model acme/chat-30b...
{FATAL}
"""
DOCUMENTS = {
    "k8s.describe": """Name:             chat-0
Namespace:        serving
Priority:         0
Status:           Running
Containers:
  vllm:
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       Error
      Exit Code:    1
    Restart Count:  4
Events:
  Type     Reason   Age   From     Message
  ----     ------   ----  ----     -------
  Warning  BackOff  2m    kubelet  Back-off restarting failed container
""",
    "k8s.table": "NAME     READY   STATUS             RESTARTS   AGE\nchat-0   0/1     CrashLoopBackOff   4          12m\n",
    "nvidia.smi": """+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 570.124.06             Driver Version: 570.124.06     CUDA Version: 12.8     |
|-----------------------------------------+------------------------+----------------------+
|   0  NVIDIA L40S                    On  |   00000000:07:00.0 Off |                    0 |
| N/A   31C    P8             32W /  350W |       4MiB /  46068MiB |      0%      Default |
+-----------------------------------------+------------------------+----------------------+
""",
    "nvidia.csv": "timestamp, index, memory.used [MiB], memory.total [MiB]\n"
    + "".join(f"2026/06/11 06:03:{s:02d}.118, 0, {s} MiB, 46068 MiB\n" for s in range(0, 50, 10)),
    "host.state": "               total        used        free      shared  buff/cache   available\n"
    "Mem:          257654       12110      201222          12       44321      243010\n",
    "docker.ps": "CONTAINER ID   IMAGE              COMMAND   CREATED       STATUS                     PORTS     NAMES\n"
    '5f0c1d7e9a3b   vllm-openai:v0.11   "vllm"    3 hours ago   Exited (1) 9 minutes ago             chat\n',
    "k8s.objects": "apiVersion: v1\nkind: Pod\nmetadata:\n  name: chat-0\nspec:\n  containers:\n  - name: vllm\n",
    "metrics.prometheus": "# TYPE vllm:num_requests_running gauge\n"
    'vllm:num_requests_running{engine="0",model_name="m"} 3\nvllm:num_requests_waiting{engine="0",model_name="m"} 7\n',
    "cgroup": "low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\n",
}
JOINTS = {
    "nothing": ("", ""),
    "rules": ("===== first =====\n", "===== second =====\n"),
    "prompts": ("ops@gpu-node-7:~$ collect\n", "ops@gpu-node-7:~$ kubectl logs chat-0 | tail -n 100\n"),
    "comments": ("### COMMAND: kubectl -n serving get x\n", "### COMMAND: kubectl -n serving logs chat-0 --tail=9\n"),
    "fences": ("Seen:\n```\n", "```\nand\n```text\n"),
}


def read(folder: Path, text: str, name: str = "out.txt") -> ReadSource:
    (folder / name).write_text(text)
    (item,) = read_bundle(Bundle((str(folder / name),)), ("OutOfMemoryError",))
    return item


@pytest.mark.parametrize("joint", JOINTS)
@pytest.mark.parametrize("form", DOCUMENTS)
@pytest.mark.parametrize("log_first", [False, True], ids=["log-below", "log-above"])
def test_neither_the_document_nor_the_log_is_lost(tmp_path: Path, form: str, joint: str, log_first: bool) -> None:
    """In both orders, with and without headings: the error stands at its line, and the document gave its facts."""
    one, two = (LOG, DOCUMENTS[form]) if log_first else (DOCUMENTS[form], LOG)
    first, second = JOINTS[joint] if joint == "fences" or not log_first else reversed(JOINTS[joint])
    text = first + one + second + two
    item = read(tmp_path, text)
    assert item.source.format == mixed.NAME
    assert item.source.title.startswith("several outputs (")
    assert item.source.lines == text.count("\n")
    number = text.split("\n").index(FATAL) + 1
    errors = [event for event in item.parsed.events if "OutOfMemoryError" in event.text]
    assert [event.locator.line for event in errors] == [number]
    assert errors[0].channel == "engine"
    begin = text[: text.index(DOCUMENTS[form])].count("\n") + 1
    ours = range(begin, begin + DOCUMENTS[form].count("\n"))
    facts = [event for event in item.parsed.events if event.kind not in ("log", "traceback")]
    found = {event.locator.line for event in facts} | {line for s in item.parsed.samples for line in s.lines}
    assert found & {*ours}, "the document said nothing"
    for event in item.parsed.events:
        assert text.split("\n")[event.locator.line - 1].strip(), "an event at an empty line"


SMALL_TABLES = {
    "csv": "memory.used [MiB], memory.total [MiB]\n900 MiB, 46068 MiB\n",
    "csv-names": "name, driver_version, memory.total [MiB]\nNVIDIA L40S, 570.124.06, 46068 MiB\n",
    "csv-processes": "pid, process_name, used_gpu_memory [MiB]\n71, python3, 900 MiB\n",
    "csv-one-column": "memory.used [MiB]\n900 MiB\n",
    "dmon": "# gpu   pwr gtemp mtemp    sm   mem   enc   dec  mclk  pclk\n    0    30    40     -     0     0     0     0  6250  1695\n",
    "sar": "Linux 6.8.0-45 (gpu-7) \t06/11/2026 \t_x86_64_\t(64 CPU)\n\n06:00:01 kbmemfree kbavail\n06:10:01 9000000 9900000\n",
    "sacct": "JobID           JobName      State ExitCode\n------------ ---------- ---------- --------\n77 prep  COMPLETED      0:0\n",
    "scontrol": "JobId=77 JobName=prep\n   UserId=kim(1001) GroupId=kim(1001)\n   JobState=COMPLETED Reason=None\n",
    "coredumpctl": "TIME                         PID  UID  GID SIG     COREFILE EXE           SIZE\n"
    "Wed 2026-06-10 09:12:33 UTC 4711 1000 1000 SIGSEGV present  /usr/bin/htop 200K\n",
    "units": "  UNIT          LOAD   ACTIVE SUB     DESCRIPTION\n  ssh.service   loaded active running OpenBSD server\n",
    "boots": "IDX BOOT ID                          FIRST ENTRY                 LAST ENTRY\n"
    "  0 0123456789abcdef0123456789abcdef Wed 2026-06-10 01:00:00 UTC Thu 2026-06-11 09:00:00 UTC\n",
    "ray": "======== Autoscaler status: 2026-06-11 06:00:00.000000 ========\nNode status\nActive:\n 1 node_abc\n",
    "helm": "REVISION\tUPDATED                 \tSTATUS  \tCHART     \tAPP VERSION\tDESCRIPTION\n"
    "1       \tWed Jun 10 10:00:00 2026\tdeployed\tchat-0.1.0\t0.11.0     \tInstall complete\n",
    "compose": "services:\n  redis:\n    image: redis:7\n",
    "ps": "UID          PID    PPID  C STIME TTY          TIME CMD\nroot           1       0  0 01:00 ?        00:00:01 /sbin/init\n",
}


@pytest.mark.parametrize("place", [0, 1, 3], ids=["above", "inside", "below"])
@pytest.mark.parametrize("table", SMALL_TABLES)
def test_a_header_of_a_small_table_does_not_take_the_log(tmp_path: Path, table: str, place: int) -> None:
    """A few lines of a table make no table of the file."""
    lines = LOG.splitlines(keepends=True)
    item = read(tmp_path, "".join((*lines[:place], SMALL_TABLES[table], *lines[place:])))
    (error,) = (event for event in item.parsed.events if "OutOfMemoryError" in event.text)
    assert error.channel == "engine"


def test_the_output_of_another_command_below_a_table(tmp_path: Path) -> None:
    """The last lines of a program bear no header that would tell a log; the command above them does."""
    told = "(APIServer pid=1) pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig"
    text = f"$ podman ps -a\n{DOCUMENTS['docker.ps']}$ podman logs chat 2>&1 | tail -1\n{told}\n"
    item = read(tmp_path, text)
    assert {event.channel for event in item.parsed.events} == {"runtime", "engine"}


@pytest.mark.parametrize("form", ["=== {} (previous) ===", "### pod/{}", "==> {} <=="])
def test_logs_of_several_pods_below_their_names(tmp_path: Path, form: str) -> None:
    """A script prints one log after the other, with a heading; each is its own pod's."""
    pods = ("chat-6f9c7d5b8-x2k4p", "chat-7b5d8f9c6-zz4gt")
    item = read(tmp_path, "".join(f"{form.format(pod)}\n{LOG}" for pod in pods))
    errors = [(event.scope.pod, event.locator.line) for event in item.parsed.events if "OutOfMemoryError" in event.text]
    assert errors == [(pods[0], 4), (pods[1], 8)]


def test_several_documents_and_their_notes(tmp_path: Path) -> None:
    """A ticket in Markdown: sentences are notes, fenced pieces are what they are."""
    described, table = DOCUMENTS["k8s.describe"], DOCUMENTS["k8s.table"]
    text = f"# INC-77\nI think it is the memory limit.\n```\n{described}```\n```\n{table}```\nPlease look.\n```\n{LOG}```\n"
    item = read(tmp_path, text, "incident.md")
    assert item.source.format == mixed.NAME
    kinds = {event.kind for event in item.parsed.events}
    assert {"container_terminated", "pod_status"} <= kinds
    assert any("OutOfMemoryError" in event.text for event in item.parsed.events)


def test_the_command_says_whose_log_it_is(tmp_path: Path) -> None:
    """The lines below `kubectl logs` get the pod, and no others."""
    text = DOCUMENTS["nvidia.smi"] + "$ kubectl -n serving logs chat-0 -c vllm --previous\n" + LOG + "$ dmesg | tail\n"
    text += "[ 100.000005] nothing of note: OutOfMemoryError\n"
    item = read(tmp_path, text)
    owners = {event.channel: event.scope for event in item.parsed.events if "OutOfMemoryError" in event.text}
    assert (owners["engine"].pod, owners["engine"].namespace, owners["engine"].container) == ("chat-0", "serving", "vllm")
    assert owners["kernel"].pod == ""


def test_the_command_says_whose_reports_they_are(tmp_path: Path) -> None:
    """What an engine reports below the log of another pod is not work of that one."""
    report = "INFO 06-11 06:0{}:00 [loggers.py:127] Engine 000: Avg prompt throughput: 61.0 tokens/s, Avg generation " \
        "throughput: 28.5 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.4%, Prefix cache hit rate: 9.0%\n"
    text = "$ kubectl get pods\n" + DOCUMENTS["k8s.table"] + "$ kubectl logs chat-0\n" + FATAL + "\n"
    text += "$ kubectl logs rank-0\n" + report.format(4) + report.format(5) + "$ cat vllm.log\n" + report.format(6)
    samples = [s for s in read(tmp_path, text).parsed.samples if s.name == "generation_tokens_per_s"]
    assert [(s.scope.pod, list(s.lines), len(s.stamps), list(s.values)) for s in samples] == [
        ("rank-0", [7, 8], 2, [28.5, 28.5]), ("", [10], 1, [28.5]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "owner"),
    [
        ("kubectl logs chat-0", Scope(pod="chat-0")),
        ("kubectl -n serving logs pod/chat-0 vllm --tail=50", Scope(namespace="serving", pod="chat-0", container="vllm")),
        ("kubectl logs --previous -p chat-0 | grep -v INFO", Scope(pod="chat-0")),
        ("oc logs chat-0 --namespace=serving", Scope(namespace="serving", pod="chat-0")),
        ("kubectl logs deploy/chat", Scope()),
        ("kubectl logs -l app=chat", Scope()),
        ("kubectl logs", Scope()),
        ("kubectl describe pod chat-0", Scope()),
        ("kubectl -n ml describe pod chat-0 | grep -A6 'Last State'", Scope(namespace="ml", pod="chat-0")),
        ("kubectl describe pod/chat-0 | sed -n '/State/,/Count/p'", Scope(pod="chat-0")),
        ("kubectl describe pods | grep -A6 State", Scope()),
        ("kubectl describe node gpu-7 | grep -A9 Conditions", Scope()),
        ("kubectl -n ml get pod chat-0 -o jsonpath='{.status.containerStatuses[0].lastState}'", Scope(namespace="ml", pod="chat-0")),
        ("kubectl get pod/chat-0 -o=jsonpath={.status.phase}", Scope(pod="chat-0")),
        ("kubectl get pods -o jsonpath='{.items[*].status}'", Scope()),
        ("kubectl get pod chat-0 -o wide", Scope()),
        ("kubectl -n ml get pods,pdb", Scope(namespace="ml")),
        ("=== chat-6f9c7d5b8-x2k4p (previous) ===", Scope()),
        ("chat-6f9c7d5b8-x2k4p (previous)", Scope(pod="chat-6f9c7d5b8-x2k4p")),
        ("chat-6f9c7d5b8-x2k4p.log", Scope()),
        ("docker logs --tail 50 chat", Scope(container="chat")),
        ("docker ps -a", Scope()),
        ("docker inspect -f '{{json .State}}' chat", Scope(container="chat")),
        ("docker inspect chat --format '{{json .Config.Healthcheck}}'", Scope(container="chat")),
        ("docker inspect", Scope()),
        ("docker inspect 5e0d7a91c3b2", Scope()),
        ("ssh ops@gpu-node-7 'dmesg -T | tail'", Scope(host="gpu-node-7")),
        ("ssh", Scope()),
        ("zcat archive/chat-6f9c7d5b8-x2k4p/2026-06-11.log.gz | tail -40", Scope(pod="chat-6f9c7d5b8-x2k4p")),
        ("gsutil cat gs://logs/ml/chat-6f9c7d5b8-x2k4p/vllm.log", Scope(pod="chat-6f9c7d5b8-x2k4p", container="vllm")),
        ("sudo cat /etc/fstab", Scope()),
        ("grep OOM a/chat-6f9c7d5b8-x2k4p/vllm.log a/chat-6f9c7d5b8-zz4gt/vllm.log", Scope()),
        ("'", Scope()),
        ("", Scope()),
    ],
)
def test_owner_of_a_command(command: str, owner: Scope) -> None:
    """Only a name that is certain is an owner."""
    assert owner_of(command) == owner


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("===== kubectl logs q-0 --tail=5 =====", "kubectl logs q-0 --tail=5"),
        ("# kubectl get pods", "kubectl get pods"),
        ("[root@gpu-node-7 ~]# dmesg -T", "dmesg -T"),
        ("+ nvidia-smi", "nvidia-smi"),
        ("==> a.log <==", "a.log"),
        ("==============NVSMI LOG==============", ""),
        ("------------ ---------- -------- ----------", ""),
        ("--- node 7 ---", "node 7"),
        ("# a comment", ""),
        ("INFO 06-11 06:03:00 [x.py:1] cat is a word", ""),
        ("  # kubectl get pods", ""),
        ("", ""),
        ("=" * 400, ""),
    ],
)
def test_headings(line: str, title: str) -> None:
    """Prompts and ruled titles are headings, comments and messages are not."""
    assert title_of(line).strip("= ") == title


def test_lines_that_speak() -> None:
    """Headers and errors in column 0; keys, rows and indented lines are silent."""
    assert speaks(FATAL)
    assert speaks("RuntimeError: Engine core initialization failed.")
    assert speaks("Traceback (most recent call last):")
    assert not any(map(speaks, ("", "Node:   gpu-node-7/10.0.3.17", "    ValueError: x", "Mem: 257654 12110")))
    assert is_fence("```text")
    assert is_fence("{code:java}")
    assert not is_fence("```torch.OutOfMemoryError: CUDA```")
    assert may_begin(b"NAME   READY\n")
    assert not may_begin(LOG.encode())


@pytest.mark.parametrize("form", DOCUMENTS)
def test_a_single_output_stays_what_it_is(tmp_path: Path, form: str) -> None:
    """A document alone, twice, or with prose around it is not cut."""
    document = DOCUMENTS[form]
    assert read(tmp_path, document).source.format == form
    assert read(tmp_path, document + "\n" + document).source.format != mixed.NAME


def test_a_termination_message_belongs_to_its_object(tmp_path: Path) -> None:
    """Further lines of a message stand in column 0 and look like a log; the keys behind them are not lost."""
    message = "      Message:      (APIServer pid=1) INFO 06-11 06:03:00 [a.py:1] up\n" + FATAL + "\n"
    text = DOCUMENTS["k8s.describe"].replace("      Exit Code:    1\n", message + "      Exit Code:    1\n")
    item = read(tmp_path, text)
    assert item.source.format == "k8s.describe"
    assert any(e.kind == "container_terminated" and e.fields.get("exit_code") == 1 for e in item.parsed.events)


def test_a_log_alone_is_not_cut(tmp_path: Path) -> None:
    """Headings between logs do not make documents of them."""
    item = read(tmp_path, f"==> a.log <==\n{LOG}\n==> b.log <==\n{LOG}")
    assert item.source.format == "log"


@pytest.mark.parametrize(
    "text",
    [
        "{\n" + LOG,  # JSON that never ends
        "```\n" * 500 + LOG,
        "NAME   READY   STATUS   RESTARTS   AGE\n" + LOG,  # a table without rows
        "Name: x\nNamespace: y\n\x00\x01\n" + LOG,
        "===== x =====\n" * 300 + LOG,
        "apiVersion: v1\nkind: Pod\n\tbad:\n: :\n" + LOG,
        "$ \n$ kubectl\n# HELP\n# TYPE \n" + LOG,
    ],
)
def test_hostile_mixtures(tmp_path: Path, text: str) -> None:
    """Whatever stands around it, the log is read and nothing fails."""
    item = read(tmp_path, text)
    assert any("OutOfMemoryError" in event.text for event in item.parsed.events)


def test_bytes_that_are_no_text_keep_their_place(tmp_path: Path) -> None:
    """Lines that are not UTF-8 do not shift the lines behind them; GBK in the rest is still read as such."""
    data = DOCUMENTS["k8s.table"].encode() + "错误日志如下所示\n".encode("gbk") + b"\n" + LOG.encode()
    (tmp_path / "x.txt").write_bytes(data)
    (item,) = read_bundle(Bundle((str(tmp_path / "x.txt"),)), ("OutOfMemoryError",))
    (error,) = [event for event in item.parsed.events if "OutOfMemoryError" in event.text]
    assert error.locator.line == data.split(b"\n").index(FATAL.encode()) + 1


def test_the_cause_is_found_in_a_file_of_everything(tmp_path: Path) -> None:
    """The whole pipeline: the verdict is that of the log alone, with the state of the pod beside it."""
    (tmp_path / "all.txt").write_text(DOCUMENTS["k8s.describe"] + "\n" + LOG)
    verdict = analyze(tmp_path).to_dict()["verdict"]
    assert verdict["cause"] == "gpu_oom.weights"
    assert verdict["first_cause"]["line"] == 20


STATES = """\
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Finished:     Tue, 03 Mar 2026 04:10:11 +0000
    Ready:          False
    Restart Count:  2
    Limits:
      memory:          64Gi
"""


@pytest.mark.parametrize("indent", [-4, 0, 4])
@pytest.mark.parametrize("layout", ["{states}", "Here is what it says about the pod:\n\n```\n{states}```\n{log}", "{log}\n{states}"])
def test_states_without_their_object(tmp_path: Path, layout: str, indent: int) -> None:
    """People paste the lines that seem to matter, from wherever they stand in `kubectl describe`."""
    lines = STATES.splitlines(keepends=True)
    states = "".join(line[-indent:] if indent < 0 else " " * indent + line for line in lines)
    events = read(tmp_path, layout.format(states=states, log=LOG)).parsed.events
    (end,) = (event for event in events if event.kind == "container_terminated")
    assert (end.fields["reason"], end.fields["exit_code"], end.scope.pod) == ("OOMKilled", 137, "")
    assert states.splitlines()[3].strip() in end.raw
    assert [e.fields["memory_limit_bytes"] for e in events if e.kind == "pod_spec"] == [64 << 30]
    assert ("OutOfMemoryError" in layout.format(states="", log=LOG)) == any("OutOfMemoryError" in e.text for e in events)


def test_states_in_what_a_program_printed(tmp_path: Path) -> None:
    """A prompt may hold them: in a log only a whole described object counts."""
    (tmp_path / "vllm.log").write_text(LOG + STATES + LOG)
    (item,) = read_bundle(Bundle((str(tmp_path / "vllm.log"),)), ())
    assert not any(event.kind == "container_terminated" for event in item.parsed.events)


ROWS = """12m         Normal    Preempted   pod/ocr-2   Preempted by pod 5b0e on node n1
12m         Normal    Killing     pod/ocr-2   Stopping container ocr
"""


@pytest.mark.parametrize("before", ["Our batch pod is gone again:\n", "$ kubectl get events | grep ocr-2\n", f"{LOG}\n"])
def test_rows_of_events_without_a_header(tmp_path: Path, before: str) -> None:
    (tmp_path / "x.txt").write_text(f"{before}{ROWS}Any idea?\n")
    (item,) = read_bundle(Bundle((str(tmp_path / "x.txt"),)), ())
    first = before.count("\n") + 1
    told = [(e.locator.line, e.fields["reason"]) for e in item.parsed.events if e.kind == "k8s_event"]
    assert told == [(first, "Preempted"), (first + 1, "Killing")]
