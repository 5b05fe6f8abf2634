"""Rules that need arithmetic, order or state. Each is a pure function (case, death) → derived findings."""

from . import engine, exits, gpu, host, probes, series
from ..case import Rule

ALL: tuple[Rule, ...] = (gpu.rules, host.rules, probes.rules, engine.rules, series.rules, exits.rules)
