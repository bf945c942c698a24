"""A headless Chromium, when one is installed: it runs the page and shows it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome-headless-shell")


def find_browser() -> str | None:
    return next((path for path in map(shutil.which, NAMES) if path), None)


def run_browser(browser: str, page: Path, profile: Path, *options: str, size: tuple[int, int] = (1200, 1600)) -> str:
    done = subprocess.run(
        [
            browser,
            "--headless=new",
            # Containers run tests as root, where Chromium has no sandbox; the page is our own.
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--no-first-run",
            f"--user-data-dir={profile}",
            f"--window-size={size[0]},{size[1]}",
            "--virtual-time-budget=5000",
            *options,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout
