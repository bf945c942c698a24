"""The documentation builds into a site that loads nothing from elsewhere."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.house.pages import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="pip install 'calomel[docs]'"),
]


def test_site_builds_without_a_warning_and_needs_nobody(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    pages = list(tmp_path.rglob("*.html"))
    assert {"index.html", "privacy.html", "troubleshooting.html"} <= {page.name for page in pages}
    loaded = re.compile(
        r"<(?:script|img|iframe|source)[^>]*\ssrc=\"((?:https?:)?//[^\"]+)|<link[^>]*href=\"((?:https?:)?//[^\"]+)"
    )
    assert [found for page in pages for found in loaded.findall(page.read_text(encoding="utf-8"))] == []
    styles = [style.read_text(encoding="utf-8", errors="replace") for style in tmp_path.rglob("*.css")]
    assert not [
        style for style in styles if re.search(r"@import\s+(url\()?[\"']?(https?:)?//|url\([\"']?(https?:)?//", style)
    ]
