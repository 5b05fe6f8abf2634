"""One ordered, queryable sequence of events.

`order` sorts and groups, `query` selects, `rows` makes flat rows of them, `frame` (polars, imported on demand) exports
the rows as a table.
"""

from .order import GROUP_LIMIT_S, Timeline, build, groups, sort_key

__all__ = ["GROUP_LIMIT_S", "Timeline", "build", "groups", "sort_key"]
