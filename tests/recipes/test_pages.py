"""What holds for all pages in docs/recipes/."""

import re
from pathlib import Path

import pytest
from recipes.page import RECIPES

PAGES = sorted(path for path in RECIPES.glob("*.md") if path.name != "README.md")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, RECIPES / "README.md"], ids=lambda page: page.name)
def test_links(page: Path) -> None:
    """Each link leads to a page and a heading that there are."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        there = (page.parent / name).resolve() if name else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


def test_every_page_is_listed_and_tested() -> None:
    """The table holds every page, and each has a test module of its name."""
    listed = re.findall(r"^\| \[.*\]\((.*\.md)\)", (RECIPES / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == [page.name for page in PAGES]
    modules = {path.stem for path in Path(__file__).parent.glob("test_*.py")}
    assert {f"test_{page.stem.replace('-', '_')}" for page in PAGES} <= modules
