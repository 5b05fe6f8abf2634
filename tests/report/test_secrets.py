"""Sixty secrets and user texts, planted in every kind of source: none leaves the program by default."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from forensics.report import Report
from forensics.report.gate import Gate
from forensics.report.render import prepare, write

OOM = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.00 MiB is free"
"""Makes sure that a line is looked at and quoted."""
_E = "(EngineCore_DP0 pid=71) ERROR 11-18 02:11:08 [core.py:710] "
_I = "(APIServer pid=1) INFO 11-18 02:11:08 [logger.py:40] "
_J = "Nov 18 02:11:10 gpu-node-7 "
_K = f"{_J}kernel: Memory cgroup out of memory: Killed process 4242 "

PLANTED: tuple[tuple[str, str, str], ...] = (
    # (file, line with ‹secret›, appended where the incident happens)
    ("logs/engine.log", f"{_E}RuntimeError: {OOM} token ‹hf_QwErTyUiOpAsDfGh01›", ""),
    ("logs/engine.log", f"{_E}RuntimeError: {OOM} Authorization: Bearer ‹tok3n.abc-def-123›", ""),
    ("logs/engine.log", f"{_E}RuntimeError: {OOM} api_key='‹k-77-secret-value›'", ""),
    ("logs/engine.log", f"{_E}RuntimeError: {OOM} https://svc:‹p4ssw0rd-x›@hub.example/m", ""),
    ("logs/engine.log", f"{_E}RuntimeError: {OOM} mail ‹jane.doe@example.org›", ""),
    ("logs/engine.log", f"{_E}RuntimeError: {OOM} OPENAI_API_KEY=‹sk-proj-a1b2c3d4e5f6g7›", ""),
    ("logs/engine.log", f"{_E}RuntimeError: {OOM} aws ‹AKIAIOSFODNN7EXAMPLE›", ""),
    ("logs/engine.log", f"{_E}RuntimeError: {OOM} AWS_SECRET_ACCESS_KEY=‹wJalrXUtnFEMIK7MDENGbPx›", ""),
    ("logs/engine.log", f"{_E}RuntimeError: {OOM} cookie: session=‹9f8e7d6c5b4a›; path=/", ""),
    ("logs/engine.log", f"{_E}RuntimeError: {OOM} jwt ‹eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJib2IifQ.c2lnbmF0dXJl›", ""),
    ("logs/engine.log", f"{_E}RuntimeError: {OOM} ghp ‹ghp_0123456789abcdefABCDEF›", ""),
    ("logs/engine.log", f"{_E}RuntimeError: {OOM} password: \"‹correct horse battery›\"", ""),
    ("logs/engine.log", f"{_I}Received request cmpl-1: prompt: '‹Dear diary, why {OOM}›', params: SamplingParams(n=1)", ""),
    ("logs/engine.log", f"{_I}Received request cmpl-2: prompt: \"‹it's only me; params= {OOM}›\", params: SamplingParams(n=1)", ""),
    ("logs/engine.log", f"{_I}body={{\"messages\": [{{\"role\": \"user\", \"content\": \"‹my cat is called Banana77›, {OOM}\"}}]}}", ""),
    ("logs/engine.log", f"{_I}{{'content': '‹secret plans for monday›', 'note': '{OOM}'}}", ""),
    ("logs/engine.log", f"{_I}prompt_token_ids: [‹151644, 8948, 1987›], {OOM}", ""),
    ("logs/engine.log", f"{_I}<|im_start|>user ‹I earn 1234567 a year› {OOM}", ""),
    ("logs/engine.log", f"{_I}Generated response cmpl-1: output: '‹Dear Bob, you are fired›', {OOM}", ""),
    ("logs/engine.log", f"{_I}msg=\"{{\\\"prompt\\\": \\\"‹nuclear codes please›\\\"}}\" {OOM}", ""),
    ("logs/engine.log", f"{_I}query='‹where does alice live›' {OOM}", ""),
    ("logs/engine.log", "(APIServer pid=1) INFO:     10.1.2.3:40000 - \"POST /v1/completions?api_key=‹k3y-in-url-99› HTTP/1.1\" 500 Internal Server Error", ""),
    ("logs/engine.log", "(APIServer pid=1) INFO 11-18 02:20:06 [utils.py:233] non-default args: {'model': 'acme/Atlas-7B', 'api_key': ['‹list-key-one›', 'two'], 'port': 8000}", ""),
    ("logs/engine.log", f"{_E}ValueError: {OOM} hf_token=‹short7x-token›", ""),
    ("logs/engine.log", f"{_E}RuntimeError: {OOM} -----BEGIN RSA PRIVATE KEY----- ‹MIIEowIBAAKCAQEA7› -----END RSA PRIVATE KEY-----", ""),
    ("logs/engine.log", f"{_E}RuntimeError: {OOM} redis://:‹r3dis-pw-44›@cache:6379/0", ""),
    ("logs/engine.log", f"{_E}RuntimeError: {OOM} X-Api-Key: ‹xk-55aa66bb›", ""),
    ("logs/engine.log", f"{_E}RuntimeError: {OOM} basic ‹dXNlcjpodW50ZXIyMg==›", ""),
    ("logs/engine.log", f"{_E}RuntimeError: {OOM} glpat ‹glpat-AbCdEfGhIj12›", ""),
    ("node/journal.txt", f"{_J}kubelet[901]: E1118 02:11:10.000000     901 pod_workers.go:1301] \"Error syncing pod, skipping\" err=\"failed to pull: Authorization: Bearer ‹kublet-t0ken-1›\" pod=\"serving/chat-7b-6d5f4c7b9d-x2x4z\"", ""),
    ("node/journal.txt", f"{_J}kubelet[901]: E1118 02:11:10.000000     901 pod_workers.go:1301] \"Error syncing pod, skipping\" err=\"CrashLoopBackOff password=‹kubelet-pw-22›\" pod=\"serving/chat-7b-6d5f4c7b9d-x2x4z\"", ""),
    ("node/journal.txt", f"{_K}(python3 --token ‹tok-in-comm-3›) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB", ""),
    ("node/journal.txt", f"{_J}kernel: python3 invoked oom-killer: gfp_mask=0x0, order=0, oom_score_adj=1 secret=‹inv-s3cret-4›", ""),
    ("node/journal.txt", f"{_J}systemd[1]: vllm.service: Main process exited, code=exited, status=1/FAILURE --api-key ‹unit-key-05›", ""),
    ("node/journal.txt", f"{_J}systemd[1]: vllm.service: Failed with result 'oom-kill'. ‹ops-team@corp.example›", ""),
    ("node/journal.txt", f"{_J}containerd[900]: time=\"2025-11-18T02:11:10Z\" level=error msg=\"pull https://u:‹c0ntainerd-pw›@reg.example/x failed\"", ""),
    ("node/journal.txt", f"{_J}sshd[4]: Accepted password for root from 10.0.0.1 password=‹sshd-pw-6677›", ""),
    ("node/journal.txt", f"{_J}kernel: NVRM: Xid (PCI:0000:3b:00): 43, pid=4711, name=python3 --hf-token ‹xid-tok-88›", ""),
    ("node/journal.txt", f"{_J}earlyoom[8]: sending SIGTERM to process 4711 uid 0 \"vllm\": cmdline --api-key ‹earlyoom-k-9›", ""),
    ("k8s/describe.txt", "      HF_TOKEN:            ‹hf_DescribeTokenAAAA1111›", ""),
    ("k8s/describe.txt", "      DB_PASSWORD:         ‹describe-pw-0101›", ""),
    ("k8s/describe.txt", "      --api-key=‹describe-arg-key-2›", ""),
    ("k8s/describe.txt", "  Warning  Failed     5m    kubelet  Error: secret token=‹event-tok-3333› not usable by ‹bob.smith@corp.example›", ""),
    ("k8s/describe.txt", "  Warning  BackOff    5m    kubelet  Back-off restarting failed container vllm, Authorization: Basic ‹ZGVzY3JpYmU6cHcx›", ""),
    ("k8s/events.txt", "LAST SEEN   TYPE      REASON      OBJECT                          MESSAGE\n5m          Warning   BackOff     pod/chat-7b-6d5f4c7b9d-x2x4z   Back-off restarting failed container, key=x&api_key=‹events-key-44›", ""),
    ("k8s/pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: chat-7b-6d5f4c7b9d-x2x4z\n  namespace: serving\nspec:\n  containers:\n  - name: vllm\n    image: vllm\n    args: [--api-key, ‹yaml-key-5555›]\n    env:\n    - name: WANDB_API_KEY\n      value: ‹yaml-env-key-66›", ""),
    ("docker/inspect.json", '[{"Id": "' + "c3" * 32 + '", "Name": "/vllm", "State": {"Status": "exited", "ExitCode": 1, "OOMKilled": false, "FinishedAt": "2025-11-18T02:11:12Z"}, "Config": {"Env": ["HF_TOKEN=‹docker-env-tok-77›"], "Cmd": ["--api-key", "‹docker-cmd-key-88›"]}}]', ""),
    ("node/ps.txt", "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\nroot        4711  1.0 20.0 99999999 22222222 ?   Sl   02:10   9:99 python3 -m vllm --api-key ‹ps-key-9999›", ""),
    ("node/gpu-apps.csv", "timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n2025/11/18 02:11:00.000, GPU-11111111-2222-3333-4444-555555555555, 99, python3 --token ‹smi-tok-1010›, 9000 MiB", ""),
    ("metrics/metrics.txt", "# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{api_key=\"‹metric-key-1212›\",block_size=\"16\"} 1.0", ""),
    ("gateway/access.log", f"2025-11-18T02:11:09Z POST /v1/chat/completions 500 payload={{\"prompt\": \"‹gateway prompt text›\"}} {OOM}", ""),
    ("gateway/app.jsonl", '{"time": "2025-11-18T02:11:09Z", "level": "ERROR", "message": "' + OOM + ' token=‹jsonl-t0ken-13›"}', ""),
    ("ray/raylet.out", "[2025-11-18 02:11:08,311 I 118 153] (raylet) threshold_memory_monitor.cc:128: Node memory usage above threshold, used: 9, threshold_bytes: 8, total bytes: 9, secret=‹ray-s3cret-14›", ""),
    ("notes.txt", f"the night shift typed password=‹notes-pw-1515› when {OOM}", ""),
    ("notes.txt", f"‹Dear team, this must stay among us› {OOM}", ""),
    ("notes.txt", f"{OOM} see https://store.example/w?X-Amz-Signature=‹9f86d081884c7d659a›&x=1", ""),
    ("notes.txt", f"{OOM} --- ### Instruction: ‹translate my love letter›", ""),
)  # fmt: skip
SECRETS = tuple(piece.partition("›")[0] for _, line, _ in PLANTED for piece in line.split("‹")[1:])


def planted(base: Mapping[str, str]) -> dict[str, str]:
    """The incident with every secret line in it; engine lines stand just before the first death."""
    files = dict(base)
    for name, line, _ in PLANTED:
        line = line.replace("‹", "").replace("›", "")
        if name == "logs/engine.log":
            marker = "(EngineCore_DP0 pid=71) ERROR 11-18 02:11:09 [core.py:710] EngineCore encountered"
            files[name] = files[name].replace(marker, f"{line}\n{marker}", 1)
        elif name == "k8s/describe.txt" and line.startswith("      "):
            files[name] = files[name].replace("Events:", f"{line}\nEvents:")
        elif name == "k8s/describe.txt":
            files[name] = files[name].replace("Events:          <none>", "Events:\n  Type     Reason     Age   From     Message\n  ----     ------     ----  ----     -------")
            files[name] += f"{line}\n"
        else:
            files[name] = files.get(name, "") + line + "\n"
    return files


@pytest.fixture(scope="module")
def leaky(files: Callable[[], dict[str, str]], analyzed: Callable[[Mapping[str, str]], Report]) -> Report:
    return analyzed(planted(files()))


def test_there_are_sixty() -> None:
    """Sixty or more, all different."""
    assert len(set(SECRETS)) == len(SECRETS) >= 60


@pytest.mark.parametrize("mode", ["default", "strict"])
def test_no_secret_leaves(leaky: Report, mode: str) -> None:
    """No format in either language holds any of them, nor a telling piece of one; and the report says what it hid."""
    parts = [part for secret in SECRETS for part in secret.split(OOM) if len(part) > 4]
    pieces = {part[i : i + 9] for part in parts for i in range(max(1, len(part) - 8))}
    for language in ("en", "zh"):
        data = prepare(leaky, language, Gate(mode))
        for form in ("json", "md", "html", "csv"):
            shown = write(data, form)
            assert not sorted(piece for piece in pieces if piece in shown), form
        assert sum(row["places"] for row in data["redactions"]["rules"]) >= 30


def test_most_of_them_would_leave_without_redaction(leaky: Report) -> None:
    """The test above is worth something: the lines are really shown."""
    shown = write(prepare(leaky, "en", Gate("off")), "json")
    assert sum(secret in shown for secret in SECRETS) >= 40
