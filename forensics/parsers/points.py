"""Measured points, collected into the columns of `Samples`."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from math import nan

from ..model import RawStamp, Samples, Scope, StampForm

MOST = 1e15
"""No time and no measurement is larger; what is, somebody wrote."""


@dataclass(frozen=True, slots=True)
class Column:
    """One growing series: three columns of equal length."""

    lines: array[int] = field(default_factory=lambda: array("q"))
    stamps: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))

    def append(self, line: int, seconds: float, value: float) -> None:
        self.lines.append(line)
        self.stamps.append(seconds)
        self.values.append(value)


class Points:
    """All series of one source, keyed by name, scope and clock."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._columns: dict[tuple[str, Scope, StampForm, str], Column] = {}

    def column(self, name: str, scope: Scope, form: StampForm, layer: str) -> Column:
        """The column of a series; callers with many points keep it instead of asking again."""
        key = (name, scope, form, layer)
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = Column()
        return column

    def add(self, name: str, scope: Scope, stamp: RawStamp | None, line: int, value: float) -> None:
        """Add one point; without a stamp its time is NaN."""
        if stamp is None:
            self.column(name, scope, StampForm.LOCAL, "").append(line, nan, value)
        else:
            self.column(name, scope, stamp.form, stamp.layer).append(line, stamp.seconds, value)

    def samples(self) -> tuple[Samples, ...]:
        """The series in the order in which they appeared."""
        return tuple(
            Samples(name, self._source, scope, form, layer, column.lines, _meant(column.stamps), _meant(column.values))
            for (name, scope, form, layer), column in self._columns.items()
        )


def _meant(numbers: array[float]) -> array[float]:
    """NaN in place of numbers that nobody measured."""
    return array("d", [number if -MOST < number < MOST else nan for number in numbers])
