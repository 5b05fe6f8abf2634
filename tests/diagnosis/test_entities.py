"""Names that mean the same thing are joined, each join with its reason; nothing is joined by pid alone."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from forensics.diagnosis import pod_names
from forensics.model import Scope


def reasons(case: Any) -> dict[frozenset[str], str]:
    return {frozenset((j.left, j.right)): j.reason for j in case.entities.joins}


def owner(case: Any, source: str) -> str:
    return str(case.entities.name_of(Scope(), source))


def test_names_that_one_line_states_are_joined(b: ModuleType) -> None:
    """Pod, uid and container id of one event are one entity, named after the pod."""
    w = b.World()
    w.add("kubelet.log", 0, "x", channel="kubelet", scope=Scope(pod=b.POD, pod_uid=b.UID, container_id=b.CID))
    case = w.case()
    assert case.entities.same(f"pod:{b.POD}", f"cid:{b.CID}")
    assert case.entities.name_of(Scope(container_id=b.CID)) == f"pod:{b.POD}"
    assert set(reasons(case).values()) == {"stated"}


def test_a_log_goes_to_the_pod_with_its_model(b: ModuleType) -> None:
    """Arguments decide against a pod that serves something else, whatever its start time."""
    w = b.World()
    w.start("a.txt", 0, model="acme/chat-14b")
    w.pod(name="chat-5d5d5d5d5d-aaaaa")
    w.pod("other.txt", name="code-5d5d5d5d5d-bbbbb", args=("--model", "acme/code-7b"))
    w.add("other.txt", -1, "container vllm started", "container_started", "k8s", Scope(pod="code-5d5d5d5d5d-bbbbb"))
    case = w.case()
    assert owner(case, "a.txt") == "pod:chat-5d5d5d5d5d-aaaaa"
    assert reasons(case)[frozenset(("pod:chat-5d5d5d5d5d-aaaaa", "file:a.txt"))] == "arguments"


def test_a_log_without_arguments_goes_by_its_start(b: ModuleType) -> None:
    """Two pods with the same arguments: the one that started when the log begins has written it."""
    w = b.World()
    w.start("a.txt", 0, model="acme/chat-14b")
    for pod, started in (("chat-5d5d5d5d5d-aaaaa", -4000.0), ("chat-5d5d5d5d5d-bbbbb", -8.0)):
        w.pod(f"{pod}.txt", name=pod)
        w.add(f"{pod}.txt", started, "container vllm started", "container_started", "k8s", Scope(pod=pod))
    assert owner(w.case(), "a.txt") == "pod:chat-5d5d5d5d5d-bbbbb"


def test_a_log_that_ends_with_a_container_is_its(b: ModuleType) -> None:
    """The end time joins a log whose start was rotated away."""
    w = b.World()
    w.answer("a.txt", 3600)
    w.add("a.txt", 3620, "EngineCore encountered a fatal error.", level="ERROR")
    w.exited("one.txt", 3625, 1, name="chat-5d5d5d5d5d-aaaaa")
    w.exited("two.txt", 9000, 1, name="chat-5d5d5d5d5d-bbbbb")
    case = w.case()
    assert owner(case, "a.txt") == "pod:chat-5d5d5d5d5d-aaaaa"
    assert "end_time" in reasons(case).values()


def test_a_file_name_is_the_last_hint(b: ModuleType) -> None:
    """Without times and arguments, a word shared by file and workload decides."""
    w = b.World()
    w.add("logs/granite-previous.txt", None, "EngineCore encountered a fatal error.", level="ERROR")
    w.pod("one.txt", name="granite-5d5d5d5d5d-aaaaa", args=())
    w.pod("two.txt", name="falcon-5d5d5d5d5d-bbbbb", args=())
    case = w.case()
    assert owner(case, "logs/granite-previous.txt") == "pod:granite-5d5d5d5d5d-aaaaa"
    assert "file_name" in reasons(case).values()


def test_a_guess_gives_no_second_log(b: ModuleType) -> None:
    """Without any sign, a log goes to the only pod with a GPU; not when the pod's own log is there already."""
    w = b.World()
    w.pod()
    w.add("neighbour.log", 10, "EngineCore encountered a fatal error.", level="ERROR")
    assert owner(w.case(), "neighbour.log") == f"pod:{b.POD}"
    w.start("own.log", 0, model="acme/chat-14b")
    case = w.case()
    assert (owner(case, "own.log"), owner(case, "neighbour.log")) == (f"pod:{b.POD}", "file:neighbour.log")


def test_a_replica_is_told_by_what_it_reports(b: ModuleType) -> None:
    """Same arguments, same minutes, other throughput: two engines. The same numbers: two copies of one log."""
    for other, joined in ((0.0, True), (7.3, False)):
        w = b.World()
        w.pod()
        for source, extra in (("a.log", 0.0), ("b.log", other)):
            w.start(source, 0, model="acme/chat-14b")
            w.series("generation_tokens_per_s", [(100 + 10.0 * i, 500.0 + i + extra) for i in range(12)], source)
        owners = {owner(w.case(), source) for source in ("a.log", "b.log")}
        assert (owners == {f"pod:{b.POD}"}) is joined


def test_a_log_that_outlives_a_container_is_another_ones(b: ModuleType) -> None:
    """One run that was there before a container ended, and for minutes after it, is not that container's."""
    w = b.World()
    w.pod()
    w.start("a.log", 0, model="acme/chat-14b")
    w.answer("a.log", 900)
    w.exited("describe.txt", 700, 137)
    assert owner(w.case(), "a.log") == "file:a.log"


def test_a_log_that_outlives_a_sidecar_is_not_another_ones(b: ModuleType) -> None:
    """The log shipper beside the engine was killed and came back; the engine's log goes on, and is of this pod."""
    w = b.World()
    w.pod(gpus=1)
    w.pod(container="shipper", image="example.com/shipper:3", args=(), gpus=None)
    w.start("a.log", 0, model="acme/chat-14b")
    w.answer("a.log", 4000)
    w.exited("describe.txt", 2000, 137, "OOMKilled", container="shipper", last_state=True)
    assert owner(w.case(), "a.log") == f"pod:{b.POD}"


@pytest.mark.parametrize(("begins_s", "joined"), [(3590, False), (3640, True)], ids=["before its end", "after it"])
def test_a_log_that_begins_before_another_one_ends_is_the_next_pods(
    b: ModuleType, begins_s: float, joined: bool
) -> None:
    """A rollout starts the new pod first; only the old one is known by name."""
    w = b.World()
    for n in range(6):
        w.answer("granite-old.txt", 3000 + 100 * n)
    w.add("granite-old.txt", 3610, "Shutting down")
    w.start("granite-new.txt", begins_s)
    w.answer("granite-new.txt", begins_s + 600)
    w.exited("pods.txt", 3612, 143, name="granite-5d5d5d5d5d-aaaaa")
    case = w.case()
    assert owner(case, "granite-old.txt") == "pod:granite-5d5d5d5d5d-aaaaa"
    assert (owner(case, "granite-new.txt") == "pod:granite-5d5d5d5d5d-aaaaa") is joined


def test_a_log_from_before_a_pod_is_another_ones(b: ModuleType) -> None:
    """A Deployment's pod did not write what was written before it was started; a StatefulSet's name comes again."""
    for pod, joined in (("chat-6f9c7d5b8-x2k4p", False), ("chat-0", True)):
        w = b.World()
        w.start("a.log", 0, model="acme/chat-14b")
        w.pod(name=pod)
        w.add("describe.txt", 7000, "pod status", "pod_status", "k8s", Scope(pod=pod), started_s=b.T0 + 7000.0)
        assert (owner(w.case(), "a.log") == f"pod:{pod}") is joined


@pytest.mark.parametrize(
    ("kill_s", "comm", "second_log_s", "pod", "joined"),
    [
        (301.0, "VLLM::EngineCor", None, False, True),
        (None, "VLLM::EngineCor", None, False, True),
        (9000.0, "VLLM::EngineCor", None, False, False),
        (301.0, "java", None, False, False),
        (301.0, "VLLM::EngineCor", 300.0, False, False),
        (301.0, "VLLM::EngineCor", None, True, False),
    ],
    ids=["at its end", "without a time", "hours later", "another program", "two logs end", "a pod is known"],
)
def test_a_kill_and_the_log_that_fell_silent(
    b: ModuleType, kill_s: float | None, comm: str, second_log_s: float | None, pod: bool, joined: bool
) -> None:
    """`dmesg` and an engine log, and nothing else: the kill is that log's when nothing else fits."""
    w = b.World()
    for source, end in (("a.log", 300.0), ("b.log", second_log_s)):
        if end is not None:
            w.start(source, end - 250)
            w.answer(source, end)
    if pod:
        w.pod(name="other-0", args=("--model", "acme/other"))
    w.kill("dmesg", kill_s if kill_s is not None else b.at(None), comm=comm)
    case = w.case()
    (kill,) = (e for e in case.events if e.kind == "kernel_oom")
    assert case.entities.same(case.entities.of(kill), "file:a.log") is joined


def test_a_tie_joins_nobody(b: ModuleType) -> None:
    """Two pods that fit equally well: the log keeps its own name."""
    w = b.World()
    w.start("a.txt", 0, model="acme/chat-14b")
    w.pod("one.txt", name="x-5d5d5d5d5d-aaaaa")
    w.pod("two.txt", name="x-5d5d5d5d5d-bbbbb")
    assert owner(w.case(), "a.txt") == "file:a.txt"


@pytest.mark.parametrize(
    ("limit_gib", "exit_s", "joined"),
    [(64, 301.0, True), (64, None, True), (32, 301.0, True), (32, 90000.0, False)],
    ids=["limit and time", "limit only", "time only", "neither"],
)
def test_a_kill_joins_the_pod_that_it_fits(b: ModuleType, limit_gib: int, exit_s: float | None, joined: bool) -> None:
    """A kernel kill names a cgroup only; the pod's limit, or the time of its OOMKilled exit, names the pod."""
    w = b.World()
    w.kill("dmesg", 300, limit_kib=64 << 20)
    w.pod(memory_limit_bytes=limit_gib << 30)
    if exit_s is not None:
        w.exited("describe.txt", exit_s, 137, "OOMKilled")
    assert w.case().entities.same(f"uid:{b.UID}", f"pod:{b.POD}") is joined


@pytest.mark.parametrize("victims", [1, 2], ids=["one victim", "two with one limit"])
def test_a_pod_is_one_of_those_that_share_its_limit(b: ModuleType, victims: int) -> None:
    """A round limit is many pods': where several were killed at it, and no time tells, none of them is the pod."""
    w = b.World()
    for n in range(victims):
        w.kill("dmesg", 300 + 60 * n, uid=b.UID.replace("7d0c", f"7d0{n}"), cid=b.CID.replace("c3", f"c{n}"))
    w.pod(memory_limit_bytes=64 << 30)
    case = w.case()
    assert all(case.entities.of(e).startswith("pod:") is (victims == 1) for e in case.of_kind("kernel_oom"))


def test_a_log_called_like_a_unit_is_its_own(b: ModuleType) -> None:
    w = b.World()
    w.start("engine/chat.log", 0)
    w.add("journal", 900, "chat.service: Main process exited, code=exited, status=1/FAILURE", "unit_exit", "systemd",
          Scope(unit="chat"), exit_code=1)  # fmt: skip
    assert w.case().entities.same("unit:chat", "file:engine/chat.log")


def test_a_pod_level_kill_fits_the_sum_of_its_containers(b: ModuleType) -> None:
    """A limit that is the sum of the containers' limits is the pod's."""
    w = b.World()
    w.kill("dmesg", 300, oom_scope="pod", limit_kib=72 << 20)
    w.pod(memory_limit_bytes=64 << 30)
    w.pod(container="proxy", memory_limit_bytes=8 << 30, gpus=None)
    assert w.case().entities.same(f"uid:{b.UID}", f"pod:{b.POD}")


def test_two_pods_with_the_same_limit_do_not_share_a_kill(b: ModuleType) -> None:
    """A limit that two pods have decides nothing."""
    w = b.World()
    w.kill("dmesg", 300)
    w.pod("one.txt", name="chat-5d5d5d5d5d-aaaaa", memory_limit_bytes=64 << 30)
    w.pod("two.txt", name="chat-5d5d5d5d5d-bbbbb", memory_limit_bytes=64 << 30)
    assert w.case().entities.name_of(Scope(pod_uid=b.UID)) == f"uid:{b.UID}"


def test_container_names_are_unique_on_a_docker_host_only(b: ModuleType) -> None:
    """`vllm` and its id are one container where there are no pods; in a cluster every pod may have a `vllm`."""
    docker, cluster = b.World(), b.World()
    for w in (docker, cluster):
        w.add("events", 0, "container vllm started", "container_started", "runtime",
              Scope(container="vllm", container_id=b.CID))  # fmt: skip
    cluster.pod()
    assert docker.case().entities.same("ctr:vllm", f"cid:{b.CID}")
    assert not cluster.case().entities.same("ctr:vllm", f"cid:{b.CID}")


@pytest.mark.parametrize(
    ("after_s", "comm", "others", "joined"),
    [(3, "VLLM::EngineCor", (), True), (-30, "VLLM::EngineCor", (), False), (3, "java", (), False),
     (3, "VLLM::EngineCor", ("embed",), False)],
    ids=["seconds later", "before it", "another program", "two lost one"],
)  # fmt: skip
def test_the_survivor_tells_whose_process_the_kernel_killed(
    b: ModuleType, after_s: float, comm: str, others: tuple[str, ...], joined: bool
) -> None:
    """`docker compose logs` bears no id, and the kernel no name: the API server says that its engine died."""
    w = b.World()
    kill = w.kill("dmesg", 1000, "node", uid="", comm=comm)
    for name in ("chat", *others):
        w.start("compose.log", 0, Scope(container=name))
        w.add("compose.log", 1000 + after_s, "Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.",
              scope=Scope(container=name), level="ERROR")  # fmt: skip
    assert (w.case().entities.of(kill) == "ctr:chat") is joined


@pytest.mark.parametrize(("file", "owner"), [
    ("logs/embed-worker.log", "ctr:embed-worker"), ("embed.log", "file:embed.log"), ("chat.old.txt", "ctr:chat"),
])  # fmt: skip
def test_a_log_called_like_a_container(b: ModuleType, file: str, owner: str) -> None:
    """`docker ps` names the containers; a file whose name is one of theirs, and no more, is its log."""
    w = b.World()
    for name in ("chat", "embed-worker"):
        w.add("ps", 300, "x", "docker_state", "runtime", Scope(container=name), status="running")
    line = w.add(file, 100, "batch failed", channel="plain")
    assert w.case().entities.of(line) == owner


@pytest.mark.parametrize("pods", [False, True])
@pytest.mark.parametrize("digits", [12, 64])
def test_docker_ps_names_the_container_that_the_kernel_killed(b: ModuleType, digits: int, pods: bool) -> None:
    """Twelve digits of the id, or with `--no-trunc` all of them; other sources may tell of pods."""
    w = b.World()
    w.add("ps", 300, "x", "docker_state", "runtime", Scope(container="chat", container_id=b.CID[:digits]), status="exited")
    w.kill("dmesg", 299, uid="")
    if pods:
        w.add("kubelet.log", 0, "x", channel="kubelet", scope=Scope(pod=b.POD, pod_uid=b.UID))
    case = w.case()
    assert {case.entities.of(event) for event in w.events[:2]} == {"ctr:chat"}


def test_units_own_their_syslog_identifier(b: ModuleType) -> None:
    """A line of `vllm[4242]` belongs to `vllm.service`; infrastructure units are no entities."""
    w = b.World()
    w.add("journal", 0, "vllm.service: Main process exited, code=killed, status=9/KILL", "unit_exit", "systemd",
          Scope(unit="vllm.service"), code="killed", status=9)  # fmt: skip
    own = w.add("journal", 1, "Application startup complete.", ident="vllm")
    kubelet = w.add("journal", 2, "x", channel="kubelet", scope=Scope(unit="kubelet.service"))
    case = w.case()
    assert case.entities.of(own) == "unit:vllm"
    assert case.entities.of(kubelet) == ""


@pytest.mark.parametrize(("others", "owner"), [((), "unit:vllm@chat"), (("vllm@code",), "file:journal")],
                         ids=["the only instance", "one of two"])  # fmt: skip
def test_a_template_speaks_for_its_only_instance(b: ModuleType, others: tuple[str, ...], owner: str) -> None:
    """`vllm@chat.service` runs a program called `vllm`."""
    w = b.World()
    for n, unit in enumerate(("vllm@chat", *others)):
        w.add("journal", n, f"{unit}.service: Main process exited, code=killed, status=9/KILL", "unit_exit", "systemd",
              Scope(unit=f"{unit}.service"), code="killed", status=9)  # fmt: skip
    own = w.add("journal", 9, "Application startup complete.", ident="vllm")
    assert w.case().entities.of(own) == owner


@pytest.mark.parametrize(("runs", "lives"), [(1, 1), (2, 3)])
def test_two_streams_of_one_job_are_one_run(b: ModuleType, runs: int, lives: int) -> None:
    """Python and Slurm print no times into the second one; beside a log of several runs nobody knows whose it is."""
    w = b.World()
    for n in range(runs):
        w.start("slurm-4711.out", 600.0 * n, ready=False)
        w.fail("slurm-4711.out", 600.0 * n + 90, frames=b.LOADING)
    w.add("slurm-4711.err", None, "torch.OutOfMemoryError: CUDA out of memory.", level="")
    w.add("slurm-4711.err", None, "slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0.", level="")
    assert len(w.case().lives) == lives


@pytest.mark.parametrize(
    ("names", "worked", "runs"),
    [(("vllm_boot.log", "vllm.tail.log"), 0, 1), (("vllm_boot.log", "vllm.tail.log"), 900, 2), (("llm-previous.log", "llm.log"), 0, 2)],
    ids=["cut when it was ready", "it had worked on", "a run of its own"],
)
def test_the_first_and_the_last_lines_of_a_log(b: ModuleType, names: tuple[str, str], worked: int, runs: int) -> None:
    """Somebody saved them apart: one run, which began in the one and failed in the other."""
    w = b.World()
    w.start(names[0], 0)
    if worked:
        w.answer(names[0], worked)
    w.answer(names[1], 7000)
    w.fail(names[1], 7200)
    lives = w.case().lives
    assert len(lives) == runs
    assert [life.from_start for life in lives if life.fatal is not None] == [runs == 1]


def test_runs_of_one_log_are_one_service(b: ModuleType) -> None:
    """`…-previous` beside `…-current`, and pieces of a rotated log; two services in one folder stay two."""
    w = b.World()
    for source in ("l/chat-previous.log", "l/chat-current.log", "l/embed.log"):
        w.add(source, 0, "Application startup complete.")
    case = w.case()
    assert case.entities.same("file:l/chat-previous.log", "file:l/chat-current.log")
    assert not case.entities.same("file:l/chat-previous.log", "file:l/embed.log")


def test_pids_join_nothing(b: ModuleType) -> None:
    """A kernel pid is the host's, an engine's is the container's: equal numbers mean nothing."""
    w = b.World()
    w.add("a.txt", 0, "Application startup complete.", scope=Scope(pid=40122))
    w.kill("dmesg", 300, pid=40122)
    assert w.case().entities.name_of(Scope(), "a.txt") == "file:a.txt"


def listed(w: Any, name: str, reason: str = "CrashLoopBackOff", host: str = "") -> None:
    """A row of `kubectl get pods`: a name and a word, no time, no limit, no uid."""
    w.add(
        "pods.txt", None, f"pod {name} container terminated: reason={reason} exit_code=", "container_terminated", "k8s",
        Scope(pod=name, host=host), reason="" if reason == "CrashLoopBackOff" else reason,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("source", "pods", "joined"),
    [
        ("chat-9b-0.previous.log", ("chat-9b-0", "chat-9b-1"), "chat-9b-0"),
        ("logs-chat-7f9d5-2l4wz-previous.txt", ("chat-7f9d5-2l4wz", "chat-7f9d5-8vv6r"), "chat-7f9d5-2l4wz"),
        ("mt-0-1.log", ("mt-0", "mt-0-1"), "mt-0-1"),
        ("mt-0-1.log", ("mt-0", "mt-1"), ""),
        ("mt-0/engine.log", ("mt-0", "mt-1"), "mt-0"),
        ("phi4-prev.log", ("phi4-79c8d-44tkz", "gem27-6d5f9-hs2xv"), "phi4-79c8d-44tkz"),
        ("phi4-prev.log", ("phi4-79c8d-44tkz", "phi4-79c8d-hs2xv"), ""),
        ("phi4-44tkz-prev.log", ("phi4-79c8d4b6f5-44tkz", "phi4-79c8d4b6f5-hs2xv"), "phi4-79c8d4b6f5-44tkz"),
        ("44tkz.log", ("phi4-79c8d4b6f5-44tkz", "phi4-79c8d4b6f5-hs2xv"), "phi4-79c8d4b6f5-44tkz"),
        ("https.log", ("phi4-79c8d4b6f5-https", "phi4-79c8d4b6f5-hs2xv"), ""),
        ("phi4.log", ("phi42-0", "phi43-0"), ""),
        ("out.log", ("chat-9b-0",), "chat-9b-0"),
        ("out.log", ("chat-9b-0", "falcon-0"), ""),
        ("out.log", ("chat-9b-0", "litellm-proxy-0", "coredns-5d78c9869d-4xkzq"), "chat-9b-0"),
        ("out.log", ("api-gateway-0",), ""),
    ],
)  # fmt: skip
def test_a_file_goes_to_the_pod_whose_name_it_bears(
    b: ModuleType, source: str, pods: tuple[str, ...], joined: str
) -> None:
    """The whole name, or the one without the hash; how it begins; the only pod that may be an engine's; never one of
    two."""
    w = b.World()
    w.start(source, 0, model="acme/chat-14b")
    for name in pods:
        listed(w, name)
    assert owner(w.case(), source) == (f"pod:{joined}" if joined else f"file:{source}")


def test_a_name_on_the_file_is_more_than_the_time_of_a_start(b: ModuleType) -> None:
    """Leader and worker of one group start in the same second."""
    w = b.World()
    for name in ("mt-0", "mt-0-1"):
        w.pod("pods.yaml", name=name, args=())
        w.exited("pods.yaml", 400, 1, name=name, started=-2)
        w.start(f"{name}.log", 0, model="acme/chat-14b")
    case = w.case()
    assert (owner(case, "mt-0.log"), owner(case, "mt-0-1.log")) == ("pod:mt-0", "pod:mt-0-1")


def test_two_logs_of_one_time_are_not_both_the_only_pods(b: ModuleType) -> None:
    """Two engines at work at once, one pod in the table: nothing says which is its."""
    w = b.World()
    listed(w, "chat-9b-0")
    for source in ("a.log", "b.log"):
        w.start(source, 0, model="acme/chat-14b")
    assert {owner(w.case(), source) for source in ("a.log", "b.log")} == {"file:a.log", "file:b.log"}


def test_arguments_without_a_model_contradict_nothing(b: ModuleType) -> None:
    for args, joined in ((("--tensor-parallel-size=4",), True), (("--model", "$(MODEL)"), True), (("--model", "b"), False)):
        w = b.World()
        w.start("out.log", 0, model="acme/chat-14b")
        w.pod(args=args)
        w.exited("describe.txt", 100, 1, started=-2)
        assert (owner(w.case(), "out.log") == f"pod:{b.POD}") is joined


@pytest.mark.parametrize(
    ("pods", "victims", "oom_scope", "joined"),
    [
        (("chat-9b-0",), 1, "container", True),
        (("chat-9b-0", "chat-9b-1"), 1, "container", False),
        (("chat-9b-0",), 2, "container", False),
        (("chat-9b-0",), 1, "node", False),
    ],
)
def test_a_table_says_whose_kill_it_was(
    b: ModuleType, pods: tuple[str, ...], victims: int, oom_scope: str, joined: bool
) -> None:
    """OOMKilled in `kubectl get pods` and one kill at a container's limit; never with two pods or two victims."""
    w = b.World()
    for name in pods:
        listed(w, name, "OOMKilled")
    for n in range(victims):
        w.kill("dmesg", 100 + n, oom_scope, uid=b.UID.replace("7d0c", f"7d0{n}"), cid=b.CID.replace("c3", f"c{n}"))
    case = w.case()
    (kill, *_) = (e for e in case.events if e.kind == "kernel_oom")
    assert case.entities.of(kill).startswith("pod:") is joined


def test_two_pods_are_never_one(b: ModuleType) -> None:
    """A container id that two pods bear was blanked out or copied."""
    w = b.World()
    for name in ("mt-0", "mt-1"):
        w.add("pods.yaml", None, f"container vllm of {name} running", "container_state", "k8s",
              Scope(pod=name, container="vllm", container_id=b.CID), state="running")  # fmt: skip
    entities = w.case().entities
    assert not entities.same("pod:mt-0", "pod:mt-1")


@pytest.mark.parametrize(
    ("pod", "workload"),
    [("pod:chat-qwen3-14b-6fb6bcbb89-jkzmh", "chat-qwen3-14b"), ("ray-head-x9k2p", "ray-head"), ("vllm-0", "vllm-0")],
)
def test_workload_of_a_pod(pod: str, workload: str) -> None:
    """Deployment and job suffixes are cut, ordinals of stateful sets stay."""
    assert pod_names.workload_of(pod) == workload


def usage_error(b: ModuleType, *looping: str, file: str = "new-pod.log") -> Any:
    """A program that rejects its command line, without a header, and pods that are started again and again."""
    w = b.World()
    w.add(file, None, "usage: vllm serve [model_tag] [options]", channel="plain")
    w.add(file, None, "vllm serve: error: unrecognized arguments: --fast", channel="plain")
    for name in ("chat-5d9cf77c5b-qx5t2", *looping):
        w.pod("pods.json", name=name)
    for name in looping:
        w.exited("pods.json", 100, 2, name=name, restart_count=7)
        w.add("pods.json", None, "container vllm waiting: CrashLoopBackOff", "container_waiting", "k8s",
              Scope(pod=name, container="vllm"), reason="CrashLoopBackOff")  # fmt: skip
    return w


def test_the_log_of_a_program_that_failed_is_of_the_only_pod_in_a_loop(b: ModuleType) -> None:
    """A usage message names nobody, and it is no other's."""
    w = usage_error(b, "chat-7f4c8d7c98-wz6vn")
    case = w.case()
    assert case.entities.same("file:new-pod.log", "pod:chat-7f4c8d7c98-wz6vn")
    assert w.diagnosis().verdict.cause.id == "config_error"


def test_a_log_of_nobody_stays_so_where_it_may_be_anothers(b: ModuleType) -> None:
    """Two pods in a loop, a loop whose log is here, or a file that is no program's output."""
    for w in (
        usage_error(b, "chat-7f4c8d7c98-wz6vn", "embed-7f4c8d7c98-k8s2p"),
        usage_error(b, "chat-7f4c8d7c98-wz6vn", file="todo.md"),
    ):
        assert not w.case().entities.same("file:new-pod.log", "pod:chat-7f4c8d7c98-wz6vn")
    w = usage_error(b, "chat-7f4c8d7c98-wz6vn")
    w.start("vllm.log", 0, Scope(pod="chat-7f4c8d7c98-wz6vn"))
    assert not w.case().entities.same("file:new-pod.log", "pod:chat-7f4c8d7c98-wz6vn")


def test_a_slow_stop_is_not_the_incident_where_the_new_replica_fails(b: ModuleType) -> None:
    """A rollout kills the old replica after its grace period; that the new one never starts is what people ask about."""
    w = usage_error(b, "chat-7f4c8d7c98-wz6vn")
    old = Scope(pod="chat-5d9cf77c5b-qx5t2")
    w.start("old.log", -9000, old)
    w.answer("old.log", 20, scope=old)
    w.event("events", 40, "Killing", "Stopping container vllm", "chat-5d9cf77c5b-qx5t2")
    w.exited("pods.json", 70, 137, name="chat-5d9cf77c5b-qx5t2")
    causes = [i.hypotheses[0].cause.id for i in w.diagnosis().incidents]
    assert causes == ["config_error", "external_sigkill"]


def test_a_series_names_the_pod_that_the_kernel_killed(b: ModuleType) -> None:
    """Kernel and log are joined by the moment; the pod's name stands on the file and in a table of its memory."""
    w = b.World()
    w.start("chat-x2k4p-previous.log", 0)
    w.answer("chat-x2k4p-previous.log", 36_000)
    w.kill("dmesg", 36_010)
    for pod, step in ((b.POD, 600.0), ("chat-6f9c7d5b8-zz4gt", 0.0)):
        w.series("container_memory_mib", [(600.0 * i, 9000.0 + step * i) for i in range(61)], "memory.csv", Scope(pod=pod))
    found = w.diagnosis().verdict
    assert (found.cause.id, w.case().entities.same(f"pod:{b.POD}", f"uid:{b.UID}")) == ("host_oom.leak", True)


@pytest.mark.parametrize(
    ("other", "failed", "shared", "told", "causes"),
    [
        ("rerank-5d9cf77c5b-qx5t2", 1200, True, False, ["insufficient_evidence", "gpu_oom.runtime_load"]),
        ("chat-6f9c7d5b8-zz4gt", 1200, True, False, ["gpu_oom.runtime_load", "insufficient_evidence"]),
        ("rerank-5d9cf77c5b-qx5t2", 8990, True, False, ["gpu_oom.runtime_load", "insufficient_evidence"]),
        ("rerank-5d9cf77c5b-qx5t2", 1200, False, False, ["gpu_oom.runtime_load", "insufficient_evidence"]),
        ("rerank-5d9cf77c5b-qx5t2", 1200, True, True, ["gpu_oom.runtime_load", "insufficient_evidence"]),
    ],
    ids=["another service", "a replica", "at that moment", "a log of its own", "its end is told as well"],
)
def test_trouble_of_another_service_in_the_same_export(
    b: ModuleType, other: str, failed: float, shared: bool, told: bool, causes: list[str]
) -> None:
    """The log of a namespace was cut before the end of the pod whose status lies beside it: that one is asked about."""
    w = b.World()
    w.start("export.log", 0, Scope(pod=b.POD))
    w.answer("export.log", 3600, scope=Scope(pod=b.POD))
    w.fail("export.log" if shared else "second.log", failed, scope=Scope(pod=other))
    w.pod("pod.yaml")
    w.exited("pod.yaml", 9000, 1)
    if told:
        w.exited("other.yaml", failed + 1, 1, name=other)
    assert [i.hypotheses[0].cause.id for i in w.diagnosis().incidents] == causes


@pytest.mark.parametrize(
    ("file", "owner"),
    [
        ("chat-6f9c7d5b8-zz4gt.log", "pod:chat-6f9c7d5b8-zz4gt"), ("logs-chat-6f9c7d5b8-zz4gt.txt", "pod:chat-6f9c7d5b8-zz4gt"),
        ("chat-6f9c7d5b8-x2k4p.log", "pod:chat-6f9c7d5b8-x2k4p"), ("chat-engine.log", "pod:chat-6f9c7d5b8-x2k4p"),
        ("chat-2026-05-12.log", "pod:chat-6f9c7d5b8-x2k4p"),
    ],
)  # fmt: skip
def test_a_file_that_bears_another_replicas_name(b: ModuleType, file: str, owner: str) -> None:
    """Of two replicas the events tell only of the one that was scaled down: the other's log is not its own."""
    w = b.World()
    w.event("events", 0, "Killing", "Stopping container vllm")
    w.start(file, -9000)
    w.answer(file, 3600)
    w.add("describe.txt", None, f"pod {b.POD} Running", "pod_status", "k8s", Scope(pod=b.POD), phase="Running")
    assert w.case().entities.name_of(Scope(), file) == owner


@pytest.mark.parametrize(
    ("kills", "delay_s", "joined"), [(1, 3.0, True), (2, 3.0, False), (1, 60.0, False)], ids=["seconds", "two kills", "later"]
)
def test_ray_tells_of_the_worker_that_the_kernel_killed(b: ModuleType, kills: int, delay_s: float, joined: bool) -> None:
    """The worker's pod is known by nothing but its cgroup; NCCL's watchdog barks ten minutes later."""
    w = b.World()
    w.start("leader.log", -9000)
    w.answer("leader.log", 90)
    for n in range(kills):
        w.kill(f"node-{n}/dmesg", 100 + n, uid=b.UID[:-1] + str(n), cid=str(n) * 64, comm="ray::RayWorkerW")
    told = "A worker died or was killed while executing a task by an unexpected system error. Worker exit type: SYSTEM_ERROR"
    w.add("leader.log", 100 + delay_s, told, channel="ray")
    w.answer("leader.log", 700)
    names = {w.case().entities.key(f"uid:{b.UID[:-1]}{n}") for n in range(kills)}
    assert (w.case().entities.name_of(Scope(), "leader.log") in names) == joined


def test_nor_where_nothing_says_why_the_new_replica_fails(b: ModuleType) -> None:
    """Seven restarts that nobody explains are the question; that the old replica took too long is no answer to it."""
    w = b.World()
    for name in ("chat-5d9cf77c5b-qx5t2", "chat-7f4c8d7c98-wz6vn"):
        w.pod("pods.json", name=name)
    w.event("events", 40, "Killing", "Stopping container vllm", "chat-5d9cf77c5b-qx5t2")
    w.exited("pods.json", 70, 137, name="chat-5d9cf77c5b-qx5t2")
    w.exited("pods.json", 900, 1, name="chat-7f4c8d7c98-wz6vn", restart_count=7)
    causes = [i.hypotheses[0].cause.id for i in w.diagnosis().incidents]
    assert causes == ["insufficient_evidence", "external_sigkill"]


@pytest.mark.parametrize(("one", "other", "joined"), [
    ("slurm-4711.out", "slurm-4711.err", True),
    ("logs/vllm.stdout.log", "logs/vllm.stderr.log", True),
    ("vllm-out.log", "vllm-err.log", True),
    ("slurm-4711.out", "slurm-4712.err", False),
    ("a/vllm.out", "b/vllm.err", False),
    ("rollout.log", "rollerr.log", False),
])  # fmt: skip
def test_the_two_streams_of_one_job(b: ModuleType, one: str, other: str, joined: bool) -> None:
    w = b.World()
    w.start(one, 0)
    w.add(other, 100, "slurmstepd: error: *** JOB 4711 ON gpu-node-7 CANCELLED DUE TO TIME LIMIT ***")
    entities = w.case().entities
    assert entities.same(f"file:{one}", f"file:{other}") is joined


@pytest.mark.parametrize(("others", "joined"), [((), True), (("summary-0",), False)], ids=["one pod", "two with such a container"])
def test_a_container_without_its_pod(b: ModuleType, others: tuple[str, ...], joined: bool) -> None:
    """A pasted piece of a status names no pod; events that name such a container say which one, if only one has it."""
    w = b.World()
    w.add("status.yaml", 100, "container vllm terminated: reason=Error exit_code=137", "container_terminated", "k8s",
          Scope(container="vllm"), exit_code=137, reason="Error")  # fmt: skip
    for pod in ("chat-7c6c5cc96f-vd8zk", *others):
        w.probe_kill("events.txt", 70, name=pod)
    case = w.case()
    assert case.entities.same("ctr:vllm", "pod:chat-7c6c5cc96f-vd8zk") is joined
