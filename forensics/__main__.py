"""`python -m forensics` is the `oomforensics` command."""

from .cli import main

main()
