"""What holds for all pages in docs/recipes/."""

from pathlib import Path

from recipes.page import RECIPES


def test_every_page_is_tested() -> None:
    """Each has a test module of its name: here its commands are run, tests/documentation leaves them out."""
    modules = {path.stem for path in Path(__file__).parent.glob("test_*.py")}
    pages = {f"test_{page.stem.replace('-', '_')}" for page in RECIPES.glob("*.md")}
    assert pages
    assert pages <= modules
