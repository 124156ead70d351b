"""A real browser for tests: Chromium without a window, which reports what it logs and what it loads."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
)  # fmt: skip


@contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """A browser with a profile of its own; the test is skipped where there is none.

    Args:
        profile: an empty folder.
    """
    browser, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if browser is None or driver is None:
        pytest.skip("Chromium and its driver are not here: apt-get install chromium chromium-driver")
    selenium = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    options = selenium.ChromeOptions()
    options.binary_location = browser
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = selenium.Chrome(options=options, service=selenium.ChromeService(executable_path=driver))
    try:
        yield found
    finally:
        found.quit()


def opened(browser: Any, file: Path, dark: bool = False, width: int = 1280) -> None:
    """Open a page.

    Args:
        browser: the browser.
        file: the page.
        dark: whether the reader prefers dark colours.
        width: the width of the window.
    """
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    browser.set_window_size(width, 900)
    for kind in ("browser", "performance"):
        browser.get_log(kind)  # what was logged before
    browser.get(file.as_uri())


def requests_of(browser: Any) -> list[str]:
    """The addresses that were asked for since the page was opened.

    Args:
        browser: the browser.
    """
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"]
    return [url for url in sent if not url.startswith(("data:", "chrome:"))]


def axe_core(folder: Path) -> str:
    """The source of axe-core, which npm fetches; the test is skipped where that is impossible.

    Args:
        folder: where to put it.
    """
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not here, which fetches axe-core")
    command = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--ignore-scripts", "axe-core@4"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"npm could not fetch axe-core ({type(error).__name__})")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
