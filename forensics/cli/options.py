"""Options that several commands share: which bundle, its clocks, its limits, the zone that times are shown in.

`bundle_options` and `display_tz` are decorators; a command that bears them gets one typed value instead of ten loose
ones. Values are checked here, so that all commands refuse a bad one with the same words.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..errors import OptionError
from ..regexes import lazy_re

if TYPE_CHECKING:
    from ..bundle import Budget
    from ..clocks import ClockOptions
    from ..pipeline import Options

Command = TypeVar("Command", bound=Callable[..., Any])

_SIZE = lazy_re(r"(?i)(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?")
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def _size(_context: click.Context, _option: click.Parameter, value: str | None) -> int | None:
    """Bytes of `500M`, `2GiB`, `1048576`; units are powers of 1024."""
    if value is None:
        return None
    found = _SIZE.fullmatch(value.strip())
    if found is None or float(found[1]) == 0:
        raise click.BadParameter(f"{value!r} is no size; write it like 500M or 8G")
    return int(float(found[1]) * 1024 ** _POWERS[found[2].lower()])


STDOUT = "-"


def output_file(command: Command) -> Command:
    """`-o FILE`; none, like `-`, is standard output."""

    def chosen(_context: click.Context, _option: click.Parameter, value: Path | None) -> Path | None:
        return None if value == Path(STDOUT) else value

    return click.option(
        "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), callback=chosen,
        help="Write to a file; - is standard output.",
    )(command)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BundleOptions:
    """What a user said about the bundle, as printed on the command line."""

    tz: tuple[str, ...]
    year: int | None
    captured_at: str | None
    skew: tuple[str, ...]
    patterns: Path | None
    max_bytes: int | None
    max_ratio: int | None
    max_members: int | None
    max_depth: int | None

    def pipeline(self) -> Options:
        """Options of the pipeline. Raises `OptionError` when one makes no sense."""
        from ..pipeline import Options

        return Options(clocks=self._clocks(), budget=self._budget(), patterns=self.patterns)

    def _clocks(self) -> ClockOptions:
        from ..clocks import ClockOptions

        zones = []
        for item in self.tz:
            pattern, separator, name = item.rpartition("=")
            if not separator:
                raise OptionError(f"--tz {item}: expected PATTERN=ZONE, e.g. --tz 'journal*=Asia/Shanghai'")
            zone_of(name, f"--tz {item}")
            zones.append((pattern, name))
        captured = None if self.captured_at is None else instant_of(self.captured_at, "--captured-at")
        return ClockOptions(tuple(zones), self.year, captured, tuple(_skew(item) for item in self.skew))

    def _budget(self) -> Budget:
        from ..bundle import Budget

        given = {
            "total_bytes": self.max_bytes,
            "ratio": self.max_ratio,
            "members": self.max_members,
            "depth": self.max_depth,
        }
        return Budget(**{name: value for name, value in given.items() if value is not None})


def _skew(item: str) -> tuple[str, float]:
    host, _, seconds = item.rpartition("=")
    try:
        return host, float(seconds)
    except ValueError:
        raise OptionError(f"--skew {item}: expected HOST=SECONDS, e.g. --skew gpu-node-7=-42.5") from None


def zone_of(name: str, option: str) -> tzinfo:
    """A zone by name or offset. Raises `OptionError` naming the option it was given to."""
    from .. import stamps

    zone = stamps.zone(name) if name else None
    if zone is None:
        raise OptionError(f"{option}: {name!r} is no zone; write it like Asia/Shanghai, UTC or +08:00")
    return zone


def instant_of(value: str, option: str, local: tzinfo = UTC) -> float:
    """Unix time of an ISO 8601 time; one without a zone is read in `local`. Raises `OptionError`."""
    from .. import stamps
    from ..model import StampForm

    stamp = stamps.iso(value, "option")
    if stamp is None or stamp.form not in (StampForm.INSTANT, StampForm.LOCAL):
        raise OptionError(f"{option} {value}: expected a date and a time, such as 2026-11-29T21:25:17Z")
    if stamp.form is StampForm.INSTANT:
        return stamp.seconds
    return stamps.wall(stamp.seconds).replace(tzinfo=local).timestamp()


_BUNDLE_OPTIONS = (
    click.option("--tz", multiple=True, metavar="PATTERN=ZONE",
                 help="Zone of files whose stamps name none, e.g. --tz 'journal*=Asia/Shanghai'."),
    click.option("--year", type=click.IntRange(1990, 2100), metavar="YEAR", help="Year of stamps that have none."),
    click.option("--captured-at", metavar="TIME",
                 help="When the bundle was collected (ISO 8601, UTC without a zone), for ages such as '5m ago'."),
    click.option("--skew", multiple=True, metavar="HOST=SECONDS", help="Seconds that a host's clock runs ahead."),
    click.option("--patterns", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
                 help="Your own signatures; they add to the built-in ones, or replace those with the same id."),
    click.option("--max-bytes", metavar="SIZE", callback=_size,
                 help="Most unpacked bytes of the bundle.  [default: 64G]"),
    click.option("--max-ratio", type=click.IntRange(1), metavar="N",
                 help="Most times its own size that a file may unpack to.  [default: 500]"),
    click.option("--max-members", type=click.IntRange(1), metavar="N", help="Most files.  [default: 200000]"),
    click.option("--max-depth", type=click.IntRange(0), metavar="N",
                 help="Most archives inside of archives.  [default: 6]"),
)  # fmt: skip
_NAMES = ("tz", "year", "captured_at", "skew", "patterns", "max_bytes", "max_ratio", "max_members", "max_depth")


def bundle_options(command: Command, metavar: str = "BUNDLE...") -> Command:
    """Give a command the argument `paths` and the options of a bundle, as one value `bundle`."""

    @functools.wraps(command)
    def with_bundle(**values: Any) -> Any:
        return command(bundle=BundleOptions(**{name: values.pop(name) for name in _NAMES}), **values)

    argument = click.argument("paths", nargs=-1, required=True, metavar=metavar)
    return _with(with_bundle, argument, *_BUNDLE_OPTIONS)  # type: ignore[return-value]


display_tz = click.option(
    "--display-tz", metavar="ZONE", default="UTC", show_default=True,
    help="Zone that times are shown in, such as Asia/Shanghai or +08:00; it is always printed beside them.",
)  # fmt: skip

redact = click.option(
    "--redact", type=click.Choice(["default", "strict", "off"]), default="default", show_default=True,
    help="default hides tokens, credentials and what users wrote; strict also renames hosts, pods and users.",
)  # fmt: skip


def _with(command: Callable[..., Any], *options: Callable[[Any], Any]) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command
