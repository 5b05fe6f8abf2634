"""One module a format. The registries below are the only place that names them all.

Documents are read whole (`Format.read`); line logs are all read by `log`, with a `Dialect` for each speaker.
"""

from __future__ import annotations

from ..sources import Format
from . import (
    docker,
    documents,
    k8s_objects,
    k8s_text,
    kubectl_lines,
    kubelet,
    log,
    runtime,
)
from .log import Dialect

DIALECTS: dict[str, Dialect] = {
    "k8s": Dialect("k8s", anchors=kubectl_lines.ANCHORS),
    "kubelet": kubelet.DIALECT,
    "runtime": runtime.DIALECT,
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
)
