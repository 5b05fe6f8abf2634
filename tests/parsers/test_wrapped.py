"""Folded text is joined before anything reads it; text that only looks folded stays as it is."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from forensics import analyze
from forensics.parsers import wrapped
from forensics.sources import make_head

LOG = """(APIServer pid=1) INFO 06-11 06:03:00 [api_server.py:1839] vLLM API server version 0.11.0 and its banner
(EngineCore_DP0 pid=71) INFO 06-11 06:03:10 [gpu_model_runner.py:2602] Starting to load model acme/chat-30b-instruct...
(EngineCore_DP0 pid=71) ERROR 06-11 06:04:09 [core.py:710] torch.OutOfMemoryError: CUDA out of memory. Tried to \
allocate 2.50 GiB. GPU 0 has a total capacity of 44.39 GiB of which 1.10 GiB is free. Including non-PyTorch memory, \
this process has 43.20 GiB memory in use. Of the allocated memory 42.80 GiB is allocated by PyTorch, and 12.02 MiB is \
reserved by PyTorch but unallocated.
(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""


def unfolded(text: str) -> str | None:
    data = text.encode("utf-8", "surrogateescape")
    joined = wrapped.unfolded(make_head("a.txt", data, True), data)
    return None if joined is None else joined.decode("utf-8", "surrogateescape")


def folded(width: int) -> str:
    lines = [line[i : i + width] for line in LOG.splitlines() for i in range(0, len(line), width)]
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("width", [60, 80, 100, 132, 139])
def test_a_terminal_breaks_at_its_last_column(width: int) -> None:
    """The messages come back as they were, each at its first line, and no line moves."""
    text = folded(width)
    joined = unfolded(text)
    if width == 139:  # too few full lines to be sure of a width
        assert joined is None
        return
    assert joined is not None
    assert joined.count("\n") == text.count("\n")
    assert [line for line in joined.split("\n") if line] == LOG.splitlines()


def test_what_people_type_beside_a_screen_may_be_longer() -> None:
    """A chat line has a header too; it was not copied from the screen."""
    said = "[Tue 14 Oct 2025 16:22] Ann: it fails on the old box, and yesterday the same command ran on the new one"
    joined = unfolded(f"{said}\n\n{folded(60)}\n{said}\n")
    assert joined is not None
    assert [line for line in joined.split("\n") if line] == [said, *LOG.splitlines(), said]


@pytest.mark.parametrize("quote", ["", "> > ", "   "])
def test_a_mail_breaks_between_words(quote: str) -> None:
    """An error that was broken at words is one line again, with and without quotation marks."""
    error = LOG.splitlines()[2].partition("[core.py:710] ")[2]
    text = "See below.\n\n" + "".join(f"{quote}{line}\n" for line in textwrap.wrap(error, 72)) + "\nThanks\n"
    joined = unfolded(text)
    assert joined is not None
    assert joined.split("\n")[2] == quote + error
    assert joined.count("\n") == text.count("\n")


@pytest.mark.parametrize("quote", ["", "> "])
def test_reports_of_an_engine_in_a_mail(quote: str) -> None:
    """Nothing failed, but a report is longer than a line of a mail as well: its numbers stand on several lines."""
    report = "Avg prompt throughput: 88.1 tokens/s, Avg generation throughput: 402.6 tokens/s, Running: {} reqs, Swapped: 0 reqs, "
    report += "Pending: 57 reqs, GPU KV cache usage: 99.1%, CPU KV cache usage: 0.0%."
    lines = [f"INFO 03-08 10:00:{10 * n:02} metrics.py:455] {report.format(30 - n)}" for n in range(3)]
    text = "Slow again:\n\n" + "".join(f"{quote}{row}\n" for line in lines for row in textwrap.wrap(line, 70)) + "\nBest, Jo\n"
    joined = unfolded(text)
    assert joined is not None
    assert [line for line in joined.split("\n") if line] == ["Slow again:", *(quote + line for line in lines), "Best, Jo"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "INFO 03-08 10:00:10 launcher.py:32] Available routes are:\n" + "Route: /v1/models, Methods: GET\nRoute: /health\n" * 5,
        "x\n",
        LOG,
        "RuntimeError: a\nNAME   READY\n" * 3,
        "ValueError: short\nnote\nnote two\n",
        "\n".join(f"INFO 06-11 06:03:{s:02d} [a.py:1] throughput {s:02d} of a line that is exactly as long as others" for s in range(40)),
        "| NVIDIA-SMI 570 |\n" + ("|" + "-" * 88 + "|\n") * 12,
        "x" * 80 + "\n" + "y" * 80 + "\n" + "z" * 80 + "\nend\n",
        "RuntimeError: CUDA error\n### COMMAND: kubectl get pods of the namespace in which the engine ran\n- a\n",
        "ValueError: \udcff\udcfe\n" + "\udcff" * 50 + "\n",
    ],
)  # fmt: skip
def test_what_only_looks_folded_stays(text: str) -> None:
    """Equal lines, tables, boxes, headings and short errors are not joined."""
    assert unfolded(text) is None


def test_a_long_text_is_not_joined_without_end() -> None:
    """One message takes a bounded number of lines."""
    text = LOG + ("w" * 80 + "\n") * 1000
    joined = unfolded(text)
    assert joined is None or max(map(len, joined.split("\n"))) <= 80 * (wrapped.MAX_LINES + 1)


def test_colours_and_windows_line_ends() -> None:
    """A text with escape sequences has no widths; CR belongs to the line end."""
    data = folded(80).encode()
    assert wrapped.unfolded(make_head("a", b"\x1b[0m" + data, True), data) is None
    crlf = data.replace(b"\n", b"\r\n")
    joined = wrapped.unfolded(make_head("a", crlf, True), crlf)
    assert joined is not None
    assert b"Tried to allocate 2.50 GiB. GPU 0" in joined


def test_numbers_of_folded_and_typed_errors_count(tmp_path: Path) -> None:
    """A folded log gives what the log itself gives; an error typed into notes is possible, never more."""
    whole, narrow, typed = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    for folder in (whole, narrow, typed):
        folder.mkdir()
    (whole / "vllm.log").write_text(LOG)
    (narrow / "vllm.log").write_text(folded(80))
    one, two = (analyze(folder).to_dict() for folder in (whole, narrow))
    assert two["verdict"]["cause"] == one["verdict"]["cause"] == "gpu_oom.weights"
    assert two["key_facts"]["gpu_total_gib"] == 44.39
    (typed / "notes.md").write_text(
        "# What we saw\nI typed this from the screen, sorry.\n\n   ValueError: To serve at least one request with the models's"
        " max seq len\n   (163840), (20.00 GiB KV cache is needed, which is larger than the available\n   KV cache memory"
        " (9.42 GiB). Based on the available memory, the estimated\n   maximum model length is 77168.\n\nPlease help.\n"
    )
    told = analyze(typed).to_dict()
    assert (told["verdict"]["cause"], told["verdict"]["confidence"]) == ("gpu_oom.kv_max_len", "possible")
    (typed / "vllm.log").write_text(LOG)
    assert analyze(typed).to_dict()["verdict"]["cause"] == "gpu_oom.weights"


def test_the_header_of_a_collector_ends_a_message() -> None:
    """What stands again and again at the margin is a header, whoever wrote it; a fold of the same length is none."""
    said = "Engine 000: Avg prompt throughput: 10.0 tokens/s, Avg generation throughput: 5.0 tokens/s, Running: 7 reqs"
    lines = [f"chat-7b-0 vllm (APIServer pid=1) INFO 02-03 19:30:{s:02d} [loggers.py:257] {said}" for s in range(5)]
    text = "".join(f"{line[i : i + 120]}\n" for line in lines for i in range(0, len(line), 120))
    joined = unfolded(text)
    assert joined is not None
    assert [line for line in joined.split("\n") if line] == lines


def test_what_somebody_typed_below_may_be_wider() -> None:
    """The width is that of the copied lines; a sentence without a header is no line of the terminal."""
    below = "Copied out of tmux on the small screen, sorry for the breaks in it. It is an L40S with --max-num-seqs 512.\n"
    text = folded(75)
    joined = unfolded(f"{text}\n{below}")
    assert joined is not None
    assert joined == f"{unfolded(text)}\n{below}"


def test_the_table_of_free_is_not_folded() -> None:
    """Its head and its row are both 80 wide; between the prompts of a session that looks like a terminal's width."""
    table = f"{'total':>20}{'used':>12}{'free':>12}{'shared':>12}{'buff/cache':>12}{'available':>12}\nMem:{31844:>16}{1207:>12}{29102:>12}{4:>12}{1534:>12}{30112:>12}\n"
    assert unfolded(f"me@box:~$ free -m\n{table}Swap:           8191           0        8191\nme@box:~$ uname -r\n6.8.0\n") is None


def test_a_failed_allocation_broken_by_hand() -> None:
    """Torch's message is known by its end, at whatever widths it was broken; what was cut off before it stays alone."""
    error = LOG.splitlines()[2]
    first, rest = error[:140].rsplit(" ", 1)[0], error[len(error[:140].rsplit(" ", 1)[0]) + 1 :]
    pieces = [first, rest[:60].rsplit(" ", 1)[0]]
    pieces.append(rest[len(pieces[1]) + 1 :])
    joined = unfolded("\n".join([*LOG.splitlines()[:2], *pieces, "and then I stopped it", ""]))
    assert joined is not None
    assert joined.split("\n")[2:6] == [error, "", "", "and then I stopped it"]
    assert unfolded("\n".join([*LOG.splitlines()[:2], *pieces[:2], "and then I stopped it", ""])) is None


@pytest.mark.parametrize("quote", ["", "> "])
@pytest.mark.parametrize("width", [60, 74])
def test_an_error_cut_at_a_column_inside_a_chat(quote: str, width: int) -> None:
    """It was copied out of a terminal, whose last column cuts words and numbers; the talk around it is as it was."""
    error = LOG.splitlines()[2].partition("[core.py:710] ")[2]
    pieces = [error[i : i + width] for i in range(0, len(error), width)]
    text = "지우 [오전 9:12]\n왜 죽는지 모르겠어요\n" + "".join(f"{quote}{piece}\n" for piece in pieces) + "민호 [오전 9:15]\nOOM?\n"
    joined = unfolded(text)
    assert joined is not None
    assert joined.split("\n")[2] == quote + error
    assert joined.count("\n") == text.count("\n")


def test_lines_of_a_mail_that_are_equally_long_by_chance() -> None:
    """Three of them, and none goes on with the blank that a cut leaves: words stay apart."""
    lines = [
        "ValueError: the sequence length of this model needs more KV cache memory",
        "than is available on this card, since the estimated maximum model length",
        "is far below it. Try to increase the share of memory, or to decrease the",
        "length.",
    ]
    assert len({len(line) for line in lines[:3]}) == 1
    joined = unfolded("Hello,\n\n" + "\n".join(lines) + "\n\nThanks\n")
    assert joined is not None
    assert joined.split("\n")[2] == " ".join(lines)
