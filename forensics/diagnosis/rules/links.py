"""A fabric link that went down just before a collective failed: the cable is the cause, NCCL only noticed."""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Basis, Finding
from .. import evidence
from ..case import Case, conclude
from ..model import Death

NOTICE_S = 120.0
"""NCCL's retries and time-outs of the card end this long after the link."""
SLACK_S = 5.0
_FAILED = ("nccl.error", "nccl.ib_error", "nccl.remote_error", "nccl.watchdog_timeout")


def rules(case: Case, death: Death) -> Iterator[Finding]:
    """The link of any node counts: a collective crosses them all."""
    failed = [f for f in case.named(*_FAILED) if f.time.utc_s is not None and not evidence.objection(case, death, f)]
    if not failed:
        return
    dated = [f for f in failed if f.time.basis is not Basis.FILE_ORDER] or failed  # NCCL prints no times of its own
    noticed_s = min(f.time.utc_s or 0.0 for f in dated)
    for link in case.named("kernel.network_link_down"):
        if link.time.utc_s is not None and -SLACK_S <= noticed_s - link.time.utc_s <= NOTICE_S:
            yield conclude("link_lost", link.event, {**link.fields, **_gone(case, link)}, (link,))
            return


def _gone(case: Case, lost: Finding) -> dict[str, float]:
    """How long the link was gone, where the same log says of the same adapter that it is back."""
    ports = ("pci_device", "interface", "device", "port")
    for back in case.named("kernel.network_link_up"):
        same = all(back.fields.get(name) == lost.fields.get(name) for name in ports)
        if same and back.locator.source == lost.locator.source and back.locator.order > lost.locator.order:
            gone_s = (back.time.utc_s or 0.0) - (lost.time.utc_s or 0.0)
            return {"link_down_s": round(gone_s, 1)} if back.time.utc_s is not None else {}
    return {}
