"""What to change: the remedy for what was found comes first, those for something else stay away."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import analyze
from forensics.signatures.model import Condition

HUB = "ERROR 05-12 08:00:06 [core.py:718] "
LINES = {
    "unreachable": "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.",
    "gated": "OSError: You are trying to access a gated repo.",
}


def advice(tmp_path: Path, line: str) -> list[str]:
    log = tmp_path / "vllm.log"
    start = "INFO 05-12 08:00:00 [api_server.py:1839] vLLM API server version 0.11.0\n" * 2
    log.write_text(f"{start}{HUB}{line}\n", encoding="utf-8")
    data = analyze(log).to_dict()
    assert data["verdict"]["cause"] == "model_download"
    return list(data["advice"]["change"])


@pytest.mark.parametrize(("name", "first", "absent"), [("unreachable", "Network", "HF_TOKEN"), ("gated", "401", "HTTPS_PROXY")])
def test_the_remedy_for_what_was_found(tmp_path: Path, name: str, first: str, absent: str) -> None:
    """First in the list; the general ones follow; remedies for other findings are left out."""
    change = advice(tmp_path, LINES[name])
    assert change[0].startswith(first)
    assert len(change) >= 2
    assert not any(absent in item for item in change)


def test_words_of_a_condition() -> None:
    """Facts, facts with a value, and findings; only the last are ids."""
    assert Condition("max_num_seqs", "").findings == ()
    assert Condition("resource=memory hub.gated oomd.*", "").findings == ("hub.gated", "oomd.*")
    assert Condition("", "").findings == ()
