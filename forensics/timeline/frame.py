"""Rows as a table of polars: CSV and Parquet."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from .rows import COLUMNS

_TYPES = {str: pl.String(), int: pl.Int64(), float: pl.Float64()}


def build(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """A frame of flat rows; the columns and types of `COLUMNS`, further columns as text."""
    names = dict.fromkeys(name for row in rows for name in row) if rows else dict.fromkeys(COLUMNS)
    schema = {name: _TYPES[COLUMNS.get(name, str)] for name in names}
    return pl.DataFrame([dict(row) for row in rows], schema=schema, orient="row")


def csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Comma-separated with a header line; what is unknown is empty."""
    return build(rows).write_csv()


def parquet(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Parquet with all columns of `COLUMNS`; `utc` is an instant in milliseconds."""
    frame = build(rows).with_columns(pl.col("utc").str.to_datetime("%+", time_unit="ms", time_zone="UTC", strict=False))
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()
