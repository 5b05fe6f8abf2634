"""A fabric link that went down just before a collective failed: the cable is the cause, NCCL only noticed."""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Basis, Finding, StampForm
from .. import evidence
from ..case import Case, conclude
from ..model import Death

NOTICE_S = 120.0
"""NCCL's retries and time-outs of the card end this long after the link."""
SLACK_S = 5.0
CLOCK_S = 600.0
"""As far as a kernel log that only the uptime dates may be off."""
BOOT_S = 600.0
"""Links come and go this long while a node boots."""
_FAILED = ("nccl.error", "nccl.ib_error", "nccl.remote_error", "nccl.watchdog_timeout")


def rules(case: Case, death: Death) -> Iterator[Finding]:
    """The link of any node counts: a collective crosses them all."""
    failed = [f for f in case.named(*_FAILED) if f.time.utc_s is not None and not evidence.objection(case, death, f)]
    if not failed:
        return
    dated = [f for f in failed if f.time.basis is not Basis.FILE_ORDER] or failed
    noticed_s = min(_stood_still_s(f) for f in dated)
    # NCCL prints no times of its own: its word about the adapter came after the line above it, whenever that was
    blamed = [f.time.utc_s or 0.0 for f in failed if f.signature == "nccl.ib_error"]
    since_s = min([noticed_s, *blamed]) - NOTICE_S
    for link in case.named("kernel.network_link_down"):
        if _is_between(link, since_s, noticed_s) or (blamed and _may_have_led(link)):
            yield conclude("link_lost", link.event, {**link.fields, **_gone(case, link)}, (link,))
            return


def _stood_still_s(failed: Finding) -> float:
    """When a collective began that failed at a known time: its watchdog says how long it waited."""
    return (failed.time.utc_s or 0.0) - float(failed.fields.get("ran_ms") or 0.0) / 1000.0


def _is_between(link: Finding, since_s: float, until_s: float) -> bool:
    slack_s = SLACK_S + (link.time.uncertainty_s if link.time.uncertainty_s <= CLOCK_S else 0.0)
    return link.time.utc_s is not None and since_s - slack_s <= link.time.utc_s <= until_s + slack_s


def _may_have_led(link: Finding) -> bool:
    """True for a link lost while the node ran, at a time that nothing tells, where NCCL blames the adapter."""
    since_boot = [stamp.seconds for stamp in link.event.stamps if stamp.form is StampForm.BOOT]
    return link.time.utc_s is None and bool(since_boot) and min(since_boot) > BOOT_S


def _gone(case: Case, lost: Finding) -> dict[str, float]:
    """How long the link was gone, where the same log says of the same adapter that it is back."""
    ports = ("pci_device", "interface", "device", "port")
    for back in case.named("kernel.network_link_up"):
        same = all(back.fields.get(name) == lost.fields.get(name) for name in ports)
        if same and back.locator.source == lost.locator.source and back.locator.order > lost.locator.order:
            gone_s = (back.time.utc_s or 0.0) - (lost.time.utc_s or 0.0)
            return {"link_down_s": round(gone_s, 1)} if back.time.utc_s is not None else {}
    return {}
