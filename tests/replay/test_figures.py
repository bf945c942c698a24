"""The figures of a replay, by hand and by their books."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.replay.scripted import Scripted, log_of, opportunity, result, shown, typed

from calomel.infer.completer import CompleteAnswer, CompleteRequest
from calomel.prompts.parts import Edit
from calomel.replay.events import Changed, Problem, ReplayLog
from calomel.replay.figures import aurc, brier, changed_middle, chrf, delta_chrf, suite_delta_chrf
from calomel.replay.opportunity import Latency, LogResult, Opportunity, ReplayOptions
from calomel.replay.runs import replay_logs
from calomel.replay.summary import (
    ComparisonError,
    compare,
    counts_line,
    document,
    listings,
    render_report,
    suggestions,
    summarize,
    write_report,
)
from calomel.report.result import CONVERTER, Floats
from calomel.selectivity.sample import Reaction, auroc, ece


def of(*values: float) -> Floats:
    return np.asarray(values, dtype=np.float64)


def some() -> list[Opportunity]:
    return [
        opportunity(0, shown("accepted", 0.9, saved=10, kept=True), latency_ms=10, computed=100, cached=300),
        opportunity(1, shown("rejected", 0.6, after="x = 2"), latency_ms=20, computed=50, cached=350),
        opportunity(2, shown("partly", 0.7, saved=2, kept=False), latency_ms=30),
        opportunity(3, silence="off_file"),
        opportunity(4, shown("accepted", 0.2), silence="low_confidence", latency_ms=40),
        opportunity(5, shown("superseded", 0.8), silence="superseded", latency_ms=900),
        opportunity(6, shown("too_short", 0.8), latency_ms=50),
        opportunity(7, silence="empty", computed=10),
    ]


def many(seed: int) -> list[Opportunity]:
    rng = random.Random(seed)
    return [
        opportunity(
            entry, shown(rng.choice(["accepted", "rejected"]), rng.random(), saved=rng.randrange(9)), time=entry * 7
        )
        for entry in range(200)
    ]


def test_every_figure_lies_within_its_bounds_and_is_the_same_again_under_a_seed() -> None:
    results = [result(many(1)), result(many(2), log="other")]
    summary = summarize(results, seed=5)
    assert summary == summarize(results, seed=5)
    for name in [name.removesuffix("_low") for name in summary if name.endswith("_low")]:
        if summary[name] is not None:
            assert summary[f"{name}_low"] <= summary[name] <= summary[f"{name}_high"], name


def run_of(*saved: int) -> dict[str, object]:
    items = [opportunity(entry, shown("accepted", saved=number), time=entry * 61) for entry, number in enumerate(saved)]
    loaded: dict[str, object] = json.loads(json.dumps(document([result(items)])))
    return loaded


def test_runs_are_compared_over_the_opportunities_that_both_had() -> None:
    found = compare(run_of(1, 2, 3), run_of(2, 3, 4, 100))
    assert found.caption == "3 opportunities in both, 0 only in the first, 1only in the second"
    rows = {row[0]: row[1:] for row in found.rows}
    assert rows["characters_per_opportunity"][2] == "1.000 [1.000, 1.000]"
    assert rows["acceptance_rate"] == ("100.0% [43.9%, 100.0%]", "100.0% [51.0%, 100.0%]", "-")


def test_a_file_of_something_else_is_refused_in_a_sentence() -> None:
    with pytest.raises(ComparisonError, match="the second file is not a result"):
        compare(run_of(1), {"score": 1})


@pytest.mark.parametrize(
    ("figure", "scores", "taken", "expected"),
    [
        (auroc, (0.9, 0.8, 0.2, 0.1), (1, 1, 0, 0), 1.0),
        # Pairs (taken, not): (.5, .5) half, (.5, .1) one, (.9, .5) one, (.9, .1) one: 3.5 of 4.
        (auroc, (0.5, 0.9, 0.5, 0.1), (1, 1, 0, 0), 3.5 / 4),
        # Risks of the 1, 2, 3, 4 surest: 0, 1/2, 1/3, 1/2; the order of equally sure ones decides nothing.
        (aurc, (0.9, 0.8, 0.7, 0.6), (1, 0, 1, 0), (0 + 1 / 2 + 1 / 3 + 1 / 2) / 4),
        (aurc, (0.5, 0.5), (1, 0), 0.5),
        # (2 * |0.5 - 0.95| + 1 * |0 - 0.15|) / 3
        (ece, (0.91, 0.99, 0.15), (1, 0, 0), (2 * 0.45 + 0.15) / 3),
        (brier, (0.8, 0.4), (1, 0), (0.04 + 0.16) / 2),
        *((figure, (), (), None) for figure in (auroc, aurc, ece, brier)),
    ],
)
def test_figures_of_confidences_are_those_of_the_books(
    figure: Callable[[Floats, Floats], float | None],
    scores: tuple[float, ...],
    taken: tuple[int, ...],
    expected: float | None,
) -> None:
    assert figure(of(*scores), of(*taken)) == pytest.approx(expected)


def test_rates_are_of_what_a_person_saw_long_enough() -> None:
    summary = summarize([result(some())])
    expected = {
        "opportunities": 8, "shown": 3, "shown_rate": 3 / 8, "acceptance_rate": 1 / 3, "partly_rate": 1 / 3,
        "kept_rate": 1 / 2, "superseded": 1, "too_short": 1, "characters_per_opportunity": 12 / 8,
        "saved_share": 12 / 100,
        # 0.9 taken, 0.6 not, 0.7 partly (not), 0.2 taken though suppressed: pairs won 0.9 over both, 0.2 over none.
        "auroc": 2 / 4,
    }  # fmt: skip
    assert {name: summary[name] for name in expected} == pytest.approx(expected)
    assert summary["silences"] == {"empty": 1, "low_confidence": 1, "off_file": 1, "superseded": 1}
    assert summarize([result(some(), minutes=4)])["wasted_per_minute"] == pytest.approx(1 / 4)
    asked = summarize([result(some()[:3])])
    assert (asked["latency_p50_ms"], asked["computed_tokens"], asked["cached_share"]) == (20, 150 / 3, 650 / 800)
    words = {row[0]: row[1] for row in listings(summary)[0].rows}
    assert words["shown of opportunities"].startswith("37.5% [")
    assert "parse errors added" not in words
    assert "opportunities 8" in counts_line(summary)


def test_nothing_observed_leaves_null() -> None:
    summary = summarize([])
    assert (summary["opportunities"], summary["acceptance_rate"], summary["steps_per_question"]) == (0, None, None)
    json.dumps(summary, allow_nan=False)
    # And none of twenty is not certainly none.
    summary = summarize([result([opportunity(entry, shown("rejected", after="y")) for entry in range(20)])])
    assert (summary["exact_match"], summary["exact_match_high"]) == (0.0, pytest.approx(0.161, abs=1e-3))
    assert summary["acceptance_rate_high"] == pytest.approx(0.161, abs=1e-3)  # Wilson


@pytest.mark.parametrize(
    ("made", "wanted", "score"),
    [
        ("return x", "return x", 100.0),
        ("abc", "xyz", 0.0),
        # 1-grams P 2/2, R 2/3; 2-grams P 1/1, R 1/2; 3-grams P 0, R 0; longer ones do not occur. F = 5PR / (4P + R):
        # 5*(2/3)/(4+2/3) = 0.714286; 5*0.5/4.5 = 0.555556; 0. Their mean is 0.423280.
        ("ab", "abc", 42.3280),
    ],
)
def test_chrf(made: str, wanted: str, score: float) -> None:
    assert chrf(made, wanted) == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize(
    ("before", "made", "wanted", "score"),
    [
        ("a\nb", "a\nb", "a\nb", 100.0),
        ("abcdef", "abcdef ghijkl", "abcdef", 0.0),
        # The 1-, 2- and 3-grams are all wrong, 4- to 6-grams do not occur: 3 of 6 orders, which count as right.
        ("ab", "abd", "abc", 50.0),
        # 1-grams: wanted -b -c, made -c: P 1, R 1/2. 2-grams: wanted -ab -bc, made -bc: P 1, R 1/2. 3-grams: both -abc:
        # 1, 1. Longer: 1, 1. P 1, R 5/6, F = 5*(5/6)/(4+5/6) = 0.862069.
        ("abc", "ab", "a", 86.2069),
        ("a b", "a  b\n\tc", "a b c", 100.0),
    ],
)
def test_delta_chrf_is_of_what_changed(before: str, made: str, wanted: str, score: float) -> None:
    assert delta_chrf(before, made, wanted) == pytest.approx(score, abs=1e-4)


def test_the_suites_score_is_of_the_changed_middle_alone() -> None:
    before = "one\ntwo\nthree\n"
    assert suite_delta_chrf(before, "one\nTWO\nthree\n", "one\nTWO\nthree\n") == pytest.approx(100.0)
    assert suite_delta_chrf(before, before, "one\nTWO\nthree\n") == 0.0
    assert suite_delta_chrf("a\nb", "a\nb", "a\nb") == 100.0
    assert changed_middle("a\nb\nc\n", "a\nX\nY\nc\n") == "X\nY"
    assert changed_middle("a\r\nb", "a\nB") == "B"
    assert changed_middle("a\na", "a\na\na") == "a"


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


OPTIONS = ReplayOptions(latency=0.05)
SCRIPT: dict[str, str | tuple[str, float]] = {"x = ": "compute(1)", "y = ": ("other", 0.1)}


def open_scripted(_: ReplayOptions) -> Scripted:
    return Scripted(SCRIPT)


def logs(count: int = 3) -> list[ReplayLog]:
    return [
        log_of(*typed("xyz"[at % 3] + " = ", 0, 1.0), *typed("compute(1)", 4, 5.0 + at, entry=5), name=f"log-{at}")
        for at in range(count)
    ]


class Interrupted(Scripted):
    """Its user loses patience at the third question."""

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        if len(self.requests) == 2:
            raise KeyboardInterrupt
        return await super().complete(request)


@pytest.mark.parametrize("latency", [0.05, "measured"])
def test_an_interrupted_run_goes_on_where_it_stopped(
    tmp_path: Path, latency: Latency, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ReplayOptions(latency=latency)
    first = log_of(Changed(1, 1.0, "a.py", (Edit(0, 0, "x = "),)), name="first")
    pauses = [Changed(at, at * 20.0, "a.py", (Edit(4 * at, 4 * at, "y = "),)) for at in range(4)]
    second = log_of(*pauses, name="second")
    model = Interrupted(SCRIPT)

    def open_model(_: ReplayOptions) -> Scripted:
        return model

    with pytest.raises(KeyboardInterrupt):
        replay_logs([first, second], options, open_model=open_model, folder=tmp_path)
    assert len(model.requests) == 2
    again = Scripted(SCRIPT)
    model = again  # type: ignore[assignment]
    results = replay_logs([first, second], options, open_model=open_model, folder=tmp_path)
    # The first log is done.
    assert len(again.requests) == len(pauses)
    if latency != "measured":
        assert results == replay_logs([first, second], options, open_model=open_scripted, folder=tmp_path / "other")
    assert list(tmp_path.glob("*.jsonl")) == []


def test_several_processes_give_what_one_gives_in_the_same_order(tmp_path: Path) -> None:
    told: list[tuple[int, int, int]] = []

    def news(*numbers: int) -> None:
        told.append((numbers[0], numbers[1], numbers[2]))

    alone = replay_logs(logs(), OPTIONS, open_model=open_scripted, folder=tmp_path, report=news)
    together = replay_logs(logs(), OPTIONS, jobs=2, open_model=open_scripted, folder=tmp_path)
    assert [result.log for result in together] == ["log-0", "log-1", "log-2"]
    assert CONVERTER.unstructure(together) == CONVERTER.unstructure(alone)
    assert CONVERTER.structure(json.loads(json.dumps(CONVERTER.unstructure(alone))), list[LogResult]) == alone
    assert alone[0].opportunities[0].shown
    assert (0, 15, 15) in told
    assert told[-1] == (2, 15, 15)
