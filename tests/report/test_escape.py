"""Text of a bundle must not act in the place where it is shown."""

from __future__ import annotations

from itertools import product

import pytest
from markdown_it import MarkdownIt

from forensics.report import escape, text

HOSTILE = (
    "a | b | c", "`code` and ``more``", "```\nfence", "</script><script>alert(1)</script>", "\x1b]52;c;ZXZpbA==\x07", "\x1b[31mred",
    "\u202etxt.exe", "=cmd|' /C calc'!A0", "+1", "-2", "@SUM(A1)", "[click](http://evil.example)", "![x](http://evil.example/p.png)",
    "http://evil.example www.evil.example", "<img src=x onerror=alert(1)>", "**bold** _it_ ~~x~~", "# head", "1. list", "| --- |",
    "back\\slash \\| pipe", "%%{init: {}}%%", 'quote " end', "end", "a --> b; click a href", "{{ 7*7 }} {% raw %}", "&lt;b&gt;", "$x^2$",
    "\r\noverwritten", "\u2028line", "zero\u200bwidth", "tab\there", "ends with `", "` starts", "\\", "|",
)  # fmt: skip
MARKDOWN = MarkdownIt("gfm-like", {"linkify": False})


def cells(source: str) -> list[str]:
    """Plain texts of the cells of the only body row of a Markdown table."""
    found, inside = [], False
    for token in MARKDOWN.parse(source):
        if token.type == "td_open":
            inside = True
        elif token.type == "inline" and inside:
            parts = token.children or []
            assert {part.type for part in parts} <= {"text", "code_inline", "text_special", "html_inline"}, token
            found.append("".join(part.content for part in parts if part.type != "html_inline"))
            inside = False
    return found


@pytest.mark.parametrize(("value", "how"), list(product(HOSTILE, ("cell", "cellcode"))))
def test_table_cell_stays_one_cell_with_its_text(value: str, how: str) -> None:
    """Three cells in, three cells out, and the middle one reads as the printable form of the text."""
    shown = getattr(escape, how)(value)
    row = cells(f"| a | b | c |\n|---|---|---|\n| x | {shown} | z |\n")
    assert [row[0], row[2], len(row)] == ["x", "z", 3]
    assert row[1].strip() == text.printable(value).strip()


@pytest.mark.parametrize("value", HOSTILE)
def test_text_and_code_outside_of_tables_are_inert(value: str) -> None:
    """Neither form produces anything but text and inline code, also at the start of a list item."""
    for shown in (escape.cell(value), escape.code(value)):
        tokens = [t for t in MARKDOWN.parse(f"- {shown}\n") if t.type == "inline"]
        assert len(tokens) == 1
        assert {child.type for child in tokens[0].children or []} <= {"text", "code_inline", "text_special"}


@pytest.mark.parametrize("value", HOSTILE)
def test_prose_keeps_code_spans_and_nothing_else(value: str) -> None:
    """A value put into one of our sentences cannot open a code span, a link or markup."""
    sentence = text.fill("Lower `--max-num-seqs` for {name} now", {"name": value})
    assert sentence is not None
    children = MARKDOWN.parseInline(escape.prose(sentence))[0].children or []
    assert [c.content for c in children if c.type == "code_inline"] == ["--max-num-seqs"]
    assert {c.type for c in children} <= {"text", "code_inline", "text_special"}
    assert "<code>--max-num-seqs</code>" in escape.html_prose(sentence)
    assert "<" not in escape.html_prose(sentence).replace("<code>", "").replace("</code>", "")


@pytest.mark.parametrize("value", HOSTILE)
def test_fence_cannot_be_closed(value: str) -> None:
    """A fenced block holds its content whole."""
    tokens = MARKDOWN.parse(escape.fence(value, "sh") + "\n\nafter\n")
    assert [t.type for t in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]
    assert tokens[0].content.rstrip("\n") == value.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")


@pytest.mark.parametrize("value", HOSTILE)
def test_mermaid_label_has_no_syntax(value: str) -> None:
    """Inside the quotes stand only letters, digits, harmless signs and entity codes."""
    label = escape.mermaid(value)
    assert label.startswith('"')
    assert label.endswith('"')
    assert not set(label[1:-1]) & set('"`<>[]{}|&\\\n')


@pytest.mark.parametrize("value", ["=cmd|' /C calc'!A0", "+1", "-2", "@SUM(A1)", "\t=1", "＝1"])
def test_csv_cell_is_no_formula(value: str) -> None:
    """A leading sign of a formula is disarmed; a number stays a number."""
    assert escape.csv(value).startswith("'")
    assert escape.csv(-3) == -3
    assert escape.csv(None) == ""


def test_printable_shows_what_it_took_away() -> None:
    """Escapes, bidi marks and zero-width characters become visible; colours vanish; CJK and emoji stay."""
    assert text.printable("\x1b]52;c;AAA\x07") == "\ufffd]52;c;AAA\ufffd"
    assert text.printable("\x1b[1;36m(EngineCore pid=1)\x1b[0;0m x") == "(EngineCore pid=1) x"
    assert text.printable("a\u202eb\u200bc") == "a\ufffdb\ufffdc"
    assert text.printable("显存不足 🚀") == "显存不足 🚀"
    assert text.printable("x" * 50, 10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(12345.6, "12\u202f345.6"), (1234, "1234"), (0.5, "0.5"), (3.0, "3"), (None, "–"), (True, "true"), (-28800, "-28\u202f800")],
)
def test_number(value: object, shown: str) -> None:
    """No trailing zeros, no exponent, thousands apart from five digits on."""
    assert escape.number(value) == shown


@pytest.mark.parametrize(
    ("template", "values", "shown"),
    [
        ("limit {memcg_limit_kib} KiB", {"memcg_limit_kib": 67108864}, "limit 64 GiB"),
        ("{tried_gib} GiB refused", {"tried_gib": 0.9863}, "1010 MiB refused"),
        ("sum {x}", {}, None),
        ('`rate(x{container="<c>"}[5m])` at {n}', {"n": 3}, '`rate(x{container="<c>"}[5m])` at 3'),
    ],
)
def test_fill(template: str, values: dict[str, object], shown: str | None) -> None:
    """Sizes are shown in the unit that reads best; braces of PromQL stay; an unknown number gives none."""
    assert text.fill(template, values) == shown
