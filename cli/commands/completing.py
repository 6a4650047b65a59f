"""What a shell completes beyond the names of commands, options and fixed values."""

from pathlib import Path

from ...evaluators.definition import built_in_names
from ...evaluators.judges.endpoint import DEFAULT_MODEL
from ...evaluators.judges.named import NAMED
from .forms import FORMS


def complete_built_in(incomplete: str) -> list[str]:
    """Names of built-in evaluators."""
    return [name for name in built_in_names() if name.startswith(incomplete)]


def complete_evaluator(incomplete: str) -> list[str]:
    """Names of built-in evaluators, and files that may be some."""
    return complete_built_in(incomplete) + _files(incomplete, "yaml", "yml")


def complete_model(incomplete: str) -> list[str]:
    """The usual model, the offline judge, and files that may be models."""
    names = [name for name in (DEFAULT_MODEL, *NAMED) if name.startswith(incomplete)]
    return names + _files(incomplete, "gguf")


def complete_form(incomplete: str) -> list[str]:
    """Names of files whose forms are known."""
    return [name for name in FORMS if name.startswith(incomplete)]


def _files(incomplete: str, *suffixes: str) -> list[str]:
    """Files of the working folder, or of the folder that was begun; folders on the way to others end in a slash."""
    folder, slash, begun = incomplete.rpartition("/")
    start = folder + slash
    try:
        entries = sorted(Path(start or ".").iterdir())
    except OSError:
        return []
    names = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries]
    wanted = ("/", *(f".{suffix}" for suffix in suffixes))
    hidden = begun.startswith(".")
    return [f"{start}{n}" for n in names if n.startswith(begun) and n.endswith(wanted) and (hidden or n[0] != ".")]
