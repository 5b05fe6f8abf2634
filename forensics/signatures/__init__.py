"""The signature library: load it, check it, match it.

`patterns/<family>/<name>.toml` is one signature, `patterns/causes/<id>.toml` one cause. `library` reads them and
reports every defect with its place; `matching` finds signatures in events; `law` holds the checks that make the
library trustworthy (every example hits, no near miss does).
"""

from .library import Cause, Example, Library, Pattern, Signature, Text, load
from .matching import Matcher

__all__ = ["Cause", "Example", "Library", "Matcher", "Pattern", "Signature", "Text", "load"]
