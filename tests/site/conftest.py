"""The real book, built once for all tests of its pages, and a browser to open it with."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from pathlib import Path

import pytest

from tools import build, server
from tools.engines import quarto
from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "tests" / "tools"))

CANDIDATES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def book_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site that the pandoc engine makes of this repository."""
    output = tmp_path_factory.mktemp("site") / "_book"
    build.build(ROOT, engine="pandoc", output=output)
    return output


@pytest.fixture(scope="session")
def sample_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of the sample book, which holds markup that no chapter happens to use."""
    import sample_book

    root = sample_book.write(tmp_path_factory.mktemp("sample"))
    build.build(root, engine="pandoc")
    return root / "_book"


@pytest.fixture(scope="session")
def quarto_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site that Quarto makes of this repository."""
    if not quarto.is_usable():
        pytest.skip("there is no Quarto 1.10 or newer on PATH")
    output = tmp_path_factory.mktemp("quarto") / "_book"
    build.build(ROOT, engine="quarto", output=output)
    return output


@pytest.fixture(scope="session")
def chromium():
    """A running Chromium; without one the test is skipped, or fails when DENSELAYER_REQUIRE_BROWSER=1."""
    path = os.environ.get("DENSELAYER_CHROMIUM") or next(filter(None, map(shutil.which, CANDIDATES)), None)
    missing = None if path else "no Chromium on PATH; DENSELAYER_CHROMIUM can name one"
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing = "Playwright for Python is not installed"
    if missing:
        if os.environ.get("DENSELAYER_REQUIRE_BROWSER") == "1":
            pytest.fail(missing)
        pytest.skip(missing)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()


def _served(folder: Path):
    site = server.open_server(folder, 0)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    return site


@pytest.fixture(scope="session")
def book_address(book_site: Path):
    """The address of the site, served on this machine."""
    site = _served(book_site)
    yield server.address(site)
    site.shutdown()
    site.server_close()


@pytest.fixture(scope="session")
def quarto_address(quarto_site: Path):
    site = _served(quarto_site)
    yield server.address(site)
    site.shutdown()
    site.server_close()
