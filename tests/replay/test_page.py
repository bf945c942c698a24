"""The page of a replay, also in a headless Chromium when one is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.replay.made import opportunity, result, shown

from calomel.replay.events import Problem
from calomel.replay.opportunity import LogResult
from calomel.replay.summary import render_report, suggestions, summarize, write_report
from calomel.selectivity.sample import Reaction

NASTY = "</script><script>document.title = 'broken'</script><img src=x onerror=alert(1)> & \u2028 \U0001f600"


@pytest.fixture
def results() -> list[LogResult]:
    """Enough of everything that each plot has something to show; texts that try to break out."""
    ours = []
    for entry in range(300):
        outcome: Reaction = "accepted" if entry % 4 == 0 else "rejected"
        call = f"def call{entry}():\n    return "
        texts = {"before": call, "after": f"{call}{entry or NASTY}", "expected": f"{call}{entry}"}
        candidate = shown(outcome, entry / 300, kept=True, saved=9, signals={"parse_error_delta": 0.5}, **texts)
        silence = "low_confidence" if entry < 60 else None
        ours.append(
            opportunity(entry, candidate, silence=silence, time=entry * 9.0, latency_ms=90 + entry, computed=40)
        )
    ours.append(opportunity(300, silence="empty", latency_ms=30.0, computed=12))
    theirs = [
        opportunity(1000 + entry, shown("accepted" if entry % 6 == 0 else "rejected", None, source="recorded & co"))
        for entry in range(40)
    ]
    found = result(ours, theirs, minutes=45, typed=9000, log="session <one>")
    found.real_accepts, found.real_offers = 6, 40
    found.problems.append(Problem(17, "The range <5, 9> lies outside; it is left out."))
    return [found]


def page_of(results: list[LogResult]) -> str:
    return render_report(results, summarize(results), "Replay of <a> & b")


def data_of(page: str) -> list[dict[str, object]]:
    match = re.search(r'<script type="application/json" id="suggestions-data">(.*?)</script>', page, re.DOTALL)
    assert match is not None
    loaded: list[dict[str, object]] = json.loads(match[1])
    return loaded


def test_the_page_allows_its_own_style_and_script_and_nothing_else(results: list[LogResult]) -> None:
    page = page_of(results)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy[1]
    assert not re.search(r"https?://", page)
    assert not re.search(r"""\s(?:src|href|style|on\w+)=["']""", page.split("<script", 1)[0])


def test_no_text_of_a_log_can_become_markup(results: list[LogResult]) -> None:
    page = page_of(results)
    assert NASTY not in page
    assert "<img" not in page
    assert "<title>Replay of &lt;a&gt; &amp; b</title>" in page
    assert "The range &lt;5, 9&gt; lies outside" in page
    assert page.count("</script>") == 2
    assert any(NASTY in str(row["after"]) for row in data_of(page))


def test_every_suggestion_is_in_the_list_also_what_was_held_back(results: list[LogResult]) -> None:
    rows = data_of(page_of(results))
    assert len(rows) == 300 + 40
    assert rows == suggestions(results)
    held = next(row for row in rows if row.get("silence") == "low_confidence")
    assert held["shown"] is False
    assert {"before", "after", "expected", "confidence", "signals", "outcome", "latency_ms"} <= set(held)


@pytest.mark.e2e
def test_the_script_lists_the_suggestions_and_nothing_of_a_log_is_run(tmp_path: Path, results: list[LogResult]) -> None:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome-headless-shell")
    browser = next((path for path in map(shutil.which, names) if path), None)
    if browser is None:
        pytest.skip("no Chromium is installed")
    page = tmp_path / "report.html"
    write_report(page, results, summarize(results), "Replay")
    options = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--dump-dom"]
    # Containers run tests as root, where Chromium has no sandbox; the page is our own.
    options += ["--no-sandbox", f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=5000"]
    command = [browser, *options, page.as_uri()]
    seen = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert "340 of 340 suggestions, page 1 of 7" in seen
    assert seen.count("<article>") == 50
    assert "<title>Replay</title>" in seen
    assert "<img" not in seen
    assert "&lt;img src=x onerror=alert(1)&gt;" in seen
