"""The site made of these pages and those at the top: `sphinx-build -W --keep-going -c docs . site`."""

import importlib.metadata
import re

from sphinx.application import Sphinx

project = "ctxrel"
release = importlib.metadata.version("ctxrel")
smartquotes = False  # they make dashes of the options in sentences
html_title = f"ctxrel {release}"
html_theme = "furo"
html_copy_source = False
html_show_sourcelink = False
html_extra_path = ["top"]  # what stands at the site's own address leads to the index

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md", "sample_data/*.md"]
exclude_patterns = [".*", "site", "build", "tests"]
myst_heading_anchors = 3
suppress_warnings = [
    "misc.highlighting_failure",  # rows are shown as JSON with an ellipsis where they are long
]

_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^):]+)\.md\)")


def setup(app: Sphinx) -> None:
    """Navigate as the index orders its pages, so that the order stands in one place."""
    app.connect("source-read", _add_navigation)


def _add_navigation(_app: Sphinx, page: str, source: list[str]) -> None:
    if page == root_doc:
        _, *parts = _SECTION.split(source[0])
        source[0] += "".join(map(_tree, parts[::2], parts[1::2]))


def _tree(caption: str, section: str) -> str:
    pages = "\n".join(_LINK.findall(section))
    return f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{pages}\n```\n"
