"""Rules that need arithmetic, order or state. Each is a pure function (case, death) → derived findings."""

from ..case import Rule
from . import (
    beforehand,
    engine,
    exits,
    gpu,
    host,
    host_series,
    links,
    neighbours,
    oom_site,
    probes,
    revisions,
    series,
    serving,
    sleeping,
)

ALL: tuple[Rule, ...] = (
    oom_site.rules, neighbours.rules, gpu.rules, host.rules, probes.rules, engine.rules, series.rules,
    host_series.rules, links.rules, exits.rules, revisions.rules, serving.rules, sleeping.rules,
    beforehand.rules,
)  # fmt: skip
