"""A user's folder over the built-in library."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import pipeline, resources
from forensics.diagnosis.case import DERIVED
from forensics.errors import LibraryError
from forensics.model import Event, Locator
from forensics.signatures import Library, Matcher, load_over

BASE = pipeline.load_library()
SIGNATURE = """\
id = "{id}"
title.en = "Gateway out of buffers"
title.zh = "网关缓冲区耗尽"
status = "test"
severity = "critical"
role = "cause"
channels = ["engine"]
anchors = [{anchor}]
description = '''The gateway has no buffers left.'''

[[versions]]
program = "acme"

[[patterns]]
name = "core"
regex = '''{regex}'''

[[examples]]
text = '''{text}'''
match = "core"

[[examples]]
text = '''gateway: out of buffers soon'''
match = false
"""
CAUSE = """\
id = "acme_buffers"
title = {{ en = "Gateway buffers", zh = "网关缓冲区" }}
summary = {{ en = "The gateway ran out of buffers.", zh = "网关缓冲区耗尽。" }}
mechanism = {{ en = "Slow clients hold them.", zh = "慢客户端占着缓冲区。" }}
verify = {{ en = "Look at the gauge.", zh = "看监控指标。" }}
decisive = ["{id}"]
"""


def over(root: Path) -> Library:
    return load_over(BASE, root, DERIVED)


def signature(identity: str = "acme.gateway", **changes: str) -> str:
    parts = {"anchor": '"gateway: out of buffers now"', "regex": "gateway: out of buffers now"}
    text = {"text": "gateway: out of buffers now"}
    return SIGNATURE.format(id=identity, **{**parts, **text, **changes})


def folder(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / f"{name.replace('__', '/')}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def problems(root: Path) -> str:
    with pytest.raises(LibraryError) as caught:
        load_over(BASE, root, DERIVED)
    return str(caught.value)


def ids(library: Library, text: str) -> list[str]:
    event = Event(Locator("x", 1, 1), "log", "engine", text, level="ERROR")
    return [hit.signature.id for hit in Matcher(library).hits(event)]


def test_adds_to_the_built_in_library(tmp_path: Path) -> None:
    """One file adds one signature, one file one cause; everything built in is still there."""
    root = folder(tmp_path, acme__gateway=signature(), causes__acme_buffers=CAUSE.format(id="acme.gateway"))
    library = over(root)
    assert set(library.signatures) - set(BASE.signatures) == {"acme.gateway"}
    assert set(library.causes) - set(BASE.causes) == {"acme_buffers"}
    assert ids(library, "gateway: out of buffers now") == ["acme.gateway"]


def test_same_id_replaces(tmp_path: Path) -> None:
    """A copy of a built-in file may be narrowed; its place in the order of the library stays."""
    text = (resources.patterns() / "vllm/port_in_use.toml").read_text(encoding="utf-8")
    library = over(folder(tmp_path, vllm__port_in_use=text.replace('severity = "', 'severity = "info" #', 1)))
    assert library.signatures["vllm.port_in_use"].severity == "info"
    assert list(library.signatures) == list(BASE.signatures)


def test_every_built_in_file_may_be_copied() -> None:
    """The whole library is a valid user's folder: it obeys the rules that users have to obey."""
    library = over(resources.patterns())
    assert library.signatures.keys() == BASE.signatures.keys()


def test_settings_switch_signatures_off(tmp_path: Path) -> None:
    """Disabled signatures do not fire, and causes may still name them."""
    line = "Exception in ASGI application"
    library = over(folder(tmp_path, settings='[tool]\ndisable = ["vllm.args", "torch.oom"]'))
    assert not {"vllm.args", "torch.oom"} & set(library.signatures)
    assert ids(library, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.") == []
    assert any("torch.oom" in cause.explains or "torch.oom" in cause.supporting for cause in library.causes.values())
    assert ids(library, line) == ids(BASE, line)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [('[tool]\ndisable = ["vllm.argz"]', "no signature is called 'vllm.argz'"),
     ('[tool]\ndisable = ["healthy"]', "'healthy' is a cause"),
     ('[tool]\ndisable = ["derived.host_leak"]', "is a rule of the diagnosis"),
     ('[tool]\ndisabled = ["vllm.args"]', "did you mean disable?"), ("[tools]", "did you mean tool?"),
     ("tool = 3", "must be a table"), ('[tool]\ndisable = "vllm.args"', "list of non-empty strings"), ("[tool", "not valid TOML")],
)  # fmt: skip
def test_bad_settings(tmp_path: Path, settings: str, reason: str) -> None:
    """Typos in the settings are errors, not silence."""
    assert reason in problems(folder(tmp_path, settings=settings))


def test_the_same_law_holds(tmp_path: Path) -> None:
    """Near misses, values and strangers are checked before anything is analysed."""
    text = problems(folder(
        tmp_path,
        acme__a=signature("acme.a", text="gateway: out of buffers then"),
        acme__b=signature("acme.b", regex="gateway: out of", anchor='"gateway: out of"'),
        acme__c=signature("acme.c", regex="CUDA out of memory", anchor='"CUDA out of memory"',
                          text="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."),
    ))  # fmt: skip
    assert f"{tmp_path}/acme/a.toml: examples.1.text: holds none of the anchors" in text
    assert f"{tmp_path}/acme/b.toml: examples.2.text: must not match, but pattern 'core' does" in text
    assert f"{tmp_path}/acme/c.toml: examples.1: torch.oom fires on it as well" in text
    assert f"{tmp_path}/acme/c.toml: patterns.core: fires on example 1 of torch.oom as well" in text


def test_unsafe_regexes_are_refused(tmp_path: Path) -> None:
    """Possessive, look-behind and catastrophic patterns do not get into a run."""
    text = problems(folder(
        tmp_path, acme__a=signature("acme.a", regex="a++b"), acme__b=signature("acme.b", regex="(?<=a)b"),
        acme__c=signature("acme.c", regex="(a+)+b"), acme__d=signature("acme.d", regex="a*"),
        acme__e=signature("acme.e", regex="(" * 900 + "a" + ")" * 900),
    ))  # fmt: skip
    for reason in ("possessive quantifiers", "look-behind at the start", "nested repetition", "matches an empty message",
                   "acme/e.toml: patterns.core.regex"):  # fmt: skip
        assert reason in text


def test_an_empty_folder_is_a_mistake(tmp_path: Path) -> None:
    """A wrong path must not look like a library without problems."""
    assert "holds no pattern files" in problems(tmp_path)


def test_all_problems_at_once(tmp_path: Path) -> None:
    """Five broken files and broken settings: everything in one message."""
    broken = {f"acme__f{i}": "x = " for i in range(5)}
    text = problems(folder(tmp_path, **broken, settings="[x]"))
    assert text.startswith("6 problems in the pattern library")


def test_load_over_does_not_touch_the_base(tmp_path: Path) -> None:
    """Libraries are values."""
    before = dict(BASE.signatures)
    over(folder(tmp_path, acme__gateway=signature()))
    assert before == BASE.signatures


def test_the_pipeline_uses_it(tmp_path: Path) -> None:
    """`Options.patterns` is such a folder."""
    assert "acme.gateway" in pipeline.load_library(folder(tmp_path, acme__gateway=signature())).signatures
