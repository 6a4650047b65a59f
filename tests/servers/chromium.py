"""The system's Chromium without a window; what a page asks for and complains of is recorded."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

_PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_PACKAGES = ("playwright", "axe_playwright_python", "jinja2", "pygal")
_MISSING = [name for name in _PACKAGES if find_spec(name) is None] + ([] if _PROGRAM else ["chromium"])
MARKS = [
    pytest.mark.browser,
    pytest.mark.skipif(
        bool(_MISSING),
        reason=f"not installed: {', '.join(_MISSING)} (pip install -e '.[report,browser]'; apt-get install chromium)",
    ),
]
_FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
_LISTEN = """
window.refused = [];
document.addEventListener("securitypolicyviolation", (event) => refused.push(event.violatedDirective));
"""


@dataclass(kw_only=True)
class Browser:
    """A browser that opens pages from the disk."""

    context: Any
    tabs: list[Any] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    """Addresses that were asked for, the pages' own aside."""
    complaints: list[str] = field(default_factory=list)
    """Errors, and whatever else went to the console."""

    def open(self, path: Path, *, mark: str = "") -> Any:  # noqa: ANN401  # Playwright's page; an extra
        """A new tab with a page whose records are there."""
        tab = self.context.new_page()
        self.tabs.append(tab)
        own = path.absolute().as_uri()

        def ask(request: Any) -> None:  # noqa: ANN401  # Playwright's
            if not request.url.startswith(own):
                self.requests.append(request.url)

        def complain(about: Any) -> None:  # noqa: ANN401  # Playwright's message, error or dialog
            self.complaints.append(str(about))

        tab.on("request", ask)
        for event in ("console", "pageerror", "dialog"):
            tab.on(event, complain)
        tab.goto(own + mark)
        tab.wait_for_function("() => /^[\\d,]+ of /.test(document.getElementById('hits').textContent)")
        return tab

    def check(self) -> None:
        """Nothing was asked for, nothing refused, nothing complained of."""
        refused = [directive for tab in self.tabs for directive in tab.evaluate("window.refused")]
        assert (self.requests, self.complaints, refused) == ([], [], [])


@contextmanager
def browser(profile: Path, **settings: Any) -> Iterator[Browser]:  # noqa: ANN401  # Playwright's settings of a context
    """A browser with a profile of its own; checked when it is closed."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  # an extra

    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(profile), executable_path=_PROGRAM, args=_FLAGS, chromium_sandbox=False, **settings
        )
        context.add_init_script(_LISTEN)
        opened = Browser(context=context)
        try:
            yield opened
            opened.check()
        finally:
            context.close()
