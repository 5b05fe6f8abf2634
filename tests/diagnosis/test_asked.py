"""Whom people ask about: the first that a request names leads, and what befell others is told behind it."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from forensics.model import Scope


def two(b: ModuleType, said: str, chat: str = "chat", embed: str = "embed", where: str = "ticket.txt") -> Any:
    """`embed` fails at its start, every time; `chat` was started long before, and works."""
    w = b.World()
    w.start(f"{chat}.log", 0, Scope(container=chat))
    w.answer(f"{chat}.log", 3600, scope=Scope(container=chat))
    for n in range(3):
        w.start(f"{embed}.log", 900 + 60 * n, Scope(container=embed), loaded=False)
        w.fail(f"{embed}.log", 930 + 60 * n, frames=b.LOADING, scope=Scope(container=embed), envelope="")
    w.add(where, None, said, channel="plain")
    return w


@pytest.mark.parametrize(
    ("said", "leads"),
    [
        ("Since noon the answers of chat take a minute, what is wrong with the box?", "healthy"),
        ("Since noon embed does not come up any more, chat is fine", "gpu_oom.weights"),
        ("Since noon the box is sick, who can have a look at it?", "gpu_oom.weights"),
        ("Subj: chat is slow, users complain about it", "healthy"),
        ("Betr: chat antwortet nicht mehr, bitte ansehen", "healthy"),
        ("从中午开始chat服务很慢，请帮忙看一下是什么原因", "healthy"),
        ("the neighbour chat is fine and serves its users", "gpu_oom.weights"),
        ("last week chat was slow for some hours as well", "gpu_oom.weights"),
        ("attached is chat.log, and what else was there", "gpu_oom.weights"),
    ],
    ids=["the one that works", "both", "neither", "a subject", "a German subject", "glued to Chinese", "a neighbour",
         "another time", "only a file"],
)
def test_the_first_that_a_request_names_leads(b: ModuleType, said: str, leads: str) -> None:
    d = two(b, said).diagnosis()
    assert d.verdict.cause.id == leads
    assert (d.asked.place is not None) is (leads == "healthy")


def test_the_trouble_of_others_is_told_second(b: ModuleType) -> None:
    d = two(b, "Since noon the answers of chat take a minute, what is wrong with the box?").diagnosis()
    assert [(i.entity, i.hypotheses[0].cause.id) for i in d.incidents[1:]] == [("ctr:embed", "gpu_oom.weights")]
    assert d.asked.place is not None
    assert d.asked.place.source == "ticket.txt"


def test_replicas_and_names_that_share_a_word_are_one_service(b: ModuleType) -> None:
    """Whoever asks about `chat-7b` may mean its second replica, and the gateway's `chat-lora`."""
    said = "Since noon the answers of chat-7b take a minute, what is wrong with the box?"
    for other in ("chat-7b-2", "chat-lora"):
        assert two(b, said, "chat-7b", other).diagnosis().verdict.cause.id == "gpu_oom.weights"


def test_a_log_without_a_name_may_be_that_of_the_one_asked_about(b: ModuleType) -> None:
    """A status names `chat`, and no log of it is there but `0.log`: it is no stranger's."""
    w = b.World()
    w.start("0.log", 900, loaded=False)
    w.fail("0.log", 930, frames=b.LOADING, envelope="")
    w.exited("pods.txt", 940, 1, "Error", "chat-6f9c7d5b8-x2k4p", "vllm")
    w.add("ticket.txt", None, "Since noon chat does not come up any more, what is wrong?", channel="plain")
    assert w.diagnosis().verdict.cause.id == "gpu_oom.weights"


def test_a_subject_counts_before_what_stands_above_it(b: ModuleType) -> None:
    w = two(b, "Since the change of embed everything on the box is slow")
    w.add("ticket.txt", None, "Subject: chat is slow since noon", channel="plain")
    assert w.diagnosis().verdict.cause.id == "healthy"


def test_a_second_log_of_the_same_engine_that_says_more_leads(b: ModuleType) -> None:
    """The first try only shows that NCCL failed; the one with `NCCL_DEBUG` says of what."""
    w = b.World()
    w.start("chat.out", 0, loaded=False)
    w.fail("chat.out", 30, "RuntimeError: NCCL error: unhandled system error", b.LOADING, envelope="")
    w.start("chat.debug.out", 600, loaded=False)
    w.add("chat.debug.out", 630, "node:142:142 [1] misc/shmutils.cc:72 NCCL WARN Error: failed to extend"
          " /dev/shm/nccl-hJ2wQe to 33030532 bytes", level="ERROR")  # fmt: skip
    assert [i.hypotheses[0].cause.id for i in w.diagnosis().incidents] == ["shm_exhausted", "nccl_failure"]


@pytest.mark.parametrize(
    ("node", "cause"), [("gpu-node-2", "model_download"), ("gpu-node-7", "gpu_hardware")],
    ids=["no replica ran there", "where it ran"],
)  # fmt: skip
def test_the_fault_of_a_machine_without_a_replica(b: ModuleType, node: str, cause: str) -> None:
    """The log names no pod, and the pods' table says where all replicas of its service ran."""
    w = b.World()
    w.start("chat-new.log", 0, loaded=False)
    w.fail("chat-new.log", 30, "huggingface_hub.errors.GatedRepoError: 403 Client Error. Cannot access gated repo for url"
           " https://huggingface.co/acme/chat-14b/resolve/main/config.json.", b.LOADING, envelope="")  # fmt: skip
    for name in ("chat-6f9c7d5b8-x2k4p", "chat-6f9c7d5b8-q7wnz"):
        w.add("pods.txt", None, f"{name} 0/1 Running", "pod_status", "k8s", Scope(host="gpu-node-7", pod=name))
    w.add("gpu.kern", 20, "NVRM: Xid (PCI:0000:ca:00): 79, GPU has fallen off the bus.", "xid", "kernel",
          Scope(host=node), xid=79)  # fmt: skip
    w.add("ticket.txt", None, "The new replica of chat does not come up, please have a look", channel="plain")
    assert w.diagnosis().verdict.cause.id == cause


@pytest.mark.parametrize("unit", [True, False], ids=["a unit", "may be a job"])
def test_what_a_scheduler_killed_is_no_unit(b: ModuleType, unit: bool) -> None:
    w = b.World()
    scope = Scope(unit="chat") if unit else Scope()
    w.start("chat.log", 0, scope)
    w.answer("chat.log", 290, scope=scope)
    w.add("chat.log", 301, "Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", level="ERROR",
          scope=scope)  # fmt: skip
    w.add("messages", 299, "slurmstepd: error: Detected 1 oom_kill event in StepId=40119.0. Some of the step tasks"
          " have been OOM Killed.", channel="host", level="ERROR")  # fmt: skip
    assert (w.diagnosis().verdict.cause.id == "insufficient_evidence") is unit


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        (("Since noon embed falls over again and again.", "Was `chat` hit as well, yes or no?"), "ctr:chat"),
        (("Since noon embed falls over again and again.", "Why is chat slow since then?"), "ctr:chat"),
        (("500s on embed since noon.", "The chat was restarted as well, sure it took us along?"), "ctr:embed"),
        (("500s on embed since noon.", "Why does it fail, is it because of the chat?"), "ctr:embed"),
        (("Everything is red since noon.", "Warum antwortet Ministral nicht mehr?"), "ctr:chat"),
        (("Ministral was rolled out yesterday.", "500s on embed since noon."), "ctr:embed"),
    ],
    ids=["a question with its name marked", "a question", "a guess", "a suspicion", "by its model", "a model in passing"],
)
def test_a_question_names_whom_it_is_about(b: ModuleType, said: tuple[str, str], asked: str) -> None:
    w = two(b, said[0])
    w.add("ticket.txt", None, said[1], channel="plain")
    w.add("chat.log", 0.2, "non-default args: {}", "engine_args", scope=Scope(container="chat"),
          model="/srv/models/Ministral-8B-Instruct")  # fmt: skip
    assert asked in w.case().asked.entities


@pytest.mark.parametrize(
    ("folder", "leads"), [("other-things/", "healthy"), ("things/", "gpu_oom.weights")], ids=["set aside", "beside"]
)
def test_what_lies_in_a_folder_of_other_things(b: ModuleType, folder: str, leads: str) -> None:
    """Nobody wrote a word: the folder says what was asked about, and what was not."""
    w = b.World()
    w.start("chat/previous.log", 0)
    w.answer("chat/previous.log", 3600)
    w.start(f"{folder}embed/log.txt", 900, loaded=False)
    w.fail(f"{folder}embed/log.txt", 930, frames=b.LOADING, envelope="")
    assert w.diagnosis().verdict.cause.id == leads


def test_an_end_that_only_a_status_tells_is_enough_to_be_asked_about(b: ModuleType) -> None:
    """The pod is gone, and with it its log; the log of another engine, which nobody asked about, is there."""
    w = two(b, "Subject: summary was evicted and came back under another name")
    w.pod("describe.txt", name="summary-6f9c7d5b8-x2k4p")
    w.exited("describe.txt", 700, 137, "Evicted", "summary-6f9c7d5b8-x2k4p")
    d = w.diagnosis()
    assert d.incidents[0].entity == "pod:summary-6f9c7d5b8-x2k4p"
    assert "ctr:embed" in {incident.entity for incident in d.incidents[1:]}


def test_instances_of_a_template_speak_under_their_own_names(b: ModuleType) -> None:
    """`SyslogIdentifier=%p-%i` in one journal: the lines of `vllm-mail` are of `vllm@mail`, not of its sibling."""
    w = b.World()
    for unit in ("mail", "legal"):
        w.add("journal", 0, f"Started vllm@{unit}.service.", channel="systemd", scope=Scope(unit=f"vllm@{unit}"))
    for n, unit in enumerate(("mail", "legal")):
        w.add("journal", 1 + n, "vLLM API server version 0.11.0", "engine_args", engine_version="0.11.0", ident=f"vllm-{unit}")
    assert {life.entity for life in w.case().lives} == {"unit:vllm@mail", "unit:vllm@legal"}
