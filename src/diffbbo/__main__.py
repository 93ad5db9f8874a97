"""`python -m diffbbo` is the command line."""

from .cli import main

main()
