from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.replay.recordings import shared, texts

from calomel.replay.events import Opened
from calomel.replay.logs import read_keystrokes, read_log


def trace(
    *patches: list[Any], start: str = "", end: str | None = None, times: list[Any] | None = None
) -> dict[str, Any]:
    stamps = times or [f"2020-01-01T00:00:{number:02}.000Z" for number in range(len(patches))]
    return {
        "startContent": start,
        "endContent": end,
        "txns": [{"time": time, "patches": each} for time, each in zip(stamps, patches, strict=True)],
    }


def test_a_trace_ends_in_its_end_content() -> None:
    log = read_keystrokes("rustcode", trace([[0, 0, "fn 😀"]], [[4, 0, "!"], [0, 2, "FN"]], end="FN 😀!"))
    assert texts(log.events) == {"skiplist.rs": "FN 😀!"}
    assert (log.checks.end_content_right, log.problems) == (True, [])
    assert log.events[0] == Opened(0, 0.0, "skiplist.rs", "rust", "")


@pytest.mark.parametrize("wrong", [[[99, 0, "x"]], [[0, -1, ""]], [[0, 0]], None])
def test_a_wrong_transaction_ends_what_is_known(wrong: Any) -> None:
    log = read_keystrokes("a.py", trace([[0, 0, "ab"]], wrong, [[0, 0, "y"]], end="yab"))
    assert texts(log.events) == {"a.py": "ab"}
    assert log.problems[0].entry == 1
    assert "1 transactions after it" in log.problems[0].message
    assert log.checks.end_content_right is False


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=12), st.data())
def test_changes_give_what_the_patches_give(start: str, data: st.DataObject) -> None:
    text, transactions = start, []
    for _ in range(data.draw(st.integers(0, 5))):
        patches = []
        for _ in range(data.draw(st.integers(0, 4))):
            at = data.draw(st.integers(0, len(text)))
            removed = data.draw(st.integers(0, len(text) - at))
            new = data.draw(st.text(max_size=3))
            text = text[:at] + new + text[at + removed :]
            patches.append([at, removed, new])
        transactions.append(patches)
    log = read_keystrokes("a.py", trace(*transactions, start=start, end=text))
    assert texts(log.events) == {"a.py": text}
    assert log.checks.end_content_right


@pytest.mark.parametrize(("name", "count"), [("rustcode", 36_981), ("sveltecomponent", 18_335)])
def test_a_real_trace_ends_in_its_end_content(name: str, count: int) -> None:
    log = read_log(shared(f"keystrokes/{name}.json.gz"))
    assert log.checks.end_content_right is True
    assert log.problems == []
    assert len({event.entry for event in log.events}) == count
    times = [event.time for event in log.events]
    assert times == sorted(times)


def test_a_truncated_trace_is_read_up_to_where_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    whole = json.dumps(trace(*([[0, 0, "x"]] for _ in range(9)), end="x"))
    path.write_text(whole[:-30])
    log = read_log(path)
    assert log.kind == "keystrokes"
    assert texts(log.events) == {"a.txt": "x" * 8}
    assert [problem.entry for problem in log.problems] == [8]
    path.write_text(whole)
    log = read_log(path)
    assert log.checks.end_content_right is False
    assert [problem.message for problem in log.problems] == ["The text at the end is not endContent."]
