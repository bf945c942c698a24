from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from tests.replay.conftest import NASTY

from calomel.replay.opportunity import LogResult
from calomel.replay.page import render_report, suggestions, write_report
from calomel.replay.summary import summarize


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


def test_the_reliability_of_the_confidence_is_told_bin_by_bin(results: list[LogResult]) -> None:
    page = page_of(results)
    assert "Reliability of the confidence" in page
    assert page.count(" to 0.") + page.count(" to 1.0") >= 10


def test_a_replay_without_suggestions_says_so(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "report.html"
    write_report(path, [], summarize([]))
    page = path.read_text(encoding="utf-8")
    assert "Replay" in page
    assert data_of(page) == []


def test_the_recorded_assistant_stands_beside_ours(results: list[LogResult]) -> None:
    page = page_of(results)
    assert "At the recorded assistant&#39;s shown rate" in page
    assert "6 of 40, 15.0%" in page


def test_makers_stand_on_the_page_with_what_became_of_their_proposals(results: list[LogResult]) -> None:
    first = next(item for item in results[0].opportunities if item.candidate is not None)
    assert first.candidate is not None
    assert "Makers of suggestions" not in page_of(results)
    made = replace(first, makers=("canvas",), candidate=replace(first.candidate, maker="rename"))
    page = page_of([replace(results[0], opportunities=[made])])
    assert "Makers of suggestions" in page
    assert '<td class="number">rename</td>' in page
