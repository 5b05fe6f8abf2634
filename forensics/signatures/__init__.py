"""The signature library: load it, check it, match it.

`patterns/<family>/<name>.toml` is one signature, `patterns/causes/<id>.toml` one cause. `library` reads them
and reports every defect with its place; `user` lays a folder of the user's own over them. `matching` finds signatures
in events. `law` holds the checks that make a library trustworthy (every example hits, no near miss does), `safety`
the rules for regexes. For authors: `explain`, `lint`, `skeleton`, `drift`, `schema`, `catalogue`.
"""

from .library import load
from .matching import Hit, Matcher
from .model import Cause, Example, Library, Pattern, Signature, Text
from .user import load_over

__all__ = ["Cause", "Example", "Hit", "Library", "Matcher", "Pattern", "Signature", "Text", "load", "load_over"]
