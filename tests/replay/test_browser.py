from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.replay.browser import find_browser, run_browser
from tests.replay.made import opportunity, result, shown

from calomel.replay.opportunity import LogResult
from calomel.replay.page import write_report
from calomel.replay.summary import summarize

pytestmark = pytest.mark.e2e


@pytest.fixture
def browser() -> str:
    found = find_browser()
    if found is None:
        pytest.skip("no Chromium is installed")
    return found


def test_the_script_lists_the_suggestions_and_nothing_of_a_log_is_run(
    browser: str, tmp_path: Path, results: list[LogResult]
) -> None:
    page = tmp_path / "report.html"
    write_report(page, results, summarize(results), "Replay")
    seen = run_browser(browser, page, tmp_path / "profile", "--dump-dom")
    assert "340 of 340 suggestions, page 1 of 7" in seen
    assert seen.count("<article>") == 50
    assert "<title>Replay</title>" in seen
    assert not re.search(r"<img", seen)
    assert "&lt;img src=x onerror=alert(1)&gt;" in seen


def test_thousands_of_suggestions_can_be_listed(browser: str, tmp_path: Path) -> None:
    items = [opportunity(entry, shown(after=f"x = {entry}" * 20), time=entry) for entry in range(6000)]
    page = tmp_path / "report.html"
    write_report(page, [result(items)], summarize([result(items)]))
    seen = run_browser(browser, page, tmp_path / "profile", "--dump-dom")
    assert "6000 of 6000 suggestions, page 1 of 120" in seen
