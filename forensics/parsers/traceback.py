"""Python tracebacks: records of a log → one `traceback` event a block.

A logged traceback is many records: vLLM repeats its header on every line, torch prints `[rankN]: ` before
each, raw ones stand alone, and processes interleave. Lines are grouped by who prints them, then read in
order: `Traceback (most recent call last):`, frames, and the exception line (CPython `traceback`,
`faulthandler`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import regex

from ..model import Event, Locator
from ..regexes import lazy_regex
from .log import MAX_RECORD_CHARS, Assembled, event_of
from .records import Record

HEADER = "Traceback (most recent call last)"
FAULT = "Fatal Python error: "
_CHAINS = ("The above exception was the direct cause", "During handling of the above exception")
_ODD_NAMES = (
    "KeyboardInterrupt", "SystemExit", "GeneratorExit", "StopIteration", "StopAsyncIteration",
    "OutOfResources", "TimeoutExpired", "ConnectTimeout", "ReadTimeout", "BrokenProcessPool",
    "ContextTerminated", "EndOfStream", "WouldBlock", "WebSocketDisconnect", "BackendCompilerFailed",
    "queue.Empty", "queue.Full", "ExceptionGroup",
)  # fmt: skip
ANCHORS = (
    HEADER, '  File "', '.py", line ', "Error", "Exception", "exceptions.", "errors.", ".exc.", *_CHAINS, *_ODD_NAMES,
    FAULT, "(most recent call first)",
)  # fmt: skip
"""Literals of the lines that a traceback needs; source lines between the frames are not among them."""
MAX_FRAMES = 40
MAX_GAP = 400
"""Lines of other speakers that may lie between two lines of one traceback."""

_FRAME = lazy_regex(  # people shorten it: `...worker/gpu_worker.py", line 318, in load_model`
    r'(?:\s+File "|\s*(?:\.\.\.|…))(?P<path>[^"]*)", line \d+(?:,? in (?P<function>.*?))?(?: \[repeated \d+x[^\]]*\])?'
)
_EXCEPTION = lazy_regex(
    r"(?P<name>(?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception)"
    rf"|(?:[A-Za-z_]\w*\.)*(?:{'|'.join(regex.escape(name) for name in _ODD_NAMES)})"
    r"|(?:[A-Za-z_]\w*\.)*(?:exc|exceptions|errors)\.[A-Z]\w+)"
    r"(?:\([\w.]+\))?(?::\s.*|:?\s*)",
    regex.DOTALL,
)
_GROUP_BARS = lazy_regex(
    r"\s{0,12}+(?:[|+] )++(?=\s*+(?:File|Exception|Traceback|\w+(?:\.\w+)*(?:Error|Exception)\b))"
)
_THREAD = lazy_regex(r"(?:(?:Current thread|Thread) 0x[0-9a-f]+ .*|Stack )\(most recent call first\)")
_ENGINE_FRAME = lazy_regex(
    r"[/\\](?:vllm|sglang|lmdeploy|tensorrt_llm|text_generation_server|flashinfer)[/\\]"
)
_NO_RECORD = Record(0, "")
_ENGINE_EXCEPTION = lazy_regex(r"(?:torch|vllm|sglang|triton)\.")


@dataclass(slots=True)
class _Block:
    """A traceback that is being read."""

    first: Record
    headed: bool
    """False when it starts at a frame: its header was lost, or it is the inner half of a remote error."""
    chained: bool = False
    fault: str = ""
    """The message of a `faulthandler` dump, which comes first and lists the innermost frame first."""
    indent: int = 0
    """Blanks before the header and the exception line; torchrun's summary shifts the whole traceback."""
    frames: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    last: Record = _NO_RECORD
    """The last line taken."""
    frame: Record = _NO_RECORD
    """The last frame."""


@dataclass(slots=True)
class _Speaker:
    """The state of one group of records."""

    block: _Block | None = None
    chain: bool = False
    """The next block was raised from the previous one."""
    done: int = -1
    """Index of the last finished event."""
    done_line: int = 0


class _Assembler:
    def __init__(self, source: str) -> None:
        self.source = source
        self.events: list[Event] = []
        self.used: set[int] = set()
        self.speakers: dict[tuple[object, ...], _Speaker] = {}

    def feed(self, record: Record) -> None:
        if HEADER in record.text and "\n" in record.text:
            self._embedded(record)
            return
        scope = record.scope
        who = (
            scope.host,
            scope.process,
            scope.pid,
            scope.rank,
            scope.pod,
            scope.container,
            record.ident,
            record.logger,
        )
        speaker = self.speakers.setdefault(who, _Speaker())
        if speaker.block is not None and record.line - speaker.block.last.line > MAX_GAP:
            self._give_up(speaker)
        bars = _GROUP_BARS.match(record.text)
        text = record.text[bars.end() :] if bars else record.text
        if HEADER in text:
            self._open(speaker, record, text)
        elif text.startswith(FAULT):
            self._give_up(speaker)
            speaker.block = _Block(record, headed=True, fault=text)
            self._take(speaker.block, record)
        elif any(chain in text for chain in _CHAINS):
            self._give_up(speaker)
            speaker.chain = True
            self.used.add(record.line)
        elif _FRAME.fullmatch(text.rstrip()):
            self._frame(speaker, record, text)
        elif speaker.block is not None:
            self._inside(speaker, speaker.block, record, text)
        elif speaker.chain and _EXCEPTION.fullmatch(text):
            self._last_line_only(speaker, record, text)

    def finish(self) -> Assembled:
        for speaker in self.speakers.values():
            self._give_up(speaker)
        return Assembled(tuple(self.events), frozenset(self.used))

    def _open(self, speaker: _Speaker, record: Record, text: str) -> None:
        self._give_up(speaker)
        before = text.partition(HEADER)[0].strip(" +|")
        if (
            before == "Original"
        ):  # torch re-raises a worker's error and prints the worker's traceback after it
            self._outer_is_chained(speaker, record)
        speaker.block = _Block(record, headed=True, chained=speaker.chain, last=record)
        speaker.chain = False
        if before in ("", "Original", "Exception Group"):
            self._take(speaker.block, record)

    def _last_line_only(self, speaker: _Speaker, record: Record, text: str) -> None:
        """What was raised from the exception before it, where whoever pasted it left out its frames."""
        block = _Block(record, headed=True, chained=True)
        speaker.chain = False
        self._take(block, record)
        self._close(speaker, block, record, text)

    def _frame(self, speaker: _Speaker, record: Record, text: str) -> None:
        if speaker.block is None:
            inner = self._outer_is_chained(speaker, record)
            speaker.block = _Block(record, headed=inner, chained=speaker.chain)
            speaker.chain = False
        found = _FRAME.fullmatch(text.rstrip())
        if found:
            speaker.block.frames.append(f"{found['path']}:{found['function'] or ''}")
            speaker.block.frame = record
            speaker.block.indent = max(_indent(text) - 2, 0)
        self._take(speaker.block, record)

    def _inside(self, speaker: _Speaker, block: _Block, record: Record, text: str) -> None:
        if block.fault:
            if _THREAD.match(text):
                if text.startswith(("Current", "Stack")):
                    block.frames.clear()
                elif block.frames:
                    self._close(speaker, block, block.first, block.fault)
                    return
                self._take(block, record)
            elif text.strip():
                self._close(speaker, block, block.first, block.fault)
        elif not text.strip() or _indent(text) > block.indent:
            if record.line - block.last.line < 8:
                self._take(block, record)
        elif _EXCEPTION.fullmatch(text.lstrip()):
            self._take(block, record)
            self._close(speaker, block, record, text.lstrip())

    def _take(self, block: _Block, record: Record) -> None:
        block.last = record
        block.lines.append(record.line)

    def _outer_is_chained(self, speaker: _Speaker, record: Record) -> bool:
        """Mark the block just finished as the wrapper of the one that starts here."""
        if speaker.done < 0 or record.line - speaker.done_line > 3:
            return False
        outer = self.events[speaker.done]
        self.events[speaker.done] = replace(outer, fields={**outer.fields, "chained": True})
        return True

    def _close(self, speaker: _Speaker, block: _Block, record: Record, text: str) -> None:
        frames = block.frames[::-1] if block.fault else block.frames
        self.events.append(_event(record, self.source, text, frames, block, complete=block.headed))
        self.used.update(block.lines)
        speaker.done, speaker.done_line, speaker.block = len(self.events) - 1, record.line, None

    def _give_up(self, speaker: _Speaker) -> None:
        """End a block whose exception line never came."""
        block = speaker.block
        speaker.block = None
        if block is None:
            return
        if block.fault:
            self._close(speaker, block, block.first, block.fault)
            return
        self.used.update(block.lines)
        if block.headed and block.frames:
            text = block.frame.text.strip()
            self.events.append(_event(block.frame, self.source, text, block.frames, block, complete=False))

    def _embedded(self, record: Record) -> None:
        """A whole traceback inside one record (JSON logs keep it in `exc_info`)."""
        message, _, _ = record.text.partition(HEADER)
        inner = _Assembler(self.source)
        plain = replace(record, count=1, last_line=0)
        for number, line in enumerate(record.text[len(message) :].split("\n")):
            inner.feed(replace(plain, line=record.line + number, text=line))
        place = Locator(self.source, record.line, record.line)
        found = [
            replace(
                e,
                locator=place,
                raw=record.raw[:MAX_RECORD_CHARS],
                fields={**e.fields, "first_line": record.line},
            )
            for e in inner.finish().events
        ]
        if not found:
            return
        if message.strip():
            self.events.append(event_of(replace(record, text=message.strip()), self.source))
        self.events += found
        self.used.add(record.line)


def _event(
    record: Record, source: str, text: str, frames: Sequence[str], block: _Block, complete: bool
) -> Event:
    exception = FAULT.rstrip(": ") if block.fault else _name(text)
    if len(frames) > MAX_FRAMES:
        half = MAX_FRAMES // 2
        frames = [*frames[:half], *frames[-half:]]
    engine = _ENGINE_EXCEPTION.match(exception) or any(_ENGINE_FRAME.search(frame) for frame in frames)
    fields: dict[str, object] = {
        "exception": exception,
        "frames": tuple(frames),
        "chained": block.chained,
        "first_line": block.first.line,
    }
    if record.logger:
        fields["logger"] = record.logger
    event = event_of(record, source, "engine" if engine else "")
    text, fields = text.strip()[:MAX_RECORD_CHARS], {**event.fields, **fields}
    return replace(event, kind="traceback", text=text, fields=fields, complete=complete)


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _name(text: str) -> str:
    found = _EXCEPTION.fullmatch(text)
    return found["name"] if found else ""


def exception_of(event: Event) -> str:
    """The exception that an event ends in: of a traceback, or of a line that is nothing else; empty for none."""
    return str(event.fields.get("exception") or _name(event.text.strip()))


def assemble(records: Iterable[Record], source: str) -> Assembled:
    """Join the lines of tracebacks.

    One `traceback` event a block, placed at its exception line, with the fields `exception`
    (`torch.OutOfMemoryError`), `frames` (`path:function`, outer to inner; of more than 40 the middle is left
    out), `chained` (raised from another one, printed before it or inside it) and `first_line`. Without an
    exception line, or when the log starts in its middle, the event is not `complete`. The message of an
    exception may go on in later lines; `text` is the first.
    """
    assembler = _Assembler(source)
    for record in records:
        assembler.feed(record)
    return assembler.finish()
