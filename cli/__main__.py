"""`python -m ctxrel.cli`."""

from .app import main

main()
