"""Open archives, folders, files and standard input, lazily and without touching the disk.

`Bundle.members()` yields one `Member` after another; its bytes must be read before the next one is asked for, because
an archive is a stream. What a file is, its first bytes decide, never its name. Nothing is ever written, links and
devices are never followed, and every cut is reported.

    inputs ─▶ recognise ─▶ tarballs, zips, compressed (again and again, down to `Budget.depth`) ─▶ members
"""

from .budget import Budget
from .inputs import Bundle
from .members import BLOCK_BYTES, Member
from .rotation import rotation_of

__all__ = ["BLOCK_BYTES", "Budget", "Bundle", "Member", "rotation_of"]
