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
            yield conclude("link_lost", link.event, link.fields, (link,))
            return
