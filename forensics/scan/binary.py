"""What is no text: told by magic numbers, else by its control characters."""

from __future__ import annotations

_MAGIC = (
    (b"\x7fELF", "ELF program, library or core dump", ""),
    (b"\x89PNG", "PNG picture", "paste the text instead of a picture of it"),
    (b"\xff\xd8\xff", "JPEG picture", "paste the text instead of a picture of it"),
    (b"GIF8", "GIF picture", "paste the text instead of a picture of it"),
    (b"%PDF-", "PDF document", "save it as text"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip archive", "unpack it, or pack it as .tar.gz or .zip"),
    (b"Rar!\x1a\x07", "RAR archive", "unpack it, or pack it as .tar.gz or .zip"),
    (b"\x04\x22\x4d\x18", "LZ4 stream", "unpack it with lz4 -d"),
    (b"\x1f\x9d", "compress (.Z) stream", "unpack it with uncompress"),
    (b"LZIP", "lzip stream", "unpack it with lzip -d"),
    (b"070701", "cpio archive", "unpack it, or pack it as .tar.gz or .zip"),
    (b"SQLite format 3\0", "SQLite database", "export the tables that matter as text"),
    (b"PAR1", "Parquet table", "export it as CSV"),
    (b"GGUF", "GGUF model weights", ""),
    (b"ElfFile\0", "Windows event log", "export it as text"),
    (b"\xd4\xc3\xb2\xa1", "packet capture", ""),
    (b"\n\r\r\n", "packet capture", ""),
    (b"\xca\xfe\xba\xbe", "Java class or Mach-O program", ""),
)
_MOST_CONTROLS = 0.05
"""Share of control characters, other than those of layout and colours, that no text has; random bytes have 10 %."""


def binary_kind(head: bytes) -> tuple[str, str] | None:
    """(what it is, what to do) when the first bytes are no text, else none. NULs alone do not make a file binary."""
    for magic, kind, hint in _MAGIC:
        if head.startswith(magic):
            return kind, hint
    data = head.replace(b"\0", b"")
    odd = sum(byte < 8 or 13 < byte < 27 or 27 < byte < 32 for byte in data)
    if not data or odd > _MOST_CONTROLS * len(data):
        return "binary data", ""
    return None
