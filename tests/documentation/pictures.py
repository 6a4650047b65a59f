"""Makes the README's pictures: `python tests/documentation/pictures.py` (extras `report` and `browser`, and Chromium)."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from documentation.terminal import COMMAND, draw, run_in_terminal
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"
WIDTH, HEIGHT = 1100, 830
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def photograph(page: Path, picture: Path) -> None:
    """The top of the report's page."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--headless", "--no-sandbox"])
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        tab.goto(page.as_uri())
        tab.screenshot(path=picture)
        browser.close()


def main() -> None:
    """Run, report, draw."""
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "sample_data", Path(folder, "sample_data"))
        os.chdir(folder)
        (PICTURES / "run.svg").write_text(draw(run_in_terminal(COMMAND.split())), encoding="utf-8")
        subprocess.run(["ctxrel", "report", "support_en.ctxrel"], check=True)
        photograph(Path("support_en.ctxrel", "report.html").absolute(), PICTURES / "report.png")
        os.chdir(ROOT)


if __name__ == "__main__":
    main()
