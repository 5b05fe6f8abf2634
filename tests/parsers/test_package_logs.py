"""Logs of apt and dpkg: what changed its version, and when."""

from __future__ import annotations

from forensics import parsers
from forensics.model import StampForm
from forensics.parsers import package_logs
from forensics.sources import identify, make_head

APT = """
Start-Date: 2026-11-29  06:31:04
Commandline: /usr/bin/unattended-upgrade
Upgrade: libxml2:amd64 (2.9.14, 2.9.15), nvidia-utils-570-server:amd64 (570.133.20-0ubuntu1, 570.195.03-0ubuntu1)
End-Date: 2026-11-29  06:32:29
"""
DPKG = """2026-11-29 06:31:20 startup packages configure
2026-11-29 06:31:22 upgrade nvidia-utils-570-server:amd64 570.133.20-0ubuntu1 570.195.03-0ubuntu1
2026-11-29 06:31:22 status half-configured nvidia-utils-570-server:amd64 570.133.20-0ubuntu1
"""


def test_the_history_of_apt() -> None:
    head = make_head("var/log/apt/history.log", APT.encode(), True)
    assert identify(head, parsers.FORMATS) is package_logs.FORMATS[0]
    (upgrade,) = package_logs.read_apt(APT, "x").events
    assert (upgrade.locator.line, upgrade.channel, upgrade.text[:17]) == (4, "host", "Upgrade: libxml2:")
    assert [stamp.form for stamp in upgrade.stamps] == [StampForm.LOCAL]
    assert package_logs.read_apt(APT.replace("Start", "St"), "x").events[0].stamps == ()


def test_the_log_of_dpkg() -> None:
    head = make_head("var/log/dpkg.log", DPKG.encode(), True)
    assert identify(head, parsers.FORMATS) is package_logs.FORMATS[1]
    (upgrade,) = package_logs.read_dpkg(DPKG, "x").events
    assert (upgrade.locator.line, upgrade.text[:21], len(upgrade.stamps)) == (2, "upgrade nvidia-utils-", 1)


def test_other_logs() -> None:
    for text in ("Start-Date: soon\nUpgrade: now\n", "2026-11-29 06:31:20 ERROR failed to upgrade\n" * 3):
        form = identify(make_head("x", text.encode(), True), parsers.FORMATS)
        assert form is None or form not in package_logs.FORMATS
