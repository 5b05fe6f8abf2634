"""Every captured file is recognised as what the README of its folder says it is."""

from __future__ import annotations

from pathlib import Path

import pytest
import regex

from forensics.bundle import Bundle
from forensics.ingest import read_bundle
from forensics.parsers import FORMATS
from forensics.scan import binary_kind, encoding_of
from forensics.sources import HEAD_BYTES, identify, make_head

EXPECTED: tuple[tuple[str, str], ...] = (
    (r".*/README\.md|README\.md", "notes"),
    # kernel: real OOM reports, in every mode of dmesg, as /dev/kmsg and on the serial console; snapshots around them
    (r"kernel/.*dmesg[^/]*\.json", "kernel.dmesg_json"),
    (r"kernel/.*(?:dmesg_-u|dmesg_-k|dmesg_-Tk_-l_err\+|e4_strict_overcommit/dmesg(?:_-T)?)\.txt", "empty|log"),
    (r"kernel/.*/e7_user_written/dmesg_(?:-t|--time-format_notime)\.txt", "text"),  # a program's lines, no header at all
    (r"kernel/.*(?:dmesg|kmsg)[^/]*\.txt|kernel/.*console_serial\.raw(?:\.gz!)?", "log"),
    (r"kernel/.*/(?:memory|cgroup)\.[\w.]+\.txt", "cgroup"),
    (r"kernel/.*/(?:date|free|proc|ps|uptime|before_clock|after_clock)[^/]*\.txt", "host.state"),
    (r"kernel/.*/scenario\.log", "output|text"),  # what the programs printed: some ended badly, some did not
    (r"kernel/memory_eater\.c\.txt", "code"),
    (r"kernel/versions\.txt", "versions"),
    (r"kernel/.*/version\.txt", "log"),  # the first line of a kernel log
    # systemd: a real system with real kills
    (r"systemd/.*/systemctl/(?:status_system|systemd-cg\w+)\.txt|systemd/.*/oomctl_\w+\.txt", "systemd.other"),
    (r"systemd/.*/(?:systemctl/|oomd_with_swap/)status_[^/]*\.txt", "systemd.status"),
    (r"systemd/.*/systemctl/show_[^/]*\.txt", "systemd.show"),
    (r"systemd/.*/systemctl/list-units_[^/]*\.txt", "systemd.units"),
    (r"systemd/.*/coredump/list\.txt", "systemd.coredumps"),
    (r"systemd/.*/coredump/info\.txt", "systemd.coredump"),
    (r"systemd/.*/earlyoom/(?:dryrun|real_kill)\.txt", "earlyoom"),
    (r"systemd/.*/journal/list-boots\.txt", "journal.boots"),
    (r"systemd/.*/(?:journal/|journalctl_-o_)export\.txt.*", "journal.export"),
    (r"systemd/.*/(?:journal/|journalctl_-o_)verbose\.txt.*", "journal.verbose"),
    (r"systemd/.*/var_log_journal/.*", "journal.binary"),
    (r"systemd/.*/(?:journal|syslog)/.*|systemd/.*/journalctl_.*|systemd/.*/(?:console_serial\.raw|dmesg_-T\.txt)(?:\.gz!)?", "log"),
    (r"systemd/.*/(?:ps_aux|free_-m|vmstat|swapon|proc_|memory|date|uptime|btime|clock_)[^/]*\.txt", "host.state"),
    (r"systemd/units/.*\.service", "systemd.unit"),
    (r"systemd/vllm-demo\.sh\.txt", "code"),
    # journal: one story in every mode of journalctl
    (r"(?:journal|kernel-journal)/.*\.export(?:\.txt)?|journal/.*/export\.txt.*", "journal.export"),
    (r"journal/source/.*\.journal\.zst!", "journal.binary"),
    (r"journal/.*/list-boots[^/]*\.txt", "journal.boots"),
    (r"(?:journal|kernel-journal)/.*verbose[^/]*\.txt.*", "journal.verbose"),
    (r"(?:journal|kernel-journal)/.*json-pretty\.txt.*", "journal.pretty"),
    (r"journal/.*/json_-k\.txt", "log"),  # no value in it spans lines or is an array
    (r"(?:journal|kernel-journal)/.*json[^/]*\.txt.*", "journal.json"),
    (r"journal/systemd-247/(?:reading_a_252_file|short-delta)\.txt", "command.error"),
    (r"journal/.*/header\.txt", "systemd.other"),
    (r"journal/.*/(?:F_SYSTEMD_UNIT|N_field_names|same)\.txt", "text"),  # bare lists of names
    (r"journal/.*", "log"),
    # kernel-journal
    (r"kernel-journal/.*\.(?:c|py|sh)", "code"),
    (r"kernel-journal/.*/dmesg\.json", "kernel.dmesg_json"),
    (r"kernel-journal/.*/(?:clock\.txt|dst_fold_blobs\.cat\.txt)", "text"),  # a time with %N; nine odd messages
    (r"kernel-journal/.*/\w*memory_files\.txt", "cgroup"),
    (r"kernel-journal/.*", "log"),
    # kubectl
    (r"kubectl.*/describe[^/]*/.*\.txt|kubectl.*/describe-[\w.-]+\.txt|kubectl/node/describe_node\.txt", "k8s.describe"),
    (r"kubectl/cluster-info_dump\.stderr\.txt", "empty"),
    (r"kubectl/cluster-info_dump_dir/.*/logs\.txt|kubectl/(?:get/(?:events_none|pods_none|pod_not_found)|logs/"
     r"(?:no_previous|pod_not_found|waiting_to_start|l_app_vllm_--prefix))\.txt", "k8s.message|k8s.dump_logs"),
    (r"kubectl/cluster-info_dump\.json\.gz!", "k8s.objects"),  # and logs between them
    (r"kubectl.*\.(?:ya?ml|json)(?:\.gz!)?", "k8s.objects"),
    (r"kubectl.*/CAPTURED_AT", "host.state"),
    (r"kubectl/version\.txt", "versions"),
    (r"kubectl/(?:get|node)/.*\.txt|kubectl-ray-sar/kubectl/(?:get|top|events|kubectl-events)[\w.-]*\.txt", "k8s.table"),
    (r"kubectl/logs/.*\.txt|kubectl-ray-sar/kubectl/logs[\w.-]*\.txt", "log"),
    (r"kubectl-ray-sar/kubectl/cluster-info-dump\.stdout\.txt", "k8s.objects|k8s.dump_logs"),
    (r"kubectl-ray-sar/.*/logs\.txt", "k8s.dump_logs|k8s.message"),
    (r"kubectl-ray-sar/ray/logs/worker-.*\.(?:err|out)", "output|log"),
    (r"kubectl-ray-sar/ray.*", "log"),
    (r"kubectl-ray-sar/sar-free/free\.txt", "host.state"),
    (r"kubectl-ray-sar/sar-free/.*", "sysstat.sar"),
    # python: what a failing process and its shell print
    (r"python/torch_2\.14\.1_cuda_oom_text_pieces\.txt", "text"),  # pieces of a message, taken from a library
    (r"python/shm_bus_error\.txt", "host.state"),  # df, then the shell's last words
    (r"python/.*", "output|log"),
    # sysstat
    (r"sysstat/.*/cgroup/.*", "cgroup"),
    (r"sysstat/.*/sa\.data\.gz!", "unrecognised"),  # binary
    (r"sysstat/.*/sadf_-[dj p][^/]*", "sysstat.sadf"),
    (r"sysstat/.*/sadf_.*", "sysstat.other"),
    (r"sysstat/.*/dmesg_oom_lines\.txt", "log"),
    (r"sysstat/.*/(?:sar|iostat|mpstat|pidstat)[^/]*(?:/.*)?", "sysstat.sar"),
    (r"sysstat/.*", "host.state"),
    # archives: parts of the above, and generated engine logs
    (r"archives/.*/k8s/describe_pod\.txt", "k8s.describe"),
    (r"archives/.*/k8s/events\.json", "k8s.objects"),
    (r"archives/.*/memory\.events", "cgroup"),
    (r"archives/.*", "log"),
)  # fmt: skip
"""The first pattern that fits a path counts; `|` between formats means that the folder holds several of one name."""
FOLDERS = ("kernel", "systemd", "journal", "kernel-journal", "kubectl", "kubectl-ray-sar", "python", "sysstat", "archives")


def expected(path: str) -> str:
    return next((formats for pattern, formats in EXPECTED if regex.fullmatch(pattern, path)), "")


def recognised(path: str, first: bytes) -> str:
    """The format of a file by its first bytes, as reading a bundle finds it."""
    text = first[:HEAD_BYTES].replace(b"\0", b"") if (encoding := encoding_of(first)) == "utf-8" else first
    head = make_head(path, text, len(first) <= HEAD_BYTES, encoding)
    if not head.text:
        return "empty"
    form = identify(head, FORMATS)
    return form.name if form is not None else "unrecognised" if binary_kind(first[:4096]) else "text"


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_file_is_recognised(captures: Path, folder: str) -> None:
    """Format by format as the READMEs say; no file without a line in the table."""
    wrong = []
    for member in Bundle((str(captures / folder),)).members():
        path = f"{folder}/{member.path}"
        found = recognised(path, next(member.blocks(HEAD_BYTES + 1), b""))
        if found not in expected(path).split("|"):
            wrong.append(f"{path}: {found}, not {expected(path) or 'in the table'}")
    assert wrong == []


def test_last_words_beside_a_table_are_kept(captures: Path) -> None:
    """A shell's `Bus error` behind the output of df is an event, and so is the row of df."""
    (item,) = read_bundle(Bundle((str(captures / "python/shm_bus_error.txt"),)), ())
    assert [e.fields["mount"] for e in item.parsed.events if e.kind == "df"] == ["/dev/shm"]
    assert any("Bus error" in event.text for event in item.parsed.events if event.kind == "log")
