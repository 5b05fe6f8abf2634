"""The text views of `nvidia-smi`: boxed table, `-q`, `-L`, `dmon`, `pmon`, and its failures.

Boxes changed width and header with drivers 525, 530 and 610, so cells are read by their content. In a loop
the time line stands above each box. nvidia-bug-report.log holds such boxes between kernel messages and is
read as a log (drivers 470 to 610).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import regex

from ..model import Event, Locator, Parsed, RawStamp, Scope
from ..regexes import lazy_regex
from ..sources import Format, Head
from .dates import date_command
from .numerals import is_whole
from .nvidia_query import read_query
from .nvidia_rows import LAYER, GpuTable, ProcessTable, Row

_BUS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9]"
_FIRST = lazy_regex(
    rf"\|\s+(?P<index>\d{{1,9}})\s+(?P<name>\S.*?)\s+(?:(?:On|Off|N/A|ERR!)\s+)?\|\s+(?P<bus>{_BUS})\s+\S+\s*\|\s*(?P<ecc>\S+)\s*\|"
)
_SECOND = lazy_regex(
    r"\|(?P<cooling>.*?)\|\s*(?:(?P<used>\d{1,15})MiB\s*/\s*(?P<total>\d{1,15})MiB|(?P<lost>[^|]*?))\s*\|\s*(?P<util>\d+%|N/A|ERR!)?\s.*\|"
)
_PROCESS = lazy_regex(
    r"\|\s+(?P<gpu>\d{1,9})\s+(?:(?P<gi>N/A|\d+)\s+(?P<ci>N/A|\d+)\s+)?(?P<pid>\d{1,18})\s+(?P<type>C|G|C\+G|M\+C|M)\s+(?P<name>\S.*?)\s+(?:(?P<used>\d{1,15})MiB|N/A)\s*\|"
)
_MIG = lazy_regex(
    r"\|\s+(?P<gpu>\d{1,9})\s+(?P<gi>\d{1,9})\s+(?P<ci>\d{1,9})\s+(?P<dev>\d{1,9})\s+"
    r"\|\s+(?P<used>\d{1,15})MiB\s*/\s*(?P<total>\d{1,15})MiB\s*\|.*"
)
_VERSIONS = lazy_regex(
    r"\| NVIDIA-SMI (?P<smi>\S+)\s+(?:Driver|KMD) Version: (?P<driver>\S+)\s+"
    r"CUDA(?: UMD)? Version: (?P<cuda>\S+)\s*\|"
)
_LIST = lazy_regex(r"GPU (?P<index>\d{1,9}): (?P<name>.+?) \(UUID: (?P<uuid>GPU-[0-9a-f-]+)\)")
_LIST_MIG = lazy_regex(
    r"\s+MIG (?P<profile>\S+)\s+Device\s+(?P<device>\d+): \(UUID: (?P<uuid>MIG-[0-9A-Za-z/-]+)\)"
)
FAILURES = (
    "NVIDIA-SMI has failed because",
    "Failed to initialize NVML",
    "Unable to determine the device handle for",
    "No devices were found",
    "Failed to properly shut down NVML",
    "couldn't communicate with the NVIDIA driver",
    "GPU is lost",
)
_GPU_COLUMNS = (
    "index", "name", "pci.bus_id", "ecc.errors.uncorrected.volatile.total", "memory.used", "memory.total",
    "utilization.gpu", "temperature.gpu", "power.draw", "driver_version",
)  # fmt: skip
_COOLING = lazy_regex(r"\s*\S+\s+(?P<temperature>\d+)C?\s+P\d+\s+(?P<power>\d+)W\s*/.*")
_BOX = lazy_regex(r"^\| (?:NVIDIA-SMI \S+ |Processes: +\|)", regex.MULTILINE)
_MONITOR = lazy_regex(r"# ?(?:gpu|Date) .*(?:\bpwr\b|\bpid\b|\bsm\b|\bgpu\b)")


BOX_TITLES = ("| NVIDIA-SMI ", "| Processes: ")
"""What the first line in a box says; people paste the lower box alone."""


def _sniff(head: Head) -> int:
    text = head.text
    if "Start of NVIDIA bug report log file" in text[:4000]:
        return 0  # a log with a box inside
    if any(title in text for title in BOX_TITLES) and _BOX.search(text):
        return 92
    if text.lstrip().startswith("=" * 10) and "NVSMI LOG" in text[:2000]:
        return 95
    first = head.lines[:10]
    if any(is_loose(first, index) for index in range(min(3, len(first)))):
        return 92
    filled = [line for line in first if line.strip()]
    if filled and all("(UUID: " in line and is_listed(line) for line in filled):
        return 92
    if any(line.startswith("#") and _MONITOR.match(line) for line in first):
        return 92
    if not any(failure in text for failure in FAILURES):
        return 0
    lines = [line for line in head.lines[:30] if line.strip()]
    if len(lines) >= 20:
        return 0
    failed = [line for line in lines if any(text in line for text in FAILURES)]
    return 90 if failed and len(failed) >= 0.3 * len(lines) else 0


def is_loose(lines: Sequence[str], index: int) -> bool:
    """A box whose head was cut off begins here: at the two lines of a GPU, or at the title of its MIG devices."""
    ahead = lines[index : index + 2]
    if ahead[0].startswith("+--"):
        return len(ahead) > 1 and ahead[1].startswith("| MIG devices:")
    if ahead[0].startswith("| MIG devices:"):
        return True
    return len(ahead) > 1 and _FIRST.match(ahead[0]) is not None and _SECOND.match(ahead[1]) is not None


def is_listed(line: str) -> bool:
    """A line of `nvidia-smi -L`."""
    return (_LIST.fullmatch(line.rstrip()) or _LIST_MIG.fullmatch(line.rstrip())) is not None


def _read(text: str, source: str) -> Parsed:
    return read_lines(text.split("\n"), source, 1)


def read_lines(lines: Sequence[str], source: str, first: int) -> Parsed:
    """Whatever views of nvidia-smi stand in `lines`, whose first has the number `first`.

    `gpu_state` and `gpu_process` events, once for each GPU and process, with the samples of every
    repetition; a `log` event for each failure text and one with the driver version.
    """
    if any("NVSMI LOG" in line for line in lines[:40]):
        return read_query(lines, source, first)
    reader = _Reader(source)
    for number, line in enumerate(lines, first):
        reader.feed(number, line.rstrip("\r"))
    return reader.parsed()


class _Reader:
    def __init__(self, source: str) -> None:
        self.source = source
        self.gpus, self.processes = GpuTable(source), ProcessTable(source)
        self.gpus.use(_GPU_COLUMNS)
        self.notes: list[Event] = []
        self.instances: set[tuple[str, str]] = set()
        self.stamp: RawStamp | None = None
        self.driver = ""
        self.open: regex.Match[str] | None = None
        self.columns: tuple[str, ...] = ()

    def feed(self, number: int, line: str) -> None:
        if line.startswith("|"):
            self._cell(number, line)
        elif line.startswith("#"):
            self._columns_of(line)
        elif any(text in line for text in FAILURES):
            self.notes.append(self._note(number, line.strip()))
        elif (found := _LIST.fullmatch(line.strip())) is not None:
            self._listed(number, line, found["uuid"], {"index": int(found["index"]), "name": found["name"]})
        elif (found := _LIST_MIG.fullmatch(line.rstrip())) is not None:
            self._listed(number, line, found["uuid"], {"mig_profile": found["profile"]})
        elif self.columns and line.split()[:1]:
            self._monitored(number, line)
        else:
            self.stamp = (date_command(line, LAYER) if ":" in line[:40] else None) or self.stamp

    def parsed(self) -> Parsed:
        events = [*self.gpus.events(), *self.processes.events(), *self.notes]
        events.sort(key=lambda event: event.locator.line)
        return Parsed(tuple(events), (*self.gpus.points.samples(), *self.processes.points.samples()))

    def _cell(self, number: int, line: str) -> None:
        if (found := _VERSIONS.match(line)) is not None:
            self.driver = found["driver"]
            if not self.notes:
                said = f"NVIDIA-SMI {found['smi']}, driver {found['driver']}, CUDA {found['cuda']}"
                told = {"driver_version": found["driver"], "driver_cuda": found["cuda"]}
                self.notes.append(replace(self._note(number, said), fields=told))
        elif (found := _FIRST.match(line)) is not None:
            self.open = found
        elif self.open is not None and (found := _SECOND.match(line)) is not None:
            self._gpu(number, line, self.open, found)
            self.open = None
        elif (found := _MIG.match(line)) is not None:
            self._instance(number, line, found)
        elif (found := _PROCESS.match(line)) is not None:
            used = float(found["used"]) if found["used"] else None
            row = Row(number, (), self.stamp, line)
            self.processes.note(row, int(found["pid"]), found["name"], found["gpu"], used, self.stamp)

    def _gpu(self, number: int, line: str, first: regex.Match[str], second: regex.Match[str]) -> None:
        cooling = _COOLING.fullmatch(second["cooling"])
        lost = (second["lost"] or "").strip()
        used = f"{second['used']} MiB" if second["used"] else f"[{lost or 'N/A'}]"
        total = f"{second['total']} MiB" if second["total"] else "[N/A]"
        temperature, power = (cooling["temperature"], cooling["power"]) if cooling else ("[N/A]", "[N/A]")
        cells = (
            first["index"], first["name"], first["bus"], first["ecc"], used, total, second["util"] or "[N/A]",
            temperature, power, self.driver or "[N/A]",
        )  # fmt: skip
        self.gpus.add(Row(number, cells, self.stamp, line))
        if "ERR!" in line and not lost:
            self.notes.append(replace(self._note(number, line.strip()), scope=Scope(gpu=first["index"])))

    def _instance(self, number: int, line: str, found: regex.Match[str]) -> None:
        """A MIG instance; compute instances of one GPU instance share its memory, so it is told once."""
        gpu, instance = found["gpu"], found["gi"]
        if (gpu, instance) in self.instances:
            return
        self.instances.add((gpu, instance))
        used, total = int(found["used"]), int(found["total"])
        fields = {
            "mig_instance": int(instance),
            "memory_used_mib": used,
            "memory_total_mib": total,
            "mig_mode": "Enabled",
        }
        text = f"GPU {found['gpu']} MIG instance {instance}: {used} MiB used of {total} MiB"
        self.notes.append(Event(
            Locator(self.source, number, number), "gpu_state", "nvidia", text, self._stamps(),
            Scope(gpu=f"{gpu}/gi{instance}"), fields, raw=line,
        ))  # fmt: skip

    def _listed(self, number: int, line: str, uuid: str, fields: dict[str, object]) -> None:
        label = (
            f"GPU {fields['index']}: {fields['name']}"
            if "index" in fields
            else f"MIG {fields['mig_profile']}"
        )
        self.notes.append(Event(
            Locator(self.source, number, number), "gpu_state", "nvidia", f"{label} {uuid}", self._stamps(),
            Scope(gpu=uuid), {**fields, "uuid": uuid}, raw=line,
        ))  # fmt: skip

    def _columns_of(self, line: str) -> None:
        names = tuple(line.lstrip("# ").lower().split())
        if "gpu" in names:
            self.columns = names

    def _monitored(self, number: int, line: str) -> None:
        """A row of `dmon` or `pmon`; `-` is no value, times stand only with `-o DT`."""
        names = self.columns
        cells = line.split(None, len(names) - 1) if names[-1] in ("command", "name") else line.split()
        if len(cells) != len(names):
            return
        row = dict(zip(names, cells, strict=True))
        if not is_whole(row["gpu"]):
            return
        if "date" in row and len(row["date"]) == 8 and "time" in row:
            day = row["date"]
            self.stamp = date_command(f"{day[:4]}-{day[4:6]}-{day[6:]} {row['time']}", LAYER)
        if "pid" in row:
            if is_whole(row["pid"]):
                used = float(row["fb"]) if is_whole(row.get("fb", "-")) else None
                place = Row(number, (), self.stamp, line)
                self.processes.note(
                    place, int(row["pid"]), row.get("command", ""), row["gpu"], used, self.stamp
                )
            return
        for name, series in (
            ("fb", "gpu_memory_used_mib"),
            ("sm", "gpu_utilization_pct"),
            ("gtemp", "gpu_temperature_c"),
            ("pwr", "gpu_power_w"),
        ):
            if is_whole(row.get(name, "-")) and self.stamp is not None:
                self.gpus.points.add(series, Scope(gpu=row["gpu"]), self.stamp, number, float(row[name]))

    def _note(self, number: int, text: str) -> Event:
        return Event(Locator(self.source, number, number), "log", "nvidia", text, self._stamps(), raw=text)

    def _stamps(self) -> tuple[RawStamp, ...]:
        return (self.stamp,) if self.stamp else ()


def _sniff_bug_report(head: Head) -> int:
    return 95 if "Start of NVIDIA bug report log file" in head.text[:4000] else 0


FORMAT = Format("nvidia.smi", "nvidia-smi", _sniff, _read)
BUG_REPORT = Format("nvidia.bug_report", "nvidia-bug-report.log", _sniff_bug_report)
FORMATS = (FORMAT, BUG_REPORT)
