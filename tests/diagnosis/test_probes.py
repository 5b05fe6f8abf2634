"""Probe kills: whose fault, in which phase, and would a longer budget have helped?"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from forensics.diagnosis.rules import probes
from forensics.model import Basis, Scope

PROBE = {"liveness_delay_s": 60, "liveness_period_s": 10, "liveness_failure": 3}


def shards(w: Any, source: str, start: float, done: int, total: int, every: float, scope: Scope) -> None:
    for n in range(done + 1):
        text = f"Loading safetensors checkpoint shards: {100 * n // total:3d}% Completed | {n}/{total} [00:{n:02d}<00:10]"
        w.add(source, start + n * every, text, scope=scope)


@pytest.mark.parametrize(
    ("fields", "budgets"),
    [
        (PROBE, {"liveness": 90.0}),
        ({"liveness_period_s": 20}, {"liveness": 60.0}),
        ({"startup_period_s": 10, "startup_failure": 60, **PROBE}, {"startup": 600.0, "liveness": 90.0}),
        ({}, {}),
    ],
)
def test_budget_is_delay_plus_period_times_threshold(fields: dict[str, Any], budgets: dict[str, float]) -> None:
    """Kubernetes' defaults fill what a spec leaves out."""
    assert probes.budgets_s(fields) == budgets


def test_killed_while_loading(b: ModuleType) -> None:
    """Not ready, weights half loaded, budget spent: the load time is extrapolated from the shards."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope, loaded=False)
    shards(w, "a", 10, 8, 32, 9, scope)
    w.pod(**PROBE)
    w.probe_kill("events", 90)
    w.exited("describe.txt", 95, 137, started=0)
    case = w.case()
    found = {f.signature.removeprefix("derived."): f for f in probes.rules(case, case.deaths[0])}
    assert set(found) == {"probe_kill_loading", "probe_budget_short"}
    short = found["probe_budget_short"].fields
    assert short["probe_budget_s"] == 90.0
    assert short["load_time_basis"] == "extrapolated"
    assert short["load_time_s"] == pytest.approx(10 + 32 * 9, rel=0.05)
    delay, period = PROBE["liveness_delay_s"], PROBE["liveness_period_s"]
    assert delay + period * short["failure_threshold_needed"] >= 1.2 * short["load_time_s"]
    assert w.diagnosis().verdict.cause.id == "probe_restart_storm"


def test_the_load_time_of_a_run_that_became_ready_is_measured(b: ModuleType) -> None:
    """One success in the bundle is worth more than any extrapolation."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("0.log", 0, scope, loaded=False)
    shards(w, "0.log", 10, 8, 32, 9, scope)
    w.start("1.log", 1000, scope)
    case = w.case()
    estimate = probes.load_time(case, case.deaths[0])
    assert estimate == {"load_time_s": 60.0, "load_time_basis": "measured"}


def test_killed_while_serving(b: ModuleType) -> None:
    """The engine was ready and at work; the probe timed out."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope)
    w.answer("a", 400, scope=scope)
    w.pod(**PROBE)
    w.probe_kill("events", 500)
    w.exited("describe.txt", 531, 137, started=0)
    case = w.case()
    assert b.names(probes.rules(case, case.deaths[-1])) == {"probe_kill_serving"}
    assert w.diagnosis().verdict.cause.id == "probe_kill"


@pytest.mark.parametrize(
    ("probe", "uptime", "cause"),
    [("startup", 600, "probe_restart_storm"), ("liveness", 95, "probe_restart_storm"), ("liveness", 9000, "probe_kill")],
)
def test_without_a_log_the_uptime_tells_the_phase(b: ModuleType, probe: str, uptime: int, cause: str) -> None:
    """A container that lived about as long as its budget never served; a startup probe only runs before that."""
    w = b.World()
    w.pod(**PROBE)
    w.probe_kill("describe.txt", 10_000, probe)
    w.exited("describe.txt", 10_004, 143, started=10_004 - uptime)
    assert w.diagnosis().verdict.cause.id == cause


def test_an_engine_that_died_first_is_the_cause(b: ModuleType) -> None:
    """The probe fails because the engine is dead: the kill is a consequence."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope)
    w.answer("a", 70, scope=scope)
    w.fail("a", 300, scope=scope)
    w.pod(**PROBE)
    w.probe_kill("events", 340)
    w.exited("describe.txt", 371, 137, started=0)
    case = w.case()
    assert not b.names(probes.rules(case, case.deaths[0])) & {"probe_kill_serving", "probe_kill_loading"}
    assert w.diagnosis().verdict.cause.id == "gpu_oom.runtime_load"


def test_a_kernel_kill_before_the_probe_is_the_cause(b: ModuleType) -> None:
    """The engine's child was killed at the limit, the API server lingered until the probe gave up."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope)
    w.answer("a", 70, scope=scope)
    w.add("a", 301, "Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", scope=scope, level="ERROR")
    w.pod(memory_limit_bytes=64 << 30, **PROBE)
    w.kill("dmesg", 300)
    w.probe_kill("events", 330)
    w.exited("describe.txt", 340, 143, "OOMKilled", started=0)
    assert w.diagnosis().verdict.cause.id == "host_oom.container_limit"


def test_readiness_kills_nobody(b: ModuleType) -> None:
    """A failed readiness probe takes a pod out of the service and no more."""
    w = b.World()
    w.pod(**PROBE)
    w.event("events", 300, "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")
    w.exited("describe.txt", 310, 137)
    case = w.case()
    assert not list(probes.rules(case, case.deaths[0]))


def test_a_kill_of_another_pod_or_another_hour_does_not_fit(b: ModuleType) -> None:
    """A kill counts for its own pod, and within the grace period."""
    w = b.World()
    w.pod(**PROBE)
    w.probe_kill("events", 300, name="chat-6f9c7d5b8-other")
    w.probe_kill("events", -20_000)
    w.exited("describe.txt", 310, 137)
    case = w.case()
    death = next(d for d in case.deaths if d.exit_code == 137)
    assert probes.probe_kill_of(case, death) is None


def test_repeated_events_stand_for_several_kills(b: ModuleType) -> None:
    """`x3 over 20m`: any death between the first and the last may be one of them."""
    w = b.World()
    w.pod(**PROBE)
    w.event("describe.txt", b.at(1500, 30.0), "Killing", "Container vllm failed liveness probe, will be restarted",
            count=3, first_seen_s=b.T0 + 300)  # fmt: skip
    w.exited("describe.txt", 900, 137, started=780)
    case = w.case()
    death = next(d for d in case.deaths if d.exit_code == 137)
    assert probes.probe_kill_of(case, death) is not None


def test_a_loop_with_one_cause_is_one_incident(b: ModuleType) -> None:
    """Three runs killed while loading: one incident, three deaths, and the repetition corroborates."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.pod(**PROBE)
    for n in range(3):
        base = 200.0 * n
        w.start(f"{n}.log", base, scope, loaded=False)
        shards(w, f"{n}.log", base + 10, 8, 32, 9, scope)
        w.probe_kill("events", base + 90)
        w.exited("kubelet.log", base + 121, 137, started=base)
    diagnosis = w.diagnosis()
    assert [i.hypotheses[0].cause.id for i in diagnosis.incidents] == ["probe_restart_storm"]
    assert len(diagnosis.incidents[0].deaths) == 3
    assert diagnosis.verdict.confidence == "established"
    assert diagnosis.key_facts["probe_kill_count"] == 3


def test_a_crash_loop_of_143s_is_no_planned_stop(b: ModuleType) -> None:
    """Killed in mid-load three times and waiting in CrashLoopBackOff, the Killing events have expired."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.pod(**PROBE)
    for n in range(3):
        w.start(f"{n}.log", 200.0 * n, scope, loaded=False)
        shards(w, f"{n}.log", 200.0 * n + 10, 8, 32, 9, scope)
        w.add(f"{n}.log", 200.0 * n + 91, "KeyboardInterrupt: terminated", "traceback", scope=scope, level="",
              exception="KeyboardInterrupt", frames=(), chained=False)  # fmt: skip
    w.add("describe.txt", None, "container vllm waiting: CrashLoopBackOff", "container_waiting", "k8s",
          Scope(pod=b.POD, container="vllm"), reason="CrashLoopBackOff", restart_count=3)  # fmt: skip
    w.exited("describe.txt", 491, 143, started=400, restart_count=3)
    verdict = w.diagnosis().verdict
    assert (verdict.cause.id, verdict.confidence) == ("probe_restart_storm", "possible")


def test_one_stop_while_loading_is_no_storm(b: ModuleType) -> None:
    """Somebody deleted the pod after the time of the budget; its container was not started again."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.pod(**PROBE)
    w.start("0.log", 0, scope, loaded=False)
    shards(w, "0.log", 10, 8, 32, 9, scope)
    w.add("0.log", 91, "KeyboardInterrupt: terminated", "traceback", scope=scope, level="",
          exception="KeyboardInterrupt", frames=(), chained=False)  # fmt: skip
    assert "derived.probe_budget_met" not in {f.signature for f in w.diagnosis().verdict.decisive}


def test_told_to_stop_while_loading_is_loading(b: ModuleType) -> None:
    """The kubelet's SIGTERM leaves its mark in the log: the run is draining, but it had never served."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope, loaded=False)
    shards(w, "a", 10, 8, 32, 9, scope)
    w.pod(**PROBE)
    w.probe_kill("events", 90)
    w.add("a", 90.2, "[shutdown] API server: trigger received signal=15 (SIGTERM)", scope=scope)
    w.exited("describe.txt", 95, 143, started=0)
    assert w.diagnosis().verdict.cause.id == "probe_restart_storm"


def test_the_runtime_names_nobody(b: ModuleType) -> None:
    """The kubelet's loop saw the probe fail, then everything that a stop prints: the probe asked for it."""
    w = b.World()
    scope = Scope(namespace="llm", pod=b.POD, container="vllm", container_id=b.CID)
    w.pod(liveness_period_s=10, liveness_failure=3)
    w.start("a", 0, scope)
    w.answer("a", 3000, scope=scope)
    w.add("kubelet", 3060, f'"SyncLoop (probe)" probe="liveness" status="unhealthy" pod="llm/{b.POD}"', channel="kubelet",
          scope=Scope(namespace="llm", pod=b.POD))  # fmt: skip
    w.add("containerd", 3060.02, f'StopContainer for "{b.CID}" with timeout 30 (s)', channel="runtime", scope=scope)
    w.exited("describe.txt", 3090.4, 137)
    assert w.diagnosis().verdict.cause.id == "probe_kill"


def test_autoheal_restarts_an_unhealthy_container(b: ModuleType) -> None:
    """Compose's log shows an orderly stop; a companion asked for it because the health check had failed."""
    w = b.World()
    scope = Scope(container="chat")
    w.start("chat.log", 0, scope)
    w.answer("chat.log", 3600, scope=scope)
    w.add("chat.log", 3660, "Shutting down", scope=scope)
    w.add("heal.log", 3658, "Container /lab-chat-1 (5e0d7a91c3b2) found to be unhealthy - Restarting container now with 10s"
          " timeout", channel="container", scope=Scope(container="autoheal"))  # fmt: skip
    found = w.diagnosis().verdict
    assert found.cause.id == "probe_kill"
    assert {f.fields.get("probe") for f in found.decisive} == {"health"}


def test_autoheal_restarts_another_container(b: ModuleType) -> None:
    w = b.World()
    scope = Scope(container="chat")
    w.start("chat.log", 0, scope)
    w.answer("chat.log", 3600, scope=scope)
    w.add("chat.log", 3660, "Shutting down", scope=scope)
    w.add("heal.log", 3658, "Container /lab-redis-1 (5e0d7a91c3b2) found to be unhealthy - Restarting container now with 10s"
          " timeout", channel="container", scope=Scope(container="autoheal"))  # fmt: skip
    assert w.diagnosis().verdict.cause.id == "healthy"


@pytest.mark.parametrize(("ready", "cause"), [(False, "probe_restart_storm"), (True, "probe_kill")])
def test_nomad_restarts_a_task_for_its_health_check(b: ModuleType, ready: bool, cause: str) -> None:
    """The job's own text is not there: each start was granted the same time. The exit code is the server's answer."""
    w = b.World()
    scope = Scope(container="serve")
    for begin in (0, 600, 1200):
        w.add("alloc.txt", begin, "container serve started", "container_started", "runtime", scope)
        w.start("serve.stdout.0", begin + 3, scope, loaded=ready)
        if not ready:
            w.add("serve.stdout.0", begin + 170, "Loading safetensors checkpoint shards:  50% Completed | 5/10"
                  " [02:40<02:40, 32.0s/it]", scope=scope)  # fmt: skip
        w.add("alloc.txt", begin + 180, 'Restart Signaled: healthcheck: check "chat" unhealthy', channel="host", scope=scope)
        w.add("serve.stdout.0", begin + 181, "KeyboardInterrupt: terminated", "traceback", scope=scope, frames=())
        w.add("alloc.txt", begin + 184, 'Terminated: Exit Code: 1, Exit Message: "exited with non-zero exit code: 1"',
              channel="host", scope=scope)  # fmt: skip
    found = w.diagnosis()
    assert (found.verdict.cause.id, found.key_facts["probe_budget_s"] if not ready else 180) == (cause, 180)
    assert "failure_threshold_needed" not in found.key_facts  # it counts nothing that the job has


@pytest.mark.parametrize(("worked", "line"), [(False, 1), (True, 3)], ids=["a loop of loads", "a run that worked"])
def test_a_loop_begins_with_its_first_kill(b: ModuleType, worked: bool, line: int) -> None:
    """The laps before the one whose log is there are the same loop, unless the container had come to work."""
    w = b.World()
    scope = Scope(container="chat")
    for second in (0, 300, 600):
        w.add("heal.log", second, "Container /chat (5e0d7a91c3b2) found to be unhealthy - Restarting container now with 10s"
              " timeout", channel="container", scope=Scope(container="autoheal"))  # fmt: skip
    if worked:
        w.answer("chat.log", 450, scope=scope)
    w.start("chat.log", 480, scope, loaded=False)
    w.add("chat.log", 590, "Loading safetensors checkpoint shards:  51% Completed | 19/37 [01:21<01:10, 3.57s/it]", scope=scope)
    w.start("chat.log", 620, scope, loaded=False)
    found = w.diagnosis()
    assert found.verdict.cause.id == "probe_restart_storm"
    assert found.first_cause is not None
    assert found.first_cause.locator.line == line


@pytest.mark.parametrize(("file", "first"), [("a", "(1/3)"), ("keeper.log", "with SIGKILL")])
def test_a_script_kills_a_busy_server(b: ModuleType, file: str, first: str) -> None:
    """The supervisor's own health checks fail while the engine works on; in one log, the first of them is the onset."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 300)
    w.add(file, 301, "[keeper] liveness: no answer within 1s (1/3)", channel="container", level="")
    w.add(file, 304, "[keeper] liveness: no answer within 1s (2/3)", channel="container", level="")
    w.answer("a", 305)
    w.add(file, 307, "[keeper] liveness: no answer within 1s (3/3)", channel="container", level="")
    w.add(file, 307, "[keeper] liveness failed, killing process group 40 with SIGKILL", channel="container", level="")
    w.start("a", 320)
    w.answer("a", 420)
    found = w.diagnosis()
    assert found.verdict.cause.id == "probe_kill"
    assert found.first_cause.event.text.endswith(first)


def test_a_gate_ends_the_load_again_and_again(b: ModuleType) -> None:
    """The entry point grants a time, the model needs more: an orderly stop of the engine that nobody planned."""
    w = b.World()
    for lap in range(3):
        w.start("a", 400 * lap, loaded=False)
        w.add("a", 400 * lap + 300, "[entry] engine not ready after 300s, stopping it (pid 40) and trying again", level="")
        w.add("a", 400 * lap + 301, "KeyboardInterrupt: terminated", "traceback", exception="KeyboardInterrupt",
              frames=("/opt/bin/vllm:<module>",))  # fmt: skip
    w.start("a", 1200, loaded=False)
    found = w.diagnosis()
    assert found.verdict.cause.id == "probe_restart_storm"
    assert found.key_facts["probe_budget_s"] == 300.0


def test_a_script_notices_that_the_engine_broke(b: ModuleType) -> None:
    """Whoever restarts an engine that died before is no cause of it."""
    w = b.World()
    w.start("a", 0)
    w.answer("a", 300)
    w.fail("a", 310)
    w.add("a", 330, "[keeper] health check failed 3 times, restarting engine", level="")
    w.start("a", 340)
    assert w.diagnosis().verdict.cause.id == "gpu_oom.runtime_load"


def test_podman_kills_a_loading_container(b: ModuleType) -> None:
    """Three failures in a row, then a kill, in a unit that runs the container: the budget is the Quadlet's."""
    w = b.World()
    unit, container = Scope(unit="chat"), Scope(container="chat", container_id=b.CID)
    w.add("chat.container", None, "unit chat.service spec", "pod_spec", "systemd", Scope(unit="chat.service"),
          container="chat", args=("--model", "acme/m"), image="vllm/vllm-openai:v0.11.0", health_delay_s=60.0,
          health_period_s=10.0, health_failure=3, health_action="kill")  # fmt: skip
    w.start("journal", 0, unit, loaded=False)
    for n in (1, 2, 3):
        w.add("journal", 60 + 10 * n, f"container health_status {b.CID} (image=x, name=chat, health_status=unhealthy,"
              f" health_failing_streak={n}, health_log=)", channel="runtime", scope=container)  # fmt: skip
    w.add("journal", 91, f"container kill {b.CID} (image=x, name=chat)", "container_kill", "runtime", container)
    w.add("journal", 92, "chat.service: Main process exited, code=exited, status=137/n/a", "unit_exit", "systemd", unit,
          code="exited", status=137)  # fmt: skip
    found = w.diagnosis()
    assert found.verdict.cause.id == "probe_restart_storm"
    assert found.key_facts["probe_budget_s"] == 90.0


def _loop(b: ModuleType, w: Any, spans: tuple[float, ...], probe: str = "liveness") -> None:
    """Containers killed one after another, the first of them without a log."""
    scope = Scope(pod=b.POD)
    for n, span in enumerate(spans):
        begin = 300 * n
        w.add("kubelet", begin, "container vllm started", "container_started", "kubelet", Scope(pod=b.POD, container="vllm"))
        if n:
            w.start(f"{n}.log", begin, scope, loaded=False)
            shards(w, f"{n}.log", begin + 10, 8, 32, 9, scope)
        w.probe_kill("events", begin + span, probe)
        w.exited("kubelet", begin + span + 4, 143)


def test_the_last_good_start_lends_nothing_to_the_storm(b: ModuleType) -> None:
    """Somebody packed the log of a start two days ago: it was quick then, and says nothing about how these runs died."""
    w = b.World()
    w.start("last-good.log", -170_000, Scope(pod=b.POD))
    w.answer("last-good.log", -169_000, scope=Scope(pod=b.POD))
    w.pod(**PROBE)
    _loop(b, w, (90, 90, 91))
    diagnosis = w.diagnosis()
    assert diagnosis.verdict.cause.id == "probe_restart_storm"
    facts = diagnosis.key_facts
    assert facts["load_time_s"] == pytest.approx(10 + 32 * 9, rel=0.05)
    assert facts["earlier_load_time_s"] == 60.0
    assert facts.get("uptime_h") is None, "no run lasted from one incident to the next"


@pytest.mark.parametrize(("spans", "budget"), [((90, 90, 91), 90.0), ((90, 200, 140), None)])
def test_equal_spans_measure_the_budget(b: ModuleType, spans: tuple[float, ...], budget: float | None) -> None:
    """Nobody saved the spec: every container of the loop was told to stop after the same time."""
    w = b.World()
    _loop(b, w, spans, "startup")
    diagnosis = w.diagnosis()
    assert diagnosis.verdict.cause.id == "probe_restart_storm"
    assert diagnosis.key_facts.get("probe_budget_s") == budget


@pytest.mark.parametrize(("status", "path"), [(404, "/healthz"), (503, None)])
def test_a_path_that_the_server_does_not_have(b: ModuleType, status: int, path: str | None) -> None:
    """404 is no slow server: the advice is another path, not more time."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope)
    w.answer("a", 400, scope=scope)
    w.pod(**PROBE, liveness_path="/healthz")
    w.event("events", 499, "Unhealthy", f"Liveness probe failed: HTTP probe failed with statuscode: {status}")
    w.probe_kill("events", 500)
    w.exited("describe.txt", 531, 137, started=0)
    facts = w.diagnosis().key_facts
    assert (facts["probe_status_code"], facts.get("missing_path")) == (status, path)


@pytest.mark.parametrize(("container", "seconds"), [("vllm", 512.0), ("shipper", None)])
def test_a_table_tells_how_long_a_run_lasted(b: ModuleType, container: str, seconds: float | None) -> None:
    """From `Started` to `Killing` of one table, though nobody knows of which year; another container's start is none."""
    w = b.World()
    some_year = b.at(0, 3.0e7), b.at(512, 3.0e7)
    scope = Scope(namespace="llm", pod=b.POD, container=container)
    w.add("events", some_year[0], f"Started: Started container {container}", "k8s_event", "k8s", scope, reason="Started")
    w.event("events", some_year[1], "Killing", "Container vllm failed liveness probe, will be restarted")
    assert w.diagnosis().key_facts.get("uptime_s") == seconds


def _untied_kill(b: ModuleType) -> Any:
    """The events of `kubectl get`, whose ages count from a time that nobody knows, beside the log of the run before."""
    w = b.World()
    scope = Scope(namespace="llm", pod=b.POD, container="vllm")
    w.start("previous.log", 0, scope)
    w.answer("previous.log", 3600, scope=scope)
    w.add("previous.log", b.at(3610, 50_000), "Shutting down", scope=scope)
    w.probe_kill("events.txt", b.at(2800, 86_400))
    return w


def test_a_stop_that_only_an_untied_kill_explains(b: ModuleType) -> None:
    """A probe's kill begins with SIGTERM: the orderly words of the engine are its consequence."""
    found = _untied_kill(b).diagnosis().verdict
    assert found.cause.id == "probe_kill"
    assert found.decisive[0].event.locator.source == "events.txt"


def test_an_untied_kill_before_the_order_that_stopped_the_pod(b: ModuleType) -> None:
    w = _untied_kill(b)
    w.event("events.txt", b.at(2900, 86_400), "Killing", "Stopping container vllm")
    assert w.diagnosis().verdict.cause.id == "healthy"


def test_a_loop_that_the_kubelet_counted(b: ModuleType) -> None:
    """`Killing 2m (x6 over 20m)`: six ends since the first, although the status remembers the last one only."""
    w = b.World()
    w.pod(**PROBE)
    told = {"line": 40, "count": 6}
    message = "Container vllm failed liveness probe, will be restarted"
    w.event("describe.txt", 10_000, "Killing", message, **told)
    w.exited("describe.txt", 10_004, 143, started=9_900)
    assert w.diagnosis().impact["deaths"] == 1
    w.add("describe.txt", 8_920, "first of 6 Killing events", "k8s_first_seen", "k8s", Scope(pod=b.POD),
          reason="Killing", **told)  # fmt: skip
    found = w.diagnosis()
    assert "deaths" not in found.impact
    assert found.impact["deaths_counted"] == 6
    (incident,) = found.incidents
    assert (incident.start_s, incident.end_s) == (b.T0 + 8_920, b.T0 + 10_004)


def test_an_age_that_nothing_dates_tells_no_beginning(b: ModuleType) -> None:
    """A table's ages, taken as soon after the newest line: the notice's own line says when it began."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("a", 0, scope)
    w.answer("a", 3590, scope=scope)
    w.add("nth.log", 3500, "Spot ITN received. Instance will be interrupted", channel="host")
    w.add("a", 3600, "[shutdown] API server: SIGTERM received, starting shutdown", scope=scope)
    w.add("events", b.at(2700, 86_400.0, Basis.RELATIVE_AGE), "SpotInterruption: Spot ITN received. Instance will be interrupted", "k8s_event",
          "k8s", Scope(), reason="SpotInterruption")  # fmt: skip
    incident = w.diagnosis().incidents[0]
    assert incident.hypotheses[0].cause.id == "external_sigkill"
    assert incident.start_s == b.T0 + 3500


@pytest.mark.parametrize(("lasted_s", "allowed_s", "cause"), [
    (580, 600, "probe_restart_storm"), (580, None, "insufficient_evidence"), (60, 600, "insufficient_evidence"),
])  # fmt: skip
def test_an_endpoint_whose_start_takes_too_long(b: ModuleType, lasted_s: int, allowed_s: int | None, cause: str) -> None:
    """SageMaker gives up on a loading container; it says the same of one that broke long before its time was over."""
    w = b.World()
    w.add("endpoint.json", None, '"FailureReason": "The primary container for production variant blue did not pass the '
          'ping health check. Please check CloudWatch logs for this endpoint."', channel="host")  # fmt: skip
    if allowed_s is not None:
        w.add("config.json", None, "ContainerStartupHealthCheckTimeoutInSeconds", "pod_spec", "host",
              health_period_s=allowed_s, health_failure=1, health_action="stop")  # fmt: skip
    for begin in (0, 700):
        w.start("blue.log", begin, loaded=False)
        w.add("blue.log", begin + lasted_s, "Loading safetensors checkpoint shards:  60% Completed | 30/50 [09:30<06:20, 19.00s/it]")
    found = w.diagnosis()
    assert found.verdict.cause.id == cause


PROBED = ('"Probe failed" probeType="{probe}" pod="llm/chat-6f9c7d5b8-x2k4p" podUID="7d0c4a52" containerName="{container}"'
          ' probeResult="failure" output="Get \\"http://10.42.0.9:8000/health\\": context deadline exceeded"')  # fmt: skip
STOPPED = ('"Killing container with a grace period" pod="llm/chat-6f9c7d5b8-x2k4p" podUID="7d0c4a52" containerName="vllm"'
           ' containerID="containerd://91f7e2ab91f7" gracePeriod=30')  # fmt: skip


@pytest.mark.parametrize(("probe", "container", "behind_s", "cause"), [
    ("Liveness", "vllm", 0.1, "probe_kill"),
    ("Readiness", "vllm", 0.1, "insufficient_evidence"),
    ("Liveness", "proxy", 0.1, "insufficient_evidence"),
    ("Liveness", "vllm", 8.0, "insufficient_evidence"),
])  # fmt: skip
def test_a_stop_right_behind_a_failed_probe(
    b: ModuleType, probe: str, container: str, behind_s: float, cause: str
) -> None:
    """A kubelet log without the line that says why: it acts in the pass in which the last probe failed."""
    w = b.World()
    scope = Scope(pod=b.POD)
    w.start("vllm.log", 0, scope)
    w.answer("vllm.log", 895, scope=scope)
    w.pod()
    for n in range(3):
        text = PROBED.format(probe=probe, container=container)
        w.add("kubelet.txt", 880 + 10 * n, text, "probe_failed", "kubelet", Scope(pod=b.POD, container=container))
    w.add("kubelet.txt", 900 + behind_s, STOPPED, "container_kill", "kubelet", Scope(pod=b.POD, container="vllm"))
    w.exited("describe.txt", 930, 137)
    assert w.diagnosis().verdict.cause.id == cause
