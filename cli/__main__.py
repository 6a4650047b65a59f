"""`ctxrel` and `python -m ctxrel.cli`: Ctrl-C has an answer from the first moment on."""

import sys

EXIT_INTERRUPTED = 130


def main() -> None:
    """Run the command; an interrupt while its packages are still loading ends it as quietly as one later on."""
    try:
        from .app import main as run  # noqa: PLC0415  # it takes a moment

        run()
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
