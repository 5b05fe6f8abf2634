"""One module a format. The registries below are the only place that names them all.

Documents are read whole (`Format.read`); line logs are all read by `log`, with a `Dialect` for each speaker.
"""

from __future__ import annotations

from ..sources import Format
from . import (
    claims,
    dmesg_json,
    docker,
    documents,
    earlyoom,
    engine,
    engine_config,
    journal,
    journal_documents,
    k8s_objects,
    k8s_text,
    kernel,
    kubectl_lines,
    kubelet,
    log,
    metrics,
    nvidia_csv,
    nvidia_text,
    output,
    ray,
    readings,
    runtime,
    sadf,
    sar,
    snapshot,
    systemctl,
    systemd,
    timeseries,
)
from .log import Dialect

DIALECTS: dict[str, Dialect] = {
    "k8s": Dialect("k8s", anchors=kubectl_lines.ANCHORS),
    "kubelet": kubelet.DIALECT,
    "runtime": runtime.DIALECT,
    "kernel": kernel.DIALECT,
    "systemd": systemd.DIALECT,
    "metrics": readings.DIALECT,
    "host": log.combined("host", journal.DIALECT, engine.OUTPUT),
    "engine": engine.DIALECT,
    "ray": ray.DIALECT,
    "container": engine.OUTPUT,
    "oomd": earlyoom.DIALECT,
    "plain": log.combined(
        "plain", Dialect("plain", anchors=claims.ANCHORS), kernel.PLAIN, systemd.PLAIN, engine.OUTPUT
    ),
}

FORMATS: tuple[Format, ...] = (
    log.FORMAT,
    k8s_objects.FORMAT,
    k8s_text.DESCRIBE,
    k8s_text.TABLE,
    kubectl_lines.MESSAGE,
    kubectl_lines.SECTIONS,
    docker.EVENTS,
    docker.INSPECT,
    docker.PS,
    documents.COMPOSE,
    documents.JSON,
    documents.YAML,
    dmesg_json.FORMAT,
    *journal_documents.FORMATS,
    *journal.FORMATS,
    *systemctl.FORMATS,
    engine_config.FORMAT,
    nvidia_csv.FORMAT,
    *nvidia_text.FORMATS,
    metrics.FORMAT,
    *timeseries.FORMATS,
    *snapshot.FORMATS,
    sar.FORMAT,
    *sadf.FORMATS,
    ray.STATUS,
    output.FORMAT,
)
