"""`oomforensics explain`: `command` parses, `causes` and `lines` explain, `wording` puts it into words."""

from .command import explain

__all__ = ["explain"]
